import asyncio
import random
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from rota.limits.window import Ceilings, Verdict, Window, connect, headers, untouched

BASIC = Ceilings(all=600, ai=300)
# Only Redis is to answer here, also on a machine so busy that it stalls for a moment.
PATIENT_S = 10


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture
async def window(redis: Redis) -> AsyncIterator[Window]:
    window = Window(redis, processes=1, timeout_s=PATIENT_S)
    yield window
    await window.aclose()


@pytest.fixture
def key() -> str:
    return f"acct:{uuid4()}"


async def spend(window: Window, key: str, ceilings: Ceilings, count: int, *, ai: bool) -> int:
    """Makes `count` requests and gives how many passed."""
    verdicts = await asyncio.gather(*(window.admit(key, ceilings, ai=ai) for _ in range(count)))
    return sum(verdict.allowed for verdict in verdicts)


async def test_a_request_is_counted_and_described(window: Window, key: str) -> None:
    assert await window.admit(key, BASIC, ai=False) == Verdict(True, 600, 599, 60, "600;w=60")
    assert await window.admit(key, BASIC, ai=True) == Verdict(
        True, 300, 299, 60, "600;w=60, 300;w=60"
    )


async def test_the_301st_ai_request_is_refused_while_others_pass(window: Window, key: str) -> None:
    assert await spend(window, key, BASIC, 300, ai=True) == 300

    refused = await window.admit(key, BASIC, ai=True)
    assert (refused.allowed, refused.limit, refused.remaining) == (False, 300, 0)
    assert 1 <= refused.reset_s <= 60

    assert await window.admit(key, BASIC, ai=False) == Verdict(True, 600, 299, 60, "600;w=60")


async def test_a_refused_request_counts_toward_neither_ceiling(window: Window, key: str) -> None:
    ceilings = Ceilings(all=10, ai=2)
    assert await spend(window, key, ceilings, 50, ai=True) == 2
    assert await spend(window, key, ceilings, 50, ai=False) == 8

    # Both are full now, and no refusal has made either any fuller.
    raised = Ceilings(all=11, ai=3)
    assert await spend(window, key, raised, 50, ai=True) == 1


async def test_the_headers_describe_the_ceiling_with_fewer_requests_remaining(
    window: Window, key: str
) -> None:
    ceilings = Ceilings(all=10, ai=5)
    assert await spend(window, key, ceilings, 7, ai=False) == 7
    verdict = await window.admit(key, ceilings, ai=True)
    assert (verdict.limit, verdict.remaining) == (10, 2)


async def test_a_refusal_by_both_ceilings_tells_the_longer_wait(redis: Redis, key: str) -> None:
    window = Window(redis, processes=1, timeout_s=PATIENT_S, window_s=3)
    ceilings = Ceilings(all=2, ai=1)
    assert (await window.admit(key, ceilings, ai=False)).allowed
    await asyncio.sleep(1.1)
    assert (await window.admit(key, ceilings, ai=True)).allowed

    assert (await window.admit(key, ceilings, ai=False)).reset_s == 2
    refused = await window.admit(key, ceilings, ai=True)
    assert (refused.allowed, refused.limit, refused.reset_s) == (False, 1, 3)


async def test_another_tier_takes_effect_at_once(window: Window, key: str) -> None:
    assert await spend(window, key, Ceilings(5, 5), 9, ai=False) == 5
    assert await spend(window, key, Ceilings(8, 8), 9, ai=False) == 3
    lowered = await window.admit(key, Ceilings(2, 2), ai=False)
    assert (lowered.allowed, lowered.limit, lowered.remaining) == (False, 2, 0)


async def test_a_lowered_ceiling_tells_when_enough_requests_have_left(
    redis: Redis, key: str
) -> None:
    window = Window(redis, processes=1, timeout_s=PATIENT_S, window_s=3)
    assert await spend(window, key, Ceilings(9, 9), 4, ai=False) == 4
    await asyncio.sleep(1.1)
    assert await spend(window, key, Ceilings(9, 9), 4, ai=False) == 4
    # Below six the four old ones suffice; below two, some of the new ones must leave too.
    assert (await window.admit(key, Ceilings(6, 6), ai=False)).reset_s == 2
    assert (await window.admit(key, Ceilings(2, 2), ai=False)).reset_s == 3


async def test_a_ceiling_of_nothing_refuses_everything(window: Window, key: str) -> None:
    nothing = Verdict(False, 0, 0, 60, "0;w=60")
    assert await window.admit(key, Ceilings(0, 0), ai=False) == nothing


