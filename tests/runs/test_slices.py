"""Slices: when they end, what they repeat, and how they stop."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from rota.dev.stack import Stack
from rota.platform import json
from rota.runs.contracts import FailInput, NextStep, RunInput, SliceEnd
from rota.runs.workflow import MAX_IDLE_SLICES, MAX_LOST_SLICES, TaskRun
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.tasks.world import uuid_of

LOOKUP = calls(("desk__lookup", {"ref": "slices"}))
# Two short pauses would be too few to tell them from long ones.
DOWN = {"status": 503}


@pytest.fixture(scope="module")
async def sliced(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    """Heartbeats are so rare that only Redis can tell a worker in time about a cancellation."""
    log = tmp_path_factory.mktemp("sliced") / "log"
    async with Runner.start(
        stack, scripted, "sliced", log, run_heartbeat_s=60.0, slice_steps=2, shutdown_grace_s=60.0
    ) as started:
        yield started
    print(log.read_text()[-4000:])


@pytest.fixture
async def person(sliced: Runner) -> Person:
    return await sliced.newcomer()


async def scheduled(runner: Runner, task: dict[str, Any]) -> tuple[int, int]:
    """How many activities and timers the run's history has."""
    await runner.history_ends(task)
    types = [event.event_type for event in (await runner.history(task)).events]
    return (
        types.count(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED),
        types.count(EventType.EVENT_TYPE_TIMER_STARTED),
    )


async def attempts(runner: Runner, task: dict[str, Any], kind: str) -> list[int]:
    async with runner.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT attempts FROM steps WHERE task_id = $1 AND kind = $2 ORDER BY step, call",
            uuid_of(task),
            kind,
        )
    return [row["attempts"] for row in rows]


async def test_a_slice_ends_after_its_number_of_steps(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(*[LOOKUP] * 4, says("Done."))
    task = await sliced.finish(person, "writer", script)
    assert await scheduled(sliced, task) == (3, 0)
    assert await scripted.count(script) == dict.fromkeys(range(5), 1)


@pytest.mark.long
async def test_a_slice_ends_after_its_seconds(
    stack: Stack, scripted: Scripted, tmp_path: Path
) -> None:
    async with Runner.start(stack, scripted, "short", tmp_path / "log", slice_seconds=0.2) as short:
        person = await short.newcomer()
        script = await scripted.script(
            {**LOOKUP, "delayS": 0.3}, {**LOOKUP, "delayS": 0.3}, says("Done.")
        )
        task = await short.finish(person, "writer", script)
        assert await scheduled(short, task) == (3, 0)


async def test_failed_attempts_are_counted_with_the_step_and_a_long_pause_is_a_timer(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("retried", {"unavailable": True})
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "retried"}), failures=[DOWN, DOWN]), says("Done.")
    )
    task = await sliced.finish(person, "writer", script)
    assert await attempts(sliced, task, "model") == [2, 0]
    assert await attempts(sliced, task, "tool") == [1]
    # The first pause of each call is 1 s and inside the slice. The second one is 2 s.
    assert await scheduled(sliced, task) == (2, 1)
    steps, _ = await sliced.timeline(person, task)
    assert [step["kind"] for step in steps] == ["model", "tool", "model"]


