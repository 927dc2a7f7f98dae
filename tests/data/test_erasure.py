"""After an erasure nothing of the account is left but money records, which agree."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.service import RPCError, RPCStatusCode

from rota.accounts.service import Profile, sign_in
from rota.auth.queries import personal_access
from rota.data import queries
from rota.data.commands import grant_command
from rota.data.erasing import HISTORY_ATTEMPTS, Erasing
from rota.events.journal import AccountClosed
from rota.events.live_text import Version
from rota.payments.port import NoProcessor, PaymentFailed
from rota.platform import ids
from rota.runs import retention as runs
from rota.runs.contracts import workflow_id
from rota.tasks.bodies import CreateTask
from tests.companies.world import Company
from tests.data.world import World
from tests.service import Person
from tests.tasks.world import uuid_of

MARKER = "zebrafinch"


@dataclass
class Filled:
    """An account with the marker wherever a person can write something."""

    person: Person
    account_id: UUID
    name: str
    headers: dict[str, str]
    tasks: list[dict[str, Any]]
    key: str

    async def erase(self, name: str | None = None) -> Any:
        return await self.person.request(
            "DELETE", "/api/account", json={"name": name or self.name}, headers=self.headers
        )


async def fill(world: World, company: bool = False) -> Filled:
    service = world.service
    headers: dict[str, str] = {}
    person = await service.sign_in(f"{MARKER}-{ids.new_uuid().hex[:8]}")
    account_id, name = person.user_id, (await person.get("/api/me")).json()["account"]["name"]
    if company:
        created = await person.post("/api/companies", {"name": f"{MARKER} company"})
        account = created.json()["account"]
        found = ids.from_wire("acct", account["id"])
        assert found is not None
        account_id, name, headers = found, account["name"], {"X-Service-Account": account["id"]}
        invited = await person.post(
            f"/api/companies/{account['id']}/invitations",
            {"email": f"{MARKER}@example.test", "role": "member"},
        )
        assert invited.status_code == 201

    async def post(path: str, body: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        sent = headers | ({"Idempotency-Key": key} if key else {})
        response = await person.post(path, body, headers=sent)
        assert response.status_code == 201, response.text
        return dict(response.json())

    await grant_command(world.parts.db, account_id, 1_000, "test", "test")
    text = f"about the {MARKER}"
    external = await post("/api/tasks", {"name": text, "input": text}, f"{MARKER}-key")
    gated = await post(
        "/api/tasks", {"name": text, "status": "WAITING_APPROVAL", "projectId": MARKER}
    )
    running = await post(
        "/api/tasks", {"name": text, "agent": "bug-triager", "description": text, "input": text}
    )
    await world.pay_step(account_id, uuid_of(running["task"]), f'{{"text": "{text}"}}')
    ended = await world.run_task(person, account_id, name=text, headers=headers)
    await post(
        "/api/schedules",
        {
            "name": text,
            "cron": "* * * * *",
            "timeZone": "UTC",
            "task": {"name": text},
            "overlap": "skip",
        },
    )
    secret = (await post("/api/keys", {"name": text}))["secret"]
    async with service.owner() as connection:
        server_id = ids.new_uuid()
        await connection.execute(
            """
            INSERT INTO mcp_servers (account_id, id, name, url, transport, status, sealed_headers,
                last_checked_at, check_due_at, created_at, updated_at)
            VALUES ($1, $2, $3, $3, 'sse', 'CONNECTED', $4, now(), 'infinity', now(), now())
            """,
            account_id,
            server_id,
            text,
            text.encode(),
        )
        await connection.execute(
            """
            INSERT INTO rules (account_id, id, server_id, tool, agent, server_revision,
                definition_hash, agent_version, arguments, expires_at, max_uses, created_by,
                created_at)
            VALUES ($1, gen_random_uuid(), $2, $3, 'a', 1, '', 1, $3, now(), 1, $1, now())
            """,
            account_id,
            server_id,
            text,
        )
        await add_receivers(connection, account_id, person.user_id, text)
    await world.relay_runs()
    live = world.parts.live_texts.begin(uuid_of(running["task"]), Version(run=1))
    live.add(text)
    async with asyncio.timeout(10):
        while not await world.redis_with(MARKER):
            await asyncio.sleep(0.02)
    tasks = [external["task"], gated["task"], running["task"], ended]
    return Filled(person, account_id, name, headers, tasks, secret)


async def add_receivers(connection: Any, account_id: UUID, user_id: UUID, text: str) -> None:
    """A webhook with a delivery, and a chat with a notification that waits."""
    webhook_id = ids.new_uuid()
    await connection.execute(
        """
        INSERT INTO webhooks (account_id, id, url, sealed_secret, enabled, confirmed_sequence,
            previous_sequence, due_at, saved_by, created_at, updated_at)
        VALUES ($1, $2, $3, $4, true, 0, 0, now(), $5, now(), now())
        """,
        account_id,
        webhook_id,
        text,
        text.encode(),
        user_id,
    )
    await connection.execute(
        """
        INSERT INTO webhook_deliveries (account_id, webhook_id, id, event_id, sequence, type,
            attempt, url, sent_at, duration_ms, delivered, request_body)
        VALUES ($1, $2, $3, $3, 1, 'task.created', 1, $4, now(), 1, true, $4)
        """,
        account_id,
        webhook_id,
        ids.new_uuid(),
        text,
    )
    await connection.execute(
        """
        INSERT INTO notification_settings (account_id, user_id, content, mail_kinds, chat_kinds,
            chat_service, sealed_chat_url, chat_url_shown, updated_at)
        VALUES ($1, $2, 'full', '{}', '{task_failed}', 'slack', $3, $4, now())
        """,
        account_id,
        user_id,
        text.encode(),
        text,
    )
    await connection.execute(
        """
        WITH queue AS (
            INSERT INTO notification_queues (account_id, user_id, kind, channel, due_at, error)
            VALUES ($1, $2, 'task_failed', 'chat', now(), $3)
        ), item AS (
            INSERT INTO notification_items VALUES ($1, $2, 'task_failed', 'chat', $1, 1, now())
        )
        INSERT INTO notices (account_id, kind, subject) VALUES ($1, 'task_failed', $1)
        """,
        account_id,
        user_id,
        text,
    )


async def in_temporal(world: World, task: dict[str, Any]) -> bool:
    client = await world.parts.temporal.client()
    request = DescribeWorkflowExecutionRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id(task["id"], 1)),
    )
    try:
        await client.workflow_service.describe_workflow_execution(request)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


async def gone_from_temporal(world: World, task: dict[str, Any]) -> None:
    """Temporal deletes a history a moment after it was asked to."""
    async with asyncio.timeout(60):
        while await in_temporal(world, task):
            await asyncio.sleep(0.1)


async def assert_erased(world: World, filled: Filled) -> None:
    left = set(await world.texts_with(MARKER))
    assert left == set(), left
    assert await world.redis_with(MARKER) == []
    for task in filled.tasks[2:]:
        await gone_from_temporal(world, task)
    assert await world.ledger_problems(filled.account_id) == []
    assert await world.audit_problems(filled.account_id) == []
    async with world.parts.db.read(filled.account_id) as tx:
        erasure = await queries.find_erasure(tx)
    assert erasure is not None
    assert erasure.finished_at is not None
    assert await world.rows("holds", filled.account_id) >= 2


@pytest.mark.parametrize("company", [False, True], ids=["personal", "company"])
async def test_nothing_is_left_but_money_records(
    world: World, company: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    filled = await fill(world, company)
    balance = await world.rows("entries", filled.account_id)
    assert await in_temporal(world, filled.tasks[2])
    assert "tasks" in await world.texts_with(MARKER)

    response = await filled.erase()

    assert response.status_code == 200, response.text
    assert response.json()["erasure"]["state"] == "running"
    # Everything has stopped already.
    key = {"Authorization": f"Bearer {filled.key}"}
    assert (await world.service.http.get("/api/tasks", headers=key)).status_code == 401
    me = await filled.person.get("/api/me")
    assert me.status_code == (200 if company else 401)
    if company:
        refused = await filled.person.get("/api/tasks", headers=filled.headers)
        assert refused.status_code == 403
        # The name of the person is not a text of the company.
        async with world.service.owner() as connection:
            await connection.execute("UPDATE users SET name = NULL, email = NULL")
    async with world.service.owner() as connection:
        open_tasks = await connection.fetchval(
            "SELECT count(*) FROM tasks WHERE account_id = $1 AND status IN "
            "('PENDING', 'RUNNING', 'WAITING_APPROVAL')",
            filled.account_id,
        )
        schedules = await connection.fetchval(
            "SELECT count(*) FROM schedules WHERE account_id = $1 AND NOT paused",
            filled.account_id,
        )
    assert (open_tasks, schedules) == (0, 0)
    for table in ("mcp_servers", "webhooks", "webhook_deliveries", "notification_settings"):
        assert await world.rows(table, filled.account_id) == 0

    assert await world.sweep().erase() is None

    if company:
        # What the person has as a person stays.
        again = await filled.person.request(
            "DELETE", "/api/account", json={"name": (await own_name(filled.person))}
        )
        assert again.status_code == 200, again.text
        await world.sweep().erase()
    await assert_erased(world, filled)
    assert MARKER not in capfd.readouterr().out
    # The hold of the open run was released.
    assert await world.rows("entries", filled.account_id) == balance + 1
    if not company:
        fresh = await world.service.sign_in(filled.person.subject)
        assert fresh.user_id != filled.account_id
        assert (await fresh.get("/api/tasks")).json()["total"] == 0
        assert (await fresh.get("/api/credits/transactions")).json()["total"] <= 1
        async with world.service.owner() as connection:
            trial, made = await connection.fetchrow(
                "SELECT trial_ends_at, created_by FROM accounts WHERE id = $1", fresh.user_id
            )
        # Erasing an account and signing in again gives no second trial or free allowance.
        assert (trial, made) == (None, fresh.user_id)
        async with world.service.owner() as connection:
            await connection.execute(
                "UPDATE users SET name = NULL, email = NULL, verified_email = NULL"
            )
            await connection.execute("UPDATE sessions SET verified_email = NULL")
            await connection.execute("DELETE FROM identities")
            await connection.execute("UPDATE accounts SET name = 'x'")


async def own_name(person: Person) -> str:
    name: str = (await person.get("/api/me")).json()["account"]["name"]
    return name


class Killed(BaseException):
    """The process ends here."""


class DiesAt(Erasing):
    """A worker that is killed at a certain transaction."""

    left = 0

    async def run(self, erasure: queries.Erasure) -> None:
        real = self._db.removal

        def removal(*arguments: Any, **options: Any) -> Any:
            DiesAt.left -= 1
            if DiesAt.left < 0:
                raise Killed
            return real(*arguments, **options)

        self._db.removal = removal  # type: ignore[method-assign]
        try:
            await super().run(erasure)
        finally:
            self._db.removal = real  # type: ignore[method-assign]


async def test_an_erasure_that_is_killed_anywhere_continues(world_a: World) -> None:
    filled = await fill(world_a)
    assert (await filled.erase()).status_code == 200
    parts = world_a.parts
    stages = set()
    for attempt in range(200):
        # Each attempt gets a little further than the one before.
        DiesAt.left = attempt
        worker = DiesAt(parts.db, parts.temporal, parts.redis, parts.processor, confirm_s=0)
        with contextlib.suppress(Killed):
            if not await worker.step():
                break
        async with world_a.service.owner() as connection:
            stages.add(
                await connection.fetchval(
                    "UPDATE erasures SET due_at = now() WHERE account_id = $1 "
                    "AND finished_at IS NULL RETURNING stage",
                    filled.account_id,
                )
            )
            if None in stages:
                break
    assert stages >= {"tables", "audit"}
    # A worker that is not killed ends what is left.
    await world_a.sweep().erase()
    await assert_erased(world_a, filled)


class Down(NoProcessor):
    """A processor that fails a few times, then ends subscriptions."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.ended: list[str] = []

    async def end(self, subscription_id: str) -> None:
        if self.failures:
            self.failures -= 1
            raise PaymentFailed("The processor did not respond.")
        self.ended.append(subscription_id)


