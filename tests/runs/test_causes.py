"""Calls that fail on their last attempt, and what Temporal receives about errors."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis
from temporalio import activity, exceptions
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Worker

from rota.composition import Composition
from rota.events.live_text import LiveTexts
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.schema import SchemaChecks
from rota.runs import call_protection
from rota.runs.agent_loop import AgentLoop
from rota.runs.bounds import Bounds, TokenLimitReached
from rota.runs.call_protection import retry_database
from rota.runs.contracts import CallInput, FailInput, NextStep, RunInput
from rota.runs.delegation import Delegation
from rota.runs.dispatcher import priority_key
from rota.runs.earlier_activities import Activities
from rota.runs.earlier_workflow import Run, _failure
from rota.runs.error_redaction import RedactErrors
from rota.runs.failing import Failing
from rota.runs.model_call import ModelCaller
from rota.runs.model_errors import BudgetExceeded
from rota.runs.models import Models, max_answer_tokens
from rota.runs.parts import RunParts
from rota.runs.prices import fixed_price
from rota.runs.run_context import RunContext
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import Toolbox
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.runs.test_compaction import answer, row
from tests.service import Person


def activity_error(cause: BaseException) -> ActivityError:
    error = ActivityError(
        "Activity error",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="think",
        activity_id="1",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (ApplicationError("x", type="MODEL_UNAVAILABLE"), "MODEL_UNAVAILABLE"),
        (ApplicationError("x", type="TOOL_UNAVAILABLE"), "TOOL_UNAVAILABLE"),
        (ApplicationError("x", type="TOOL_FAILED"), "TOOL_FAILED"),
        (ApplicationError("x", type="KeyError"), "RUN_FAILED"),
        (ApplicationError("x"), "RUN_FAILED"),
        (
            exceptions.TimeoutError(
                "x", type=exceptions.TimeoutType.HEARTBEAT, last_heartbeat_details=[]
            ),
            "RUN_FAILED",
        ),
    ],
)
def test_a_failed_call_has_a_code_and_a_message_and_can_be_retried(
    cause: BaseException, code: str
) -> None:
    failure = _failure(RunInput("acct", "task", run=1), activity_error(cause))
    assert (failure.code, failure.retryable) == (code, True)
    assert failure.message.endswith("Fix the cause, then retry the task from the failed step.")


class FailingActivity(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        raise self.error


async def redacted(error: Exception) -> ApplicationError:
    """The error that Temporal receives for an error in an activity."""
    interceptor = RedactErrors().intercept_activity(FailingActivity(error))

    async def work() -> Any:
        nothing = ExecuteActivityInput(fn=lambda: None, args=[], executor=None, headers={})
        return await interceptor.execute_activity(nothing)

    with pytest.raises(ApplicationError) as raised:
        await ActivityEnvironment().run(work)
    return raised.value


async def test_temporal_receives_the_type_of_an_error_but_not_its_message() -> None:
    error = await redacted(KeyError("text of the task"))
    assert (error.message, error.type) == ("An activity failed.", "KeyError")
    assert error.__suppress_context__
    ours = ApplicationError("Without text of a task.", type="OURS")
    assert await redacted(ours) is ours


async def test_a_result_is_stored_even_if_the_activity_is_cancelled_meanwhile() -> None:
    started, may_end, stored = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        started.set()
        await may_end.wait()
        stored.append("result")

    retrying = asyncio.create_task(retry_database(work))
    await started.wait()
    retrying.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await retrying
    assert stored == ["result"]


async def test_database_errors_are_retried_but_not_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[Exception] = [
        ConnectionRefusedError(),
        asyncpg.CannotConnectNowError("starting"),
    ]

    async def work() -> str:
        if errors:
            raise errors.pop()
        return "stored"

    assert await retry_database(work) == "stored"

    monkeypatch.setattr(call_protection, "DATABASE_ATTEMPTS", 1)
    errors[:] = [ConnectionRefusedError()] * 9
    with pytest.raises(ConnectionRefusedError):
        await retry_database(work)


def test_an_answer_is_limited_to_what_the_hold_can_pay_for() -> None:
    price, now = fixed_price("test", input_usd=Decimal(1), output_usd=Decimal(2)), clock.now()
    # 300 characters count as 101 tokens.
    assert max_answer_tokens(price, 1_000, 300, 8_192, now) == (1_000 - 101) // 2
    assert max_answer_tokens(price, 1_000_000, 300, 8_192, now) == 8_192
    with pytest.raises(BudgetExceeded) as raised:
        max_answer_tokens(price, 1_000, 2_700, 8_192, now)
    assert raised.value.code == "BUDGET_EXCEEDED"
    # 901 input tokens and the shortest answer worth a call, 64 tokens.
    assert (raised.value.needed_micros, raised.value.left_micros) == (901 + 128, 1_000)
    assert "at least $0.001029, but only $0.001000" in raised.value.message
    assert max_answer_tokens(fixed_price("free"), 0, 10**6, 400, now) == 400


def test_a_higher_task_priority_is_a_lower_number_in_temporal() -> None:
    assert [priority_key(p) for p in (0, 1, 2.5, 5, 7.5, 10)] == [5, 5, 4, 3, 2, 1]


async def test_a_failure_does_not_end_a_run_that_waits_for_a_person(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "asked"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    db = Database(runner.service.database_url, pool_size=1)
    await db.open()
    try:
        context, loop = RunContext(db), AgentLoop(gate_time=timedelta(days=1))
        parts = Composition(runner.service.settings)
        failing = Failing(context, loop)
        model_caller = ModelCaller(
            context,
            Models({}, None),
            Toolbox(),
            SchemaChecks(),
            loop,
            Bounds(1, timedelta(hours=1)),
            LiveTexts(Redis()),
            parts.allowance_of,
        )
        tool_caller = ToolCaller(context, Toolbox(), loop, Delegation(parts.task_creation))
        activities = Activities(RunParts(context, loop, model_caller, tool_caller))
        run_input = RunInput(f"acct_{person.user_id.hex}", task["id"], run=1)
        assert await failing.fail(FailInput(run_input, "RUN_FAILED", "x", True)) == NextStep("wait")
        # A run that is not the task's current run changes nothing.
        other = replace(run_input, run=2)
        assert await activities.begin(other) == await activities.advance(other) == NextStep("end")
        assert await failing.fail(FailInput(other, "RUN_FAILED", "x", True)) == NextStep("end")
    finally:
        await db.close()
    assert (await runner.task(person, task["id"]))["status"] == "WAITING_APPROVAL"
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")


class Interrupted:
    """A step in which one call fails permanently while another waits for a person."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()

    @activity.defn
    async def begin(self, _: RunInput) -> NextStep:
        return NextStep("act", 1, [1, 2])

    @activity.defn(name="act")
    async def call_tool(self, call_input: CallInput) -> NextStep:
        if call_input.call == 1:
            raise ApplicationError("x", type="TOOL_FAILED", non_retryable=True)
        return NextStep("wait")

    @activity.defn
    async def fail(self, fail_input: FailInput) -> NextStep:
        assert fail_input.code == "TOOL_FAILED"
        self.failed.set()
        return NextStep("wait")

    @activity.defn(name="look")
    async def advance(self, _: RunInput) -> NextStep:
        return NextStep("end")


async def test_a_run_waits_for_the_person_after_another_call_of_the_step_failed(
    runner: Runner,
) -> None:
    step = Interrupted()
    async with Worker(
        runner.temporal,
        task_queue="interrupted",
        workflows=[Run],
        activities=[step.begin, step.call_tool, step.fail, step.advance],
    ):
        run_input = RunInput("acct", "task", run=1)
        handle = await runner.temporal.start_workflow(
            Run.run, run_input, id="interrupted", task_queue="interrupted"
        )
        async with asyncio.timeout(20):
            await step.failed.wait()
            await handle.signal(Run.wake)
            await handle.result()


def test_cached_input_does_not_count_towards_the_tokens_of_a_run() -> None:
    bounds = Bounds(max_tokens=1_000, max_time=timedelta(hours=1))
    call = row(1, 0, "model", answer("Next."), input_tokens=5_000)
    cached = replace(call, cache_read_tokens=4_500, output_tokens=499)
    bounds.check([cached], 10, out_of_time=False)
    for counted in (replace(cached, output_tokens=500), replace(cached, cache_read_tokens=4_000)):
        with pytest.raises(TokenLimitReached):
            bounds.check([counted], 10, out_of_time=False)