async def test_a_refused_call_is_attempted_again_as_late_as_it_was_told(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("busy", {"status": 429})
    script = await scripted.script(calls(("desk__send", {"ref": "busy"})), says("Sent."))
    task = await sliced.finish(person, "writer", script)
    assert await attempts(sliced, task, "tool") == [1]
    # The first pause would be 1 s, and inside the slice.
    assert await scheduled(sliced, task) == (2, 1)
    assert await scripted.count(script) == {0: 1, 1: 1}


@pytest.mark.long
async def test_runs_whose_answers_are_slow_to_check_wait_for_each_other(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    # Each check takes a good part of a second, and an account has a fifth of a processor for them.
    slow = {"type": "object", "properties": {"x": {"allOf": [{"uniqueItems": True}] * 1_400}}}
    tasks = []
    for n in range(12):
        answer = json.dumps({"x": [[n + i] for i in range(3_000)]}).decode()
        script = await scripted.script(says(answer))
        tasks.append(await sliced.begin(person, "writer", script, outputSchema=slow))
    for task in tasks:
        await sliced.until(person, task, "COMPLETED")
    assert [await attempts(sliced, task, "model") for task in tasks] == [[0]] * len(tasks)
    log = sliced.worker.log.read_text()
    assert "run_waits_for_turn" in log


async def test_a_failed_model_call_is_not_a_step_until_it_is_answered(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        {"status": 429, "headers": {"Retry-After": "120"}}, name=f"busy-{person.user_id.hex}"
    )
    task = await sliced.begin(person, "writer", script)
    await until(lambda: attempts(sliced, task, "model"))
    assert await sliced.timeline(person, task) == ([], 0)
    await sliced.cancel(person, task)
    await sliced.history_ends(task)
    assert (await sliced.task(person, task["id"]))["usage"]["steps"] == 0


@pytest.mark.timed
async def test_a_cancelled_tool_call_is_aborted_within_two_seconds(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"held-{person.user_id.hex}"
    await scripted.behave(ref, {"hold": True})
    script = await scripted.script(calls(("desk__send", {"ref": ref})), says("Not reached."))
    task = await sliced.begin(person, "writer", script)
    await until(lambda: scripted.done(ref))
    await sliced.cancel(person, task)
    await until(lambda: logged(sliced, task, "slice_fenced_out"), deadline_s=2)
    assert await scripted.count(script) == {0: 1}


@pytest.mark.timed
async def test_a_cancelled_model_call_gives_up_its_slot_within_two_seconds_and_is_charged(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "lost-slot"}), hold=True))
    task = await sliced.begin(person, "writer", script)
    await until(lambda: scripted.asked(script))
    await sliced.cancel(person, task)
    await until(lambda: logged(sliced, task, "slice_fenced_out"), deadline_s=2)
    await scripted.release(script)
    charged = await until(
        lambda: sliced.task(person, task["id"]), lambda seen: seen["usage"]["steps"] == 1
    )
    assert (charged["status"], charged["usage"]["costUsd"]) == ("CANCELLED", "0.000020")
    assert await scripted.done("lost-slot") == []


async def logged(runner: Runner, task: dict[str, Any], event: str) -> bool:
    lines = runner.worker.log.read_text().splitlines()
    return any(event in line and f"run/{task['id']}/1" in line for line in lines)


