"""The generated rows are the same as those the service writes."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from typer.testing import CliRunner

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.cli import cli
from rota.dev.seed import Plan, Seeded, SeedRefused, seed
from rota.dev.stack import Stack
from rota.platform import ids
from tests.service import Service

PLAN = Plan.of(2_000, accounts=20, largest=500)

SCHEMA = """
SELECT tablename || ' ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT relname || ' ' || relforcerowsecurity FROM pg_class
WHERE relnamespace = 'public'::regnamespace
UNION ALL
SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
ORDER BY 1
"""


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="seeded") as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="module")
async def schema(service: Service) -> list[str]:
    """The schema before seeding."""
    return await _column(service, SCHEMA)


@pytest.fixture(scope="module")
async def seeded(service: Service, schema: list[str]) -> Seeded:
    # As the owner of the tables, to whom row security applies. A superuser is not needed.
    return await seed(service.database_url, PLAN)


async def _column(service: Service, query: str, *args: object) -> list[Any]:
    async with service.owner() as owner:
        return [next(row.values()) for row in await owner.fetch(query, *args)]


async def test_the_numbers_of_tasks_and_accounts_match_the_plan(
    service: Service, seeded: Seeded
) -> None:
    async with service.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM tasks") == PLAN.tasks
        assert await owner.fetchval("SELECT count(DISTINCT account_id) FROM tasks") == PLAN.accounts
        of_largest = "SELECT count(*) FROM tasks WHERE account_id = $1"
        assert await owner.fetchval(of_largest, seeded.largest_account) == PLAN.largest


async def test_ids_carry_the_time_of_creation(service: Service, seeded: Seeded) -> None:
    async with service.owner() as owner:
        rows = await owner.fetch("SELECT id, created_at FROM tasks")
    assert len({row["id"] for row in rows}) == PLAN.tasks
    for row in rows:
        task_id = row["id"]
        assert task_id.version == 7
        assert task_id.variant == "specified in RFC 4122"
        assert ids.time_of(task_id) == row["created_at"]


async def test_every_account_has_gapless_events_one_for_each_task(
    service: Service, seeded: Seeded
) -> None:
    wrong = await _column(
        service,
        """
        SELECT h.account_id FROM account_heads h
        LEFT JOIN (
            SELECT account_id, array_agg(sequence ORDER BY sequence) AS sequences,
                   count(DISTINCT task_id) AS tasks
            FROM events WHERE type = 'task.created' GROUP BY account_id
        ) e USING (account_id)
        WHERE coalesce(e.sequences, '{}')
              <> ARRAY(SELECT generate_series(1, h.last_sequence))
           OR coalesce(e.tasks, 0) <> h.last_sequence
        """,
    )
    assert wrong == []
    different = await _column(
        service,
        """
        SELECT t.id FROM tasks t LEFT JOIN events e ON e.account_id = t.account_id
            AND e.task_id = t.id AND e.data->>'status' = t.status AND e.created_at = t.created_at
        WHERE e.id IS NULL
        """,
    )
    assert different == []


async def test_totals_are_exact(service: Service, seeded: Seeded) -> None:
    wrong_heads = await _column(
        service,
        """
        SELECT account_id FROM account_heads h
        WHERE (pending, running, completed, failed, cancelled, waiting_approval) <> (
            SELECT count(*) FILTER (WHERE status = 'PENDING'),
                   count(*) FILTER (WHERE status = 'RUNNING'),
                   count(*) FILTER (WHERE status = 'COMPLETED'),
                   count(*) FILTER (WHERE status = 'FAILED'),
                   count(*) FILTER (WHERE status = 'CANCELLED'),
                   count(*) FILTER (WHERE status = 'WAITING_APPROVAL')
            FROM tasks t WHERE t.account_id = h.account_id)
        """,
    )
    assert wrong_heads == []
    wrong_counts = await _column(
        service,
        """
        SELECT account_id FROM (
            SELECT account_id, 'agent' AS dimension, agent AS value, status, count(*)
            FROM tasks WHERE agent IS NOT NULL GROUP BY 1, 3, 4
            UNION ALL
            SELECT account_id, 'project', project_id, status, count(*)
            FROM tasks WHERE project_id IS NOT NULL GROUP BY 1, 3, 4
        ) AS counted
        FULL JOIN task_counts USING (account_id, dimension, value, status)
        WHERE count IS DISTINCT FROM tasks
        """,
    )
    assert wrong_counts == []


async def test_every_waiting_task_has_a_review_and_no_task_needs_a_worker(
    service: Service, seeded: Seeded
) -> None:
    wrong = await _column(
        service,
        """
        SELECT id FROM tasks t LEFT JOIN reviews r
            ON r.account_id = t.account_id AND r.task_id = t.id AND r.state = 'pending'
        WHERE (t.status = 'WAITING_APPROVAL') <> (r.task_id IS NOT NULL) OR t.hosted
        """,
    )
    assert wrong == []
    assert await _column(service, "SELECT id FROM outbox") == []


async def test_the_api_lists_the_largest_account(service: Service, seeded: Seeded) -> None:
    person = await service.sign_in()
    async with service.owner() as owner:
        await owner.execute(
            "INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, 'member')",
            seeded.largest_account,
            person.user_id,
        )
    chosen = {"X-Service-Account": ids.to_wire("acct", seeded.largest_account)}
    found: list[dict[str, Any]] = []
    for offset in range(0, PLAN.largest, 100):
        response = await person.get(f"/api/tasks?limit=100&offset={offset}", headers=chosen)
        assert response.status_code == 200, response.text
        assert response.json()["total"] == PLAN.largest
        found += response.json()["tasks"]
    assert len({task["id"] for task in found}) == PLAN.largest
    assert [task["id"] for task in found] == sorted((t["id"] for t in found), reverse=True)
    for status in {task["status"] for task in found}:
        response = await person.get(f"/api/tasks?status={status}", headers=chosen)
        assert response.json()["total"] == sum(task["status"] == status for task in found)


async def test_the_schema_does_not_change(
    service: Service, schema: list[str], seeded: Seeded
) -> None:
    assert await _column(service, SCHEMA) == schema


async def test_a_database_with_tasks_is_refused_without_append(
    service: Service, seeded: Seeded
) -> None:
    with pytest.raises(SeedRefused, match="--append"):
        await seed(service.database_url, Plan.of(10))
    more = await seed(service.database_url, Plan.of(10, accounts=2, largest=4), append=True)
    assert await _column(
        service,
        "SELECT last_sequence FROM account_heads WHERE account_id = ANY ($1)",
        [seeded.largest_account, more.largest_account],
    ) == [PLAN.largest, 4]


async def test_a_failed_seed_leaves_nothing(service: Service, schema: list[str]) -> None:
    before = await _column(service, "SELECT count(*) FROM accounts")

    def fail(stage: str, done: int, total: int) -> None:
        if stage == "indexes":
            raise asyncpg.PostgresError("the disk is full")

    with pytest.raises(asyncpg.PostgresError, match="disk is full"):
        await seed(service.database_url, Plan.of(10), append=True, on_progress=fail)
    assert await _column(service, "SELECT count(*) FROM accounts") == before
    assert await _column(service, SCHEMA) == schema


def test_production_is_refused() -> None:
    environment = {
        "ROTA_ENV": "production",
        "ROTA_SECRET_KEY": base64.b64encode(bytes(range(32))).decode(),
        "ROTA_AUDIT_KEY": base64.b64encode(bytes(range(1, 33))).decode(),
        "ROTA_METRICS_PORT": "9090",
        "ROTA_PUBLIC_URL": "https://rota.example",
        "ROTA_OIDC_ISSUERS": '[{"issuer": "https://id.example", "clientId": "rota"}]',
    }
    result = CliRunner().invoke(cli, ["admin", "seed", "--tasks", "10"], env=environment)
    assert result.exit_code == 1
    assert "production" in result.output


@pytest.mark.parametrize(("accounts", "largest"), [(1, 1), (5, 8), (None, 11), (None, 0)])
def test_an_impossible_plan_is_refused(accounts: int | None, largest: int) -> None:
    with pytest.raises(ValueError, match="between"):
        Plan.of(10, accounts, largest)
