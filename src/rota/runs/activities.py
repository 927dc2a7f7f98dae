"""The activities of runs that earlier versions started, and of failing a run.

Each opens its own transactions, commits, and may call out. New runs use slices.py.

Every activity can be repeated at any point. It reads from the database what has already happened,
so a finished model call is never charged twice, and a call to a write tool with an unknown
outcome goes to a person instead of being repeated.
"""

from contextlib import AbstractContextManager

import structlog
from opentelemetry.trace import Span
from prometheus_client import Histogram
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rota.platform import clock, tracing
from rota.runs import steps
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import (
    ADVANCE,
    BEGIN,
    CALL_MODEL,
    CALL_TOOL,
    FAIL,
    MODEL_UNAVAILABLE,
    TOOL_UNAVAILABLE,
    CallInput,
    FailInput,
    NextStep,
    RunInput,
    workflow_id,
)
from rota.runs.heartbeat import heartbeats, retry_database
from rota.runs.model_call import ModelCaller
from rota.runs.models import GiveUp, TryAgain
from rota.runs.run_context import FencedOut, RunContext, act_as_agent
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import ToolUnavailable
from rota.tasks import transitions
from rota.tasks.states import Trigger

log = structlog.get_logger()

QUEUE_SECONDS = Histogram(
    "rota_run_queue_seconds",
    "Time from the creation of a task to the start of its run.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800),
)


class Activities:
    def __init__(
        self,
        context: RunContext,
        loop: AgentLoop,
        model_caller: ModelCaller,
        tool_caller: ToolCaller,
    ) -> None:
        self._context = context
        self._loop = loop
        self._model_caller = model_caller
        self._tool_caller = tool_caller

    @activity.defn(name=BEGIN)
    async def begin(self, run_input: RunInput) -> NextStep:
        act_as_agent(run_input)
        async with self._context.locked(run_input) as (tx, task):
            if task is None:
                return NextStep("end")
            if task.status == "PENDING":
                QUEUE_SECONDS.observe((clock.now() - task.updated_at).total_seconds())
                if run_input.resume:
                    await steps.copy_kept(tx, task)
                task = await transitions.apply(tx, task, task, "RUNNING", Trigger.RUN)
            return await self._loop.advance(tx, task)

    @activity.defn(name=ADVANCE)
    async def advance(self, run_input: RunInput) -> NextStep:
        act_as_agent(run_input)
        async with self._context.locked(run_input) as (tx, task):
            if task is None:
                return NextStep("end")
            return await self._loop.advance(tx, task)

    @activity.defn(name=FAIL)
    async def fail(self, fail_input: FailInput) -> NextStep:
        act_as_agent(fail_input.run)
        async with self._context.locked(fail_input.run) as (tx, task):
            if task is None:
                return NextStep("end")
            if fail_input.finished is not None:
                finished, *_ = await steps.progress(tx, task.id, task.run)
                has_begun = fail_input.at_fence is None or task.fence >= fail_input.at_fence
                if finished > fail_input.finished or not has_begun:
                    # The run goes on, and the workflow has to know from where.
                    return NextStep("think", finished, fence=task.fence)
            if task.status != "PENDING":
                # Decisions are applied first, so that a retry from failure continues from them.
                next_step = await self._loop.advance(tx, task)
                if task.status != "RUNNING" or next_step.kind == "end":
                    return next_step
            if fail_input.finished is not None:
                run = workflow_id(fail_input.run.task_id, fail_input.run.run)
                log.warning("run_without_progress", run=run, fence=task.fence)
            return await self._loop.fail(
                tx, task, fail_input.code, fail_input.message, retryable=fail_input.retryable
            )

    @activity.defn(name=CALL_MODEL)
    async def call_model(self, call_input: CallInput) -> NextStep:
        act_as_agent(call_input.run)
        async with heartbeats():
            try:
                with span_of(CALL_MODEL, call_input):
                    next_step = await self._model_caller.call(call_input)
            except GiveUp as error:
                # Written to the database here: Temporal must not receive the message's text.
                fail_input = FailInput(call_input.run, error.code, error.message, error.retryable)
                return await retry_database(lambda: self.fail(fail_input))
            except TryAgain as error:
                log.warning("model_call_failed", error=str(error))
                raise ApplicationError(
                    "The model provider failed.",
                    type=MODEL_UNAVAILABLE,
                    next_retry_delay=error.after,
                ) from None
            except ToolUnavailable:
                raise _tool_unavailable() from None
            if next_step is not None:
                return next_step
            return await retry_database(lambda: self.advance(call_input.run))

    @activity.defn(name=CALL_TOOL)
    async def call_tool(self, call_input: CallInput) -> NextStep:
        act_as_agent(call_input.run)
        async with heartbeats():
            try:
                with span_of(CALL_TOOL, call_input):
                    next_step = await self._tool_caller.call(call_input)
            except ToolUnavailable:
                raise _tool_unavailable() from None
            except FencedOut:
                return NextStep("end")  # Another attempt has taken the call over.
            if next_step is not None:
                return next_step
            return await retry_database(lambda: self.advance(call_input.run))


def _tool_unavailable() -> ApplicationError:
    return ApplicationError("A tool server is not available.", type=TOOL_UNAVAILABLE)


def span_of(name: str, call_input: CallInput) -> AbstractContextManager[Span]:
    attributes: dict[str, str | int | float] = {
        "rota.task": call_input.run.task_id,
        "rota.run": call_input.run.run,
        "rota.step": call_input.step,
    }
    return tracing.span(name, parent=call_input.run.trace, attributes=attributes)
