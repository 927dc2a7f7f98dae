import asyncio
import random
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from rota.limits import window as window_module
from rota.limits.result import Ceilings, LimitResult, full_window, rate_limit_headers
from rota.limits.window import Window, connect

BASIC = Ceilings(all=600, ai=300)
# A long timeout, so that a stall of a busy machine does not switch to the fallback.
LONG_TIMEOUT_S = 10


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture
async def window(redis: Redis) -> AsyncIterator[Window]:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S)
    yield window
    await window.aclose()


@pytest.fixture
def key() -> str:
    return f"acct:{uuid4()}"


async def spend(window: Window, key: str, ceilings: Ceilings, count: int, *, ai: bool) -> int:
    """Sends `count` requests and returns how many passed."""
    results = await asyncio.gather(*[window.admit(key, ceilings, ai=ai) for _ in range(count)])
    return sum(result.allowed for result in results)


async def test_a_request_is_counted_and_described(window: Window, key: str) -> None:
    assert await window.admit(key, BASIC, ai=False) == LimitResult(True, 600, 599, 60, "600;w=60")
    assert await window.admit(key, BASIC, ai=True) == LimitResult(
        True, 300, 299, 60, "600;w=60, 300;w=60"
    )


async def test_the_301st_ai_request_is_refused_while_others_pass(window: Window, key: str) -> None:
    assert await spend(window, key, BASIC, 300, ai=True) == 300

    refused = await window.admit(key, BASIC, ai=True)
    assert (refused.allowed, refused.limit, refused.remaining) == (False, 300, 0)
    assert 1 <= refused.reset_s <= 60

    other = await window.admit(key, BASIC, ai=False)
    assert other == LimitResult(True, 600, 299, other.reset_s, "600;w=60")
    assert 1 <= other.reset_s <= 60


async def test_a_refused_request_counts_toward_neither_ceiling(window: Window, key: str) -> None:
    ceilings = Ceilings(all=10, ai=2)
    assert await spend(window, key, ceilings, 50, ai=True) == 2
    assert await spend(window, key, ceilings, 50, ai=False) == 8

    # Both ceilings are reached, and the refused requests were not counted.
    raised = Ceilings(all=11, ai=3)
    assert await spend(window, key, raised, 50, ai=True) == 1


async def test_the_headers_describe_the_ceiling_with_fewer_requests_remaining(
    window: Window, key: str
) -> None:
    ceilings = Ceilings(all=10, ai=5)
    assert await spend(window, key, ceilings, 7, ai=False) == 7
    result = await window.admit(key, ceilings, ai=True)
    assert (result.limit, result.remaining) == (10, 2)


async def test_a_refusal_by_both_ceilings_reports_the_longer_wait(redis: Redis, key: str) -> None:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=3)
    ceilings = Ceilings(all=2, ai=1)
    assert (await window.admit(key, ceilings, ai=False)).allowed
    await asyncio.sleep(1.1)
    assert (await window.admit(key, ceilings, ai=True)).allowed

    assert (await window.admit(key, ceilings, ai=False)).reset_s == 2
    refused = await window.admit(key, ceilings, ai=True)
    assert (refused.allowed, refused.limit, refused.reset_s) == (False, 1, 3)


async def test_a_new_tier_applies_immediately(window: Window, key: str) -> None:
    assert await spend(window, key, Ceilings(5, 5), 9, ai=False) == 5
    assert await spend(window, key, Ceilings(8, 8), 9, ai=False) == 3
    lowered = await window.admit(key, Ceilings(2, 2), ai=False)
    assert (lowered.allowed, lowered.limit, lowered.remaining) == (False, 2, 0)


async def test_a_lowered_ceiling_reports_when_enough_requests_have_expired(
    redis: Redis, key: str
) -> None:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=3)
    assert await spend(window, key, Ceilings(9, 9), 4, ai=False) == 4
    await asyncio.sleep(1.1)
    assert await spend(window, key, Ceilings(9, 9), 4, ai=False) == 4
    # For six, the four old requests have to expire. For two, some of the new ones as well.
    assert (await window.admit(key, Ceilings(6, 6), ai=False)).reset_s == 2
    assert (await window.admit(key, Ceilings(2, 2), ai=False)).reset_s == 3


async def test_a_request_can_count_as_several(window: Window, key: str) -> None:
    ceilings = Ceilings(all=10, ai=10)
    first = await window.admit(key, ceilings, ai=False)
    # Four instead of one, not in addition.
    four = await window.admit(key, ceilings, ai=False, cost=4, replaces=first)
    assert (four.allowed, four.remaining) == (True, 6)
    seven = await window.admit(key, ceilings, ai=False, cost=7)
    assert (seven.allowed, seven.remaining) == (False, 6)
    assert (await window.admit(key, ceilings, ai=False, cost=6)).remaining == 0


