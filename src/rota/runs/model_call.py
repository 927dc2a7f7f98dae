"""A model call: from the conversation so far to the answer, written down and paid for."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import orjson
from opentelemetry.trace import SpanKind
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from temporalio import activity

from rota.agents.model import AgentVersion
from rota.credits import charges, holds
from rota.credits.ledger import Charge, RunId
from rota.events import journal
from rota.platform import clock, tracing
from rota.runs import budget, metrics, steps
from rota.runs.agent_loop import AgentLoop, dump_response, messages, storable_response
from rota.runs.contracts import CallInput, NextStep
from rota.runs.heartbeat import retry_database
from rota.runs.models import (
    ContentFiltered,
    GiveUp,
    Models,
    PricedModel,
    TryAgain,
    classify_error,
    usage_of,
)
from rota.runs.run_context import RunContext, ids_of
from rota.runs.steps import ModelCallRecord, Step
from rota.runs.tools import Tool, Toolbox
from rota.tasks import queries
from rota.tasks.model import Task
from rota.tasks.paying import payer

# How long a subtask waits for a model call of the task above it: at first, and at most.
WAIT_ABOVE, MOST_WAIT = timedelta(seconds=3), timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take, whatever its agent's file says."""

    max_tokens: int
    max_time: timedelta


@dataclass(frozen=True, slots=True)
class ModelCallInput:
    """What a model call starts from."""

    account_id: UUID
    task: Task
    agent: AgentVersion
    rows: list[Step]
    # Micro-dollars of the run's own hold.
    left: int


class ModelCaller:
    def __init__(
        self, current: RunContext, models: Models, toolbox: Toolbox, loop: AgentLoop, bounds: Bounds
    ) -> None:
        self._current = current
        self._models = models
        self._toolbox = toolbox
        self._loop = loop
        self._bounds = bounds

    async def think(self, order: CallInput) -> NextStep | None:
        """Makes the call; None when there is none to make any more."""
        start = await retry_database(lambda: self._begin(order))
        if start is None:
            return None
        self._check_bounds(start)
        box = await self._toolbox.open(start.account_id, start.agent)
        tools = {name: tool for name, (tool, _) in box.items() if tool.offered}
        thought, response = await self._ask(start, tools)
        took = clock.now() - thought.started_at
        metrics.STEP_SECONDS.labels("model").observe(took.total_seconds())
        metrics.COST_MICROS.labels(thought.model).inc(thought.cost_micros)
        now = await retry_database(
            lambda: self._record(order, start.agent, thought, response, tools)
        )
        if now is None:
            raise ContentFiltered
        return now

    async def _begin(self, order: CallInput) -> ModelCallInput | None:
        account_id, task_id = ids_of(order.run)
        async with self._current.db.read(account_id) as tx:
            task = await queries.find(tx, task_id)
            if task is None or task.run != order.run.run or task.status != "RUNNING":
                return None
            rows = await steps.of_run(tx, task_id, task.run)
            if any(row.step == order.step for row in rows):
                return None
            agent = await self._current.agent(tx, task)
            left = await holds.left(tx, payer(task))
        return ModelCallInput(account_id, task, agent, rows, left)

    def _check_bounds(self, start: ModelCallInput) -> None:
        most = self._bounds
        taken = sum(row.kind == "model" and not row.copied for row in start.rows)
        if taken >= start.agent.max_steps:
            raise GiveUp(
                "STEP_LIMIT",
                f"The run took all of its {start.agent.max_steps} steps without coming to an end. "
                "Retried from failure, it goes on with as many again.",
                retryable=True,
            )
        if sum(row.input_tokens + row.output_tokens for row in start.rows) >= most.max_tokens:
            raise GiveUp(
                "TOKEN_LIMIT",
                f"The run used all of its {most.max_tokens} tokens. Retried from failure, it "
                "goes on with as many again.",
                retryable=True,
            )
        began = start.task.started_at
        if began and clock.now() - began > most.max_time:
            hours = most.max_time.total_seconds() / 3600
            raise GiveUp(
                "TIME_LIMIT",
                f"The run took longer than {hours:g} hours. Retried from failure, it goes on "
                "for as long again.",
                retryable=True,
            )

    async def _ask(
        self, start: ModelCallInput, tools: dict[str, Tool]
    ) -> tuple[ModelCallRecord, ModelResponse]:
        chosen = self._models.get(start.agent.model)
        conversation = messages(start.agent, start.task, start.rows)
        size = len(ModelMessagesTypeAdapter.dump_json(conversation))
        for tool in tools.values():
            size += len(tool.description) + len(orjson.dumps(tool.arguments_schema))
        longest = await self._longest_answer(start, chosen, size)
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
                    chosen.settings | ModelSettings(max_tokens=longest, timeout=600),
                    ModelRequestParameters(function_tools=definitions),
                )
        except Exception as error:
            raise classify_error(error, activity.info().attempt) from error
        response = storable_response(response)
        used = usage_of(response)
        thought = ModelCallRecord(
            model=chosen.name,
            response=dump_response(response),
            input_tokens=used[0],
            output_tokens=used[1],
            cost_micros=chosen.price.cost_micros(*used),
            price_version=chosen.price.version,
            started_at=started_at,
        )
        return thought, response

    async def _longest_answer(self, start: ModelCallInput, chosen: PricedModel, size: int) -> int:
        """How many tokens of an answer the hold can pay for, also with what the one above has."""
        most: int = chosen.settings["max_tokens"]
        left, wanted = start.left, budget.most_micros(chosen.price, size, most)
        if left < wanted and start.task.parent_task_id:
            left = await retry_database(lambda: self._draw(start, wanted - start.left))
        return budget.affordable_output_tokens(left, chosen.price, size, most)

    async def _draw(self, start: ModelCallInput, micros: int) -> int:
        """Takes so much from the hold of the task above, and says what there is then."""
        account_id, owner = start.account_id, payer(start.task)
        async with self._current.db.write(account_id) as tx:
            # Locked: neither may end meanwhile.
            await journal.lock_account(tx)
            if await steps.asks_above(tx, start.task.id):
                # What is held there has to pay for that call first.
                wait = WAIT_ABOVE * 2 ** (activity.info().attempt - 1)
                raise TryAgain("the task above is asking its model", min(wait, MOST_WAIT))
            await holds.draw(tx, owner, micros)
            return await holds.left(tx, owner)

    async def _record(
        self,
        order: CallInput,
        agent: AgentVersion,
        thought: ModelCallRecord,
        response: ModelResponse,
        tools: dict[str, Tool],
    ) -> NextStep | None:
        """Writes the call down and acts on it; None for an answer that cannot be used."""
        _, task_id = ids_of(order.run)
        owner = RunId(task_id, order.run.run)
        async with self._current.locked(order.run) as (tx, task):
            new = await steps.record_thought(tx, task_id, owner.run, order.step, thought)
            if new:
                paid = Charge(
                    owner,
                    order.step,
                    agent.name,
                    thought.model,
                    thought.price_version,
                    cost_micros=thought.cost_micros,
                    input_tokens=thought.input_tokens,
                    output_tokens=thought.output_tokens,
                )
                await charges.charge(tx, paid)
            if task is None or task.status != "RUNNING":
                # Cancelled meanwhile. The call was made all the same, and is on the books.
                return NextStep("end")
            if response.finish_reason == "content_filter":
                return None
            if not new:
                return await self._loop.look(tx, task)
            return await self._loop.take_in(tx, task, agent, order.step, response, tools)
