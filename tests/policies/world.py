"""A company whose members decide about the runs of one another, for tests."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from rota.composition import Composition
from rota.mcp import definitions
from rota.mcp import queries as mcp
from rota.mcp.model import Acceptance
from rota.platform import clock
from rota.platform.ids import from_wire, to_wire
from tests.companies.world import Company, busy_company
from tests.runs.gated_run import AGENT, GatedRun, listed, send
from tests.runs.runner import shown
from tests.service import Person, Service
from tests.tasks.world import create

ON: dict[str, Any] = {"secondPerson": True, "approvers": "named"}
OFF: dict[str, Any] = {"secondPerson": False, "approvers": "named"}


@dataclass
class Seat(Person):
    """A member of a company, who works in it."""

    account: str = ""

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "X-Service-Account": self.account}

    @property
    def wire_id(self) -> str:
        return to_wire("user", self.user_id)

    async def key(self) -> "Seat":
        """The same user, with an API key that has every scope but none of a session."""
        scopes = ["tasks:read", "tasks:write", "tasks:approve", "mcp:invoke"]
        made = await self.post("/api/keys", {"name": "k", "scopes": scopes})
        assert made.status_code == 201, made.text
        return Seat(self.service, self.subject, made.json()["secret"], self.user_id, self.account)


class Office:
    """A company, and people who work in it."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.owner = self.seat(company.owner)

    @classmethod
    async def open(cls, service: Service, approvers: int = 2) -> "Office":
        office = cls(await busy_company(service))
        office.approvers = [await office.join(approver=True) for _ in range(approvers)]
        return office

    approvers: list[Seat]

    def seat(self, person: Person) -> Seat:
        return Seat(person.service, person.subject, person.token, person.user_id, self.company.id)

    @property
    def account_id(self) -> UUID:
        found = from_wire("acct", self.company.id)
        assert found is not None
        return found

    async def join(self, **body: Any) -> Seat:
        return self.seat(await self.company.join(**body))

    async def put(self, by: Seat | None = None, **approvals: Any) -> httpx.Response:
        return await (by or self.owner).request(
            "PUT", "/api/policies", json={"approvals": approvals}
        )

    async def require_second_person(self) -> None:
        answer = await self.put(**ON)
        assert answer.status_code == 200, answer.text


async def review_of(person: Person, task: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await person.get(f"/api/tasks/{task['id']}/review")).json()["review"]
    return found


async def approve(person: Person, task: dict[str, Any], **body: Any) -> httpx.Response:
    body["review"] = shown(await review_of(person, task))
    return await person.post(f"/api/tasks/{task['id']}/approve", body)


def code(response: httpx.Response) -> str:
    found: str = response.json()["error"]["code"]
    return found


def because(response: httpx.Response) -> list[str]:
    """How the caller shaped what was refused."""
    assert (response.status_code, code(response)) == (403, "SECOND_PERSON_REQUIRED"), response.text
    found: list[str] = response.json()["error"]["details"]["because"]
    return found


class OfficeRun(GatedRun):
    """Runs of a company, whose steps the test makes."""

    def __init__(self, service: Service, parts: Composition, office: Office) -> None:
        super().__init__(service, parts)
        self.office = office
        self.account_id = office.account_id
        self.editor = office.owner
        self.accepted_by = office.owner.user_id
        # Who made each rule of the company.
        self.rule_makers: dict[str, UUID] = {}

    async def connect(self) -> None:
        await self.connect_server("https://peer.example/1")

    @property
    def _acceptance(self) -> Acceptance:
        return Acceptance(self.accepted_by, "Test", None, clock.now())

    async def accept_as(self, person: Seat, description: str) -> None:
        """The server changes its tool, and this person accepts the new definition."""
        await self.change_tool(description)
        self.accepted_by = person.user_id
        async with self.parts.db.write(self.account_id) as tx:
            await mcp.accept(tx, self.server.id, ["send"], self._acceptance)

    async def change_tool(self, description: str) -> None:
        """The server changes its tool, and nobody has accepted the new definition."""
        async with self.parts.db.write(self.account_id) as tx:
            await definitions.save(tx, self.server.id, [], {"send": listed(send(description))})

    async def start(self, by: Person, agent: str = AGENT, **body: Any) -> dict[str, Any]:
        """A new task, whose run begins."""
        task = await create(by, agent=agent, **body)
        await self.go_on_with(task)
        return task

    async def go_on_with(self, task: dict[str, Any], run: int = 1) -> None:
        """Begins the run of this task. The test makes its steps from now on."""
        self.task_id, self.run = task["id"], run
        await self.begin()
