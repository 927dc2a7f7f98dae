"""The activities of a run. Each is an edge: it opens transactions, commits, and may call out.

Each can be repeated at any point. What has happened is read from the rows, so
a finished model call is never paid for twice, and a call to a writing tool
whose outcome is unknown goes to a person instead of being made again.
"""

from contextlib import AbstractContextManager
from dataclasses import replace

import structlog
from opentelemetry.trace import Span
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rota.platform import clock, tracing
from rota.runs import metrics, steps
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import (
    MODEL_UNAVAILABLE,
    TOOL_UNAVAILABLE,
    CallInput,
    FailInput,
    NextStep,
    RunInput,
)
from rota.runs.heartbeat import heartbeats, retry_database
from rota.runs.model_call import ModelCaller
from rota.runs.models import GiveUp, TryAgain
from rota.runs.run_context import RunContext
from rota.runs.tool_call import ToolCaller
from rota.runs.tools import ToolUnavailable
from rota.tasks import transitions
from rota.tasks.states import Trigger

log = structlog.get_logger()


class Activities:
    def __init__(
        self, current: RunContext, loop: AgentLoop, thinking: ModelCaller, acting: ToolCaller
    ) -> None:
        self._current = current
        self._loop = loop
        self._thinking = thinking
        self._acting = acting

    @activity.defn
    async def begin(self, order: RunInput) -> NextStep:
        async with self._current.locked(order) as (tx, task):
            if task is None:
                return NextStep("end")
            if task.status == "PENDING":
                metrics.QUEUE_SECONDS.observe((clock.now() - task.updated_at).total_seconds())
                if order.resume:
                    await steps.take_over(tx, task.id, task.run)
                task = await transitions.apply(tx, task, task, "RUNNING", Trigger.RUN)
            return await self._loop.look(tx, task)

    @activity.defn
    async def look(self, order: RunInput) -> NextStep:
        async with self._current.locked(order) as (tx, task):
            if task is None:
                return NextStep("end")
            return await self._loop.look(tx, task)

    @activity.defn
    async def fail(self, order: FailInput) -> NextStep:
        async with self._current.locked(order.run) as (tx, task):
            if task is None:
                return NextStep("end")
            # What people have decided is taken in first: a retry from failure goes on from it.
            now = await self._loop.look(tx, task)
            if task.status != "RUNNING":
                return now
            error = {"code": order.code, "message": order.message, "retryable": order.retryable}
            after = replace(task, error=error)
            await transitions.apply(tx, task, after, "FAILED", Trigger.RUN)
            metrics.FAILURES.labels(order.code).inc()
            return NextStep("end")

    @activity.defn
    async def think(self, order: CallInput) -> NextStep:
        async with heartbeats():
            try:
                with _span("think", order):
                    now = await self._thinking.think(order)
            except GiveUp as error:
                # Said in the database and not to the engine, which is told no texts.
                why = FailInput(order.run, error.code, error.message, error.retryable)
                return await retry_database(lambda: self.fail(why))
            except TryAgain as error:
                log.warning("the model provider failed", reason=str(error))
                raise ApplicationError(
                    "The model provider failed.",
                    type=MODEL_UNAVAILABLE,
                    next_retry_delay=error.after,
                ) from None
            except ToolUnavailable:
                raise ApplicationError("A tool server is away.", type=TOOL_UNAVAILABLE) from None
            if now is not None:
                return now
            return await retry_database(lambda: self.look(order.run))

    @activity.defn
    async def act(self, order: CallInput) -> NextStep:
        async with heartbeats():
            try:
                with _span("act", order):
                    now = await self._acting.act(order)
            except ToolUnavailable:
                raise ApplicationError("A tool server is away.", type=TOOL_UNAVAILABLE) from None
            if now is not None:
                return now
            return await retry_database(lambda: self.look(order.run))


def _span(name: str, order: CallInput) -> AbstractContextManager[Span]:
    attributes: dict[str, str | int | float] = {
        "rota.task": order.run.task_id,
        "rota.run": order.run.run,
        "rota.step": order.step,
    }
    return tracing.span(name, parent=order.run.trace, attributes=attributes)
