"""Runs start at once, leave nothing in the outbox, and an idle worker leaves the database alone."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.dev.stack import Stack
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.tasks.world import uuid_of

ASKS = ("ask_person", {"question": "Which colour?"})


@pytest.fixture(scope="module")
async def quiet(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    """A worker that no other test uses, on Variant B."""
    log = tmp_path_factory.mktemp("quiet") / "log"
    async with Runner.start(stack, scripted, "quiet", log, variant="b") as started:
        yield started


async def instructions(runner: Runner, task: dict[str, Any]) -> list[str]:
    async with runner.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT kind FROM outbox WHERE task_id = $1 ORDER BY kind", uuid_of(task)
        )
    return [row["kind"] for row in rows]


async def test_a_run_has_one_check_however_often_it_is_woken(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(*[calls(ASKS)] * 3, says("Painted.", hold=True))
    task = await runner.begin(person, "writer", script)

    async def decided() -> int:
        """How many reviews are decided, or -1 while none is pending."""
        await runner.until(person, task, "WAITING_APPROVAL", "RUNNING")
        review = await runner.review(person, task)
        return len(review["history"]) if review["state"] == "pending" else -1

    for number in range(3):
        await until(decided, number.__eq__)
        await runner.approve(person, task)
    await until(lambda: scripted.count(script), lambda counted: counted.get(3) == 1)
    await until(lambda: instructions(runner, task), lambda kinds: kinds == ["run.check"])
    await scripted.release(script)
    await runner.until(person, task, "COMPLETED")
    assert await instructions(runner, task) == []


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "CANCELLED"])
async def test_an_ended_run_leaves_nothing_in_the_outbox(
    quiet: Runner, scripted: Scripted, end: str
) -> None:
    person = await quiet.newcomer("business")
    last = says("Done.", hold=True, **({"failures": [{"status": 401}]} if end == "FAILED" else {}))
    script = await scripted.script(last)
    task = await quiet.begin(person, "writer", script)
    if end == "CANCELLED":
        await quiet.until(person, task, "RUNNING")
        await quiet.cancel(person, task)
    await scripted.release(script)
    await quiet.until(person, task, end)
    await until(lambda: instructions(quiet, task), lambda kinds: not kinds, deadline_s=10)


async def test_a_run_whose_output_was_approved_leaves_nothing_in_the_outbox(
    quiet: Runner, scripted: Scripted
) -> None:
    person = await quiet.newcomer("business")
    task = await quiet.begin(person, "editor", await scripted.script(says("Done.")))
    await quiet.waiting(person, task, "output")
    await quiet.approve(person, task)
    await quiet.until(person, task, "COMPLETED")
    await quiet.history_ends(task)
    await until(lambda: instructions(quiet, task), lambda kinds: not kinds, deadline_s=10)


@pytest.mark.timed
async def test_an_idle_worker_makes_at_most_two_transactions_per_second(quiet: Runner) -> None:
    count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    async with quiet.service.owner() as connection:

        async def per_second() -> float:
            before, began = await connection.fetchval(count), time.monotonic()
            await asyncio.sleep(15)
            after, ended = await connection.fetchval(count), time.monotonic()
            return float(after - before) / (ended - began)

        # PostgreSQL counts the transactions of the tests before up to 10 s later.
        await until(per_second, lambda rate: rate <= 2, deadline_s=70)


@pytest.mark.timed
async def test_a_run_starts_soon_after_its_commit(quiet: Runner, scripted: Scripted) -> None:
    person = await quiet.newcomer("business")
    waits = []
    for _ in range(10):
        script = await scripted.script(says("Done."))
        task = await quiet.finish(person, "writer", script)
        run = await quiet.temporal.get_workflow_handle(f"run/{task['id']}/1").describe()
        async with quiet.service.owner() as connection:
            created = await connection.fetchval(
                "SELECT created_at FROM events WHERE task_id = $1 AND type = 'task.created'",
                uuid_of(task),
            )
        waits.append((run.start_time - created).total_seconds())
    # Polling alone would take seconds. The bench measures it exactly.
    assert sorted(waits)[5] < 0.2, waits
