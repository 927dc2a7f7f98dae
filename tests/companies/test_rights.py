"""A right that is taken from a member does not work any more, however late a request arrives."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rota.auth import routing
from rota.dev.stack import Stack
from tests.companies.world import Company
from tests.mcp.conftest import LOCAL
from tests.mcp.peers import Peer
from tests.service import Person, Service

SUM = {"tool": "add", "arguments": {"a": 1, "b": 2}}
WAITING = {"name": "A decision", "status": "WAITING_APPROVAL"}


@dataclass
class Held:
    """A request whose body has not arrived."""

    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def finish(self) -> tuple[int, str]:
        """Sends the body. Returns the status and the body of the response."""
        self.writer.write(self.body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        text = await self.reader.read()
        return int(head.split()[1]), text.decode()


@asynccontextmanager
async def held(
    person: Person, company: Company, method: str, path: str, body: Any, **headers: str
) -> AsyncIterator[Held]:
    """Sends the headers of a request, and waits until the service has admitted it and asks for the
    body."""
    encoded = json.dumps(body).encode()
    sent = {
        **person.auth,
        **company.selected,
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(encoded)),
        "Connection": "close",
        "Expect": "100-continue",
        **headers,
    }
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items())
    port = person.service.settings.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + b"\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 100"), answer
        yield Held(encoded, reader, writer)
    finally:
        writer.close()


@pytest.fixture(scope="module")
async def tool_service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="rights", egress_allow=LOCAL) as started:
        yield started


@pytest.fixture(params=["each transaction", "the body"])
def checked_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right is checked after the body and again in the transaction. Each is enough."""
    after_s = 600 if request.param == "each transaction" else 0
    monkeypatch.setattr(routing, "RENEW_AFTER_S", after_s)


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}])
async def test_a_removed_approver_cannot_call_a_tool_with_a_slow_request(
    tool_service: Service, checked_by: None, key: dict[str, str]
) -> None:
    company = await Company.create(tool_service)
    for leave in ("removed", "changed"):
        member = await company.join(approver=True)
        async with Peer().serve() as peer:
            connected = await company.owner.post(
                "/api/mcp", {"name": leave, "url": peer.url}, headers=company.selected
            )
            path = f"/api/mcp/{connected.json()['server']['id']}/invoke"
            async with held(member, company, "POST", path, SUM, **key) as request:
                if leave == "removed":
                    assert (await company.remove(member)).status_code == 200
                else:
                    assert (await company.change(member, approver=False)).status_code == 200
                status, text = await request.finish()
            assert (status, peer.calls) == (403, []), text


async def test_a_right_that_is_taken_ends_for_requests_under_way(
    tool_service: Service, checked_by: None
) -> None:
    company = await Company.create(tool_service)
    task = await company.owner.post("/api/tasks", WAITING, headers=company.selected)
    decision = f"/api/tasks/{task.json()['task']['id']}"
    for method, path, body in (
        ("POST", f"{decision}/approve", {}),
        ("POST", f"{decision}/reject", {"reason": "no"}),
        ("POST", f"{decision}/snooze", {"until": "2100-01-01T00:00:00Z"}),
        ("POST", "/api/keys", {"name": "k"}),
        ("PATCH", "/api/credits/settings", {"allowOverflow": True}),
        ("PATCH", company.path, {"name": "Mine"}),
        ("POST", f"{company.path}/invitations", {"email": "a@b.test", "role": "member"}),
    ):
        admin = await company.join(role="admin")
        async with held(admin, company, method, path, body) as request:
            changed = await company.change(admin, role="member", approver=False)
            assert changed.status_code == 200, changed.text
            status, text = await request.finish()
        assert status == 403, (path, text)
        await company.remove(admin)
    changes = {"key.created", "company.updated", "task.running", "task.failed"}
    assert not changes & {event["type"] for event in await company.events()}
    waiting = await company.owner.get(decision, headers=company.selected)
    assert waiting.json()["task"]["status"] == "WAITING_APPROVAL"
    assert (await company.owner.get(company.path)).json()["account"]["name"] == "Acme"


async def test_a_removed_member_reads_nothing_with_a_slow_request(
    service_a: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "RENEW_AFTER_S", 0)
    company = await Company.create(service_a)
    member = await company.join()
    body = {"name": "x", "dryRun": True}
    async with held(member, company, "POST", "/api/tasks", body) as request:
        assert (await company.remove(member)).status_code == 200
        status, text = await request.finish()
    assert status == 403, text


async def test_a_change_waits_for_a_decision_under_way(service_a: Service) -> None:
    company = await Company.create(service_a)
    members = [await company.join(role="admin") for _ in range(2)]
    # Each changes the other, at the same time.
    changed = await asyncio.gather(
        company.change(members[0], by=members[1], role="member"),
        company.change(members[1], by=members[0], role="member"),
    )
    assert sorted(each.status_code for each in changed) == [200, 403]
