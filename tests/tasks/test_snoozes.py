"""Putting off a decision: for one person, until a time, and never past the deadline."""

from datetime import timedelta
from typing import Any

import pytest

from rota.platform import clock, ids
from rota.platform.clock import to_wire
from tests.assertions import assert_error, assert_invalid
from tests.service import Person, Service
from tests.tasks.world import HIGHEST_TIER, create, newcomer, newcomers, patch, uuid_of


async def waits(person: Person) -> str:
    task = await create(person, status="WAITING_APPROVAL")
    return f"/api/tasks/{task['id']}"


def in_an_hour() -> str:
    return to_wire(clock.now() + timedelta(hours=1))


async def approval(person: Person) -> dict[str, Any]:
    [found] = (await person.get("/api/approvals")).json()["approvals"]
    shown: dict[str, Any] = found
    return shown


async def colleagues(board: Service) -> tuple[Person, Person]:
    """Two members of a company, each with an API key of the company."""
    one, two = await newcomer(board), await newcomer(board)
    company = ids.new_uuid()
    async with board.owner() as connection:
        await connection.execute(
            "INSERT INTO accounts (id, kind, name, tier) VALUES ($1, 'company', 'Acme', $2)",
            company,
            HIGHEST_TIER[board.variant],
        )
        for person in (one, two):
            await connection.execute(
                "INSERT INTO members (account_id, user_id, role, approver) "
                "VALUES ($1, $2, 'member', true)",
                company,
                person.user_id,
            )
            for table in ("api_keys", "api_key_hashes"):
                await connection.execute(
                    f"UPDATE {table} SET account_id = $1 WHERE user_id = $2",
                    company,
                    person.user_id,
                )
    return one, two


async def stored(board: Service, path: str) -> int:
    async with board.owner() as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM review_snoozes WHERE task_id = $1",
            uuid_of({"id": path.rpartition("/")[2]}),
        )
    return count


async def test_a_decision_is_put_off_for_the_caller_alone_and_brought_back(board: Service) -> None:
    person, other = await colleagues(board)
    path = await waits(person)
    before = await approval(person)
    assert before["snoozedUntil"] is None
    until = in_an_hour()
    response = await person.post(f"{path}/snooze", {"until": until})
    assert (response.status_code, response.json()) == (200, {"snoozedUntil": until})
    assert await approval(person) == before | {"snoozedUntil": until}
    assert await approval(other) == before
    response = await person.post(f"{path}/snooze", {"until": None})
    assert (response.status_code, response.json()) == (200, {"snoozedUntil": None})
    assert await approval(person) == before


async def test_the_deadline_of_a_review_does_not_move(board: Service) -> None:
    person = await newcomer(board)
    path = await waits(person)
    expires = (await approval(person))["review"]["expiresAt"]
    late = to_wire(clock.now() + timedelta(days=400))
    response = await person.post(f"{path}/snooze", {"until": late})
    assert response.json() == {"snoozedUntil": expires}
    assert (await approval(person))["review"]["expiresAt"] == expires


async def test_a_time_that_has_passed_is_not_shown(board: Service) -> None:
    person = await newcomer(board)
    path = await waits(person)
    await person.post(f"{path}/snooze", {"until": in_an_hour()})
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE review_snoozes SET until = now() WHERE account_id = $1", person.user_id
        )
    assert (await approval(person))["snoozedUntil"] is None


@pytest.mark.parametrize("verb", ["approve", "reject", "cancel"])
async def test_nothing_is_kept_when_the_review_ends(board: Service, verb: str) -> None:
    person = await newcomer(board)
    path = await waits(person)
    await person.post(f"{path}/snooze", {"until": in_an_hour()})
    assert await stored(board, path) == 1
    if verb == "cancel":
        await patch(person, path.rpartition("/")[2], status="CANCELLED")
    else:
        assert (await person.post(f"{path}/{verb}")).status_code == 200
    assert await stored(board, path) == 0
    refused = await person.post(f"{path}/snooze", {"until": in_an_hour()})
    assert_error(refused, 409, "CONFLICT")


async def test_a_new_review_of_the_task_is_not_put_off(board: Service) -> None:
    person = await newcomer(board)
    path = await waits(person)
    await person.post(f"{path}/snooze", {"until": in_an_hour()})
    await patch(person, path.rpartition("/")[2], name="Another")
    assert (await approval(person))["snoozedUntil"] is None


@pytest.mark.parametrize(
    "body",
    [{"until": "2020-01-01T00:00:00Z"}, {"until": "soon"}, {"until": 5}, {}],
)
async def test_a_time_that_is_not_in_the_future_is_refused(
    board: Service, body: dict[str, Any]
) -> None:
    person = await newcomer(board)
    path = await waits(person)
    assert_invalid(await person.post(f"{path}/snooze", body), "until")
    assert (await approval(person))["snoozedUntil"] is None


async def test_a_decision_can_be_put_off_only_by_those_who_can_make_it(board: Service) -> None:
    person = await newcomer(board)
    path = await waits(person)
    until = {"until": in_an_hour()}
    stranger = await newcomer(board)
    assert_error(await stranger.post(f"{path}/snooze", until), 404, "NOT_FOUND")
    [reader] = await newcomers(board, scopes=("tasks:read", "tasks:write"))
    own = await waits(reader)
    assert (await reader.post(f"{own}/snooze", until)).status_code == 403


async def test_a_task_that_does_not_wait_cannot_be_put_off(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person)
    for until in (in_an_hour(), None):
        refused = await person.post(f"/api/tasks/{task['id']}/snooze", {"until": until})
        assert_error(refused, 409, "CONFLICT")
