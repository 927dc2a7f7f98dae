"""The fence: a worker that lost its run stores what it has in hand, and changes nothing else."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart
from temporalio.testing import ActivityEnvironment

from rota.agents.model import AgentVersion
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.runs import charging, transcript
from rota.runs.call_protection import Pulse
from rota.runs.contracts import CallInput, FailInput, NextStep, SliceEnd
from rota.runs.model_steps import ModelCallRecord
from rota.runs.prices import TokenUsage
from rota.runs.run_context import FencedOut
from rota.runs.slices import Slice
from rota.runs.steps import Step
from rota.runs.tool_call import Started
from rota.tasks.model import Task
from tests.runs.gated_run import ASKED, CATALOG, GatedRun, decide
from tests.runs.runner import shown
from tests.service import Service
from tests.tasks.world import patch


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"fence_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, CATALOG)
        yield started


async def begun(run: GatedRun) -> Slice:
    """A slice that has taken the run over."""
    await run.begin()
    assert run.slice is not None
    return run.slice


async def with_a_started_call(run: GatedRun) -> tuple[Slice, Started]:
    """A slice that has marked its call as started, and hangs."""
    await run.open("trusting")
    late = await begun(run)
    await run.answer(ASKED)
    [started] = (await late._start(1, [1])).values()
    assert isinstance(started, Started)
    return late, started


async def test_a_late_slice_cannot_fail_reset_or_gate_what_its_successor_does(
    run: GatedRun,
) -> None:
    late, started = await with_a_started_call(run)
    successor = await begun(run)
    assert successor._run_input.fence == late._run_input.fence + 1  # type: ignore[operator]
    call_input = CallInput(late._run_input, 1, 1)
    with pytest.raises(FencedOut):
        await late._fail("MODEL_AUTHENTICATION_FAILED", "Too late.", retryable=True)
    with pytest.raises(FencedOut):
        await late._advance()
    with pytest.raises(FencedOut):
        await late._start(1, [1])
    with pytest.raises(FencedOut):
        await run.tool_caller.count_failure(call_input)
    with pytest.raises(FencedOut):
        await run.tool_caller._reset(call_input, started)
    with pytest.raises(FencedOut):
        await run.tool_caller._ask_again(
            call_input, started, started.tool, "Unknown.", maybe_made=True
        )
    with pytest.raises(FencedOut):
        await run.activities._model_caller.count_failure(CallInput(late._run_input, 2))
    assert await run.status() == "RUNNING"
    [row] = await run.tool_rows()
    assert (row.state, row.attempts) == ("started", 0)


async def test_a_late_slice_does_not_make_a_call_that_a_person_rejected(run: GatedRun) -> None:
    late, started = await with_a_started_call(run)
    successor = await begun(run)
    assert await successor._call_tools(NextStep("act", 1, [1])) is None
    body = {"review": shown(await run.review(run.one)), "resume": True}
    assert (await run.one.post(f"{run.path}/reject", body)).status_code == 200
    await begun(run)
    paused = replace(started, checked_s=started.checked_s - 60)
    with pytest.raises(FencedOut):
        await run.tool_caller.make(CallInput(late._run_input, 1, 1), paused)
    assert run.client.made == []


async def test_calls_of_a_changed_tool_that_were_not_sent_are_not_said_to_have_taken_effect(
    run: GatedRun,
) -> None:
    await run.open("trusting")
    current = await begun(run)
    await run.answer({"text": "a"}, {"text": "b"})
    run.client.changed = "Sends to everybody."
    assert await current._call_tools(NextStep("act", 1, [1, 2])) is None
    assert sorted(row.state for row in await run.tool_rows()) == ["gated", "planned"]
    await run.redefine(run.client.changed)
    run.client.changed = None
    # The policy asks nobody about the other call, but its tool is another one now.
    asked = []
    for _ in range(2):
        review = await run.review(run.one)
        [item] = review["items"]
        asked.append(item["id"])
        assert "unknown" not in item["reason"]
        assert (await decide(run, run.one, review)).status_code == 200
        current = await begun(run)
        assert run.next is not None
        await current._call_tools(run.next)
    assert sorted(asked) == ["call-1-1-1", "call-1-1-2"]
    assert sorted(made.arguments["text"] for made in run.client.made) == ["a", "b"]
    assert await run.started_calls() == [1, 2]


async def test_a_late_slice_stores_the_result_of_its_call_and_the_first_result_stays(
    run: GatedRun,
) -> None:
    late, started = await with_a_started_call(run)
    run.client.meanwhile = lambda: begun(run)
    await run.tool_caller.make(CallInput(late._run_input, 1, 1), started)
    [row] = await run.tool_rows()
    assert (row.state, row.outcome) == ("finished", "ok")
    successor = await begun(run)
    assert run.next == NextStep("think", 2)
    assert await successor._start(1, [1]) == {1: NextStep("think")}


async def agent_of(run: GatedRun) -> AgentVersion:
    async with run.parts.db.read(run.account_id) as tx:
        return await run.context.agent(tx, await run.context_task(tx))


def record(text: str) -> ModelCallRecord:
    return ModelCallRecord(
        model="test",
        response={"parts": [{"content": text, "part_kind": "text"}], "kind": "response"},
        usage=TokenUsage(10, 5),
        cost_micros=20,
        price_version="test",
        started_at=clock.now(),
    )


async def test_a_late_answer_is_charged_once_and_applied_by_the_successor(run: GatedRun) -> None:
    await run.open("trusting")
    late = await begun(run)
    successor = await begun(run)
    caller = run.activities._model_caller
    agent = await agent_of(run)
    late_input = CallInput(late._run_input, 1)
    assert await charging.charge(run.context, late_input, agent, record("Late."))
    with pytest.raises(FencedOut):
        await caller._answers.apply(late_input, agent, None, {}, None, None)
    own = CallInput(successor._run_input, 1)
    assert not await charging.charge(run.context, own, agent, record("Own."))
    assert await caller._answers.apply(own, agent, None, {}, None, None) == NextStep("end")
    done = await run.task()
    assert (done["status"], done["output"]) == ("COMPLETED", "Late.")
    assert (done["usage"]["steps"], done["usage"]["costUsd"]) == (1, "0.000020")


@pytest.mark.parametrize("how", ["cancel", "retry"])
async def test_cancelling_and_retrying_raise_the_fence(run: GatedRun, how: str) -> None:
    await run.open("trusting")
    late = await begun(run)
    if how == "cancel":
        assert (await patch(run.editor, run.task_id, status="CANCELLED")).status_code == 200
    else:
        await run.fail()
        answer = await run.editor.post(f"{run.path}/retry", {"from": "failure"})
        assert answer.status_code == 200
    with pytest.raises(FencedOut):
        await late._fail("RUN_FAILED", "Too late.", retryable=True)
    with pytest.raises(FencedOut):
        await late._start(1, [1])


async def test_a_slice_that_was_paused_before_it_began_does_not_take_the_run_back(
    run: GatedRun,
) -> None:
    await run.open("trusting")
    successor = await begun(run)
    paused = Slice(run.slices, run.run_input, Pulse(-1))
    environment: Any = ActivityEnvironment()
    assert await environment.run(paused.run) == SliceEnd("again")
    assert await run.context.holds_fence(successor._run_input)


async def test_a_run_fails_only_after_its_slices_have_begun(run: GatedRun) -> None:
    await run.open("trusting")
    fence = (await begun(run))._run_input.fence
    assert fence is not None
    lost = FailInput(run.run_input, "RUN_FAILED", "It failed.", True, 0, at_fence=fence + 1)
    assert await run.failing.fail(lost) == NextStep("think", 0, fence=fence)
    assert await run.status() == "RUNNING"
    await begun(run)
    assert await run.failing.fail(lost) == NextStep("end")
    assert await run.status() == "FAILED"


async def test_a_run_that_no_worker_can_begin_fails_and_can_be_retried(run: GatedRun) -> None:
    await run.open("trusting")
    lost = FailInput(run.run_input, "RUN_FAILED", "It failed.", True, 0, at_fence=1)
    assert (await run.failing.fail(lost)).kind == "think"
    assert await run.status() == "PENDING"
    assert await run.failing.fail(replace(lost, at_fence=None)) == NextStep("end")
    task = await run.task()
    assert (task["status"], task["error"]["code"]) == ("FAILED", "RUN_FAILED")
    assert (await run.editor.post(f"{run.path}/retry", {})).status_code == 200
    assert await run.status() == "PENDING"


async def test_calls_are_not_sent_if_the_transaction_that_started_them_failed(
    run: GatedRun,
) -> None:
    await run.open("trusting")
    current = await begun(run)
    call_input = CallInput(current._run_input, 1)
    response = transcript.dump_response(ModelResponse([ToolCallPart("peer__send", ASKED, "c")]))
    caller = run.activities._model_caller
    agent = await agent_of(run)
    answered = replace(record(""), response=response)
    assert await charging.charge(run.context, call_input, agent, answered)
    box = await run.toolbox.open(run.account_id, agent)
    tools = {name: tool for name, (tool, _) in box.items()}

    async def start(
        tx: AccountTransaction, task: Task, agent: AgentVersion, planned: list[Step]
    ) -> None:
        await current._start_calls(tx, task, agent, planned)
        if planned:
            await tx.execute("SELECT 1 / 0")

    found = await ActivityEnvironment().run(
        caller._answers.apply, call_input, agent, None, tools, None, start
    )
    assert found == NextStep("act", 1, [1])
    assert [row.state for row in await run.tool_rows()] == ["planned"]
    assert current._started == {}
