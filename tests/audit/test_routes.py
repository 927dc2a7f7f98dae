"""Every operation that changes something has an audit entry with the ID of its request.

The operations come from the application, so a new one fails here until this walk uses it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest

from rota import access_table
from rota.app import create_app
from rota.dev.stack import Stack
from rota.notifications.unsubscribing import Subscription, UnsubscribeTokens
from rota.platform import clock
from rota.platform.settings import Settings
from tests.audit import watch
from tests.auth.browser import Browser
from tests.companies.world import accept_path
from tests.mcp.conftest import LOCAL
from tests.mcp.peers import Peer, definition
from tests.plans.world import World
from tests.schedules.world import WEEKLY
from tests.service import PLENTY, Person
from tests.tasks.world import AGENT, HIGHEST_TIER

Json = dict[str, Any]


@dataclass
class Walk:
    """Sends each request with an ID of its own."""

    world: World
    peer: Peer
    # The ID of each request, by operation.
    sent: dict[str, list[str]] = field(default_factory=dict)

    async def send(
        self, person: Person, operation: str, *ids: str, json: Any = None, **options: Any
    ) -> Json:
        method, path = operation.split()
        for each in ids:
            start, end = path.index("{"), path.index("}")
            path = path[:start] + each + path[end + 1 :]
        headers = options.pop("headers", {}) | self.tag(operation)
        answer = await person.request(method, path, json=json, headers=headers, **options)
        return self.checked(answer)

    def tag(self, operation: str) -> dict[str, str]:
        made = self.sent.setdefault(operation, [])
        made.append(f"walk-{sum(map(len, self.sent.values()))}")
        return {"X-Request-Id": made[-1]}

    @staticmethod
    def checked(answer: httpx.Response) -> Json:
        assert answer.status_code < 300, answer.text
        found: Json = answer.json() if answer.content else {}
        return found

    async def person(self) -> Person:
        person = await self.world.service.sign_in()
        async with self.world.service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET tier = $2 WHERE id = $1",
                person.user_id,
                HIGHEST_TIER[self.world.service.variant],
            )
        # Its callers are cached with the tier of before.
        return await self.world.service.sign_in(person.subject)


async def sign_in(walk: Walk) -> None:
    service = walk.world.service
    operation = "POST /api/auth/session"
    body = {"idToken": await service.id_token("walker")}
    signed = await service.http.post("/api/auth/session", json=body, headers=walk.tag(operation))
    token = walk.checked(signed)["token"]
    operation = "POST /api/auth/refresh"
    bearer = {"Authorization": f"Bearer {token}"}
    answer = await service.http.post(
        "/api/auth/refresh", headers=walk.tag(operation) | bearer, json={"token": token}
    )
    walk.checked(answer)
    async with Browser(service) as browser:
        headers = walk.tag("POST /api/auth/code") | {"Sec-Fetch-Site": "none"}
        walk.checked(await browser.exchange(await browser.code(), headers=headers, cookie=False))
    person, other = await service.sign_in(), None
    other = await service.sign_in(person.subject)
    sessions = (await person.get("/api/auth/sessions")).json()["sessions"]
    [ended] = [each["id"] for each in sessions if not each["current"]]
    await walk.send(person, "DELETE /api/auth/sessions/{id}", ended)
    assert (await other.get("/api/me")).status_code == 401
    await walk.send(person, "POST /api/auth/logout")
    leaving = await service.sign_in()
    name = (await leaving.get("/api/me")).json()["account"]["name"]
    await walk.send(leaving, "DELETE /api/account", json={"name": name})


async def companies(walk: Walk) -> None:
    owner, other = await walk.person(), await walk.person()
    made = await walk.send(owner, "POST /api/companies", json={"name": "Acme"})
    company = made["account"]["id"]
    await walk.send(owner, "PATCH /api/companies/{id}", company, json={"name": "Acme Inc."})
    invite = "POST /api/companies/{id}/invitations"
    body = {"email": "nobody@example.test", "role": "member"}
    made = await walk.send(owner, invite, company, json=body)
    operation = "DELETE /api/companies/{id}/invitations/{invitationId}"
    await walk.send(owner, operation, company, made["invitation"]["id"])
    invited = await owner.post(
        f"/api/companies/{company}/invitations",
        {"email": f"{other.subject}@example.test", "role": "member"},
    )
    token = accept_path(invited).split("/")[3]
    await walk.send(other, "POST /api/invitations/{token}/accept", token)
    members = (await owner.get(f"/api/companies/{company}/members")).json()["members"]
    [member] = [each["userId"] for each in members if each["role"] == "member"]
    path = "/api/companies/{id}/members/{userId}"
    await walk.send(owner, f"PATCH {path}", company, member, json={"approver": True})
    await walk.send(owner, f"DELETE {path}", company, member)


async def keys(walk: Walk) -> None:
    person = await walk.person()
    made = await walk.send(person, "POST /api/keys", json={"name": "k"})
    await walk.send(person, "DELETE /api/keys/{id}", made["key"]["id"])


async def servers(walk: Walk) -> None:
    person = await walk.person()
    made = await walk.send(person, "POST /api/mcp", json={"name": "peer", "url": walk.peer.url})
    server = made["server"]["id"]
    await walk.send(person, "PATCH /api/mcp/{id}", server, json={"name": "other"})
    await walk.send(
        person,
        "POST /api/mcp/{id}/invoke",
        server,
        json={"tool": "add", "arguments": {"a": 1, "b": 2}},
    )
    walk.peer.tools["new"] = definition("new", "It is new.")
    await walk.send(person, "POST /api/mcp/{id}/ping", server)
    tools = (await person.get(f"/api/mcp/{server}/tools")).json()["tools"]
    [shown] = [{"name": "new", "hash": each["hash"]} for each in tools if each["name"] == "new"]
    await walk.send(person, "POST /api/mcp/{id}/accept", server, json={"tools": [shown]})
    await walk.send(person, "DELETE /api/mcp/{id}", server)


async def rules(walk: Walk) -> None:
    person = await walk.person()
    approvals = {"secondPerson": False, "approvers": "named", "maxCostCents": 500}
    await walk.send(person, "PUT /api/policies", json={"approvals": approvals})
    walk.peer.tools["issue_write"] = definition("issue_write")
    server = walk.checked(await person.post("/api/mcp", {"name": "github", "url": walk.peer.url}))
    body = {
        "serverId": server["server"]["id"],
        "tool": "issue_write",
        "agent": AGENT,
        "arguments": {},
        "expiresAt": clock.to_wire(clock.now() + timedelta(hours=1)),
        "maxUses": 1,
    }
    made = await walk.send(person, "POST /api/rules", json=body)
    await walk.send(person, "DELETE /api/rules/{id}", made["rule"]["id"])


async def tasks(walk: Walk) -> None:
    person = await walk.person()
    create = "POST /api/tasks"

    async def task(**body: Any) -> str:
        made = await walk.send(person, create, json={"name": "Task", **body})
        found: str = made["task"]["id"]
        return found

    await walk.send(person, "POST /api/tasks/batch", json={"tasks": [{"name": "One"}] * 3})
    waiting = await task(status="WAITING_APPROVAL")
    until = clock.to_wire(clock.now() + timedelta(hours=1))
    await walk.send(person, "POST /api/tasks/{id}/snooze", waiting, json={"until": until})
    await walk.send(person, "POST /api/tasks/{id}/snooze", waiting, json={"until": None})
    await walk.send(person, "POST /api/tasks/{id}/approve", waiting, json={})
    rejected = await task(status="WAITING_APPROVAL")
    await walk.send(person, "POST /api/tasks/{id}/reject", rejected, json={})
    failed = await task(status="RUNNING")
    change = "PATCH /api/tasks/{id}"
    await walk.send(person, change, failed, json={"status": "FAILED"})
    await walk.send(person, "POST /api/tasks/{id}/retry", failed, json={})
    hosted = await task(assignedAgent=AGENT, input="Triage it.")
    await walk.send(person, change, hosted, json={"status": "CANCELLED"})
    await walk.send(person, "POST /api/tasks/{id}/fork", hosted, json={"fromStep": 0})


async def schedules(walk: Walk) -> None:
    person = await walk.person()
    made = await walk.send(person, "POST /api/schedules", json=WEEKLY)
    schedule = made["schedule"]["id"]
    await walk.send(person, "PATCH /api/schedules/{id}", schedule, json={"paused": True})
    await walk.send(person, "POST /api/schedules/{id}/run", schedule)
    await walk.send(person, "DELETE /api/schedules/{id}", schedule)


async def webhooks(walk: Walk) -> None:
    person = await walk.world.person()
    made = await walk.send(person, "POST /api/webhooks", json={"url": walk.peer.url})
    webhook = made["webhook"]["id"]
    for change in ({"description": "New"}, {"enabled": False}, {"enabled": True}):
        await walk.send(person, "PATCH /api/webhooks/{id}", webhook, json=change)
    await walk.send(person, "POST /api/webhooks/{id}/rotate-secret", webhook)
    await walk.send(person, "POST /api/webhooks/{id}/replay", webhook, json={"fromSequence": 1})
    await walk.send(person, "POST /api/webhooks/{id}/test", webhook)
    await walk.send(person, "DELETE /api/webhooks/{id}", webhook)


async def notifications(walk: Walk) -> None:
    person = await walk.world.service.sign_in()
    wanted = {
        "content": "full",
        "mail": {"kinds": ["task_failed"]},
        "chat": {"kinds": ["task_failed"], "url": walk.peer.url, "service": "slack"},
    }
    await walk.send(person, "PUT /api/me/notifications", json=wanted)
    await walk.send(person, "POST /api/me/notifications/test", json={"channel": "chat"})
    tokens = UnsubscribeTokens(walk.world.service.settings.secret_keys)
    token = tokens.sign(Subscription(person.user_id, person.user_id, "task_failed"))
    await walk.send(person, "POST /api/unsubscribe/{token}", token)


async def money(walk: Walk) -> None:
    person = await walk.world.person()
    settings = {"alertBelowCents": 100}
    await walk.send(person, "PATCH /api/credits/settings", json=settings)
    await walk.send(person, "POST /api/credits/topup", json={"amountCents": 500})


async def plans(walk: Walk) -> None:
    await _bought(walk, "/api/subscriptions", "subscribe", {"plan": "standard"})


async def passes(walk: Walk) -> None:
    await _bought(walk, "/api/addons/connect-pass", "checkout", None)


async def _bought(walk: Walk, base: str, buy: str, body: Any) -> None:
    person = await walk.world.person()
    made = await walk.send(person, f"POST {base}/{buy}", json=body)
    await walk.world.stripe_server.pay(made["checkoutUrl"])
    await walk.world.stripe_server.settled()
    await walk.send(person, f"POST {base}/cancel")
    await walk.send(person, f"POST {base}/resume")


PARTS: tuple[Callable[[Walk], Awaitable[None]], ...] = (
    *(sign_in, companies, keys, servers, rules, tasks, schedules, webhooks),
    *(notifications, money),
)
ONLY = {"a": plans, "b": passes}


@pytest.mark.parametrize("variant", ["a", "b"])
async def test_every_change_through_the_api_has_an_entry(stack: Stack, variant: str) -> None:
    app = create_app(Settings(env="test", variant=variant))
    changing = {
        f"{each.method} {each.path}"
        for each in access_table.operations(app)
        if each.method not in ("GET", "HEAD")
    }
    start = World.start(stack, variant, f"audit_{variant}", allowances=PLENTY, egress_allow=LOCAL)
    async with start as world, Peer().serve() as peer, world.service.owner() as connection:
        await watch.install(connection)
        walk = Walk(world, peer)
        for part in (*PARTS, ONLY[variant]):
            await part(walk)
        assert set(walk.sent) == changing
        rows = await connection.fetch(
            "SELECT private::jsonb ->> 'requestId' AS request_id, actor, via FROM audit_entries"
        )
        recorded = {row["request_id"] for row in rows}
        missing = [name for name, sent in walk.sent.items() if not recorded.issuperset(sent)]
        assert missing == []
        # What the requests caused is recorded as well.
        assert await watch.forgotten(connection) == []
        tagged = {each for sent in walk.sent.values() for each in sent}
        actors = {row["actor"] for row in rows if row["request_id"] in tagged}
        assert actors == {"user", "key"}
