"""Options of a new task: a schema for its output, a budget and a deadline."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, patch, uuid_of

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"z": {}, "a": {"type": "integer"}}}
LATER = "2099-01-31T12:00:00.123Z"


async def test_a_task_shows_its_options(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, agent=AGENT, outputSchema=SCHEMA, budgetCents=3, deadline=LATER)
    for shown in (task, (await person.get(f"/api/tasks/{task['id']}")).json()["task"]):
        assert (shown["outputSchema"], shown["outputData"]) == (SCHEMA, None)
        assert list(shown["outputSchema"]["properties"]) == ["z", "a"]
        assert (shown["budgetCents"], shown["deadline"]) == (3, LATER)
        assert shown["usage"]["budgetUsd"] == "0.030000"
    async with board.owner() as connection:
        held = await connection.fetchval(
            "SELECT allowance + topup FROM holds WHERE task_id = $1", uuid_of(task)
        )
    assert held == 30_000
    plain = await create(person, agent=AGENT)
    assert [plain[name] for name in ("outputSchema", "outputData", "budgetCents", "deadline")] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("outputSchema", {}, "the type `object`"),
        ("outputSchema", {"type": "array"}, "the type `object`"),
        ("outputSchema", {"type": ["object", "null"]}, "the type `object`"),
        ("outputSchema", "object", "must be an object"),
        ("outputSchema", {"type": "object", "title": "x" * 33_000}, "at most 32 KiB"),
        ("outputSchema", {"type": "object", "properties": []}, "cannot be used"),
        ("outputSchema", {"type": "object", "required": "a"}, "cannot be used"),
        ("outputSchema", {"type": "object", "$ref": "https://example.com/x"}, "cannot be used"),
        ("outputSchema", {"type": "object", "$ref": "#/$defs/none"}, "cannot be used"),
        ("outputSchema", {"type": "object", "allOf": [{"uniqueItems": True}] * 3_000}, ""),
        ("budgetCents", 0, "must be at least 1"),
        ("budgetCents", "5", "whole number"),
        ("budgetCents", 5.5, "whole number"),
        ("budgetCents", 100_000, "The budget of the agent bug-triager is"),
        ("deadline", "2020-01-01T00:00:00Z", "must be in the future"),
        ("deadline", "2099-01-01T00:00:00", "ISO 8601"),
        ("deadline", "tomorrow", "ISO 8601"),
        ("dryRun", "true", "true or false"),
    ],
)
async def test_invalid_options_are_refused_and_nothing_is_created(
    board_a: Service, field: str, value: Any, told: str
) -> None:
    person = await newcomer(board_a)
    answer = await person.post("/api/tasks", {"name": "A task", "agent": AGENT, field: value})
    assert answer.status_code == 400, answer.text
    [problem] = answer.json()["error"]["details"]
    assert problem["field"] == field
    assert told in problem["message"]
    assert (await person.get("/api/tasks")).json()["total"] == 0


@pytest.mark.parametrize(
    "option",
    [{"outputSchema": SCHEMA}, {"budgetCents": 1}, {"deadline": LATER}, {"dryRun": True}],
)
@pytest.mark.parametrize("other", [{}, {"agent": AGENT, "status": "RUNNING"}])
async def test_only_a_task_that_the_service_runs_has_options(
    board_a: Service, option: dict[str, Any], other: dict[str, Any]
) -> None:
    person = await newcomer(board_a)
    answer = await person.post("/api/tasks", {"name": "A task", **other, **option})
    assert answer.status_code == 400
    [problem] = answer.json()["error"]["details"]
    assert problem["field"] == next(iter(option))
    assert problem["message"].startswith("Only a task that the service runs")


async def test_a_task_that_was_read_can_be_sent_back(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, agent=AGENT, outputSchema=SCHEMA, budgetCents=3, deadline=LATER)
    answer = await patch(person, task["id"], **task)
    assert answer.status_code == 200, answer.text
    assert answer.json()["task"] == task
    again = await person.post("/api/tasks", task)
    assert again.status_code == 201, again.text
    assert again.json()["task"]["outputSchema"] == SCHEMA


async def test_a_deadline_can_change_until_the_task_has_ended(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, agent=AGENT, deadline=LATER)

    async def due() -> list[datetime]:
        async with board_a.owner() as connection:
            rows = await connection.fetch(
                "SELECT due_at FROM outbox WHERE task_id = $1 AND kind = 'run.deadline'",
                uuid_of(task),
            )
        return [row["due_at"].replace(microsecond=0) for row in rows]

    assert await due() == [datetime(2099, 1, 31, 12, 0, tzinfo=UTC)]
    sooner = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    answer = await patch(person, task["id"], deadline=sooner.isoformat())
    assert answer.json()["task"]["deadline"] == sooner.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    [moved] = await due()
    assert abs(moved - sooner) < timedelta(seconds=5)
    assert (await patch(person, task["id"], deadline="2020-01-01T00:00:00Z")).status_code == 400
    answer = await patch(person, task["id"], deadline=None)
    assert answer.json()["task"]["deadline"] is None
    assert await due() == []
    await patch(person, task["id"], deadline=LATER)
    await patch(person, task["id"], status="CANCELLED")
    assert await due() == []
    assert (await patch(person, task["id"], deadline=None)).status_code == 409
    external = await create(person)
    assert (await patch(person, external["id"], deadline=LATER)).status_code == 409
    assert (await patch(person, external["id"], deadline=None)).status_code == 200


async def test_a_request_without_options_keeps_the_fingerprint_of_its_key(board_a: Service) -> None:
    person = await newcomer(board_a)
    headers = {"Idempotency-Key": "options"}
    body: dict[str, Any] = {"name": "Once", "agent": AGENT}
    first = await person.post("/api/tasks", body, headers=headers)
    body |= {"outputSchema": None, "budgetCents": None, "deadline": None, "dryRun": False}
    again = await person.post("/api/tasks", body, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    other = await person.post("/api/tasks", body | {"budgetCents": 1}, headers=headers)
    assert other.status_code == 409


async def test_a_schema_that_does_not_fit_on_a_page_is_left_out_of_it(board_a: Service) -> None:
    person = await newcomer(board_a)
    schema = {"type": "object", "description": "x" * 30_000}
    tasks = [await create(person, agent=AGENT, outputSchema=schema) for _ in range(40)]
    listed = (await person.get("/api/tasks", params={"limit": 100})).json()["tasks"]
    assert [task["outputSchema"] for task in listed] == [None] * 40
    assert listed[0]["truncated"] == ["outputSchema"]
    one = (await person.get(f"/api/tasks/{tasks[0]['id']}")).json()["task"]
    assert (one["outputSchema"], one["truncated"]) == (schema, [])
