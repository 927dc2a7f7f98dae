"""People who are told what happens in their accounts, for tests."""

from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from typing import Any

import httpx

from rota.composition import Composition
from rota.notifications.delivery import Timing
from rota.notifications.sender import Sender
from tests.notifications.receivers import Mailbox
from tests.service import Person, Service

ALL = ["approval_waiting", "task_failed", "balance_low", "webhook_disabled"]
DIGEST = timedelta(minutes=15)


@dataclass
class Desk:
    """A service with a mail server, and the sender of a worker that tests run step by step."""

    service: Service
    parts: Composition
    mailbox: Mailbox

    def sender(self, **timing: timedelta) -> Sender:
        return self.parts.notifications.sender(None, Timing(**{"digest": DIGEST} | timing))

    async def send(self, **timing: timedelta) -> None:
        await self.sender(**timing).step()

    async def person(self, **wanted: Any) -> Person:
        """Somebody who wants to be told everything by mail."""
        person = await self.service.sign_in()
        await subscribe(person, **wanted)
        return person

    def mails(self, person: Person) -> list[EmailMessage]:
        return self.mailbox.to(address(person))

    async def later(self, person: Person, by: timedelta = DIGEST) -> None:
        """As if the time since the last messages to this person had passed."""
        async with self.service.owner() as connection:
            await connection.execute(
                """
                UPDATE notification_queues SET due_at = due_at - $2::interval,
                    last_sent_at = last_sent_at - $2::interval,
                    failed_at = failed_at - $2::interval,
                    first_failed_at = first_failed_at - $2::interval
                WHERE user_id = $1
                """,
                person.user_id,
                by,
            )
            await connection.execute(
                "UPDATE notification_items SET created_at = created_at - $2::interval "
                "WHERE user_id = $1",
                person.user_id,
                by,
            )


def address(person: Person) -> str:
    return f"{person.subject}@example.test"


def wanted(**changes: Any) -> dict[str, Any]:
    """The body of a PUT: everything by mail, nothing in a chat."""
    return {"content": "full", "mail": {"kinds": ALL}, "chat": {"kinds": []}} | changes


async def put(person: Person, **changes: Any) -> httpx.Response:
    return await person.request("PUT", "/api/me/notifications", json=wanted(**changes))


async def subscribe(person: Person, **changes: Any) -> dict[str, Any]:
    response = await put(person, **changes)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def shown(person: Person) -> dict[str, Any]:
    response = await person.get("/api/me/notifications")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def delivery(person: Person, kind: str, channel: str = "mail") -> dict[str, Any]:
    found = (await shown(person))["deliveries"]
    return next(each for each in found if (each["kind"], each["channel"]) == (kind, channel))


async def program(person: Person) -> Person:
    """The same user, as a program with an API key. What it does is news for the user."""
    scopes = ["tasks:read", "tasks:write", "tasks:approve"]
    made = await person.post("/api/keys", {"name": "k", "scopes": scopes})
    assert made.status_code == 201, made.text
    secret = made.json()["secret"]
    return type(person)(**{**person.__dict__, "token": secret})


async def waiting(person: Person, name: str = "Order paper") -> dict[str, Any]:
    """A task that waits for an approval."""
    made = await person.post("/api/tasks", {"name": name, "status": "WAITING_APPROVAL"})
    assert made.status_code == 201, made.text
    task: dict[str, Any] = made.json()["task"]
    return task


async def failed(person: Person, name: str = "Nightly import", why: str = "No disk") -> Any:
    made = await person.post("/api/tasks", {"name": name, "status": "RUNNING"})
    assert made.status_code == 201, made.text
    path = f"/api/tasks/{made.json()['task']['id']}"
    changed = await person.request(
        "PATCH", path, json={"status": "FAILED", "error": {"code": "X", "message": why}}
    )
    assert changed.status_code == 200, changed.text
    return changed.json()["task"]


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    content: str = body.get_content()
    return content


def html_of(mail: EmailMessage) -> str:
    body = mail.get_body(("html",))
    assert body is not None
    content: str = body.get_content()
    return content


def unsubscribe_path(mail: EmailMessage) -> str:
    url: str = mail["List-Unsubscribe"].strip("<>")
    return "/" + url.split("/", 3)[3]