async def test_a_request_whose_recount_is_refused_counts_as_one(window: Window, key: str) -> None:
    ceilings = Ceilings(all=10, ai=5)
    assert await spend(window, key, ceilings, 3, ai=True) == 3
    first = await window.admit(key, ceilings, ai=True)
    refused = await window.admit(key, ceilings, ai=True, cost=3, replaces=first)
    assert (refused.allowed, refused.limit, refused.remaining) == (False, 5, 1)
    assert await spend(window, key, ceilings, 9, ai=True) == 1
    assert await spend(window, key, ceilings, 9, ai=False) == 5


async def test_a_request_that_counts_as_more_than_the_ceiling_needs_an_empty_window(
    window: Window, key: str
) -> None:
    ceilings = Ceilings(all=5, ai=5)
    assert (await window.admit(key, ceilings, ai=False, cost=50)).remaining == 0
    assert not (await window.admit(key, ceilings, ai=False, cost=50)).allowed


async def test_the_wait_of_a_refusal_is_until_the_whole_request_fits(
    redis: Redis, key: str
) -> None:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=3)
    ceilings = Ceilings(9, 9)
    assert await spend(window, key, ceilings, 4, ai=False) == 4
    await asyncio.sleep(1.1)
    assert await spend(window, key, ceilings, 4, ai=False) == 4
    # For five, the four old requests have to expire. For six, one of the new ones as well.
    assert (await window.admit(key, ceilings, ai=False, cost=5)).reset_s == 2
    assert (await window.admit(key, ceilings, ai=False, cost=6)).reset_s == 3


async def test_a_ceiling_of_zero_refuses_every_request(window: Window, key: str) -> None:
    nothing = LimitResult(False, 0, 0, 60, "0;w=60")
    assert await window.admit(key, Ceilings(0, 0), ai=False) == nothing


async def test_a_long_log_is_compact_trimmed_in_one_call_and_expires(
    redis: Redis, key: str
) -> None:
    ceilings = Ceilings(all=6000, ai=4800)
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=3)
    for _ in range(6):
        assert await spend(window, key, ceilings, 1000, ai=False) == 1000
    log = f"limits:{{{key}}}"
    assert await redis.llen(log) <= 6000
    assert 0 < await redis.pttl(log) <= 4000

    await redis.delete(log)
    minute = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S)
    for _ in range(6):
        assert await spend(minute, key, ceilings, 1000, ai=False) == 1000
    assert await redis.llen(log) == 6000
    assert (await redis.memory_usage(log, samples=0) or 0) in range(60_000, 90_000)
    assert 59_000 < await redis.pttl(log) <= 61_000

    # With a window of a microsecond, all six thousand entries expire in one call.
    moment = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=0.000_001)
    assert (await moment.admit(key, ceilings, ai=False)).remaining == 5999
    assert await redis.llen(log) == 1

    emptied_at = time.monotonic()
    while await redis.exists(log):
        assert time.monotonic() < emptied_at + 30
        await asyncio.sleep(0.05)


async def test_the_ceiling_holds_when_the_clock_goes_back(redis: Redis, key: str) -> None:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S, window_s=2)
    ceilings = Ceilings(all=5, ai=5)
    an_hour_ahead = (int(time.time()) + 3600) * 1_000_000
    log = f"limits:{{{key}}}"
    await redis.rpush(log, *[an_hour_ahead + i * 100_000 for i in range(3)])

    assert await spend(window, key, ceilings, 10, ai=False) == 2
    assert await redis.llen(log) == 5
    # The old entries keep their distances and expire in order.
    times = [int(time_us) for time_us in await redis.lrange(log, 0, 2)]
    assert [later - earlier for earlier, later in pairwise(times)] == [100_000, 100_000]
    refused = await window.admit(key, ceilings, ai=False)
    assert refused.reset_s == 2
    await asyncio.sleep(refused.reset_s)
    assert (await window.admit(key, ceilings, ai=False)).allowed


async def test_the_script_is_loaded_again_when_redis_has_lost_it(
    redis: Redis, window: Window, key: str
) -> None:
    await window.admit(key, BASIC, ai=False)
    await redis.script_flush()
    assert (await window.admit(key, BASIC, ai=False)).remaining == 598


