"""A run that a test drives step by step, against the real database and the real HTTP service.

The activities are the worker's own. The test is the model, Temporal and the tool server, so it
decides what happens between any two steps.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import httpx
import mcp_types as types
import orjson
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from rota.composition import Composition
from rota.events import journal
from rota.mcp import definitions
from rota.mcp import queries as mcp
from rota.mcp.client import DefinitionChanged, ToolClient
from rota.mcp.errors import ServerUnreachable
from rota.mcp.model import Acceptance, Definition, ListedDefinition, Server, ServerTool
from rota.platform import clock, ids
from rota.platform.db import AccountReader, PoolExhausted
from rota.runs import steps, transcript
from rota.runs.agent_loop import AgentLoop, ResponsePlan
from rota.runs.answers import Answer
from rota.runs.call_protection import Pulse
from rota.runs.contracts import CallInput, FailInput, NextStep, RunInput
from rota.runs.delegation import Delegation
from rota.runs.earlier_activities import Activities
from rota.runs.failing import Failing
from rota.runs.lost_calls import AbandonedCalls
from rota.runs.mcp_tools import McpTools
from rota.runs.parts import RunParts
from rota.runs.run_context import RunContext
from rota.runs.slices import Slice, Slices
from rota.runs.slots import Slots
from rota.runs.steps import Step
from rota.runs.stored_answers import plan_calls
from rota.runs.tool_call import Started, ToolCaller
from rota.runs.tools import Toolbox
from rota.tasks import queries as tasks
from rota.tasks.model import Task
from rota.worker import run_parts
from tests.runs.runner import shown
from tests.service import Person, Service
from tests.tasks.world import create, newcomers

AGENT = "operator"
CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"
ASKED = {"text": "as asked"}


@dataclass(frozen=True)
class MadeCall:
    """A call that reached a tool server."""

    server_id: str
    url: str
    definition: str
    arguments: dict[str, Any]


@dataclass
class RecordingClient:
    """Stands where the MCP client is: the last code before a call leaves the service."""

    made: list[MadeCall] = field(default_factory=list)
    # Lost connections: the tool server got the call, but its result never arrives.
    lost: int = 0
    # Calls that do not reach the server.
    unavailable: int = 0
    # Calls for which the database fails before they are sent.
    stopped: int = 0
    # If set, the server has changed the description of its tool to this before the next calls.
    changed: str | None = None
    # Happens after a call has reached the server, before its result arrives.
    meanwhile: Callable[[], Awaitable[Any]] | None = None
    keys: list[str] = field(default_factory=list)

    async def call(
        self,
        server: Server,
        tool: ServerTool,
        arguments: dict[str, Any],
        *,
        key: str,
        before_send: Callable[[], Awaitable[None]],
        **_: Any,
    ) -> types.CallToolResult:
        if self.stopped:
            self.stopped -= 1
            raise PoolExhausted
        if self.changed:
            live = listed(send(self.changed))
            raise DefinitionChanged(replace(tool, live=live.definition, live_hash=live.hash))
        await before_send()
        assert tool.accepted is not None
        self.keys.append(key)
        if self.unavailable:
            self.unavailable -= 1
            raise ServerUnreachable("It is down.", sent=False)
        self.made.append(
            MadeCall(
                ids.to_wire("mcp", server.id),
                server.url,
                tool.accepted["description"],
                arguments,
            )
        )
        if self.meanwhile:
            await self.meanwhile()
        if self.lost:
            self.lost -= 1
            raise ConnectionResetError
        return types.CallToolResult(content=[types.TextContent(type="text", text="Done.")])


def send(description: str) -> Definition:
    return {
        "name": "send",
        "description": description,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }


def listed(definition: Definition) -> ListedDefinition:
    return ListedDefinition.of(orjson.dumps(definition))


class GatedRun:
    """One task of an account with three clients, and the tool server `peer` with its tool."""

    def __init__(self, service: Service, parts: Composition) -> None:
        self.service = service
        self.parts = parts
        self.client = RecordingClient()
        self.context = RunContext(parts.db)
        self.toolbox = Toolbox([McpTools(parts.db, cast("ToolClient", self.client))])
        self.loop = AgentLoop(gate_time=parts.gate_time)
        built = run_parts(parts)
        self.activities, self.model_caller = Activities(built), built.model_caller
        self.failing = Failing(self.context, self.loop)
        self.tool_caller = ToolCaller(
            self.context, self.toolbox, self.loop, Delegation(parts.task_creation)
        )
        self.next: NextStep | None = None
        # The slice that carries the run.
        self.slice: Slice | None = None

    async def open(self, agent: str = AGENT, **body: Any) -> None:
        people = await newcomers(self.service, 3)
        await self.open_for(people, people[0].user_id, agent, **body)

    async def open_for(
        self, people: list[Person], account_id: UUID, agent: str = AGENT, **body: Any
    ) -> None:
        """As `open`, for clients of an account that exists."""
        self.one, self.two, self.editor = people
        self.account_id = account_id
        await self.connect_server("https://peer.example/1")
        self.task_id = (await create(self.editor, agent=agent, **body))["id"]
        self.run = 1

    @property
    def run_input(self) -> RunInput:
        return RunInput(ids.to_wire("acct", self.account_id), self.task_id, self.run)

    @property
    def path(self) -> str:
        return f"/api/tasks/{self.task_id}"

    async def task(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.editor.get(self.path)).json()["task"]
        return found

    async def review(self, person: Person) -> dict[str, Any]:
        found: dict[str, Any] = (await person.get(f"{self.path}/review")).json()["review"]
        return found

    # The tool server.

    async def connect_server(self, url: str, description: str = "Sends.") -> None:
        now = clock.now()
        server = Server(
            account_id=self.account_id,
            id=ids.new_uuid(),
            name="peer",
            url=url,
            transport="streamable-http",
            status="CONNECTED",
            allowed_tools=None,
            sealed_headers=None,
            last_error=None,
            last_checked_at=now,
            created_at=now,
            updated_at=now,
        )
        async with self.parts.db.write(self.account_id) as tx:
            await mcp.insert(tx, server, now.replace(year=now.year + 1))
            await definitions.save(
                tx, server.id, [], {"send": listed(send(description))}, acceptance=self._acceptance
            )
        self.server = server

    async def replace_server(self, url: str) -> None:
        async with self.parts.db.write(self.account_id) as tx:
            await mcp.delete(tx, self.server.id)
        await self.connect_server(url)

    async def move_server(self, url: str) -> None:
        """Changes the server's URL. It stays the same server, with a new revision."""
        async with self.parts.db.write(self.account_id) as tx:
            await tx.execute(
                "UPDATE mcp_servers SET url = $3, revision = revision + 1"
                " WHERE account_id = $1 AND id = $2",
                self.account_id,
                self.server.id,
                url,
            )
        self.server = replace(self.server, url=url)

    async def redefine(self, description: str) -> None:
        """The server changes its tool, and a person accepts the new definition."""
        async with self.parts.db.write(self.account_id) as tx:
            await definitions.save(tx, self.server.id, [], {"send": listed(send(description))})
            await mcp.accept(tx, self.server.id, ["send"], self._acceptance)

    @property
    def _acceptance(self) -> Acceptance:
        return Acceptance(self.account_id, "Test", None, clock.now())

    async def definition(self) -> str | None:
        async with self.parts.db.read(self.account_id) as tx:
            [tool] = await mcp.tools_of(tx, self.server.id)
        return tool.accepted["description"] if tool.accepted else None

    # The worker.

    @property
    def slices(self) -> Slices:
        return Slices(
            RunParts(self.context, self.loop, self.model_caller, self.tool_caller),
            self.parts.fanout,
            AbandonedCalls(1),
            Slots(self.parts.db, self.parts.wakes, 1),
            seconds=60,
            max_steps=10,
        )

    async def begin(self, *, resume: bool = False) -> NextStep:
        """A new slice takes the run over."""
        self.slice = Slice(self.slices, replace(self.run_input, resume=resume), Pulse(60))
        self.next = await self.slice._begin()
        return self.next

    async def fail(self) -> None:
        fail_input = FailInput(self.run_input, "RUN_FAILED", "It failed.", True)
        self.next = await self.failing.fail(fail_input)

    async def answer(self, *calls: dict[str, Any], tool: str = "peer__send") -> NextStep:
        """The model's answer: one tool call for each of these arguments."""
        return await self.call(*[(tool, arguments) for arguments in calls])

    async def call(self, *calls: tuple[str, dict[str, Any]]) -> NextStep:
        """The model's answer: calls of these tools."""
        assert self.next is not None
        assert self.next.kind == "think"
        step = self.next.step
        response = ModelResponse(
            [ToolCallPart(tool, args, f"call-{step}-{n}") for n, (tool, args) in enumerate(calls)]
        )
        row_id = ids.from_wire("task", self.task_id)
        assert row_id is not None
        async with self.context.locked(self.run_input) as (tx, task):
            assert task is not None
            await self._record_model_call(tx, row_id, step, response)
            agent = await self.context.agent(tx, task)
            box = await self.toolbox.open(self.account_id, agent)
            tools = {name: tool for name, (tool, _) in box.items()}
            checks = self.parts.schema_checks
            planned = await plan_calls(checks, self.account_id, agent, response, tools)
            self.next = await self.loop.apply_response(
                tx, task, agent, step, ResponsePlan(response, planned, None), tools
            )
        return self.next

    async def complete(self, output: str) -> None:
        """The model's last answer."""
        assert self.next is not None
        assert self.next.kind == "think"
        step, row_id = self.next.step, ids.from_wire("task", self.task_id)
        assert row_id is not None
        async with self.context.locked(self.run_input) as (tx, task):
            assert task is not None
            response = ModelResponse([TextPart(output)])
            await self._record_model_call(tx, row_id, step, response)
            agent = await self.context.agent(tx, task)
            plan = ResponsePlan(response, [], Answer(output))
            self.next = await self.loop.apply_response(tx, task, agent, step, plan, {})

    async def _record_model_call(
        self, tx: Any, row_id: UUID, step: int, response: ModelResponse
    ) -> None:
        await tx.execute(
            "INSERT INTO steps"
            " (account_id, task_id, run, step, call, kind, state, name, outcome, result)"
            " VALUES ($1, $2, $3, $4, 0, 'model', 'finished', 'test', 'ok', $5)",
            self.account_id,
            row_id,
            self.run,
            step,
            transcript.dump_response(response),
        )

    async def act(self) -> None:
        """Makes the tool calls that the run may make now, as a worker does."""
        assert self.next is not None
        assert self.slice is not None
        if self.next.kind != "act":
            return
        run_input = self.slice._run_input
        started = await self.tool_caller.start(run_input, self.next.step, self.next.calls)
        for call, each in started.items():
            if isinstance(each, Started):
                await self.tool_caller.make(CallInput(run_input, self.next.step, call), each)

    async def rows(self) -> list[Step]:
        row_id = ids.from_wire("task", self.task_id)
        assert row_id is not None
        async with self.parts.db.read(self.account_id) as tx:
            return await steps.of_run(tx, row_id, self.run)

    async def tool_rows(self) -> list[Step]:
        return [row for row in await self.rows() if row.kind == "tool"]

    async def started_calls(self) -> list[int]:
        """The numbers of the tool calls that have an event `step.started`."""
        async with self.parts.db.read(self.account_id) as tx:
            found = await journal.after(tx, 0, task_id=ids.from_wire("task", self.task_id))
        started = [event.data["call"] for event in found if event.type == journal.STEP_STARTED]
        return sorted(call for call in started if call)

    async def write(self, statement: str) -> None:
        """Changes rows of the account, which is `$1`."""
        async with self.parts.db.write(self.account_id) as tx:
            await tx.execute(statement, self.account_id)

    async def status(self) -> str:
        async with self.parts.db.read(self.account_id) as tx:
            return (await self.context_task(tx)).status

    async def context_task(self, tx: AccountReader) -> Task:
        return await tasks.get(tx, ids.from_wire("task", self.task_id))


async def decide(
    run: GatedRun, person: Person, review: dict[str, Any] | None = None, **body: Any
) -> httpx.Response:
    if review is not None:
        body["review"] = shown(review)
    return await person.post(f"{run.path}/approve", body)


def current_review(response: httpx.Response) -> dict[str, Any]:
    """The review that a refusal contains."""
    assert response.status_code == 409, response.text
    found: dict[str, Any] = response.json()["error"]["details"]["review"]
    return found


async def work(run: GatedRun) -> None:
    """The worker continues with whatever it may do."""
    await run.begin()
    await run.act()
