"""Webhooks for tests, the events that they send, and a worker that sends them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from rota.composition import Composition
from rota.events import journal
from rota.platform import ids
from tests.service import Person, Service

LOCAL = ("127.0.0.0/8",)
Webhook = dict[str, Any]


async def create(person: Person, url: str, **body: Any) -> tuple[Webhook, str]:
    """A webhook and its secret."""
    response = await person.post("/api/webhooks", {"url": url, **body})
    assert response.status_code == 201, response.text
    return response.json()["webhook"], response.json()["secret"]


async def read(person: Person, webhook: Webhook) -> Webhook:
    response = await person.get(f"/api/webhooks/{webhook['id']}")
    assert response.status_code == 200, response.text
    found: Webhook = response.json()["webhook"]
    return found


async def patch(person: Person, webhook: Webhook, **body: Any) -> Webhook:
    response = await person.request("PATCH", f"/api/webhooks/{webhook['id']}", json=body)
    assert response.status_code == 200, response.text
    found: Webhook = response.json()["webhook"]
    return found


async def replay(person: Person, webhook: Webhook, from_sequence: int) -> Webhook:
    path = f"/api/webhooks/{webhook['id']}/replay"
    response = await person.post(path, {"fromSequence": from_sequence})
    assert response.status_code == 200, response.text
    found: Webhook = response.json()["webhook"]
    return found


async def deliveries(person: Person, webhook: Webhook, query: str = "") -> list[Any]:
    response = await person.get(f"/api/webhooks/{webhook['id']}/deliveries{query}")
    assert response.status_code == 200, response.text
    found: list[Any] = response.json()["deliveries"]
    return found


async def company_with_admin(office: Service) -> tuple[Person, Person, str]:
    """The owner and an admin of a new company, and its ID."""
    owner, admin = await office.sign_in(), await office.sign_in()
    company: str = (await owner.post("/api/companies", {"name": "Acme"})).json()["account"]["id"]
    async with office.owner() as connection:
        await connection.execute(
            "INSERT INTO members (account_id, user_id, role, approver) "
            "VALUES ($1, $2, 'admin', true)",
            company.removeprefix("acct_"),
            admin.user_id,
        )
    return owner, admin, company


async def events_of(person: Person) -> list[Any]:
    headers = {"Accept": "application/json"}
    response = await person.get("/api/events?after=0&limit=100", headers=headers)
    found: list[Any] = response.json()["events"]
    return found


async def happen(
    parts: Composition, person: Person, count: int, kind: str = "task.updated"
) -> None:
    """Appends events to the account's journal, as a change would."""
    async with parts.db.write(person.user_id) as tx:
        for number in range(count):
            await journal.append(tx, kind, {"number": number})


async def until(
    person: Person, webhook: Webhook, deadline_s: float = 120, **wanted: Any
) -> Webhook:
    """Waits until the webhook has these values."""
    async with asyncio.timeout(deadline_s):
        while True:
            found = await read(person, webhook)
            if all(found[name] == value for name, value in wanted.items()):
                return found
            await asyncio.sleep(0.02)


async def make_due(service: Service, webhook: Webhook, *, earlier: str = "0 s") -> None:
    """Lets time pass for a webhook that fails: the next attempt is due now."""
    async with service.owner() as connection:
        await connection.execute(
            f"UPDATE webhooks SET due_at = now(), failing_since = failing_since - "
            f"interval '{earlier}' WHERE id = $1",
            uuid_of(webhook),
        )


def uuid_of(webhook: Webhook) -> UUID:
    found = ids.from_wire("wh", webhook["id"])
    assert found is not None
    return found


@asynccontextmanager
async def sending(service: Service, **settings: Any) -> AsyncIterator[Composition]:
    """A worker that does nothing but send webhooks."""
    changed = service.settings.model_copy(update=settings)
    async with Composition(changed, pool_size=8) as parts:
        task = asyncio.create_task(parts.webhook_dispatcher.run())
        try:
            yield parts
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
