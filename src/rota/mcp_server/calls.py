"""Runs the tools. Each calls the same function as the REST operation, with the same checks."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from mcp_types import CallToolResult
from prometheus_client import Counter
from starlette.types import Scope

from rota.agents import schemas as agent_schemas
from rota.agents.access import AgentAccess
from rota.agents.catalog import Catalog
from rota.agents.model import Agent
from rota.auth.caller import Caller
from rota.auth.routing import allowed
from rota.events.messages import StillAllowed
from rota.limits.guard import charge_as_ai
from rota.mcp_server.arguments import (
    AgentWork,
    FindAgents,
    ListTasks,
    NewTask,
    OneTask,
    QuoteTask,
    WaitForTask,
)
from rota.mcp_server.results import Presenter, failure, result, wire
from rota.mcp_server.tools import AGENT_PREFIX, TOOL_NAMES
from rota.mcp_server.waiting import Report, Waiting
from rota.platform import ids
from rota.platform.http.edge import as_api_error
from rota.tasks.bodies import PatchTask
from rota.tasks.delegated import parsed, task_body
from rota.tasks.list_queries import Filter
from rota.tasks.model import Task
from rota.tasks.quote_schemas import Quote
from rota.tasks.service import Tasks

log = structlog.get_logger()

CALLS = Counter(
    "rota_mcp_server_calls_total",
    "Calls of the tools that this service offers as an MCP server.",
    ["tool", "outcome"],
)
AGENTS_SCANNED = 200

READER = allowed("tasks:read")
WRITER = allowed("tasks:write")
AGENT_READER = allowed("agents:read")

Arguments = Mapping[str, Any] | None


class UnknownTool(Exception):
    """The protocol has an error of its own for it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: who makes it, with which request, and how to report progress."""

    caller: Caller
    scope: Scope
    still_allowed: StillAllowed
    report: Report


@dataclass(frozen=True, slots=True)
class Created:
    """A new task. Clients with the tasks extension get a handle for it."""

    task: Task
    result: CallToolResult


Outcome = CallToolResult | Created


class Calls:
    def __init__(
        self,
        tasks: Tasks,
        catalog: Catalog,
        agent_access: AgentAccess,
        waiting: Waiting,
        presenter: Presenter,
    ) -> None:
        self._tasks = tasks
        self._catalog = catalog
        self._agent_access = agent_access
        self._waiting = waiting
        self._presenter = presenter
        self._tools: dict[str, Callable[[Call, Arguments], Awaitable[Outcome]]] = {
            "find_agents": self._find_agents,
            "quote_task": self._quote,
            "create_task": self._create,
            "wait_for_task": self._wait,
            "get_task": self._get,
            "list_tasks": self._list,
            "cancel_task": self._cancel,
        }
        assert self._tools.keys() == TOOL_NAMES

    async def run(self, call: Call, name: str, arguments: Arguments) -> Outcome:
        """The result of a tool. Errors of the API are results too: a model can then read them."""
        tool = self._tools.get(name)
        label = name if tool else "agent"
        if tool is None and not name.startswith(AGENT_PREFIX):
            CALLS.labels("unknown", "unknown").inc()
            raise UnknownTool(name)
        try:
            if tool is not None:
                outcome = await tool(call, arguments)
            else:
                work = parsed(AgentWork, arguments)
                agent = name.removeprefix(AGENT_PREFIX)
                outcome = await self._create_for(call, agent, work, arguments)
        except Exception as raised:
            error = as_api_error(raised)
            CALLS.labels(label, error.code or "error").inc()
            return failure(error)
        CALLS.labels(label, "ok").inc()
        return outcome

    async def open_agents(self, caller: Caller, scope: Scope) -> list[Agent]:
        """The agents that the caller can give a task to."""
        if not (caller.has_scope("agents:read") and caller.has_scope("tasks:write")):
            return []
        await charge_as_ai(scope)
        return await self._catalog.open_agents(caller, self._agent_access, AGENTS_SCANNED)

    async def _find_agents(self, call: Call, arguments: Arguments) -> Outcome:
        caller = AGENT_READER.check(call.caller)
        wanted = parsed(FindAgents, arguments)
        await charge_as_ai(call.scope)
        found = await self._catalog.page(
            caller,
            department=wanted.department,
            rank=None,
            search=wanted.query,
            page=wanted.page,
            limit=wanted.limit,
        )
        access = self._agent_access
        agents = [
            wire(agent_schemas.Agent.of(each, caller.tier, access, access.model_in_lists))
            for each in found.agents
        ]
        data = {"agents": agents, "departments": found.departments, "total": found.total}
        return result(f"{len(agents)} of {found.total} agents.", data)

    async def _quote(self, call: Call, arguments: Arguments) -> Outcome:
        caller = WRITER.check(call.caller)
        wanted = parsed(QuoteTask, arguments)
        body = task_body(wanted.agent, arguments or {})
        quote = Quote.of(await self._tasks.quote(caller, body))
        sentence = (
            f"One run costs at most {quote.maximum_cost_usd} US dollars. Nothing was created."
        )
        return result(sentence, {"quote": wire(quote)})

    async def _create(self, call: Call, arguments: Arguments) -> Outcome:
        wanted = parsed(NewTask, arguments)
        return await self._create_for(call, wanted.agent, wanted, arguments)

    async def _create_for(
        self, call: Call, agent: str, work: AgentWork, arguments: Arguments
    ) -> Outcome:
        caller = WRITER.check(call.caller)
        body = task_body(agent, arguments or {})
        created = await self._tasks.create(caller, body, work.idempotency_key)
        # A repeated call returns the stored answer. The task itself may have moved on since.
        stored = orjson.loads(created.body)
        try:
            task = await self._tasks.get(caller, ids.from_wire("task", stored["task"]["id"]))
        except Exception as error:
            # The task exists. A client that is told to try again would create another one.
            log.warning("created_task_read_failed", error=repr(error))
            return result(f"Created {stored['task']['id']}.", stored)
        return Created(task, self._shown(caller, task))

    async def _wait(self, call: Call, arguments: Arguments) -> Outcome:
        caller = READER.check(call.caller)
        wanted = parsed(WaitForTask, arguments)
        waited = await self._waiting.wait(
            caller,
            ids.from_wire("task", wanted.task_id),
            wanted.after_sequence,
            wanted.wait_seconds,
            call.still_allowed,
            call.report,
        )
        more = {"lastSequence": waited.last_sequence, "timedOut": waited.timed_out}
        if not waited.timed_out:
            return self._shown(caller, waited.task, **more)
        sentence = (
            f"{ids.to_wire('task', waited.task.id)} is still {waited.task.status}. To continue, "
            f"call wait_for_task with afterSequence {waited.last_sequence}."
        )
        return result(sentence, self._presenter.task(caller.account_id, waited.task) | more)

    async def _get(self, call: Call, arguments: Arguments) -> Outcome:
        caller = READER.check(call.caller)
        wanted = parsed(OneTask, arguments)
        task = await self._tasks.get(caller, ids.from_wire("task", wanted.task_id))
        return self._shown(caller, task)

    async def _list(self, call: Call, arguments: Arguments) -> Outcome:
        caller = READER.check(call.caller)
        wanted = parsed(ListTasks, arguments)
        filters = Filter(
            statuses=tuple(dict.fromkeys(wanted.status or ())),
            agent=wanted.agent,
            project_id=wanted.project_id,
            parent_task_id=None,
            created_after=None,
            created_before=None,
            words=wanted.query,
        )
        found, total = await self._tasks.page(caller, filters, wanted.limit, wanted.offset)
        tasks = [self._presenter.listed(caller.account_id, each) for each in found]
        return result(f"{len(tasks)} of {total} tasks.", {"tasks": tasks, "total": total})

    async def _cancel(self, call: Call, arguments: Arguments) -> Outcome:
        caller = WRITER.check(call.caller)
        wanted = parsed(OneTask, arguments)
        return self._shown(caller, await self.cancel(caller, wanted.task_id))

    async def cancel(self, caller: Caller, task_id: str) -> Task:
        body = PatchTask.model_validate({"status": "CANCELLED"})
        return await self._tasks.patch(caller, ids.from_wire("task", task_id), body)

    async def get(self, caller: Caller, task_id: str) -> Task:
        return await self._tasks.get(caller, ids.from_wire("task", task_id))

    def _shown(self, caller: Caller, task: Task, **more: Any) -> CallToolResult:
        account_id = caller.account_id
        data = self._presenter.task(account_id, task) | more
        return result(self._presenter.sentence(account_id, task), data)

    def final(self, caller: Caller, task: Task) -> CallToolResult:
        """The result of a task that has ended, for the tasks extension."""
        data = self._presenter.task(caller.account_id, task)
        return result(
            self._presenter.sentence(caller.account_id, task),
            data,
            is_error=task.status == "FAILED",
        )
