"""A run below a cancelled task starts no call, also before the task itself is cancelled."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.runs.contracts import CALL_FINISHED, CallInput, NextStep
from rota.runs.deadlines import Deadlines
from rota.runs.run_context import FencedOut, History
from rota.tasks import queries
from rota.tasks.cancellation import BATCH
from tests.runs.gated_run import CATALOG, GatedRun
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.runs.test_fence import begun, with_a_started_call
from tests.service import Person, Service
from tests.tasks.world import create, patch, uuid_of


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="cancelled_parents") as started:
        await sync(started.database_url, CATALOG)
        yield started


async def cancel_grandparent(run: GatedRun) -> None:
    """A task above the run's is cancelled, and the batches have not reached the run yet."""
    top = await create(run.editor, status="RUNNING")
    middle = await create(run.editor, status="RUNNING", parentTaskId=top["id"])
    async with run.service.owner() as owner:
        await owner.execute(
            "UPDATE tasks SET parent_task_id = $2 WHERE id = $1",
            uuid_of({"id": run.task_id}),
            uuid_of(middle),
        )
        await owner.execute("UPDATE tasks SET status = 'CANCELLED' WHERE id = $1", uuid_of(top))


async def test_a_slice_stops_when_a_task_above_its_run_is_cancelled(run: GatedRun) -> None:
    late, _ = await with_a_started_call(run)
    assert await run.context.holds_fence(late._run_input)
    await cancel_grandparent(run)
    assert not await run.context.holds_fence(late._run_input)
    with pytest.raises(FencedOut):
        await late._advance()
    with pytest.raises(FencedOut):
        await late._start(1, [1])
    await begun(run)
    assert run.next == NextStep("end")
    assert await run.status() == "CANCELLED"
    assert run.client.made == []


@pytest.mark.parametrize("how", ["task", "grandparent"])
async def test_a_started_call_is_not_sent_after_the_cancellation(run: GatedRun, how: str) -> None:
    late, started = await with_a_started_call(run)
    if how == "grandparent":
        await cancel_grandparent(run)
    else:
        response = await patch(run.editor, run.task_id, status="CANCELLED")
        assert response.status_code == 200
    with pytest.raises(FencedOut):
        await run.tool_caller.make(CallInput(late._run_input, 1, 1), started)
    assert run.client.made == []


async def test_a_call_that_a_failure_holds_back_counts_as_not_started(run: GatedRun) -> None:
    late, started = await with_a_started_call(run)
    # As at its deadline.
    async with run.parts.db.write(run.account_id) as tx:
        task = await queries.find_for_change(tx, uuid_of({"id": run.task_id}))
        assert task is not None
        deadlines = Deadlines(run.context, run.loop)
        await deadlines.fail(tx, task, "RUN_FAILED", "It failed.", reason="It failed.")
    with pytest.raises(FencedOut):
        await run.tool_caller.make(CallInput(late._run_input, 1, 1), started)
    assert run.client.made == []
    [call] = await run.tool_rows()
    assert not call.may_have_effect


async def test_no_model_is_asked_when_a_task_above_the_run_is_cancelled(run: GatedRun) -> None:
    late, started = await with_a_started_call(run)
    finished = await run.tool_caller.make(CallInput(late._run_input, 1, 1), started)
    assert finished == CALL_FINISHED
    await cancel_grandparent(run)
    assert (
        await late._parts.model_caller._read_input(CallInput(late._run_input, 2), History()) is None
    )
    # The slice then ends.
    with pytest.raises(FencedOut):
        await late._do(NextStep("think", 2))
    assert [row.step for row in await run.rows()] == [1, 1]


async def test_a_run_does_not_begin_when_a_task_above_it_is_cancelled(run: GatedRun) -> None:
    for is_new in (True, False):
        await run.open("trusting")
        await cancel_grandparent(run)
        # Also a run that an earlier version started.
        begin = run.begin() if is_new else run.activities.begin(run.run_input)
        assert await begin == NextStep("end")
        task = await run.task()
        assert (task["status"], task["startedAt"]) == ("CANCELLED", None)
        balance = (await run.editor.get("/api/credits/balance")).json()
        assert balance["balance"]["reservedCents"] == 0


async def test_a_worker_cancels_a_large_tree_with_the_runs_in_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    root = await create(person, status="RUNNING")
    for _ in range(BATCH + 5):
        await create(person, parentTaskId=root["id"])
    script = await scripted.script(calls(("ask_person", {"question": "Go?"})), says("Never."))
    hosted = await runner.begin(person, "writer", script, parentTaskId=root["id"])
    await runner.waiting(person, hosted, "tool")
    await runner.cancel(person, root)

    async def open_tasks() -> Any:
        query = {"status": "PENDING,RUNNING,WAITING_APPROVAL"}
        return (await person.get("/api/tasks", params=query)).json()["total"]

    await until(open_tasks, lambda total: total == 0)
    assert (await runner.review(person, hosted))["state"] == "cancelled"
    await runner.history_ends(hosted)
    assert len(await scripted.asked(script)) == 1
