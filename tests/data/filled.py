"""An account with data everywhere, and what must be left of it after an erasure."""

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.service import RPCError, RPCStatusCode

from rota.data import queries
from rota.data.commands import grant_command
from rota.events.live_text import Version
from rota.platform import ids
from rota.runs.contracts import workflow_id
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
    person = await service.sign_in(f"{MARKER}-{ids.new_uuid().hex[-8:]}")
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


async def own_name(person: Person) -> str:
    name: str = (await person.get("/api/me")).json()["account"]["name"]
    return name
