"""The activities of a run. Each is an edge: it opens transactions, commits, and may call out.

Each can be repeated at any point. What has happened is read from the rows, so
a finished model call is never paid for twice, and a call to a writing tool
whose outcome is unknown goes to a person instead of being made again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import structlog
from opentelemetry.trace import Span, SpanKind
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rota.agents import queries as agents
from rota.agents.model import AgentVersion
from rota.platform import clock, ids, tracing
from rota.platform.db import DATABASE_ERRORS, Database, ReadConnection, WriteConnection
from rota.runs import budget, metrics, steps
from rota.runs.delegation import Delegation
from rota.runs.loop import Loop, dump_response, messages, storable, storable_response
from rota.runs.models import ContentFiltered, GiveUp, Models, TryAgain, told_apart, usage_of
from rota.runs.orders import (
    MODEL_UNAVAILABLE,
    TOOL_FAILED,
    TOOL_UNAVAILABLE,
    CallOrder,
    FailOrder,
    Next,
    RunOrder,
)
from rota.runs.steps import Step, Thought
from rota.runs.tools import (
    DELEGATE,
    Tool,
    Toolbox,
    ToolChanged,
    ToolSource,
    ToolUnavailable,
    model_name,
)
from rota.tasks import moves, queries
from rota.tasks.model import Task
from rota.tasks.states import By

log = structlog.get_logger()

T = TypeVar("T")

_UNKNOWN = (
    "The worker stopped during this call, so nobody knows whether it took effect. "
    "Look for yourself: approve to make the call again, reject to go on without it."
)
_CHANGED = (
    "The tool's definition is not the one that was shown before. Look at it again: "
    "approve to make the call, reject to go on without it."
)


# Some ten minutes, within the time that a call may take.
_INSIST_TIMES = 120


class Activities:
    def __init__(
        self,
        db: Database,
        models: Models,
        toolbox: Toolbox,
        loop: Loop,
        delegation: Delegation,
        announce: Callable[[UUID], None],
        *,
        max_tokens: int,
        max_time: timedelta,
    ) -> None:
        self._db = db
        self._models = models
        self._toolbox = toolbox
        self._loop = loop
        self._delegation = delegation
        self._announce = announce
        self._max_tokens = max_tokens
        self._max_time = max_time
        self._agents: dict[tuple[str, int], AgentVersion] = {}

    @activity.defn
    async def begin(self, order: RunOrder) -> Next:
        async with self._task(order) as (connection, account_id, task):
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
        async with self._task(order) as (connection, account_id, task):
            if task is None:
                return Next("end")
            return await self._loop.look(connection, account_id, task)

    @activity.defn
    async def fail(self, order: FailOrder) -> Next:
        async with self._task(order.run) as (connection, account_id, task):
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
        with _span("think", order):
            return await self._thinking(order)

    async def _thinking(self, order: CallOrder) -> Next:
        async with _heartbeats():
            try:
                return await self._think(order)
            except GiveUp as error:
                # Said in the database and not to the engine, which is told no texts.
                why = FailOrder(order.run, error.code, error.message, error.retryable)
                return await _insist(lambda: self.fail(why))
            except TryAgain as error:
                log.warning("the model provider failed", reason=str(error))
                raise ApplicationError(
                    "The model provider failed.",
                    type=MODEL_UNAVAILABLE,
                    next_retry_delay=error.after,
                ) from None
            except ToolUnavailable:
                raise ApplicationError("A tool server is away.", type=TOOL_UNAVAILABLE) from None

    async def _think(self, order: CallOrder) -> Next:
        account_id, _ = _ids(order.run)
        found = await _insist(lambda: self._before_thinking(order))
        if found is None:
            return await _insist(lambda: self.look(order.run))
        task, agent, rows, spent = found
        self._check_bounds(task, agent, rows)
        box = await self._toolbox.open(account_id, agent)
        tools = {name: tool for name, (tool, _) in box.items() if tool.offered}
        thought, response = await self._ask_model(task, agent, rows, spent, tools)
        metrics.STEP_SECONDS.labels("model").observe(
            (clock.now() - thought.started_at).total_seconds()
        )
        metrics.COST_MICROS.labels(thought.model).inc(thought.cost_micros)
        now = await _insist(
            lambda: self._record(order, thought, response, tools, account_id, agent)
        )
        if now is None:
            raise ContentFiltered
        return now

    async def _before_thinking(
        self, order: CallOrder
    ) -> tuple[Task, AgentVersion, list[Step], list[budget.Spent]] | None:
        """What a model call starts from; None when there is none to make."""
        account_id, task_id = _ids(order.run)
        async with self._db.read(account_id) as connection:
            task = await queries.find(connection, account_id, task_id)
            if task is None or task.run != order.run.run or task.status != "RUNNING":
                return None
            rows = await steps.of_run(connection, account_id, task_id, task.run)
            if any(row.step == order.step for row in rows):
                return None
            agent = await self._agent(connection, task)
            spent = await budget.spent_up_the_tree(connection, account_id, task_id)
        return task, agent, rows, spent

    async def _record(
        self,
        order: CallOrder,
        thought: Thought,
        response: ModelResponse,
        tools: dict[str, Tool],
        account_id: UUID,
        agent: AgentVersion,
    ) -> Next | None:
        """Writes a model call down and acts on it; None for an answer that cannot be used."""
        _, task_id = _ids(order.run)
        async with self._task(order.run) as (connection, _, task):
            new = await steps.record_thought(
                connection, account_id, task_id, order.run.run, order.step, thought
            )
            if task is None or task.status != "RUNNING":
                # Cancelled meanwhile. The call was made all the same, and is on the books.
                return Next("end")
            if response.finish_reason == "content_filter":
                return None
            if not new:
                return await self._loop.look(connection, account_id, task)
            return await self._loop.take_in(
                connection, account_id, task, agent, order.step, response, tools
            )

    def _check_bounds(self, task: Task, agent: AgentVersion, rows: list[Step]) -> None:
        taken = sum(row.kind == "model" and not row.copied for row in rows)
        if taken >= agent.max_steps:
            raise GiveUp(
                "STEP_LIMIT",
                f"The run took all of its {agent.max_steps} steps without coming to an end. "
                "Retried from failure, it goes on with as many again.",
                retryable=True,
            )
        if sum(row.input_tokens + row.output_tokens for row in rows) >= self._max_tokens:
            raise GiveUp(
                "TOKEN_LIMIT",
                f"The run used all of its {self._max_tokens} tokens. Retried from failure, it "
                "goes on with as many again.",
                retryable=True,
            )
        if task.started_at and clock.now() - task.started_at > self._max_time:
            hours = self._max_time.total_seconds() / 3600
            raise GiveUp(
                "TIME_LIMIT",
                f"The run took longer than {hours:g} hours. Retried from failure, it goes on "
                "for as long again.",
                retryable=True,
            )

    async def _ask_model(
        self,
        task: Task,
        agent: AgentVersion,
        rows: list[Step],
        spent: list[budget.Spent],
        tools: dict[str, Tool],
    ) -> tuple[Thought, ModelResponse]:
        chosen = self._models.get(agent.model)
        conversation = messages(agent, task, rows)
        size = len(ModelMessagesTypeAdapter.dump_json(conversation))
        most = budget.affordable_output_tokens(
            spent, chosen.price, size, chosen.settings["max_tokens"]
        )
        definitions = [
            ToolDefinition(
                name=name,
                description=tool.description,
                parameters_json_schema=tool.arguments_schema,
            )
            for name, tool in tools.items()
        ]
        started_at = clock.now()
        try:
            with tracing.span(f"model {chosen.name}", kind=SpanKind.CLIENT):
                response = await chosen.model.request(
                    conversation,
                    chosen.settings | ModelSettings(max_tokens=most, timeout=600),
                    ModelRequestParameters(function_tools=definitions),
                )
        except Exception as error:
            raise told_apart(error, activity.info().attempt) from error
        response = storable_response(response)
        used = usage_of(response)
        thought = Thought(
            model=chosen.name,
            response=dump_response(response),
            input_tokens=used[0],
            output_tokens=used[1],
            cost_micros=chosen.price.cost_micros(*used),
            price_version=chosen.price.version,
            started_at=started_at,
        )
        return thought, response

    @activity.defn
    async def act(self, order: CallOrder) -> Next:
        async with _heartbeats():
            try:
                with _span("act", order):
                    return await self._act(order)
            except ToolUnavailable:
                raise ApplicationError("A tool server is away.", type=TOOL_UNAVAILABLE) from None

    async def _act(self, order: CallOrder) -> Next:
        account_id, _ = _ids(order.run)
        before = await _insist(lambda: self._before_acting(order))
        if before is None:
            return Next("end")
        task, row, agent = before
        if task.status != "RUNNING":
            return await _insist(lambda: self.look(order.run))
        if row.state == "finished":
            return Next("think")
        if row.name == DELEGATE.name and row.server is None:
            return await _insist(lambda: self._delegate(order, agent))
        found = await self._toolbox.open(account_id, agent)
        tool, source = found.get(model_name(row.server, row.name), (None, None))
        if (blocked := await self._may_start(order, tool)) is not None:
            return blocked
        assert tool is not None
        assert source is not None
        return await self._call_tool(order, row, tool, source)

    async def _before_acting(self, order: CallOrder) -> tuple[Task, Step, AgentVersion] | None:
        account_id, task_id = _ids(order.run)
        async with self._db.read(account_id) as connection:
            task = await queries.find(connection, account_id, task_id)
            row = await steps.one(
                connection, account_id, task_id, order.run.run, order.step, order.call
            )
            if task is None or row is None or task.run != order.run.run:
                return None
            return task, row, await self._agent(connection, task)

    async def _may_start(self, order: CallOrder, tool: Tool | None) -> Next | None:
        """Marks the call as started, unless it must not start; then says what comes instead."""
        async with self._task(order.run) as (connection, account_id, task):
            if task is None:
                return Next("end")
            row = await steps.one(connection, account_id, task.id, task.run, order.step, order.call)
            assert row is not None
            if task.status != "RUNNING" or row.state not in ("planned", "started"):
                return await self._loop.look(connection, account_id, task)
            if tool is None:
                await steps.finish(
                    connection, account_id, task.id, row, "The tool is no longer there.", "failed"
                )
                return Next("think")
            if row.state == "started" and not row.read_only:
                return await self._loop.regate(connection, account_id, task, row, tool, _UNKNOWN)
            if tool.changed is not None:
                return await self._loop.regate(
                    connection, account_id, task, row, tool, tool.changed
                )
            if tool.definition_hash != row.definition_hash:
                return await self._loop.regate(connection, account_id, task, row, tool, _CHANGED)
            await steps.set_state(connection, account_id, task.id, row, "started")
        return None

    async def _call_tool(self, order: CallOrder, row: Step, tool: Tool, source: ToolSource) -> Next:
        account_id, task_id = _ids(order.run)
        started = clock.now()
        key = f"{task_id.hex}-{row.item_id}"
        try:
            with tracing.span(f"tool {tool.full_name}", kind=SpanKind.CLIENT):
                result = await source.call(account_id, tool, row.arguments or {}, key)
        except ToolUnavailable:
            # It never got there, so starting over is safe, for a writing tool too.
            await _insist(lambda: self._set_back(order, row))
            raise
        except ToolChanged as changed:
            # It was not called, and nobody is to think that it may have been.
            await _insist(lambda: self._set_back(order, row))
            now = changed.now
            return await _insist(lambda: self._ask_about(order, now, now.changed or _CHANGED))
        except Exception as error:
            log.warning("a tool call failed", tool=tool.full_name, reason=repr(error))
            if row.read_only:
                raise ApplicationError("A tool call failed.", type=TOOL_FAILED) from None
            return await _insist(lambda: self._ask_about(order, tool, _UNKNOWN))
        metrics.STEP_SECONDS.labels("tool").observe((clock.now() - started).total_seconds())
        outcome = "failed" if result.is_error else "ok"

        async def finish() -> Next:
            async with self._db.write(account_id) as connection:
                content = storable(result.content)
                await steps.finish(connection, account_id, task_id, row, content, outcome)
            return Next("think")

        return await _insist(finish)

    async def _set_back(self, order: CallOrder, row: Step) -> None:
        account_id, task_id = _ids(order.run)
        async with self._db.write(account_id) as connection:
            await steps.set_state(connection, account_id, task_id, row, "planned")

    async def _ask_about(self, order: CallOrder, tool: Tool, reason: str) -> Next:
        async with self._task(order.run) as (connection, account_id, task):
            if task is None or task.status != "RUNNING":
                return Next("end")
            row = await steps.one(connection, account_id, task.id, task.run, order.step, order.call)
            assert row is not None
            return await self._loop.regate(connection, account_id, task, row, tool, reason)

    async def _delegate(self, order: CallOrder, agent: AgentVersion) -> Next:
        async with self._task(order.run) as (connection, account_id, task):
            if task is None or task.status != "RUNNING":
                return Next("end")
            row = await steps.one(connection, account_id, task.id, task.run, order.step, order.call)
            assert row is not None
            if row.state == "planned":
                await self._delegation.hand_over(connection, account_id, task, agent, row)
            return await self._loop.look(connection, account_id, task)

    async def _agent(self, connection: ReadConnection, task: Task) -> AgentVersion:
        assert task.agent is not None
        assert task.agent_version is not None
        key = (task.agent, task.agent_version)
        if key not in self._agents:
            # A version never changes, so it is read once.
            agent = await agents.find_version(connection, *key)
            assert agent is not None
            self._agents[key] = agent
        return self._agents[key]

    @contextlib.asynccontextmanager
    async def _task(
        self, order: RunOrder
    ) -> AsyncIterator[tuple[WriteConnection, UUID, Task | None]]:
        """A transaction that has the task to itself; None when this run is not its current one."""
        account_id, task_id = _ids(order)
        async with self._db.write(account_id) as connection:
            task = await queries.find_for_change(connection, account_id, task_id)
            yield connection, account_id, task if task and task.run == order.run else None
        self._announce(account_id)


def _span(name: str, order: CallOrder) -> AbstractContextManager[Span]:
    attributes: dict[str, str | int | float] = {
        "rota.task": order.run.task_id,
        "rota.run": order.run.run,
        "rota.step": order.step,
    }
    return tracing.span(name, parent=order.run.trace, attributes=attributes)


def _ids(order: RunOrder) -> tuple[UUID, UUID]:
    account_id = ids.from_wire("acct", order.account_id)
    task_id = ids.from_wire("task", order.task_id)
    assert account_id is not None
    assert task_id is not None
    return account_id, task_id


@contextlib.asynccontextmanager
async def _heartbeats() -> AsyncIterator[None]:
    """Tells the engine that this worker is alive for as long as the call takes."""
    timeout = activity.info().heartbeat_timeout or timedelta(seconds=15)

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(timeout.total_seconds() / 3)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def _insist(work: Callable[[], Awaitable[T]]) -> T:
    """Does what needs the database, also when that is away for minutes.

    What has been paid for is written down, and an outage does not count as a
    failure of the model or the tool. Being cancelled does not stop it either:
    the call was made all the same.
    """
    working = asyncio.ensure_future(_attempts(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await working
        raise


async def _attempts(work: Callable[[], Awaitable[T]]) -> T:
    for attempt in range(_INSIST_TIMES):
        try:
            return await work()
        except DATABASE_ERRORS as error:
            if attempt == 0:
                log.warning("waiting for the database", reason=repr(error))
            await asyncio.sleep(min(5, 0.1 * 2**attempt))
    return await work()
