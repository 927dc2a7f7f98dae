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
from rota.runs.acting import Acting
from rota.runs.current import Current
from rota.runs.loop import Loop
from rota.runs.models import GiveUp, TryAgain
from rota.runs.orders import (
    MODEL_UNAVAILABLE,
    TOOL_UNAVAILABLE,
    CallOrder,
    FailOrder,
    Next,
    RunOrder,
)
from rota.runs.patience import heartbeats, insist
from rota.runs.thinking import Thinking
from rota.runs.tools import ToolUnavailable
from rota.tasks import moves
from rota.tasks.states import By

log = structlog.get_logger()


class Activities:
    def __init__(self, current: Current, loop: Loop, thinking: Thinking, acting: Acting) -> None:
        self._current = current
        self._loop = loop
        self._thinking = thinking
        self._acting = acting

    @activity.defn
    async def begin(self, order: RunOrder) -> Next:
        async with self._current.locked(order) as (connection, account_id, task):
            if task is None:
                return Next("end")
            if task.status == "PENDING":
                metrics.QUEUE_SECONDS.observe((clock.now() - task.updated_at).total_seconds())
                if order.resume:
                    await steps.take_over(connection, account_id, task.id, task.run)
                task = await moves.move(connection, account_id, task, task, "RUNNING", By.RUN)
            return await self._loop.look(connection, account_id, task)

    @activity.defn
    async def look(self, order: RunOrder) -> Next:
        async with self._current.locked(order) as (connection, account_id, task):
            if task is None:
                return Next("end")
            return await self._loop.look(connection, account_id, task)

    @activity.defn
    async def fail(self, order: FailOrder) -> Next:
        async with self._current.locked(order.run) as (connection, account_id, task):
            if task is None:
                return Next("end")
            # What people have decided is taken in first: a retry from failure goes on from it.
            now = await self._loop.look(connection, account_id, task)
            if task.status != "RUNNING":
                return now
            error = {"code": order.code, "message": order.message, "retryable": order.retryable}
            after = replace(task, error=error)
            await moves.move(connection, account_id, task, after, "FAILED", By.RUN)
            metrics.FAILURES.labels(order.code).inc()
            return Next("end")

    @activity.defn
    async def think(self, order: CallOrder) -> Next:
        async with heartbeats():
            try:
                with _span("think", order):
                    now = await self._thinking.think(order)
            except GiveUp as error:
                # Said in the database and not to the engine, which is told no texts.
                why = FailOrder(order.run, error.code, error.message, error.retryable)
                return await insist(lambda: self.fail(why))
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
            return await insist(lambda: self.look(order.run))

    @activity.defn
    async def act(self, order: CallOrder) -> Next:
        async with heartbeats():
            try:
                with _span("act", order):
                    now = await self._acting.act(order)
            except ToolUnavailable:
                raise ApplicationError("A tool server is away.", type=TOOL_UNAVAILABLE) from None
            if now is not None:
                return now
            return await insist(lambda: self.look(order.run))


def _span(name: str, order: CallOrder) -> AbstractContextManager[Span]:
    attributes: dict[str, str | int | float] = {
        "rota.task": order.run.task_id,
        "rota.run": order.run.run,
        "rota.step": order.step,
    }
    return tracing.span(name, parent=order.run.trace, attributes=attributes)