async def test_a_failing_processor_delays_only_the_end(world_a: World) -> None:
    filled = await fill(world_a)
    async with world_a.service.owner() as connection:
        await connection.execute(
            """
            INSERT INTO subscriptions (account_id, product, processor_id, status, tier, seats,
                entitled, period_start, period_end, cancel_at_period_end, updated_at)
            VALUES ($1, 'plan', 'sub_1', 'ACTIVE', 'standard', 1, true, now(),
                    now() + interval '30 days', false, now())
            """,
            filled.account_id,
        )
    assert (await filled.erase()).status_code == 200
    processor = Down(failures=2)
    worker = world_a.erasing(processor=processor)
    assert await worker.step()
    # The texts are gone although the plan has not ended.
    assert await world_a.texts_with(MARKER) == []
    async with world_a.parts.db.read(filled.account_id) as tx:
        erasure = await queries.find_erasure(tx)
    assert erasure is not None
    assert (erasure.stage, erasure.attempts, erasure.finished_at) == ("ending", 1, None)
    assert "did not respond" in str(erasure.error)
    async with world_a.service.owner() as connection:
        await connection.execute("UPDATE erasures SET due_at = now() WHERE due_at IS NOT NULL")
    assert await worker.step()
    assert processor.ended == ["sub_1"]
    await assert_erased(world_a, filled)