async def test_a_worker_that_is_told_to_stop_finishes_its_calls_and_leaves_the_rest(
    sliced: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"slow-{person.user_id.hex}"
    await scripted.behave(ref, {"hold": True})
    thinking = await scripted.script({**LOOKUP, "hold": True}, says("Thought."))
    writing = await scripted.script(calls(("desk__send", {"ref": ref})), says("Written."))
    tasks = [await sliced.begin(person, "writer", script) for script in (thinking, writing)]
    await until(lambda: scripted.asked(thinking))
    await until(lambda: scripted.done(ref))
    stopping = asyncio.create_task(sliced.worker.stop())
    # It takes nothing new.
    waiting = await scripted.script(says("Later."))
    tasks.append(await sliced.begin(person, "writer", waiting))
    await scripted.release(thinking)
    await scripted.release_tool(ref)
    async with asyncio.timeout(30):
        await stopping
    assert await scripted.count(thinking) == {0: 1}
    assert await scripted.count(writing) == {0: 1}
    await sliced.worker.start()
    for task in tasks:
        await sliced.until(person, task, "COMPLETED")
    assert await scripted.count(thinking) == {0: 1, 1: 1}
    assert len(await scripted.done(ref)) == 1


class FakeSlices:
    """Slices that fail or end without a finished call."""

    def __init__(self, finished: int) -> None:
        self.begun = 0
        self.finished = finished
        self.failed: list[FailInput] = []

    @activity.defn(name="slice")
    async def run(self, _: RunInput) -> SliceEnd:
        self.begun += 1
        if self.begun == 1:
            return SliceEnd("again", 3)
        if self.begun % 2:
            raise ApplicationError("It failed.")
        return SliceEnd("again", 3)

    @activity.defn
    async def fail(self, fail_input: FailInput) -> NextStep:
        self.failed.append(fail_input)
        assert fail_input.finished is not None
        if self.finished > fail_input.finished:
            return NextStep("think", self.finished)
        return NextStep("end")


@pytest.mark.parametrize(("finished", "failures"), [(3, 1), (4, 2)])
async def test_five_slices_without_a_finished_call_fail_the_run(
    sliced: Runner, finished: int, failures: int
) -> None:
    fake = FakeSlices(finished)
    name = f"idle-{finished}"
    async with Worker(
        sliced.temporal,
        task_queue=name,
        workflows=[TaskRun],
        activities=[fake.run, fake.fail],
    ):
        run_input = RunInput("acct", "task", run=1)
        async with asyncio.timeout(60):
            await sliced.temporal.execute_workflow(TaskRun.run, run_input, id=name, task_queue=name)
    # The first slice finished three calls.
    assert fake.begun == 1 + failures * MAX_IDLE_SLICES
    assert len(fake.failed) == failures
    assert (fake.failed[0].code, fake.failed[0].finished) == ("RUN_FAILED", 3)


class FrozenWorker:
    """Slices that a frozen worker gets: they never begin. Later ones begin, and finish no call."""

    def __init__(self, frozen: int, finished: int = 3) -> None:
        self.left = frozen
        self.fence = 4
        self.given = 0
        # What `fail` finds in the database.
        self.finished = finished
        self.failed: list[FailInput] = []

    @activity.defn(name="slice")
    async def run(self, _: RunInput) -> SliceEnd:
        self.given += 1
        if self.given == 1:
            return SliceEnd("again", 3, fence=self.fence)
        if self.left:
            self.left -= 1
            return SliceEnd("again")
        self.fence += 1
        return SliceEnd("again", 3, fence=self.fence)

    @activity.defn
    async def fail(self, fail_input: FailInput) -> NextStep:
        self.failed.append(fail_input)
        assert fail_input.finished is not None
        goes_on = fail_input.at_fence is not None and self.fence < fail_input.at_fence
        if goes_on or self.finished > fail_input.finished:
            return NextStep("think", self.finished, fence=self.fence)
        return NextStep("end")


async def work_until_failed(sliced: Runner, name: str, fake: FrozenWorker) -> list[int | None]:
    """The fences at which the workflow wanted the run to fail."""
    async with Worker(
        sliced.temporal,
        task_queue=name,
        workflows=[TaskRun],
        activities=[fake.run, fake.fail],
    ):
        run_input = RunInput("acct", "task", run=1, start_fence=2)
        async with asyncio.timeout(60):
            await sliced.temporal.execute_workflow(TaskRun.run, run_input, id=name, task_queue=name)
    return [each.at_fence for each in fake.failed]


async def test_slices_that_never_began_do_not_fail_the_run(sliced: Runner) -> None:
    # The first slice finished three calls, with fence 4. Seven never begin, then eight do.
    fake = FrozenWorker(frozen=7)
    wanted = await work_until_failed(sliced, "frozen", fake)
    assert wanted == [4 + MAX_IDLE_SLICES] * 3
    assert fake.fence == 4 + 8


async def test_slices_count_from_the_last_progress(sliced: Runner) -> None:
    # One finished a call, and died before it could say so.
    fake = FrozenWorker(frozen=5, finished=4)
    fake.fence = 5
    assert await work_until_failed(sliced, "progress", fake) == [5 + MAX_IDLE_SLICES] * 2
    assert [each.finished for each in fake.failed] == [3, 4]


async def test_a_run_that_never_begins_fails_in_the_end(sliced: Runner) -> None:
    fake = FrozenWorker(frozen=MAX_LOST_SLICES)
    wanted = await work_until_failed(sliced, "never", fake)
    assert wanted == [4 + MAX_IDLE_SLICES] * 4 + [None]
    assert fake.given == 1 + MAX_LOST_SLICES
