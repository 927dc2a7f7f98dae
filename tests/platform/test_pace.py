"""Expensive work of an account is spread over time, and does not delay other accounts."""

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


async def test_an_account_that_would_wait_too_long_is_refused_and_others_are_not() -> None:
    pace = Pace("test", "Too much.", share=0.1, wait_s=5)
    account = uuid4()
    before = REFUSED.labels("test")._value.get()
    pace.spend(account, 1)
    with pytest.raises(RateLimited, match="Too much"):
        await pace.wait(account)
    assert REFUSED.labels("test")._value.get() == before + 1
    started = time.monotonic()
    await pace.wait(uuid4())
    assert time.monotonic() - started < 1
