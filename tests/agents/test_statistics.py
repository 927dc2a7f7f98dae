"""How the account's own tasks of an agent went, on both variants."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.platform import clock, ids
from tests.service import Person, Service
from tests.tasks.world import create, newcomer, newcomers, patch, uuid_of

AGENT = "bug-triager"
PATH = f"/api/agents/{AGENT}/statistics"


async def statistics(person: Person) -> dict[str, Any]:
    response = await person.get(PATH)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["statistics"]
    return found


async def end(
    person: Person, task: dict[str, Any], status: str, *, cost_micros: int = 0, took_s: float = 0
) -> None:
    """Ends a task as its run would."""
    async with person.service.owner() as connection:
        await connection.execute(
            """
            UPDATE tasks SET status = $3, cost_micros = $4, started_at = created_at,
                finished_at = created_at + make_interval(secs => $5)
            WHERE account_id = $1 AND id = $2
            """,
            person.user_id,
            uuid_of(task),
            status,
            cost_micros,
            took_s,
        )


async def test_without_tasks_there_are_no_rates(catalog: Service) -> None:
    person = await newcomer(catalog)
    found = await statistics(person)
    end_, start = (datetime.fromisoformat(found.pop(name)) for name in ("to", "from"))
    assert end_ - start == timedelta(days=30)
    assert abs(clock.now() - end_) < timedelta(minutes=1)
    assert found == {
        "tasks": 0,
        "completed": 0,
        "failed": 0,
        "cancelled": 0,
        "waiting": 0,
        "running": 0,
        "successRate": None,
        "medianCostUsd": None,
        "medianDurationMs": None,
    }


async def test_statistics_count_states_and_have_medians_of_completed_tasks(
    catalog: Service,
) -> None:
    person, stranger = await newcomer(catalog), await newcomer(catalog)
    for micros, seconds in ((10_000, 2.0), (30_001, 4.5), (900_000, 60.0)):
        task = await create(person, agent=AGENT)
        await end(person, task, "COMPLETED", cost_micros=micros, took_s=seconds)
    await end(person, await create(person, agent=AGENT), "FAILED", cost_micros=5, took_s=9)
    cancelled = await create(person, agent=AGENT)
    assert (await patch(person, cancelled["id"], status="CANCELLED")).status_code == 200
    await create(person, agent=AGENT, status="WAITING_APPROVAL")
    await create(person, agent=AGENT)
    # None of these counts: another agent, a record of work done elsewhere, another account.
    await create(person, agent="blog-writer")
    await create(person, agent=AGENT, status="COMPLETED")
    await create(stranger, agent=AGENT)
    found = await statistics(person)
    counts = ("tasks", "completed", "failed", "cancelled", "waiting", "running")
    assert [found[name] for name in counts] == [7, 3, 1, 1, 1, 1]
    assert found["successRate"] == 0.75
    assert (found["medianCostUsd"], found["medianDurationMs"]) == ("0.030001", 4_500)
    assert (await statistics(stranger))["tasks"] == 1


async def test_the_time_of_waiting_for_people_is_not_working_time(catalog: Service) -> None:
    person = await newcomer(catalog)
    task = await create(person, agent=AGENT)
    await end(person, task, "COMPLETED", took_s=100)
    async with catalog.owner() as connection:
        # Before the start, while it ran, one that overlaps the start, and one that was replaced
        # after its arguments were edited. Its successor waits since the same time.
        waits = ((-50, -40), (10, 70), (-5, 5), (10, 60))
        for number, (asked_s, decided_s) in enumerate(waits):
            await connection.execute(
                """
                INSERT INTO reviews (account_id, task_id, number, state, requested_at, expires_at,
                    decided_at)
                SELECT account_id, id, $3, 'approved', created_at + make_interval(secs => $4),
                    created_at, created_at + make_interval(secs => $5)
                FROM tasks WHERE account_id = $1 AND id = $2
                """,
                person.user_id,
                uuid_of(task),
                number + 1,
                float(asked_s),
                float(decided_s),
            )
    assert (await statistics(person))["medianDurationMs"] == 35_000


async def test_forks_do_not_count(catalog: Service) -> None:
    person = await newcomer(catalog)
    task = await create(person, agent=AGENT)
    made = await person.post(f"/api/tasks/{task['id']}/fork", {"fromStep": 0})
    assert made.status_code == 201, made.text
    assert (await statistics(person))["tasks"] == 1


async def test_older_tasks_do_not_count(catalog: Service) -> None:
    person = await newcomer(catalog)
    for days in (29, 31):
        task = await create(person, agent=AGENT)
        at = clock.now() - timedelta(days)
        async with catalog.owner() as connection:
            await connection.execute(
                "UPDATE tasks SET id = $3, created_at = $4 WHERE account_id = $1 AND id = $2",
                person.user_id,
                uuid_of(task),
                ids.first_from(at),
                at,
            )
    assert (await statistics(person))["tasks"] == 1


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        (("agents:read", "tasks:read"), 200),
        (("agents:read",), 403),
        (("tasks:read",), 403),
    ],
)
async def test_both_scopes_are_required(
    catalog: Service, scopes: tuple[str, ...], status: int
) -> None:
    (person,) = await newcomers(catalog, scopes=scopes)
    assert (await person.get(PATH)).status_code == status


async def test_the_index_by_agent_finds_the_tasks(catalog: Service) -> None:
    person = await newcomer(catalog)
    async with catalog.owner() as connection:
        # An empty table would be read as a whole.
        await connection.execute("SET enable_seqscan = off")
        rows = await connection.fetch(
            """
            EXPLAIN SELECT status FROM tasks
            WHERE account_id = $1 AND agent = $2 AND id >= $3 AND id < $4 AND hosted
            """,
            person.user_id,
            AGENT,
            ids.first_from(clock.now() - timedelta(30)),
            ids.first_from(clock.now()),
        )
    plan = "\n".join(row[0] for row in rows)
    assert "tasks_by_agent" in plan or "account_id_agent_id_idx" in plan, plan