async def test_requests_at_the_same_time_share_calls_and_each_gets_its_own_reply(
    redis: Redis, window: Window, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await window.admit(key, BASIC, ai=False)
    calls = []
    evalsha = redis.evalsha

    async def counted(*given: Any) -> Any:
        calls.append(given)
        return await evalsha(*given)

    monkeypatch.setattr(redis, "evalsha", counted)
    # Some have two logs, one has a log for itself, and those of one key count one after the other.
    asked = [
        window.admit(f"{key}:{n % 10}", Ceilings(100 + n % 10, 50), ai=n % 10 == 3)
        for n in range(200)
    ]
    results = await asyncio.gather(*asked)
    assert len(calls) <= 200 / window_module.REQUESTS_OF_A_CALL + 2
    for n, result in enumerate(results):
        limit, earlier = (50 if n % 10 == 3 else 100 + n % 10), n // 10
        assert (result.limit, result.remaining) == (limit, limit - 1 - earlier)


async def test_a_recounted_request_takes_no_entry_of_another_one_of_the_same_moment(
    redis: Redis, window: Window, key: str
) -> None:
    first, other = await asyncio.gather(
        window.admit(key, BASIC, ai=False), window.admit(key, BASIC, ai=True)
    )
    # They shared a call, so both were counted at the same time.
    assert first.at == other.at
    await window.admit(key, BASIC, ai=True, replaces=first)
    assert await redis.llen(f"limits:{{{key}}}:ai") == 2
    assert await redis.llen(f"limits:{{{key}}}") == 2


async def test_requests_that_wait_when_the_window_is_closed_are_limited_by_this_process(
    redis: Redis, key: str
) -> None:
    window = Window(redis, processes=1, timeout_s=LONG_TIMEOUT_S)
    asked = [asyncio.create_task(window.admit(key, BASIC, ai=False)) for _ in range(200)]
    await asyncio.sleep(0)
    await window.aclose()
    async with asyncio.timeout(10):
        assert all(result.allowed for result in await asyncio.gather(*asked))
        assert (await window.admit(key, BASIC, ai=False)).allowed


@pytest.mark.timed
async def test_a_burst_of_thousands_is_not_an_outage(redis_url: str, key: str) -> None:
    redis = connect(redis_url)
    window = Window(redis, processes=1000, timeout_s=0.1)
    start = time.monotonic()
    assert await spend(window, key, Ceilings(20_000, 1), 20_000, ai=False) == 20_000
    # Some requests waited longer than the timeout, but Redis was never silent for that long.
    assert time.monotonic() - start > 0.1
    await window.aclose()
    await redis.aclose()


async def test_a_busy_process_is_not_an_outage(redis: Redis, key: str) -> None:
    window = Window(redis, processes=1000, timeout_s=0.1)
    await window.admit(key, BASIC, ai=False)
    asking = asyncio.create_task(window.admit(key, BASIC, ai=False))
    await asyncio.sleep(0)
    time.sleep(0.3)
    assert (await asking).remaining == 598
    await window.aclose()


async def test_a_cancelled_request_does_not_leave_its_reply_to_another_one(
    redis_url: str, key: str
) -> None:
    dice = random.Random(8)
    redis = connect(redis_url)
    window = Window(redis, processes=1000, timeout_s=LONG_TIMEOUT_S)
    for turn in range(200):
        # Each request has its own key and ceiling, so a misdirected reply would be visible.
        tasks = [
            asyncio.create_task(window.admit(f"{key}:{turn}:{i}", Ceilings(50 + i, 1), ai=False))
            for i in range(16)
        ]
        for _ in range(dice.randint(0, 12)):
            await asyncio.sleep(0)
        cancelled = set(dice.sample(tasks, 8))
        for task in cancelled:
            task.cancel()
        for i, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
            if tasks[i] not in cancelled:
                assert result == LimitResult(True, 50 + i, 49 + i, 60, f"{50 + i};w=60")
    (_, _), (in_use, _) = redis.connection_pool.get_connection_count()
    assert in_use == 0
    await window.aclose()
    await redis.aclose()


def test_the_headers_report_limit_remaining_reset_and_policy() -> None:
    assert rate_limit_headers(LimitResult(True, 300, 12, 7, "600;w=60, 300;w=60")) == [
        (b"ratelimit-limit", b"300"),
        (b"ratelimit-remaining", b"12"),
        (b"ratelimit-reset", b"7"),
        (b"ratelimit-policy", b"600;w=60, 300;w=60"),
    ]


def test_the_headers_of_a_refusal_include_retry_after() -> None:
    assert rate_limit_headers(LimitResult(False, 600, 0, 41, "600;w=60"))[-2:] == [
        (b"ratelimit-policy", b"600;w=60"),
        (b"retry-after", b"41"),
    ]


def test_a_route_without_a_limit_reports_a_full_window() -> None:
    assert full_window(BASIC) == LimitResult(True, 600, 600, 0, "600;w=60")
