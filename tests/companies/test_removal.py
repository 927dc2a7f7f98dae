"""A member who is removed loses everything in the company within a second, and nothing is lost."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from rota.auth.caller import ALL_SCOPES
from rota.dev.stack import Stack
from rota.events import messages
from rota.events.fanout import Fanout
from rota.platform.membership import lock_number
from tests.accounts.test_selection import me
from tests.assertions import assert_error
from tests.companies.world import Company, busy_company
from tests.events.reader import Reader
from tests.schedules.world import WEEKLY
from tests.service import Person, Service

WITHIN_S = 1.0
REQUESTS = 50
WAITING = {"name": "A decision", "status": "WAITING_APPROVAL"}


@dataclass
class Office:
    """Two processes on one database. The second has no Redis."""

    first: Service
    second: Service


@pytest.fixture(scope="module", params=["a", "b"])
async def office(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Office]:
    unreachable = SecretStr("redis://127.0.0.1:1/0")
    name = f"removal_{request.param}"
    async with (
        Service.start(stack, variant=request.param, name=name) as first,
        first.process(redis_url=unreachable) as second,
    ):
        yield Office(first, second)


@asynccontextmanager
async def account_locked(service: Service, company: Company) -> AsyncIterator[None]:
    """Every change of the account waits meanwhile."""
    async with service.owner() as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE",
            UUID(company.id.removeprefix("acct_")),
        )
        yield


async def waiting_transactions(service: Service, lock_type: str) -> int:
    """Transactions that wait for a lock of this type."""
    async with service.owner() as connection:
        count: int = await connection.fetchval(
            """
            SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE datname = current_database() AND NOT granted AND locktype = ANY($1)
            """,
            lock_type.split(),
        )
    return count


async def until(count: int, service: Service, lock_type: str) -> None:
    async with asyncio.timeout(30):
        while await waiting_transactions(service, lock_type) < count:
            await asyncio.sleep(0.01)


@dataclass
class Flood:
    """Requests that a member sends without a pause, until one is refused."""

    clients: list[tuple[httpx.AsyncClient, dict[str, str]]]
    created: list[str] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)

    async def run(self) -> None:
        await asyncio.gather(*[self._send(*each) for each in self.clients])

    async def _send(self, http: httpx.AsyncClient, headers: dict[str, str]) -> None:
        while True:
            response = await http.post("/api/tasks", json={"name": uuid4().hex}, headers=headers)
            if response.status_code == 201:
                self.created.append(response.json()["task"]["id"])
            elif response.status_code in (401, 403):
                self.refused_at.append(time.monotonic())
                return
            else:
                assert response.status_code == 429, response.text


async def key_of(person: Person, company: Company) -> str:
    response = await person.post(
        "/api/keys", {"name": "k", "scopes": list(ALL_SCOPES)}, headers=company.selected
    )
    secret: str = response.json()["secret"]
    return secret


async def waiting_task(company: Company) -> str:
    created = await company.owner.post("/api/tasks", WAITING, headers=company.selected)
    task_id: str = created.json()["task"]["id"]
    return task_id


async def ended(reader: Reader) -> float:
    """When the stream ended."""
    await reader.to_end()
    return time.monotonic()


@pytest.mark.timed
async def test_nothing_of_a_removed_member_works_after_a_second(office: Office) -> None:
    first, second = office.first, office.second
    company = await busy_company(first)
    member = await company.join(role="admin")
    key = await key_of(member, company)
    tasks = [await waiting_task(company) for _ in range(4)]
    by_session = member.auth | company.selected
    by_key = {"Authorization": f"Bearer {key}"}
    clients = [
        ((first, second)[n % 2].http, (by_session, by_key)[n // 2 % 2]) for n in range(REQUESTS)
    ]
    flood = Flood(clients)
    async with AsyncExitStack() as stack:
        readers = []
        for service, token, path in (
            (first, member.token, "/api/events"),
            (first, key, "/api/events"),
            (second, member.token, "/api/events"),
            (second, key, "/api/events"),
            (second, member.token, f"/api/tasks/{tasks[3]}/events"),
        ):
            reader = await stack.enter_async_context(
                Reader.open(service.settings.port, token, path, account=company.id)
            )
            assert await reader.read()
            readers.append(reader)
        streams = [asyncio.create_task(ended(reader)) for reader in readers]
        flooding = asyncio.create_task(flood.run())
        async with asyncio.timeout(60):
            while len(flood.created) < REQUESTS:
                await asyncio.sleep(0.01)
        approvals = [
            asyncio.create_task(first.http.post(f"/api/tasks/{task}/approve", headers=headers))
            for task, headers in zip(tasks, (by_session, by_key, by_session), strict=False)
        ]
        removal = await company.remove(member)
        removed_at = time.monotonic()
        assert removal.status_code == 200, removal.text
        await asyncio.wait_for(flooding, 30)
        decided = await asyncio.gather(*approvals)
        ended_at = await asyncio.wait_for(asyncio.gather(*streams), 30)
    assert len(flood.refused_at) == REQUESTS
    assert max(flood.refused_at) - removed_at < WITHIN_S
    assert max(ended_at) - removed_at < WITHIN_S
    # No stream showed an event after the removal.
    assert all(m.type != "member.removed" for reader in readers for m in reader.messages)

    # What got an answer exists, and a decision that was refused was not made.
    stored = await company.owner.get("/api/tasks?limit=1", headers=company.selected)
    assert stored.json()["total"] == len(flood.created) + len(tasks)
    for task, decision in zip(tasks, decided, strict=False):
        found = await company.owner.get(f"/api/tasks/{task}", headers=company.selected)
        expected = "RUNNING" if decision.status_code == 200 else "WAITING_APPROVAL"
        assert decision.status_code in (200, 401, 403)
        assert found.json()["task"]["status"] == expected
    # Reads are not checked in a transaction, so they use what a process has just looked up.
    await asyncio.sleep(max(0.0, removed_at + WITHIN_S - time.monotonic()))
    for http in (first.http, second.http):
        assert (await http.get("/api/tasks", headers=by_session)).status_code == 403
        assert (await http.get("/api/tasks", headers=by_key)).status_code == 401
    assert len((await me(member))["accounts"]) == 1


async def test_what_a_member_set_up_ends_with_the_membership(service: Service) -> None:
    company = await Company.create(service)
    member = await company.join(role="admin")
    secret = await key_of(member, company)
    schedule = await member.post("/api/schedules", WEEKLY, headers=company.selected)
    await member.post(f"{company.path}/invitations", {"email": "x@example.test", "role": "member"})
    mine = await company.owner.post("/api/schedules", WEEKLY, headers=company.selected)
    assert (await company.remove(member)).json()["deleted"] is True

    assert (await company.remove(member)).status_code == 404
    refused = await member.get("/api/me", headers=company.selected)
    assert refused.status_code == 403
    auth = {"Authorization": f"Bearer {secret}"}
    assert (await service.http.get("/api/me", headers=auth)).status_code == 401
    keys = await company.owner.get("/api/keys", headers=company.selected)
    assert keys.json()["total"] == 0
    invitations = await company.owner.get(f"{company.path}/invitations")
    assert invitations.json()["total"] == 0
    paused = await of_schedule(company, schedule)
    assert (paused["paused"], paused["nextAt"]) == (True, None)
    assert paused["lastError"]["code"] == "SCHEDULE_OWNER_INVALID"
    assert (await of_schedule(company, mine))["paused"] is False
    *_, failed, key_ended, uninvited, removed = await company.events()
    assert [failed["type"], key_ended["type"]] == ["schedule.failed", "key.revoked"]
    assert [uninvited["type"], removed["type"]] == ["invitation.deleted", "member.removed"]
    assert uninvited["data"]["by"] == removed["data"]["by"] == f"user_{company.owner.user_id.hex}"
    # Another member can let the schedule continue.
    path = f"/api/schedules/{paused['id']}"
    resumed = await company.owner.request(
        "PATCH", path, json={"paused": False}, headers=company.selected
    )
    assert resumed.json()["schedule"]["nextAt"] is not None
    # The person can come back.
    await company.add(await service.sign_in(member.subject))
    assert len(await company.members()) == 2


async def of_schedule(company: Company, created: httpx.Response) -> dict[str, Any]:
    path = f"/api/schedules/{created.json()['schedule']['id']}"
    response = await company.owner.get(path, headers=company.selected)
    schedule: dict[str, Any] = response.json()["schedule"]
    return schedule


async def test_a_decision_under_way_is_made_before_the_removal_and_later_ones_are_refused(
    service_a: Service,
) -> None:
    company = await Company.create(service_a)
    member = await company.join(approver=True)
    early, late = await waiting_task(company), await waiting_task(company)
    async with account_locked(service_a, company):
        first = asyncio.create_task(
            member.post(f"/api/tasks/{early}/approve", headers=company.selected)
        )
        # It has begun, and waits for the account.
        await until(1, service_a, "transactionid tuple")
        removal = asyncio.create_task(company.remove(member))
        await until(1, service_a, "advisory")
        # Authenticated before the removal, it waits for the removal.
        second = asyncio.create_task(
            member.post(f"/api/tasks/{late}/approve", headers=company.selected)
        )
        await until(2, service_a, "advisory")
    assert (await first).status_code == 200
    assert (await removal).status_code == 200
    refused = await second
    assert refused.status_code == 403
    assert "no longer a member" in refused.json()["error"]["message"]
    waiting = await company.owner.get(f"/api/tasks/{late}", headers=company.selected)
    assert waiting.json()["task"]["status"] == "WAITING_APPROVAL"


@asynccontextmanager
async def membership_locked(
    service: Service, company: Company, person: Person, function: str
) -> AsyncIterator[None]:
    number = lock_number(UUID(company.id.removeprefix("acct_")), person.user_id)
    async with service.owner() as connection, connection.transaction():
        await connection.execute(f"SELECT {function}({number})")
        yield


@pytest.mark.long
async def test_a_membership_that_is_busy_for_too_long_can_be_tried_again(
    service_a: Service,
) -> None:
    company = await Company.create(service_a)
    busy, leaving = await company.join(), await company.join()
    removal = ("DELETE", company.member_path(busy), company.owner.auth)
    change = ("PATCH", company.member_path(busy), company.owner.auth)
    creation = ("POST", "/api/tasks", leaving.auth | company.selected)
    async with service_a.process(database_lock_timeout_s=0.5) as hasty:

        async def send(method: str, path: str, headers: dict[str, str]) -> httpx.Response:
            body = {"POST": {"name": "x"}, "PATCH": {"role": "admin"}}.get(method)
            return await hasty.http.request(method, path, headers=headers, json=body)

        async with (
            # As a request that takes long, and as a removal that waits.
            membership_locked(service_a, company, busy, "pg_advisory_xact_lock_shared"),
            membership_locked(service_a, company, leaving, "pg_advisory_xact_lock"),
        ):
            refused = [await send(*each) for each in (removal, change, creation)]
        for response in refused:
            assert_error(response, 429, "RATE_LIMITED")
            assert response.headers["Retry-After"] == "5"
        assert len(await company.members()) == 3
        assert (await send(*creation)).status_code == 201
        assert (await send(*change)).status_code == 200
        assert (await send(*removal)).status_code == 200


async def announce_until_the_end(
    elsewhere: Fanout, account_id: UUID, member: Person, reader: Reader
) -> None:
    """Redis keeps no message for a service that does not listen yet, so it is sent again."""
    ended = asyncio.create_task(reader.to_end())
    async with asyncio.timeout(30):
        while not ended.done():
            elsewhere.announce_removal(account_id, member.user_id)
            await asyncio.wait({ended}, timeout=0.5)
        await ended


async def test_a_removal_in_another_process_ends_the_stream_through_redis(
    service_a: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only a message through Redis can end the stream in time.
    monkeypatch.setattr(messages, "POLL_EVERY_S", 600)
    monkeypatch.setattr(messages, "next_poll", lambda _: math.inf)
    company = await Company.create(service_a)
    member = await company.join()
    redis = Redis.from_url(service_a.settings.redis_url.get_secret_value())
    elsewhere = Fanout(redis)
    account_id = UUID(company.id.removeprefix("acct_"))
    async with Reader.open(
        service_a.settings.port, member.token, "/api/events", account=company.id
    ) as reader:
        assert await reader.read()
        async with service_a.owner() as connection:
            await connection.execute("DELETE FROM members WHERE user_id = $1", member.user_id)
        await announce_until_the_end(elsewhere, account_id, member, reader)
    await elsewhere.aclose()
    await redis.aclose()


async def test_a_stream_does_not_move_to_another_company(
    service_a: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stream checks only when it is told to.
    monkeypatch.setattr(messages, "POLL_EVERY_S", 600)
    monkeypatch.setattr(messages, "next_poll", lambda _: math.inf)
    company, other = await Company.create(service_a), await Company.create(service_a)
    member = await company.join()
    redis = Redis.from_url(service_a.settings.redis_url.get_secret_value())
    elsewhere = Fanout(redis)
    account_id = UUID(company.id.removeprefix("acct_"))
    async with Reader.open(
        service_a.settings.port, member.token, "/api/events", account="company"
    ) as reader:
        assert await reader.read()
        async with service_a.owner() as connection:
            # `company` now selects the other one.
            await connection.execute(
                "UPDATE members SET account_id = $2 WHERE user_id = $1",
                member.user_id,
                UUID(other.id.removeprefix("acct_")),
            )
        await announce_until_the_end(elsewhere, account_id, member, reader)
    await elsewhere.aclose()
    await redis.aclose()


async def test_a_removal_does_not_wait_for_the_payment_processor(service_a: Service) -> None:
    company = await busy_company(service_a)
    admin = await company.join(role="admin")
    number = int.from_bytes(UUID(company.id.removeprefix("acct_")).bytes[8:], "big", signed=True)
    async with service_a.owner() as connection, connection.transaction():
        # As another request of the account that waits for the processor.
        await connection.execute("SELECT pg_advisory_xact_lock($1)", number)
        cancelling = asyncio.create_task(
            admin.post("/api/subscriptions/cancel", headers=company.selected)
        )
        await until(1, service_a, "advisory")
        assert (await company.remove(admin)).status_code == 200
    refused = await cancelling
    assert refused.status_code == 403
    assert "no longer a member" in refused.json()["error"]["message"]


async def test_a_stream_ends_when_its_member_sees_other_events(service_a: Service) -> None:
    company = await Company.create(service_a)
    admin = await company.join(role="admin")
    async with Reader.open(
        service_a.settings.port, admin.token, "/api/events", account=company.id
    ) as reader:
        assert await reader.read()
        await company.change(admin, role="member")
        async with asyncio.timeout(30):
            await reader.to_end()
    assert all(not message.type.startswith("key.") for message in reader.messages)


async def test_a_removed_admin_cannot_remove_others(service_a: Service) -> None:
    company = await Company.create(service_a)
    one, two = await company.join(role="admin"), await company.join(role="admin")
    results = await asyncio.gather(company.remove(one, by=two), company.remove(two, by=one))
    assert sorted(each.status_code for each in results) in ([200, 403], [200, 404])
    assert len(await company.members()) == 2
