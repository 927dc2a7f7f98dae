"""Compares the window with a brute-force oracle, and tests a full minute in real time."""

import asyncio
import json
import random
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rota.limits.result import Ceilings, LimitResult
from rota.limits.window import Window, connect
from tests.sizes import size

WINDOW_S = 1.0
WINDOW_US = 1_000_000
# Requests of each of the four processes.
EACH = size(5_000, 25_000)


class Row(NamedTuple):
    key: str
    ceiling_all: int
    ceiling_ai: int
    ai: bool
    admitted: int
    described: int
    remaining: int
    reset_s: int
    at_us: int


async def arrivals(url: str, seed: int, count: int) -> list[Row]:
    script = str(Path(__file__).with_name("arrivals.py"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, url, str(seed), str(count), str(WINDOW_S),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0
    return [Row(*json.loads(line)) for line in output.splitlines()]


def within(log: list[int], now: int) -> list[int]:
    """The entries of a sorted log inside the window that ends at `now`."""
    return log[bisect_right(log, now - WINDOW_US) :]


def mistakes(rows: list[Row]) -> Iterator[str]:
    """Replays the requests in the order in which Redis handled them, with plain lists."""
    admitted: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.at_us):
        logs = [admitted[row.key, False], admitted[row.key, True]][: 2 if row.ai else 1]
        ceilings = [row.ceiling_all, row.ceiling_ai][: len(logs)]
        held = [within(log, row.at_us) for log in logs]
        room = all(len(log) < ceiling for log, ceiling in zip(held, ceilings, strict=True))
        if row.admitted != room:
            yield f"{row} had {'room' if room else 'no room'}: {[len(log) for log in held]}"
        if row.admitted:
            for log, kept in zip(logs, held, strict=True):
                log.append(row.at_us)
                kept.append(row.at_us)
        lefts = [max(0, ceiling - len(log)) for log, ceiling in zip(held, ceilings, strict=True)]
        described, ceiling = held[row.described - 1], ceilings[row.described - 1]
        blocking = described[max(0, len(described) - ceiling)]
        reset_s = -((row.at_us - blocking - WINDOW_US) // 1_000_000)
        if row.remaining != min(lefts) or row.remaining != lefts[row.described - 1]:
            yield f"{row} had {lefts} remaining"
        if row.reset_s != reset_s:
            yield f"{row} should wait {reset_s} s"


async def test_requests_in_four_processes_are_limited_exactly(
    redis_url: str,
) -> None:
    workers = await asyncio.gather(*[arrivals(redis_url, seed, EACH) for seed in range(4)])
    rows = [row for worker in workers for row in worker]

    assert len(rows) == 4 * EACH
    assert list(mistakes(rows)) == []
    # The test proves something only if both outcomes are common for both kinds of request.
    for ai in (False, True):
        for outcome in (0, 1):
            assert sum(row.ai == ai and row.admitted == outcome for row in rows) > EACH / 5
    # The same without the oracle: no window of a fixed tier contains more than its ceiling.
    for key in {row.key for row in rows} - {"moving"}:
        of_key = [row for row in rows if row.key == key]
        times = sorted(row.at_us for row in of_key if row.admitted)
        ai_times = sorted(row.at_us for row in of_key if row.admitted and row.ai)
        ceilings = ((times, of_key[0].ceiling_all), (ai_times, of_key[0].ceiling_ai))
        for log, ceiling in ceilings:
            assert all(b - a >= WINDOW_US for a, b in zip(log, log[ceiling:], strict=False))


@pytest.mark.timed
async def test_a_request_passes_after_waiting_exactly_retry_after(
    redis_url: str,
) -> None:
    redis = connect(redis_url)
    # A long timeout, so that a stall of a busy machine does not switch to the fallback.
    window = Window(redis, processes=1, timeout_s=10)
    dice = random.Random(60)

    async def bursts() -> tuple[int, int]:
        """How many of a hundred requests pass at second 59, and of another hundred at second 61."""
        ceilings = Ceilings(all=100, ai=100)

        async def burst() -> int:
            results = await asyncio.gather(
                *[window.admit("burst", ceilings, ai=False) for _ in range(100)]
            )
            return sum(result.allowed for result in results)

        assert (await window.admit("burst", ceilings, ai=False)).allowed
        await asyncio.sleep(59)
        at_59 = await burst()
        await asyncio.sleep(2)
        return at_59, await burst()

    async def refused_then_waited(key: str) -> tuple[LimitResult, LimitResult]:
        """A refusal at a random time, and the result of the same request after the wait."""
        ceilings = Ceilings(all=4, ai=2)
        ai = dice.random() < 0.5
        await asyncio.sleep(dice.random())
        while (result := await window.admit(key, ceilings, ai=ai)).allowed:
            await asyncio.sleep(dice.random() / 8)
        await asyncio.sleep(dice.uniform(0, 57))
        refused = await window.admit(key, ceilings, ai=ai)
        assert refused.reset_s <= result.reset_s
        await asyncio.sleep(refused.reset_s)
        return refused, await window.admit(key, ceilings, ai=ai)

    (at_59, at_61), waits = await asyncio.gather(
        bursts(), asyncio.gather(*[refused_then_waited(f"waiting:{i}") for i in range(200)])
    )
    await window.aclose()
    await redis.aclose()

    # The minute began with one request. At second 61 only that one has expired.
    assert (at_59, at_61) == (99, 1)
    assert sum(not refused.allowed for refused, _ in waits) == 200
    assert sum(passed.allowed for _, passed in waits) == 200
    assert len({refused.reset_s for refused, _ in waits}) > 30
