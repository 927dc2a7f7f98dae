"""Slots: slow runs of one account leave slots to others, wait in order, and survive a crash."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID, uuid4

import pytest

from rota.dev.stack import Stack
from rota.events import outbox
from rota.platform import ids
from rota.platform.db import Database
from rota.runs.contracts import RunInput
from rota.runs.slots import Slots
from tests.runs.runner import KILLED_HEARTBEAT_S, Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person

SLOTS, RUNS = 5, 8


async def queued(runner: Runner, person: Person) -> int:
    async with runner.service.owner() as connection:
        found: int = await connection.fetchval(
            "SELECT count(*) FROM outbox WHERE account_id = $1 AND kind = 'run.queued'",
            person.user_id,
        )
    return found


async def asked(scripted: Scripted, scripts: list[str]) -> list[str]:
    """The scripts that a run follows now."""
    return [script for script in scripts if await scripted.asked(script)]


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("slots") / "log"
    settings: dict[str, Any] = {"worker_calls": SLOTS, "run_heartbeat_s": KILLED_HEARTBEAT_S}
    async with Runner.start(stack, scripted, "slots", log, **settings) as started:
        yield started


async def test_no_run_skips_the_queue_while_another_one_waits_for_a_slot() -> None:
    slots = Slots(AsyncMock(), AsyncMock(), SLOTS)
    assert slots.may_skip_queue()
    slots._queued.add(uuid4())
    assert not slots.may_skip_queue()


async def test_a_slice_waits_for_a_slot_only_while_the_slices_of_its_account_end_quickly() -> None:
    slots = Slots(AsyncMock(), AsyncMock(), SLOTS)
    account, task = ids.to_wire("acct", uuid4()), ids.to_wire("task", uuid4())
    run_input = RunInput(account, task, 1)
    assert [await slots.take(run_input) for _ in range(5)] == [True] * 4 + [False]
    slots.give_back(run_input)
    assert await slots.take(run_input)
    waiting = asyncio.create_task(slots.take(run_input))
    await asyncio.sleep(0)
    slots.give_back(run_input)
    assert await waiting
    # Nobody gives a slot back.
    assert not await slots.take(run_input)


async def test_an_account_whose_runs_cannot_be_woken_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its runs are woken as soon as another slice ends, not only at the next look."""
    accounts, attempts = [uuid4(), uuid4()], list[UUID]()
    both, again = asyncio.Event(), asyncio.Event()

    async def queued_runs(_: Database) -> list[UUID]:
        return accounts

    async def wake(_: Database, account_id: UUID, limit: int) -> int:
        attempts.append(account_id)
        if len(attempts) == 1:
            raise OSError("The first account has no connection.")
        (both if len(attempts) == 2 else again).set()
        return 0

    monkeypatch.setattr(outbox, "accounts_with_queued_runs", queued_runs)
    monkeypatch.setattr(outbox, "wake_queued_runs", wake)
    monkeypatch.setattr("rota.runs.slots.LOOK_EVERY_S", 600)
    slots = Slots(AsyncMock(), AsyncMock(), SLOTS)
    run_input = RunInput(ids.to_wire("acct", uuid4()), ids.to_wire("task", uuid4()), 1)
    assert await slots.take(run_input)
    waking = asyncio.create_task(slots.wake_queued())
    try:
        async with asyncio.timeout(10):
            await both.wait()
            slots.give_back(run_input)
            await again.wait()
    finally:
        waking.cancel()
        await asyncio.wait([waking])
    assert set(attempts[:2]) == set(accounts)
    assert attempts[2] == attempts[0]


async def test_a_database_that_is_down_is_asked_for_one_account_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not for all of them at once, however often slices end. All get their turn."""
    accounts, attempts, at = [uuid4() for _ in range(3)], list[UUID](), list[float]()
    failed, works, woken = asyncio.Event(), False, asyncio.Event()

    async def queued_runs(_: Database) -> list[UUID]:
        return accounts

    async def wake(_: Database, account_id: UUID, limit: int) -> int:
        attempts.append(account_id)
        at.append(time.monotonic())
        if not works:
            failed.set()
            raise OSError("The database is down.")
        if set(attempts) == set(accounts):
            woken.set()
        return 0

    monkeypatch.setattr(outbox, "accounts_with_queued_runs", queued_runs)
    monkeypatch.setattr(outbox, "wake_queued_runs", wake)
    slots = Slots(AsyncMock(), AsyncMock(), SLOTS)
    run_input = RunInput(ids.to_wire("acct", uuid4()), ids.to_wire("task", uuid4()), 1)
    waking = asyncio.create_task(slots.wake_queued())
    try:
        async with asyncio.timeout(10):
            await failed.wait()
            for _ in range(5):
                assert await slots.take(run_input)
                slots.give_back(run_input)
                await asyncio.sleep(0)
            assert len(attempts) == 1
            works = True
            await woken.wait()
    finally:
        waking.cancel()
        await asyncio.wait([waking])
    assert at[1] - at[0] > 0.5


@pytest.mark.long
async def test_slow_runs_of_one_account_leave_slots_to_others(
    runner: Runner, scripted: Scripted
) -> None:
    slow, other = await runner.newcomer(), await runner.newcomer()
    scripts = [
        await scripted.script(says("Slow.", hold=True), name=f"slow-{slow.user_id.hex}-{n}")
        for n in range(RUNS)
    ]
    tasks = [await runner.begin(slow, "writer", script) for script in scripts]
    await until(lambda: queued(runner, slow), lambda count: count == RUNS - 4)
    held = await until(lambda: asked(scripted, scripts), lambda found: len(found) == 4)

    # Another account does not notice the slow calls.
    for _ in range(3):
        await runner.finish(other, "writer", await scripted.script(says("Quick.")))

    # A cancelled run does not wait any longer.
    waiting = [n for n in range(RUNS) if scripts[n] not in held]
    await runner.cancel(slow, tasks[waiting[0]])
    await until(lambda: queued(runner, slow), lambda count: count == RUNS - 5)

    # A slot that becomes free goes to the oldest run that waits.
    await scripted.release(held[0])
    await until(lambda: scripted.asked(scripts[waiting[1]]))
    assert await queued(runner, slow) == RUNS - 6
    assert not await scripted.asked(scripts[waiting[2]])

    # Runs that wait are in the database, and another worker wakes them.
    await runner.worker.kill()
    for script in scripts:
        await scripted.release(script)
    await runner.worker.start()
    for n, task in enumerate(tasks):
        status = "CANCELLED" if n == waiting[0] else "COMPLETED"
        await runner.until(slow, task, status)
    assert await queued(runner, slow) == 0
    assert not await scripted.asked(scripts[waiting[0]])


async def test_a_run_skips_the_queue_while_half_of_the_slots_are_free(
    stack: Stack, scripted: Scripted, tmp_path: Path
) -> None:
    skipped, held = [], []
    async with Runner.start(stack, scripted, "skips", tmp_path / "log", worker_calls=12) as runner:
        for _ in range(8):
            person = await runner.newcomer()
            script = await scripted.script(says("Held.", hold=True))
            task = await runner.begin(person, "writer", script)
            await until(lambda name=script: scripted.asked(name))  # type: ignore[misc]
            history = await runner.history(task)
            started = history.events[0].workflow_execution_started_event_attributes
            skipped.append(started.eager_execution_accepted)
            held.append((person, script, task))
        # Seven slots were taken before the eighth run began.
        assert skipped == [True] * 7 + [False]
        for person, script, task in held:
            await scripted.release(script)
            await runner.until(person, task, "COMPLETED")
