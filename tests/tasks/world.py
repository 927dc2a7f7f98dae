"""New accounts for tests, and everything that the database stores about their tasks."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

from rota.auth import secrets
from rota.auth.caller import ALL_SCOPES
from rota.platform import ids
from rota.platform.canonical import canonical_json, digest
from tests.service import Person, Service

HIGHEST_TIER = {"a": "enterprise", "b": "business"}
AGENT = "bug-triager"
LOCKED_AGENT = "sales-director"
STATUSES = ("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "WAITING_APPROVAL")

NEW_ACCOUNT = """
    WITH person AS (
        INSERT INTO users (id, name) VALUES ($1, 'Test')
    ), account AS (
        INSERT INTO accounts (id, kind, name, tier) VALUES ($1, 'personal', 'Test', $2)
    ), key AS (
        INSERT INTO api_keys (account_id, id, user_id, name, prefix, secret_hash, scopes)
        SELECT $1, k.id, $1, 'test', 'rota_', k.hash, $5
        FROM unnest($3::uuid[], $4::bytea[]) AS k (id, hash)
    )
    INSERT INTO api_key_hashes (secret_hash, account_id, user_id, key_id)
    SELECT k.hash, $1, $1, k.id FROM unnest($3::uuid[], $4::bytea[]) AS k (id, hash)
"""


async def newcomers(
    service: Service, count: int = 1, *, tier: str | None = None, scopes: tuple[str, ...] = ()
) -> list[Person]:
    """Clients of one new account, each with its own API key.

    The default is the highest tier, because its rate limit allows many requests.
    """
    account_id = ids.new_uuid()
    keys = [secrets.new_secret() for _ in range(count)]
    async with service.owner() as connection:
        await connection.execute(
            NEW_ACCOUNT,
            account_id,
            tier or HIGHEST_TIER[service.variant],
            [uuid4() for _ in keys],
            [secrets.hash_of(key) for key in keys],
            list(scopes or ALL_SCOPES),
        )
    return [Person(service, "newcomer", key, account_id) for key in keys]


async def newcomer(service: Service, *, tier: str | None = None) -> Person:
    return (await newcomers(service, tier=tier))[0]


async def create(person: Person, **body: Any) -> dict[str, Any]:
    response = await person.post("/api/tasks", {"name": "A task", **body})
    assert response.status_code == 201, response.text
    task: dict[str, Any] = response.json()["task"]
    return task


async def patch(person: Person, task_id: str, **body: Any) -> Any:
    return await person.request("PATCH", f"/api/tasks/{task_id}", json=body)


def uuid_of(task: dict[str, Any]) -> UUID:
    value = ids.from_wire("task", task["id"])
    assert value is not None
    return value


TABLES = {
    "tasks": "id",
    "account_heads": "account_id",
    "task_counts": "dimension, value, status",
    "events": "sequence",
    "reviews": "task_id, number",
    "outbox": "id",
    "idempotency_keys": "key",
}


async def picture(connection: Any, account_id: UUID) -> dict[str, list[dict[str, Any]]]:
    """Every row that belongs to the account's tasks, but not who answered in the last seconds."""
    return {
        table: [
            {name: value for name, value in row.items() if name != "answers"}
            for row in await connection.fetch(
                f"SELECT * FROM {table} WHERE account_id = $1 ORDER BY {order}", account_id
            )
        ]
        for table, order in TABLES.items()
    }


def assert_consistent(seen: dict[str, list[dict[str, Any]]]) -> None:
    """Checks that the stored totals match the tasks, and that events have no gaps."""
    head = seen["account_heads"][0]
    tasks = seen["tasks"]
    for status in STATUSES:
        assert head[status.lower()] == sum(task["status"] == status for task in tasks), status
    for row in seen["task_counts"]:
        column = {"agent": "agent", "project": "project_id", "parent": "parent_task_id"}
        counted = sum(
            str(task[column[row["dimension"]]]) == row["value"] and task["status"] == row["status"]
            for task in tasks
        )
        assert row["tasks"] == counted, row
    numbers = [event["sequence"] for event in seen["events"]]
    assert numbers == list(range(1, head["last_sequence"] + 1))


# The number of items of a review at each gate.
ITEMS_AT = {"run": 0, "tool": 2, "output": 1}


def item(item_id: str, gate: str) -> dict[str, Any]:
    name = {"tool": "title", "output": "output"}[gate]
    sealed = canonical_json({"arguments": {name: "as asked for"}})
    return {
        "id": item_id,
        "tool": "create_issue" if gate == "tool" else None,
        "server": "github" if gate == "tool" else None,
        "arguments": {name: "as asked for"},
        "argumentsSchema": {
            "type": "object",
            "properties": {name: {"type": "string", "maxLength": 20}},
            "required": [name],
        },
        "reason": None,
        "decision": None,
        "decidedBy": None,
        "decidedAt": None,
        "sealed": sealed,
        "digest": digest(sealed),
    }


async def place(
    connection: Any, task: dict[str, Any], status: str, gate: str | None = None
) -> None:
    """Gives a task a status that only its run can set, and updates the totals."""
    account_id = await connection.fetchval(
        "UPDATE tasks SET status = $2, started_at = now() WHERE id = $1 RETURNING account_id",
        uuid_of(task),
        status,
    )
    if gate is not None:
        await connection.execute(
            """
            INSERT INTO reviews (account_id, task_id, number, run, state, gate, requested_at,
                                 expires_at, items, sealed, digest)
            VALUES ($1, $2, 1, 1, 'pending', $3, now(), now() + interval '7 days', $4, '{}', $5)
            """,
            account_id,
            uuid_of(task),
            gate,
            json.dumps([item(f"item-{n}", gate) for n in range(ITEMS_AT[gate])]),
            digest("{}"),
        )
    await recount(connection, account_id)


async def recount(connection: Any, account_id: UUID) -> None:
    """Updates the totals after tasks were changed directly."""
    counted = ", ".join(
        f"{name} = (SELECT count(*) FROM tasks WHERE account_id = $1 AND status = '{name}')"
        for name in STATUSES
    )
    await connection.execute(
        f"UPDATE account_heads SET {counted} WHERE account_id = $1", account_id
    )
    await connection.execute("DELETE FROM task_counts WHERE account_id = $1", account_id)
    await connection.execute(
        """
        INSERT INTO task_counts (account_id, dimension, value, status, tasks)
        SELECT $1, dimension, value, status, count(*)
        FROM tasks, LATERAL (VALUES ('agent', agent), ('project', project_id),
                                    ('parent', parent_task_id::text)) AS d (dimension, value)
        WHERE account_id = $1 AND value IS NOT NULL GROUP BY dimension, value, status
        """,
        account_id,
    )


async def expire_reviews(connection: Any, *tasks: dict[str, Any]) -> None:
    """Makes the reviews of these tasks expired."""
    await connection.execute(
        "UPDATE reviews SET expires_at = now() - interval '1 s' WHERE task_id = ANY ($1)",
        [uuid_of(task) for task in tasks],
    )


async def until_waiting_for_locks(service: Service, count: int) -> None:
    """Waits until this many transactions of the service's database wait for a lock."""
    async with service.owner() as connection, asyncio.timeout(10):
        while count > await connection.fetchval(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        ):
            await asyncio.sleep(0.01)
