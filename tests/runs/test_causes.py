"""What a run says of calls that failed as often as they may, and what the engine hears of it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from temporalio import activity, exceptions
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Worker

from rota.composition import Composition
from rota.platform.db import Database
from rota.runs import heartbeat
from rota.runs.activities import Activities
from rota.runs.agent_loop import AgentLoop
from rota.runs.budget import affordable_output_tokens
from rota.runs.contracts import CallInput, FailInput, NextStep, RunInput
from rota.runs.delegation import Delegation
from rota.runs.dispatcher import priority_key
from rota.runs.error_redaction import RedactErrors
from rota.runs.heartbeat import retry_database
from rota.runs.model_call import Bounds, ModelCaller
from rota.runs.models import GiveUp, Models, Price
from rota.runs.run_context import RunContext
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import Toolbox
from rota.runs.workflow import Run, _cause
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person


def given_up(cause: BaseException) -> ActivityError:
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
def test_a_call_given_up_has_a_code_a_message_and_can_be_retried(
    cause: BaseException, code: str
) -> None:
    found, message, retryable = _cause(given_up(cause))
    assert (found, retryable) == (code, True)
    assert message.endswith("Retry the task from failure once that is mended.")


class Failing(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        raise self.error


async def heard(error: Exception) -> ApplicationError:
    """What the engine hears of an error in an activity."""
    interceptor = RedactErrors().intercept_activity(Failing(error))

    async def work() -> Any:
        nothing = ExecuteActivityInput(fn=lambda: None, args=[], executor=None, headers={})
        return await interceptor.execute_activity(nothing)

    with pytest.raises(ApplicationError) as raised:
        await ActivityEnvironment().run(work)
    return raised.value


async def test_the_engine_hears_the_name_of_an_error_and_not_its_words() -> None:
    error = await heard(KeyError("a word of the task"))
    assert (error.message, error.type) == ("An activity failed.", "KeyError")
    assert error.__suppress_context__
    ours = ApplicationError("Made for it.", type="OURS")
    assert await heard(ours) is ours


async def test_what_is_being_written_down_is_written_down_though_the_task_is_cancelled() -> None:
    going, may_end, written = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        going.set()
        await may_end.wait()
        written.append("paid")

    insisting = asyncio.create_task(retry_database(work))
    await going.wait()
    insisting.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await insisting
    assert written == ["paid"]


async def test_an_outage_of_the_database_is_waited_out_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[Exception] = [
        ConnectionRefusedError(),
        asyncpg.CannotConnectNowError("starting"),
    ]

    async def work() -> str:
        if errors:
            raise errors.pop()
        return "written"

    assert await retry_database(work) == "written"

    monkeypatch.setattr(heartbeat, "DATABASE_ATTEMPTS", 1)
    errors[:] = [ConnectionRefusedError()] * 9
    with pytest.raises(ConnectionRefusedError):
        await retry_database(work)


def test_an_answer_is_never_longer_than_what_is_left_can_pay() -> None:
    price = Price(input_micros=1_000_000, output_micros=2_000_000, version="test")
    # 300 characters may be 101 tokens.
    assert affordable_output_tokens(1_000, price, 300, 8_192) == (1_000 - 101) // 2
    assert affordable_output_tokens(1_000_000, price, 300, 8_192) == 8_192
    with pytest.raises(GiveUp) as raised:
        affordable_output_tokens(1_000, price, 2_700, 8_192)
    assert raised.value.code == "BUDGET_EXCEEDED"
    free = Price(0, 0, "free")
    assert affordable_output_tokens(0, free, 10**6, 400) == 400


def test_priorities_of_tasks_are_the_engines_upside_down() -> None:
    assert [priority_key(p) for p in (0, 1, 2.5, 5, 7.5, 10)] == [5, 5, 4, 3, 2, 1]


async def test_a_failure_does_not_end_a_run_in_which_a_person_is_being_asked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "asked"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    db = Database(runner.service.database_url, pool_size=1)
    await db.open()
    try:
        current, loop = RunContext(db), AgentLoop(gate_time=timedelta(days=1))
        acts = Activities(
            current,
            loop,
            ModelCaller(current, Models({}, None), Toolbox(), loop, Bounds(1, timedelta(hours=1))),
            ToolCaller(
                current,
                Toolbox(),
                loop,
                Delegation(Composition(runner.service.settings).task_creation),
            ),
        )
        order = RunInput(f"acct_{person.user_id.hex}", task["id"], run=1)
        assert await acts.fail(FailInput(order, "RUN_FAILED", "x", True)) == NextStep("wait")
        # A run that is not the task's current one has nothing to say.
        other = replace(order, run=2)
        assert await acts.begin(other) == await acts.look(other) == NextStep("end")
        assert await acts.fail(FailInput(other, "RUN_FAILED", "x", True)) == NextStep("end")
    finally:
        await db.close()
    assert (await runner.task(person, task["id"]))["status"] == "WAITING_APPROVAL"
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")


class Interrupted:
    """A step in which one call fails for good while another goes to a person."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()

    @activity.defn
    async def begin(self, _: RunInput) -> NextStep:
        return NextStep("act", 1, [1, 2])

    @activity.defn
    async def act(self, order: CallInput) -> NextStep:
        if order.call == 1:
            raise ApplicationError("x", type="TOOL_FAILED", non_retryable=True)
        return NextStep("wait")

    @activity.defn
    async def fail(self, order: FailInput) -> NextStep:
        assert order.code == "TOOL_FAILED"
        self.failed.set()
        return NextStep("wait")

    @activity.defn
    async def look(self, _: RunInput) -> NextStep:
        return NextStep("end")


async def test_the_run_then_waits_for_the_person(runner: Runner) -> None:
    step = Interrupted()
    async with Worker(
        runner.temporal,
        task_queue="interrupted",
        workflows=[Run],
        activities=[step.begin, step.act, step.fail, step.look],
    ):
        order = RunInput("acct", "task", run=1)
        handle = await runner.temporal.start_workflow(
            Run.run, order, id="interrupted", task_queue="interrupted"
        )
        async with asyncio.timeout(20):
            await step.failed.wait()
            await handle.signal(Run.nudge)
            await handle.result()
