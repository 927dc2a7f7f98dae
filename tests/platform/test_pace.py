"""Expensive work of an account is spread over time, and does not delay other accounts."""

import asyncio
import time
from uuid import uuid4

import pytest

from rota.platform.errors import RateLimited
from rota.platform.pace import Pace
from rota.platform.shares import REFUSED


async def test_work_waits_until_earlier_work_is_a_small_share_of_the_time() -> None:
    pace = Pace("test", "Too much.", share=0.1, wait_s=5)
    account = uuid4()
    started = time.monotonic()
    await pace.wait(account, 0.01)
    assert time.monotonic() - started < 0.1
    # What was expected, and what it took beyond that.
    pace.spend(account, 0.02)
    await pace.wait(account)
    assert time.monotonic() - started >= 0.3


async def test_those_who_wait_also_wait_for_what_is_spent_meanwhile() -> None:
    pace = Pace("test", "Too much.", share=0.1, wait_s=5)
    account = uuid4()
    pace.spend(account, 0.01)
    started = time.monotonic()
    ended: list[int] = []

    async def work(number: int) -> None:
        await pace.wait(account, 0.01)
        ended.append(number)

    waiting = asyncio.gather(*map(work, range(3)))
    await asyncio.sleep(0)
    pace.spend(account, 0.02)
    await waiting
    assert ended == [0, 1, 2]
    assert time.monotonic() - started >= 0.5


async def test_who_waits_too_long_behind_others_is_refused() -> None:
    pace = Pace("test", "Too much.", share=0.1, wait_s=0.2)
    account = uuid4()
    results = await asyncio.gather(
        *[pace.wait(account, 0.015) for _ in range(4)], return_exceptions=True
    )
    assert [type(each) for each in results] == [type(None)] * 2 + [RateLimited] * 2


async def test_an_account_that_would_wait_too_long_is_refused_and_others_are_not() -> None:
    pace = Pace("test", "Too much.", share=0.1, wait_s=5)
    account = uuid4()
    before = REFUSED.labels("test")._value.get()
    pace.spend(account, 1)
    with pytest.raises(RateLimited, match="Too much") as refused:
        await pace.wait(account)
    assert refused.value.headers == {"Retry-After": "10"}
    assert REFUSED.labels("test")._value.get() == before + 1
    started = time.monotonic()
    await pace.wait(uuid4())
    assert time.monotonic() - started < 1