async def test_texts_are_erased_although_temporal_keeps_failing(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = await fill(world_a)
    assert (await filled.erase()).status_code == 200

    async def refuse(*arguments: Any) -> None:
        raise RPCError("no", RPCStatusCode.PERMISSION_DENIED, b"")

    real = runs.delete_history
    monkeypatch.setattr(runs, "delete_history", refuse)
    for attempt in range(HISTORY_ATTEMPTS + 1):
        assert ("tasks" in await world_a.texts_with(MARKER)) is True, attempt
        async with world_a.service.owner() as connection:
            await connection.execute("UPDATE erasures SET due_at = now() WHERE due_at IS NOT NULL")
        assert await world_a.erasing().step()
    assert await world_a.texts_with(MARKER) == []
    for task in filled.tasks[2:]:
        await real(world_a.parts.temporal, uuid_of(task), 1)
    await assert_erased(world_a, filled)


async def test_what_a_late_request_writes_is_erased_too(world_a: World) -> None:
    filled = await fill(world_a)
    await filled.erase()
    sweep = world_a.sweep(confirm_s=600)
    due_in_s = await sweep.erase()
    assert due_in_s is not None
    assert 500 < due_in_s <= 600
    assert await world_a.texts_with(MARKER) == []
    async with world_a.parts.db.write(filled.account_id) as tx:
        tx.record("task.created", {"name": MARKER})
    async with world_a.service.owner() as connection:
        await connection.execute(
            "INSERT INTO idempotency_keys VALUES ($1, $2, '', 200, '')",
            filled.account_id,
            MARKER,
        )
        await connection.execute(
            "UPDATE erasures SET due_at = now(), requested_at = now() - interval '1 hour' "
            "WHERE account_id = $1",
            filled.account_id,
        )
    await sweep.erase()
    await assert_erased(world_a, filled)


async def test_nothing_starts_after_the_erasure(world_a: World) -> None:
    """A request and a sign-in that began before it are refused."""
    person = await world_a.service.sign_in()
    caller = await world_a.parts.authenticator.authenticate(f"Bearer {person.token}", None)
    name = await own_name(person)
    db = world_a.parts.db
    async with db.directory() as signing_in:
        profile = Profile(world_a.service.stack.endpoints.issuer_url, person.subject, None, "Ada")
        await sign_in(signing_in, profile, None, None)
        erasing = asyncio.create_task(person.request("DELETE", "/api/account", json={"name": name}))
        done, _ = await asyncio.wait({erasing}, timeout=0.5)
        assert not done, "the erasure must wait for the sign-in, to revoke its session"
    assert (await erasing).status_code == 200
    with pytest.raises(AccountClosed):
        await world_a.parts.tasks.create(caller, CreateTask(name="Late", agent="bug-triager"), None)
    assert await world_a.rows("tasks", person.user_id) == 0
    async with db.read(person.user_id, person.user_id) as tx:
        assert await personal_access(tx, person.user_id) is None
    await world_a.sweep().erase()


async def test_an_erasure_needs_the_name_a_new_session_and_an_owner(world_a: World) -> None:
    service = world_a.service
    person = await service.sign_in()
    name = await own_name(person)
    wrong = await person.request("DELETE", "/api/account", json={"name": name + " "})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["details"][0]["field"] == "name"
    key = (await person.post("/api/keys", {"name": "k"})).json()["secret"]
    by_key = await service.http.request(
        "DELETE",
        "/api/account",
        json={"name": name},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert by_key.status_code == 403
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = $1",
            person.user_id,
        )
    old = await person.request("DELETE", "/api/account", json={"name": name})
    assert old.status_code == 403
    assert old.json()["error"]["code"] == "RECENT_SIGN_IN_REQUIRED"
    assert (await person.get("/api/me")).status_code == 200

    company = await Company.create(service)
    admin = await company.join(role="admin")
    refused = await admin.request(
        "DELETE", "/api/account", json={"name": "Acme"}, headers=company.selected
    )
    assert refused.status_code == 403
    assert "owners" in refused.json()["error"]["message"]
    # The only owner cannot leave the company behind.
    sole = await company.owner.request(
        "DELETE", "/api/account", json={"name": await own_name(company.owner)}
    )
    assert sole.status_code == 409
    assert "Acme" in sole.json()["error"]["message"]
    erased = await company.owner.request(
        "DELETE", "/api/account", json={"name": "Acme"}, headers=company.selected
    )
    assert erased.status_code == 200
    for member in (company.owner, admin):
        lost = await member.get("/api/tasks", headers=company.selected)
        assert lost.status_code == 403
    # A person who is a member leaves with the erasure.
    other = await Company.create(service)
    member = await other.join()
    gone = await member.request("DELETE", "/api/account", json={"name": await own_name(member)})
    assert gone.status_code == 200, gone.text
    assert len(await other.members()) == 1
    await world_a.sweep().erase()


async def test_two_requests_erase_once(world_a: World) -> None:
    person = await world_a.service.sign_in()
    name = await own_name(person)
    answers = await asyncio.gather(
        *(person.request("DELETE", "/api/account", json={"name": name}) for _ in range(3))
    )
    assert 200 in {each.status_code for each in answers}
    assert {each.status_code for each in answers} <= {200, 400, 401, 403}
    assert await world_a.rows("erasures", person.user_id) == 1
    await world_a.sweep().erase()
