"""The activities of runs that earlier versions started.

Each opens its own transactions, commits, and may call out. New runs use slices.py.

Every activity can be repeated at any point. It reads from the database what has already happened,
so a finished model call is never charged twice, and a call to a write tool with an unknown
outcome goes to a person instead of being repeated.
"""

from functools import partial

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rota.platform import clock
from rota.runs import steps
from rota.runs.call_protection import heartbeats, retry_database
from rota.runs.contracts import (
    ADVANCE,
    BEGIN,
    CALL_FINISHED,
    CALL_MODEL,
    CALL_TOOL,
    MODEL_UNAVAILABLE,
    TOOL_UNAVAILABLE,
    CallInput,
    FailInput,
    NextStep,
    RunInput,
)
from rota.runs.failing import Failing
from rota.runs.model_errors import GiveUp, TryAgain
from rota.runs.parts import RunParts
from rota.runs.run_context import FencedOut, act_as_agent, span_of
from rota.runs.slices import QUEUE_SECONDS
from rota.runs.tool_call import WAITS_FOR_PERSON, Started
from rota.runs.tools import ToolUnavailable
from rota.tasks import transitions
from rota.tasks.states import Trigger

log = structlog.get_logger()


class Activities:
    def __init__(self, parts: RunParts) -> None:
        self._context = parts.context
        self._loop = parts.loop
        self._model_caller = parts.model_caller
        self._tool_caller = parts.tool_caller
        self.fail = Failing(parts.context, parts.loop).fail

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
                    next_step = await self._call_tool(call_input)
            except ToolUnavailable:
                raise _tool_unavailable() from None
            except FencedOut:
                return NextStep("end")  # Another attempt has taken the call over.
            if next_step is not None:
                return next_step
            return await retry_database(lambda: self.advance(call_input.run))

    async def _call_tool(self, call_input: CallInput) -> NextStep | None:
        """Makes the call. None if the rows say what is next."""
        call = call_input.call
        start = partial(self._tool_caller.start, call_input.run, call_input.step, [call])
        started = (await retry_database(start)).get(call)
        if isinstance(started, Started):
            return await self._tool_caller.make(call_input, started)
        return started if started in (CALL_FINISHED, WAITS_FOR_PERSON) else None


def _tool_unavailable() -> ApplicationError:
    return ApplicationError("A tool server is not available.", type=TOOL_UNAVAILABLE)
