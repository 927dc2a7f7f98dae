"""A service with agents that really work, and people who decide what they may do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.accounts.service import create_company, put_member
from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.demo import prices
from rota.dev.demo.__main__ import build
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.db import Database
from tests.mcp.conftest import LOCAL, connect
from tests.mcp.peers import listening
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.service import Person, Service
from tests.tasks.world import HIGHEST_TIER

AGENT = "ticket-responder"
# Chunks of a stream: the first has no words.
PAUSE_AFTER = 5


@dataclass
class Colleague(Person):
    """A person who acts for one of their accounts: their own, or a company."""

    account: str = ""

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"X-Service-Account": self.account} | dict(options.pop("headers", {}))
        return await super().request(method, path, headers=headers, **options)


class Demonstration:
    """The demonstration model and tool servers. The model refuses what a test tells it to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.url = ""
        # The model fails on conversations that contain one of these texts.
        self.refuses: set[str] = set()
        # While a test sets this, the model stops after a few words until the event is set.
        self.pauses: asyncio.Event | None = None

    @classmethod
    @asynccontextmanager
    async def start(cls) -> AsyncIterator["Demonstration"]:
        demonstration = cls(build(pace=0))
        async with listening(demonstration) as url:
            demonstration.url = url
            yield demonstration

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.refuses and scope["type"] == "http" and "/v1/" in scope["path"]:
            body = await Request(scope, receive).body()
            if any(text.encode() in body for text in self.refuses):
                refusal = {"error": {"message": "No.", "type": "invalid_request_error"}}
                await JSONResponse(refusal, 400)(scope, receive, send)
                return

            receive = _after(body, receive)
        paused, chunks = self.pauses, 0

        async def send_slowly(message: Message) -> None:
            nonlocal chunks
            chunks += message["type"] == "http.response.body"
            if paused and chunks == PAUSE_AFTER and "/v1/" in scope["path"]:
                await paused.wait()
            await send(message)

        await self._app(scope, receive, send_slowly)


def _after(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was read before, and then what follows it."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return read.pop() if read else await receive()

    return again


class Office:
    def __init__(self, runner: Runner, demo: Demonstration) -> None:
        self.runner = runner
        self.demo = demo

    @classmethod
    @asynccontextmanager
    async def start(cls, stack: Stack, variant: str, log: Path) -> AsyncIterator["Office"]:
        async with (
            Demonstration.start() as demo,
            Runner.start(
                stack,
                Scripted(""),
                f"office_{variant}",
                log,
                variant=variant,
                models=json.dumps(prices.settings(f"{demo.url}/v1")),
                egress_allow=LOCAL,
            ) as runner,
        ):
            await sync(runner.service.database_url, catalog_folder())
            yield cls(runner, demo)

    @property
    def service(self) -> Service:
        return self.runner.service

    async def company(self, people: int = 1, *, helpdesk: str = "/helpdesk") -> list[Colleague]:
        """Owners of a new company with the highest tier and a helpdesk."""
        persons = [await self.service.sign_in(f"p-{uuid4().hex[:12]}") for _ in range(people)]
        db = Database(self.service.database_url, pool_size=1)
        await db.open()
        try:
            tier = HIGHEST_TIER[self.service.variant]
            account_id = await create_company(
                db, "Fernhill Supply", persons[0].user_id, tier=tier, seats=people
            )
            for person in persons[1:]:
                await put_member(db, account_id, person.user_id, "owner")
        finally:
            await db.close()
        account = ids.to_wire("acct", account_id)
        members = [
            Colleague(self.service, each.subject, each.token, each.user_id, account)
            for each in persons
        ]
        if helpdesk:
            url = f"{self.demo.url}{helpdesk}/mcp" if helpdesk.startswith("/") else helpdesk
            await connect(members[0], url, "helpdesk")
        return members

    async def begin(self, person: Person, ticket: str = "T-4821", **body: Any) -> dict[str, Any]:
        response = await person.post(
            "/api/tasks",
            {
                "name": f"Answer {ticket}",
                "agent": AGENT,
                "input": f"Reply to ticket {ticket}.",
                **body,
            },
        )
        assert response.status_code == 201, response.text
        task: dict[str, Any] = response.json()["task"]
        return task

    async def ticket(self, person: Person, ticket: str = "T-4821", **body: Any) -> dict[str, Any]:
        """A task that waits at its tool gate, before it replies to a ticket."""
        task = await self.begin(person, ticket, **body)
        await self.runner.waiting(person, task, "tool")
        return task

    async def reply(self, person: Person, task: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments of the last reply that this task sent, or None if it sent none."""
        steps, _ = await self.runner.timeline(person, task)
        sent = [
            step
            for step in steps
            if step["name"] == "reply_to_ticket" and step.get("outcome") == "ok"
        ]
        return sent[-1]["arguments"] if sent else None
