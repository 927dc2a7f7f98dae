"""Which events a task has: one for its creation, one for each status, one for each change."""

import json
from typing import Any

import pytest

from tests.service import Person, Service
from tests.tasks.world import AGENT, create, newcomer, patch, picture

EVENT_OF = {
    "RUNNING": "task.started",
    "WAITING_APPROVAL": "task.waiting_approval",
    "COMPLETED": "task.completed",
    "FAILED": "task.failed",
    "CANCELLED": "task.cancelled",
}


async def events(board: Service, person: Person) -> list[tuple[str, dict[str, Any]]]:
    """The types and data of the account's events, in order."""
    async with board.owner() as connection:
        rows = (await picture(connection, person.user_id))["events"]
    return [(row["type"], json.loads(row["data"])) for row in rows]


@pytest.mark.parametrize("status", list(EVENT_OF))
async def test_a_task_created_in_a_status_has_the_event_of_that_status(
    board: Service, status: str
) -> None:
    person = await newcomer(board)
    await create(person, status=status)
    (created, first), (entered, second) = await events(board, person)
    assert (created, entered) == ("task.created", EVENT_OF[status])
    assert first == second


async def test_a_hosted_task_that_waits_at_its_run_gate_has_the_event(board: Service) -> None:
    person = await newcomer(board)
    await create(person, agent="finance-director")
    await create(person, agent=AGENT)
    assert [kind for kind, _ in await events(board, person)] == [
        "task.created", "task.waiting_approval", "task.created",
    ]  # fmt: skip


async def test_a_change_has_an_event_with_the_names_of_the_changed_fields(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, description="Old", priority=1)
    bodies: list[dict[str, Any]] = [
        {"name": "Other", "description": "Old", "priority": 2},
        {"logs": "One line.", "actions": ["looked"]},
        {"status": "RUNNING", "output": "Another."},
        {"status": "COMPLETED", "output": "Another."},
        {"output": "Corrected."},
        # These change nothing.
        {},
        {"status": "COMPLETED", "name": "Other", "actions": []},
        {"logs": ""},
    ]
    for body in bodies:
        response = await patch(person, task["id"], **body)
        assert response.status_code == 200, response.text
    found = [
        (kind, data["status"], data["previousStatus"], data.get("fields"))
        for kind, data in (await events(board, person))[1:]
    ]
    assert found == [
        ("task.updated", "PENDING", "PENDING", ["name", "priority"]),
        ("task.updated", "PENDING", "PENDING", ["output", "actions"]),
        ("task.updated", "PENDING", "PENDING", ["output"]),
        ("task.started", "RUNNING", "PENDING", None),
        ("task.completed", "COMPLETED", "RUNNING", None),
        ("task.updated", "COMPLETED", "COMPLETED", ["output"]),
    ]
    async with board.owner() as connection:
        rows = (await picture(connection, person.user_id))["events"]
    assert {row["task_id"].hex for row in rows} == {task["id"].removeprefix("task_")}


async def test_a_refused_change_has_no_event(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, status="COMPLETED")
    response = await patch(person, task["id"], name="Other", status="RUNNING")
    assert response.status_code == 409
    assert len(await events(board, person)) == 2
