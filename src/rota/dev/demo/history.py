"""A month of finished tasks, written by the service's own code at moments in the past.

Each task is created, run, decided and charged as always: only the clock, the model and the tools
are replaced. So the tasks, the events, the ledger and the usage agree, and
`rota admin ledger verify` finds nothing. Everything is one transaction: no worker sees a task
before it has ended.
"""

import contextlib
import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import uuid_utils.compat
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from rota.auth.caller import Caller
from rota.composition import Composition
from rota.dev.demo.conversation import read
from rota.dev.demo.definitions import tools_of
from rota.dev.demo.plans import PLANS, Plan
from rota.dev.demo.prices import NAMES, PRICES
from rota.dev.demo.rules import Turn, next_turn
from rota.dev.demo.shop import Shop, ToolFailed
from rota.platform import audit, clock, ids
from rota.platform.db import AccountTransaction, Database, owner_connection
from rota.runs import (
    answers,
    charging,
    step_events,
    steps,
    stored_answers,
    tool_steps,
    transcript,
)
from rota.runs.agent_loop import AgentLoop, ResponsePlan
from rota.runs.contracts import NextStep
from rota.runs.model_steps import ModelCallRecord
from rota.runs.prices import TokenUsage, fixed_price
from rota.runs.tools import Tool
from rota.tasks import queries, transitions
from rota.tasks.creation import NewTask
from rota.tasks.model import Task
from rota.tasks.review_schemas import ApproveTask, RejectTask
from rota.tasks.reviews import Reviews
from rota.tasks.states import Trigger

DAYS = 30
_CHARACTERS_PER_TOKEN = 4


class Moment:
    """The time at which the history happens, for this process."""

    def __init__(self, start: datetime) -> None:
        self.now = start
        self._random = random.Random(1815)  # noqa: S311

    def pass_s(self, low: float, high: float) -> None:
        self.now += timedelta(seconds=self._random.uniform(low, high))

    def uuid7(self) -> UUID:
        milliseconds = int(self.now.timestamp() * 1000)
        noise = self._random.getrandbits(74)
        value = milliseconds << 80 | 7 << 76 | (noise >> 62) << 64 | 2 << 62 | noise & (1 << 62) - 1
        return UUID(int=value)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        real_now, real_uuid7 = clock.now, uuid_utils.compat.uuid7
        clock.now = lambda: self.now
        uuid_utils.compat.uuid7 = cast(Any, self.uuid7)
        try:
            yield
        finally:
            clock.now, uuid_utils.compat.uuid7 = real_now, real_uuid7


