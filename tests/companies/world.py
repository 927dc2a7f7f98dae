"""Companies with members, for tests."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from rota.platform.ids import to_wire
from tests.service import Person, Service

HIGHEST_TIER = {"a": "enterprise", "b": "business"}


@dataclass
class Company:
    id: str
    owner: Person

    @classmethod
    async def create(cls, service: Service, name: str = "Acme") -> "Company":
        owner = await service.sign_in()
        response = await owner.post("/api/companies", {"name": name})
        assert response.status_code == 201, response.text
        return cls(response.json()["account"]["id"], owner)

    @property
    def path(self) -> str:
        return f"/api/companies/{self.id}"

    @property
    def selected(self) -> dict[str, str]:
        return {"X-Service-Account": self.id}

    async def join(self, **body: Any) -> Person:
        """A new member, who accepts an invitation."""
        person = await self.owner.service.sign_in()
        await self.add(person, **body)
        return person

    async def add(self, person: Person, **body: Any) -> None:
        invited = await self.invite(f"{person.subject}@example.test", **body)
        assert invited.status_code == 201, invited.text
        accepted = await person.post(accept_path(invited))
        assert accepted.status_code == 200, accepted.text

    async def invite(self, email: str, **body: Any) -> httpx.Response:
        return await self.owner.post(
            f"{self.path}/invitations", {"email": email, "role": "member"} | body
        )

    def member_path(self, person: Person) -> str:
        return f"{self.path}/members/{to_wire('user', person.user_id)}"

    async def change(self, person: Person, by: Person | None = None, **body: Any) -> httpx.Response:
        return await (by or self.owner).request("PATCH", self.member_path(person), json=body)

    async def remove(self, person: Person, by: Person | None = None) -> httpx.Response:
        return await (by or self.owner).delete(self.member_path(person))

    async def members(self) -> list[dict[str, Any]]:
        response = await self.owner.get(f"{self.path}/members")
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["members"]
        return found

    async def events(self, person: Person | None = None) -> list[dict[str, Any]]:
        response = await (person or self.owner).get(
            "/api/events?limit=100", headers=self.selected | {"Accept": "application/json"}
        )
        found: list[dict[str, Any]] = response.json()["events"]
        return found


async def busy_company(service: Service) -> Company:
    """A company whose rate limit the tests do not reach."""
    company = await Company.create(service)
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1",
            UUID(company.id.removeprefix("acct_")),
            HIGHEST_TIER[service.variant],
        )
    return company


def accept_path(invited: httpx.Response) -> str:
    token = invited.json()["url"].rpartition("#")[2]
    return f"/api/invitations/{token}/accept"
