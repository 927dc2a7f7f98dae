"""A service with agents that really work, and people who decide what they may do."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from rota.accounts.service import create_company, put_member
from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.demo import prices
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.db import Database
from tests.mcp.conftest import LOCAL, connect
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.service import Person, Service
from tests.tasks.world import HIGHEST_TIER

TICKET = "Reply to ticket T-4821."


@dataclass
class Colleague(Person):
    """A person who acts for one of their accounts: their own, or a company."""

    account: str = ""

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"X-Service-Account": self.account} | dict(options.pop("headers", {}))
        return await super().request(method, path, headers=headers, **options)


class Office:
    def __init__(self, runner: Runner, demo: str) -> None:
        self.runner = runner
        self.demo = demo

    @classmethod
    @asynccontextmanager
    async def start(
        cls, stack: Stack, variant: str, demo: str, log: Path
    ) -> AsyncIterator["Office"]:
        models = json.dumps(prices.settings(f"{demo}/v1"))
        async with Runner.start(
            stack,
            Scripted(""),
            f"office_{variant}",
            log,
            variant=variant,
            models=models,
            egress_allow=LOCAL,
        ) as runner:
            await sync(runner.service.database_url, catalog_folder())
            yield cls(runner, demo)

    @property
    def service(self) -> Service:
        return self.runner.service

    async def company(self, people: int = 1, *, tools: bool = True) -> list[Colleague]:
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
        if tools:
            await connect(members[0], f"{self.demo}/helpdesk/mcp", "helpdesk")
        return members

    async def ticket(self, person: Person, ticket: str = "T-4821", **body: Any) -> dict[str, Any]:
        """A task that waits at its tool gate, before it replies to a ticket."""
        task = await self.begin(person, ticket, **body)
        await self.runner.waiting(person, task, "tool")
        return task

    async def begin(self, person: Person, ticket: str = "T-4821", **body: Any) -> dict[str, Any]:
        response = await person.post(
            "/api/tasks",
            {
                "name": f"Answer {ticket}",
                "agent": "ticket-responder",
                "input": f"Reply to ticket {ticket}.",
                **body,
            },
        )
        assert response.status_code == 201, response.text
        task: dict[str, Any] = response.json()["task"]
        return task