class OneTransaction:
    """Stands for the database: all work is part of one transaction of the owner."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @contextlib.asynccontextmanager
    async def write(
        self, account_id: UUID, user_id: UUID, *, right: str | None = None
    ) -> AsyncIterator[AccountTransaction]:
        # The people of the company have every right that its history needs.
        await self.connection.execute(
            f"SET LOCAL rota.account_id = '{account_id}'; SET LOCAL rota.user_id = '{user_id}'"
        )
        tx = AccountTransaction(self.connection, account_id, user_id)
        yield tx
        if tx.entries:
            await self.connection.execute(audit.append_statements(tx.entries, account_id))


@dataclass(frozen=True, slots=True)
class Company:
    account_id: UUID
    tier: str
    owner: UUID
    member: UUID
    # The IDs and URLs of the connected tool servers, by name.
    servers: Mapping[str, tuple[str, str]]


async def write_history(parts: Composition, owner_url: str, company: Company) -> int:
    """Writes the history. Returns the number of tasks; 0 if the company has tasks already."""
    async with parts.db.read(company.account_id, company.owner) as tx:
        if await tx.fetchval("SELECT true FROM tasks WHERE account_id = $1", company.account_id):
            return 0
    moment = Moment(datetime.now(UTC) - timedelta(days=DAYS))
    async with owner_connection(owner_url) as connection, connection.transaction():
        with moment.applied():
            writer = _Writer(parts, OneTransaction(connection), company, moment)
            gap_s = (DAYS * 86_400 - 6 * 3600) / len(PLANS)
            start = moment.now
            for number, plan in enumerate(PLANS):
                moment.now = max(moment.now, start + timedelta(seconds=number * gap_s))
                await writer.write(plan, number)
            await writer.finish()
    return len(PLANS)


class _Writer:
    def __init__(
        self, parts: Composition, db: OneTransaction, company: Company, moment: Moment
    ) -> None:
        self._creation = parts.task_creation
        self._db = db
        self._company = company
        self._moment = moment
        # Rows with a time after this one have the time of the database.
        self._real_start = datetime.now(UTC)
        self._loop = AgentLoop(gate_time=parts.gate_time)
        self._checks = parts.schema_checks
        self._reviews = Reviews(
            cast(Database, db), parts.idempotency, self._checks, weight_of=parts.variant.weight_of
        )

    async def write(self, plan: Plan, number: int) -> None:
        """One task, from its creation to its end."""
        company = self._company
        user = company.member if number % 3 == 2 else company.owner
        async with self._db.write(company.account_id, user) as tx:
            agent = await self._creation.find_agent(tx, plan.agent, company.tier)
            new = NewTask(plan.name, agent=agent, input=plan.input, project_id=plan.project)
            task = await self._creation.create(tx, new, company.tier)
            self._moment.pass_s(0.2, 1.5)
            task = await transitions.apply(tx, task, task, "RUNNING", Trigger.RUN)
            await self._date(tx, task)
            shown = {name: tool for name, tool in self._tools(agent).items() if tool.offered}
            messages: list[dict[str, Any]] = [
                {"role": "system", "content": agent.instructions},
                {"role": "user", "content": f"# {plan.name}\n\n{plan.input}"},
            ]
            definitions = [_definition(name, tool) for name, tool in shown.items()]
            step, shop = 1, Shop()
            while True:
                if plan.fails_at == step:
                    await self._fail(tx, task, plan)
                    return
                body = {"messages": messages, "tools": definitions}
                turn = next_turn(read(body))
                following = await self._think(tx, task, agent, step, turn, body, shown)
                messages.append(_assistant(turn, step))
                if following.kind == "wait" and not await self._decide(tx, task, plan):
                    return
                current = await self._current(tx, task)
                if current.status != "RUNNING":
                    return
                await self._act(tx, current, step, messages, shop)
                step += 1

    async def _think(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: Any,
        step: int,
        turn: Turn,
        body: dict[str, Any],
        tools: Mapping[str, Tool],
    ) -> NextStep:
        started_at = self._moment.now
        self._moment.pass_s(1.5, 9)
        said = turn.text + json.dumps(turn.calls)
        usage = TokenUsage(
            len(json.dumps(body)) // _CHARACTERS_PER_TOKEN, len(said) // _CHARACTERS_PER_TOKEN
        )
        input_usd, output_usd = (Decimal(price) for price in PRICES[agent.model])
        price = fixed_price("operator", input_usd=input_usd, output_usd=output_usd)
        cost_micros = price.cost_micros(usage, started_at)
        calls = [
            ToolCallPart(name, arguments, f"call-{step}-{number}")
            for number, (name, arguments) in enumerate(turn.calls)
        ]
        response = ModelResponse([TextPart(turn.text), *calls], model_name=NAMES[agent.model])
        record = ModelCallRecord(
            model=NAMES[agent.model],
            response=transcript.dump_response(response),
            usage=usage,
            cost_micros=cost_micros,
            price_version=price.version,
            started_at=started_at,
        )
        await step_events.model_call_starts(tx, task.run_id, step, is_new=True)
        await charging.store_charged(tx, task.run_id, step, agent, record)
        await steps.finish_model_call(tx, task.id, task.run, step)
        planned = await stored_answers.plan_calls(
            self._checks, tx.account_id, agent, response, tools
        )
        current = await self._current(tx, task)
        answer = None
        if not response.tool_calls:
            answer = await answers.answer_of(
                self._checks, tx.account_id, current.output_schema, response
            )
        plan = ResponsePlan(response, planned, answer)
        following = await self._loop.apply_response(tx, current, agent, step, plan, tools)
        await self._date(tx, task)
        return following

    async def _decide(self, tx: AccountTransaction, task: Task, plan: Plan) -> bool:
        """A person decides after some time. Returns whether the run continues."""
        self._moment.pass_s(180, 5400)
        company = self._company
        caller = Caller(
            user_id=company.owner,
            account_id=company.account_id,
            account_kind="company",
            role="owner",
            tier=company.tier,
            user_tier=company.tier,
            scopes=None,
            session_id=ids.new_uuid(),
        )
        if plan.rejected:
            reject = RejectTask(reason=plan.rejected)
            await self._reviews.reject(caller, task.id, reject, None)
        else:
            await self._reviews.approve(caller, task.id, ApproveTask(), None)
        await self._date(tx, task)
        return not plan.rejected

    async def _act(
        self,
        tx: AccountTransaction,
        task: Task,
        step: int,
        messages: list[dict[str, Any]],
        shop: Shop,
    ) -> None:
        """Makes the calls of this step, and applies their decisions first."""
        await self._loop.advance(tx, task)
        for row in await steps.calls_of(tx, task.id, task.run, step):
            if row.state != "finished":
                await step_events.tool_calls_start(tx, task.id, [row], are_new=True)
                await tool_steps.start(tx, task.id, task.run, step, [row.call])
                await self._date(tx, task)
                self._moment.pass_s(0.1, 1.2)
                try:
                    result = {"structuredContent": shop.call(row.name, row.arguments or {})}
                    await tool_steps.finish(tx, task.id, row, result, "ok")
                except ToolFailed as failed:
                    await tool_steps.finish(tx, task.id, row, str(failed), "failed")
        await self._date(tx, task)
        for row in await steps.calls_of(tx, task.id, task.run, step):
            text = row.result if isinstance(row.result, str) else json.dumps(row.result)
            messages.append({"role": "tool", "tool_call_id": row.call_id, "content": text})

    async def _fail(self, tx: AccountTransaction, task: Task, plan: Plan) -> None:
        self._moment.pass_s(20, 90)
        code, message = plan.failure
        await self._loop.fail(tx, await self._current(tx, task), code, message, retryable=True)
        await self._date(tx, task)

    async def _current(self, tx: AccountTransaction, task: Task) -> Task:
        found = await queries.find_for_change(tx, task.id)
        assert found is not None
        return found

    def _tools(self, agent: Any) -> dict[str, Tool]:
        tools = [
            Tool(
                name=definition["name"],
                server=server,
                description=definition["description"],
                arguments_schema=definition["inputSchema"],
                read_only=bool(definition["annotations"].get("readOnlyHint")),
                server_revision=(server_id, 1),
                server_url=url,
            )
            for server, (server_id, url) in self._company.servers.items()
            for definition in tools_of(server)
        ]
        return {tool.model_name: tool for tool in tools if agent.may_use(tool.full_name)}

    async def _date(self, tx: AccountTransaction, task: Task) -> None:
        """Gives rows that have the time of the database the time of this moment."""
        await tx.execute(
            "UPDATE events SET created_at = $3 WHERE account_id = $1 AND created_at >= $2",
            tx.account_id,
            self._real_start,
            self._moment.now,
        )
        await tx.execute(
            """
            UPDATE steps SET
                planned_at = CASE WHEN planned_at >= $3 THEN $4 ELSE planned_at END,
                started_at = CASE WHEN started_at >= $3 THEN $4 ELSE started_at END,
                finished_at = CASE WHEN finished_at >= $3 THEN $4 ELSE finished_at END
            WHERE account_id = $1 AND task_id = $2
            """,
            tx.account_id,
            task.id,
            self._real_start,
            self._moment.now,
        )

    async def finish(self) -> None:
        """Everything has ended, so no worker has to do anything."""
        async with self._db.write(self._company.account_id, self._company.owner) as tx:
            await tx.execute("DELETE FROM outbox WHERE account_id = $1", tx.account_id)


def _definition(name: str, tool: Tool) -> dict[str, Any]:
    function = {
        "name": name,
        "description": tool.description,
        "parameters": tool.arguments_schema,
    }
    return {"type": "function", "function": function}


def _assistant(turn: Turn, step: int) -> dict[str, Any]:
    calls = [
        {
            "id": f"call-{step}-{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(turn.calls)
    ]
    return {"role": "assistant", "content": turn.text, "tool_calls": calls}