async def test_a_long_log_is_small_trimmed_at_once_and_expires_by_itself(
    redis: Redis, key: str
) -> None:
    ceilings = Ceilings(all=6000, ai=4800)
    window = Window(redis, processes=1, timeout_s=PATIENT_S, window_s=3)
    for _ in range(6):
        assert await spend(window, key, ceilings, 1000, ai=False) == 1000
    log = f"limits:{{{key}}}"
    filled_at = time.monotonic()
    assert await redis.llen(log) <= 6000
    assert 0 < await redis.pttl(log) <= 4000

    await redis.delete(log)
    minute = Window(redis, processes=1, timeout_s=PATIENT_S)
    for _ in range(6):
        assert await spend(minute, key, ceilings, 1000, ai=False) == 1000
    assert await redis.llen(log) == 6000
    assert (await redis.memory_usage(log, samples=0) or 0) in range(60_000, 90_000)
    assert 59_000 < await redis.pttl(log) <= 61_000

    # A window of next to nothing lets all six thousand leave in one call.
    moment = Window(redis, processes=1, timeout_s=PATIENT_S, window_s=0.000_001)
    assert (await moment.admit(key, ceilings, ai=False)).remaining == 5999
    assert await redis.llen(log) == 1

    while await redis.exists(log):
        assert time.monotonic() < filled_at + 30
        await asyncio.sleep(0.05)


async def test_a_clock_that_goes_back_admits_no_more_than_the_ceiling(
    redis: Redis, key: str
) -> None:
    window = Window(redis, processes=1, timeout_s=PATIENT_S, window_s=2)
    ceilings = Ceilings(all=5, ai=5)
    an_hour_ahead = (int(time.time()) + 3600) * 1_000_000
    log = f"limits:{{{key}}}"
    await redis.rpush(log, *(an_hour_ahead + i * 400_000 for i in range(3)))

    assert await spend(window, key, ceilings, 10, ai=False) == 2
    assert await redis.llen(log) == 5
    # What was there keeps its distances (0.8 s between first and last) and leaves in its turn.
    refused = await window.admit(key, ceilings, ai=False)
    assert refused.reset_s == 2
    await asyncio.sleep(refused.reset_s)
    assert (await window.admit(key, ceilings, ai=False)).allowed


async def test_a_redis_that_has_forgotten_the_script_is_told_it_again(
    redis: Redis, window: Window, key: str
) -> None:
    await window.admit(key, BASIC, ai=False)
    await redis.script_flush()
    assert (await window.admit(key, BASIC, ai=False)).remaining == 598


async def test_both_logs_of_a_key_share_a_slot_of_a_cluster(
    redis: Redis, window: Window, key: str
) -> None:
    await window.admit(key, BASIC, ai=True)
    names = [name async for name in redis.scan_iter(f"*{key}*")]
    assert sorted(names) == [f"limits:{{{key}}}".encode(), f"limits:{{{key}}}:ai".encode()]


async def test_a_burst_of_thousands_is_not_taken_for_an_outage(redis_url: str, key: str) -> None:
    redis = connect(redis_url)
    window = Window(redis, processes=1000, timeout_s=0.1)
    start = time.monotonic()
    assert await spend(window, key, Ceilings(5000, 1), 5000, ai=False) == 5000
    # Some waited longer than that for their turn, but never was Redis silent for so long.
    assert time.monotonic() - start > 0.1
    await window.aclose()
    await redis.aclose()


async def test_a_busy_process_is_not_taken_for_an_outage(redis: Redis, key: str) -> None:
    window = Window(redis, processes=1000, timeout_s=0.1)
    await window.admit(key, BASIC, ai=False)
    asking = asyncio.create_task(window.admit(key, BASIC, ai=False))
    await asyncio.sleep(0)
    time.sleep(0.3)
    assert (await asking).remaining == 598
    await window.aclose()


async def test_cancelled_requests_leave_no_answer_to_the_wrong_request(
    redis_url: str, key: str
) -> None:
    dice = random.Random(8)
    redis = connect(redis_url)
    window = Window(redis, processes=1000, timeout_s=PATIENT_S, connections=8)
    for turn in range(200):
        # Each asks about a key and a ceiling of its own, so that a stray answer would show.
        tasks = [
            asyncio.create_task(window.admit(f"{key}:{turn}:{i}", Ceilings(50 + i, 1), ai=False))
            for i in range(16)
        ]
        for _ in range(dice.randint(0, 12)):
            await asyncio.sleep(0)
        doomed = set(dice.sample(tasks, 8))
        for task in doomed:
            task.cancel()
        for i, answer in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
            if tasks[i] not in doomed:
                assert answer == Verdict(True, 50 + i, 49 + i, 60, f"{50 + i};w=60")
    (_, _), (in_use, _) = redis.connection_pool.get_connection_count()
    assert in_use == 0
    await window.aclose()
    await redis.aclose()


def test_headers_tell_limit_remaining_reset_and_policy() -> None:
    assert headers(Verdict(True, 300, 12, 7, "600;w=60, 300;w=60")) == [
        (b"ratelimit-limit", b"300"),
        (b"ratelimit-remaining", b"12"),
        (b"ratelimit-reset", b"7"),
        (b"ratelimit-policy", b"600;w=60, 300;w=60"),
    ]


def test_headers_of_a_refusal_tell_when_to_come_back() -> None:
    assert headers(Verdict(False, 600, 0, 41, "600;w=60"))[-2:] == [
        (b"ratelimit-policy", b"600;w=60"),
        (b"retry-after", b"41"),
    ]


def test_a_route_without_limit_shows_a_full_window() -> None:
    assert untouched(BASIC) == Verdict(True, 600, 600, 0, "600;w=60")
