"""Moments in which the machine is slow, as benchmarks leave them out."""

import asyncio
import time

import pytest

from tests.load.stalls import AFTER_S, BEFORE_S, Stalls


def test_what_begins_near_a_slow_moment_is_left_out() -> None:
    stalls = Stalls()
    for began, is_slow in ((1.0, False), (2.0, True), (2.01, True), (3.0, False), (4.0, True)):
        stalls.add(began, began + 0.001, is_slow=is_slow)
    assert [moment for moment in (1.0, 2.005, 3.0, 4.0, 5.0) if stalls.covers(moment)] == [
        2.005,
        4.0,
    ]
    assert not stalls.covers(2.0 - 1.1 * BEFORE_S)
    assert stalls.covers(2.0 - 0.9 * BEFORE_S)
    assert stalls.covers(2.011 + 0.9 * AFTER_S)
    assert not stalls.covers(2.011 + 1.1 * AFTER_S)


async def test_a_measurement_waits_until_its_end_was_watched() -> None:
    stalls = Stalls()
    waiting = asyncio.create_task(stalls.seen(2.0))
    stalls.add(1.0, 1.001, is_slow=False)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.05)
    stalls.add(2.0, 2.001, is_slow=False)
    await waiting


async def test_the_machine_is_watched_by_a_process_of_its_own() -> None:
    async with Stalls.watched() as stalls:
        await stalls.seen(time.perf_counter())
