"""A tool call: made once it may be, and never twice where that could do harm."""

import structlog
from opentelemetry.trace import SpanKind
from temporalio.exceptions import ApplicationError

from rota.agents.model import AgentVersion
from rota.platform import clock, tracing
from rota.platform.db import AccountTransaction
from rota.runs import metrics, steps
from rota.runs.agent_loop import AgentLoop, storable
from rota.runs.contracts import TOOL_FAILED, CallInput, NextStep
from rota.runs.delegation import Delegation
from rota.runs.heartbeat import retry_database
from rota.runs.run_context import RunContext, ids_of
from rota.runs.steps import Step
from rota.runs.tools import (
    DELEGATE,
    Tool,
    Toolbox,
    ToolChanged,
    ToolSource,
    ToolUnavailable,
    model_name,
)
from rota.tasks import queries
from rota.tasks.model import Task

log = structlog.get_logger()

_UNKNOWN = (
    "The worker stopped during this call, so nobody knows whether it took effect. "
    "Look for yourself: approve to make the call again, reject to go on without it."
)
_CHANGED = (
    "The tool's definition is not the one that was shown before. Look at it again: "
    "approve to make the call, reject to go on without it."
)


class ToolCaller:
    def __init__(
        self, current: RunContext, toolbox: Toolbox, loop: AgentLoop, delegation: Delegation
    ) -> None:
        self._current = current
        self._toolbox = toolbox
        self._loop = loop
        self._delegation = delegation

    async def act(self, order: CallInput) -> NextStep | None:
        """Makes the call; None when the run is not at work."""
        account_id, _ = ids_of(order.run)
        before = await retry_database(lambda: self._begin(order))
        if before is None:
            return NextStep("end")
        task, row, agent = before
        if task.status != "RUNNING":
            return None
        if row.state == "finished":
            return NextStep("think")
        if row.name == DELEGATE.name and row.server is None:
            return await retry_database(lambda: self._delegate(order, agent))
        found = await self._toolbox.open(account_id, agent)
        tool, source = found.get(model_name(row.server, row.name), (None, None))
        if (blocked := await retry_database(lambda: self._may_start(order, tool))) is not None:
            return blocked
        assert tool is not None
        assert source is not None
        return await self._call(order, row, tool, source)

    async def _begin(self, order: CallInput) -> tuple[Task, Step, AgentVersion] | None:
        account_id, task_id = ids_of(order.run)
        async with self._current.db.read(account_id) as tx:
            task = await queries.find(tx, task_id)
            row = await steps.one(tx, task_id, order.run.run, order.step, order.call)
            if task is None or row is None or task.run != order.run.run:
                return None
            return task, row, await self._current.agent(tx, task)

    async def _may_start(self, order: CallInput, tool: Tool | None) -> NextStep | None:
        """Marks the call as started, unless it must not start; then says what comes instead."""
        async with self._current.locked(order.run) as (tx, task):
            if task is None:
                return NextStep("end")
            row = await _row(tx, task, order)
            if task.status != "RUNNING" or row.state not in ("planned", "started"):
                return await self._loop.look(tx, task)
            if tool is None:
                await steps.finish(tx, task.id, row, "The tool is no longer there.", "failed")
                return NextStep("think")
            if row.state == "started" and not row.read_only:
                return await self._loop.regate(tx, task, row, tool, _UNKNOWN)
            if tool.changed is not None:
                return await self._loop.regate(tx, task, row, tool, tool.changed)
            if tool.definition_hash != row.definition_hash:
                return await self._loop.regate(tx, task, row, tool, _CHANGED)
            await steps.set_state(tx, task.id, row, "started")
        return None

    async def _call(self, order: CallInput, row: Step, tool: Tool, source: ToolSource) -> NextStep:
        account_id, task_id = ids_of(order.run)
        started = clock.now()
        key = f"{task_id.hex}-{row.item_id}"
        try:
            with tracing.span(f"tool {tool.full_name}", kind=SpanKind.CLIENT):
                result = await source.call(account_id, tool, row.arguments or {}, key)
        except ToolUnavailable:
            # It never got there, so starting over is safe, for a writing tool too.
            await retry_database(lambda: self._set_back(order, row))
            raise
        except ToolChanged as changed:
            # It was not called, and nobody is to think that it may have been.
            await retry_database(lambda: self._set_back(order, row))
            now = changed.now
            return await retry_database(
                lambda: self._ask_about(order, now, now.changed or _CHANGED)
            )
        except Exception as error:
            log.warning("a tool call failed", tool=tool.full_name, reason=repr(error))
            if row.read_only:
                raise ApplicationError("A tool call failed.", type=TOOL_FAILED) from None
            return await retry_database(lambda: self._ask_about(order, tool, _UNKNOWN))
        metrics.STEP_SECONDS.labels("tool").observe((clock.now() - started).total_seconds())
        outcome = "failed" if result.is_error else "ok"

        async def finish() -> NextStep:
            async with self._current.db.write(account_id) as tx:
                content = storable(result.content)
                await steps.finish(tx, task_id, row, content, outcome)
            return NextStep("think")

        return await retry_database(finish)

    async def _set_back(self, order: CallInput, row: Step) -> None:
        account_id, task_id = ids_of(order.run)
        async with self._current.db.write(account_id) as tx:
            await steps.set_state(tx, task_id, row, "planned")

    async def _ask_about(self, order: CallInput, tool: Tool, reason: str) -> NextStep:
        async with self._current.locked(order.run) as (tx, task):
            if task is None or task.status != "RUNNING":
                return NextStep("end")
            row = await _row(tx, task, order)
            return await self._loop.regate(tx, task, row, tool, reason)

    async def _delegate(self, order: CallInput, agent: AgentVersion) -> NextStep:
        async with self._current.locked(order.run) as (tx, task):
            if task is None or task.status != "RUNNING":
                return NextStep("end")
            row = await _row(tx, task, order)
            if row.state == "planned":
                await self._delegation.hand_over(tx, task, agent, row)
            return await self._loop.look(tx, task)


async def _row(tx: AccountTransaction, task: Task, order: CallInput) -> Step:
    row = await steps.one(tx, task.id, task.run, order.step, order.call)
    assert row is not None
    return row
