"""The fields of a task: their limits, and that clients cannot set others."""

import json
from typing import Any

import pytest

from tests.service import Person, Service
from tests.tasks.world import AGENT, LOCKED_AGENT, create, newcomer, patch, picture

SMILE = "\N{GRINNING FACE}"
LONGEST = SMILE * 50_000
TOO_LONG = LONGEST + "x"
NO_TASK = "task_" + "0" * 32


async def raw(person: Person, method: str, path: str, body: str) -> Any:
    headers = {"Content-Type": "application/json"}
    return await person.request(method, path, content=body.encode(), headers=headers)


async def test_fifty_thousand_characters_of_four_bytes_are_stored_and_one_more_is_refused(
    board: Service,
) -> None:
    person = await newcomer(board)
    task = await create(person, input=LONGEST, output=LONGEST)
    shown = (await person.get(f"/api/tasks/{task['id']}")).json()["task"]
    assert (shown["input"], shown["output"]) == (LONGEST, LONGEST)
    for field in ("input", "output", "description"):
        response = await person.post("/api/tasks", {"name": "x", field: TOO_LONG})
        assert response.status_code == 400
        assert [d["field"] for d in response.json()["error"]["details"]] == [field]
    assert (await person.get("/api/tasks")).json()["total"] == 1
    for field in ("output", "logs"):
        assert (await patch(person, task["id"], **{field: TOO_LONG})).status_code == 400


async def test_logs_are_appended_unchanged_up_to_the_limit(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person)
    await patch(person, task["id"], logs="one\n")
    shown = (await patch(person, task["id"], logs=" two")).json()["task"]
    assert shown["output"] == "one\n two"
    both = (await patch(person, task["id"], output="new", logs="er")).json()["task"]
    assert both["output"] == "newer"
    full = (await patch(person, task["id"], output=LONGEST[:-1], logs=SMILE)).json()["task"]
    assert full["output"] == LONGEST
    response = await patch(person, task["id"], logs="x", name="Not this either")
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "logs"
    assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"] == full


async def test_actions_are_appended_up_to_a_thousand(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, actions=["first"])
    for _ in range(9):
        await patch(person, task["id"], actions=["again"] * 100)
    shown = (await patch(person, task["id"], actions=["again"] * 99)).json()["task"]
    assert shown["metadata"]["actions"] == ["first"] + ["again"] * 999
    assert (await patch(person, task["id"], actions=["one more"])).status_code == 400
    assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"] == shown


@pytest.mark.parametrize("priority", ["-1", "11", '"5"', "true", "NaN", "Infinity", "10.5", "null"])
async def test_a_priority_that_is_not_a_number_from_0_to_10_is_refused(
    board: Service, priority: str
) -> None:
    person = await newcomer(board)
    response = await raw(person, "POST", "/api/tasks", f'{{"name":"x","priority":{priority}}}')
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "VALIDATION_ERROR"
    task = await create(person)
    response = await raw(
        person, "PATCH", f"/api/tasks/{task['id']}", f'{{"name":"y","priority":{priority}}}'
    )
    # In a PATCH, null means no change.
    assert response.status_code == (200 if priority == "null" else 400)


@pytest.mark.parametrize(
    ("priority", "shown"), [("5", "5"), ("5.0", "5"), ("5.5", "5.5"), ("10", "10")]
)
async def test_a_priority_can_be_an_integer_or_a_decimal(
    board_a: Service, priority: str, shown: str
) -> None:
    person = await newcomer(board_a)
    response = await raw(person, "POST", "/api/tasks", f'{{"name":"x","priority":{priority}}}')
    assert f'"priority":{shown},' in response.text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": None},
        {"name": 5},
        {"name": "x" * 1001},
        {"name": "x", "status": "pending"},
        {"name": "x", "status": "DONE"},
        {"name": "x", "status": None},
        {"name": "x", "actions": "one"},
        {"name": "x", "actions": [1]},
        {"name": "x", "input": ["text"]},
        {"name": "x\0"},
        {"name": "x", "agent": ""},
        {"name": "x", "projectId": "p" * 256},
        ["name"],
    ],
    ids=lambda body: json.dumps(body)[:40],
)
async def test_an_invalid_body_creates_nothing(board_a: Service, body: Any) -> None:
    person = await newcomer(board_a)
    response = await person.post("/api/tasks", body)
    assert response.status_code == 400
    assert (await person.get("/api/tasks")).json() == {"tasks": [], "total": 0}


async def test_agent_and_assigned_agent_are_two_names_for_one_field(board: Service) -> None:
    person = await newcomer(board)
    for body in (
        {"agent": AGENT},
        {"assignedAgent": AGENT},
        {"agent": AGENT, "assignedAgent": AGENT},
    ):
        assert (await create(person, **body))["assignedAgent"] == AGENT
    both = {"name": "x", "agent": AGENT, "assignedAgent": "meeting-scribe"}
    response = await person.post("/api/tasks", both)
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "agent"


async def test_fields_that_cannot_be_set_are_ignored(board: Service) -> None:
    person = await newcomer(board)
    forged = {
        "id": NO_TASK,
        "createdAt": "2001-01-01T00:00:00.000Z",
        "updatedAt": "2001-01-01T00:00:00.000Z",
        "startedAt": "2001-01-01T00:00:00.000Z",
        "finishedAt": "2001-01-01T00:00:00.000Z",
        "usage": {"run": 5, "costUsd": "9"},
        "metadata": {"actions": ["forged"]},
    }
    plain = await create(person)
    task = await create(person, **forged, error={"code": "X", "message": "x", "retryable": True})
    changed = (await patch(person, task["id"], **forged, assignedAgent=AGENT, input="x")).json()
    assert changed["task"] == task
    own = ("id", "createdAt", "updatedAt")
    assert {k: v for k, v in task.items() if k not in own} == {
        k: v for k, v in plain.items() if k not in own
    }
    assert task["id"] != forged["id"]
    assert task["createdAt"] >= plain["createdAt"]
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert {(row["hosted"], row["depth"], row["run"]) for row in seen["tasks"]} == {(False, 0, 1)}
    assert seen["outbox"] == []


async def test_a_new_task_is_shown_with_every_field(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person)
    assert task == {
        "id": task["id"],
        "name": "A task",
        "assignedAgent": None,
        "status": "PENDING",
        "input": "",
        "output": None,
        "createdAt": task["createdAt"],
        "updatedAt": task["createdAt"],
        "description": None,
        "priority": 0,
        "projectId": None,
        "parentTaskId": None,
        "outputData": None,
        "outputSchema": None,
        "queuePosition": None,
        "budgetCents": None,
        "agentVersion": None,
        "model": None,
        "forkedFrom": None,
        "deadline": None,
        "metadata": {"actions": []},
        "error": None,
        "usage": {
            "run": 1,
            "steps": 0,
            "inputTokens": 0,
            "outputTokens": 0,
            "costUsd": "0.000000",
            "budgetUsd": None,
        },
        "startedAt": None,
        "finishedAt": None,
        "truncated": [],
    }
    assert (await person.get(f"/api/tasks/{task['id']}")).json() == {"task": task}


async def test_a_task_shows_the_most_that_its_run_can_cost(board: Service) -> None:
    person = await newcomer(board)
    hosted = await create(person, agent=AGENT)
    assert hosted["usage"]["budgetUsd"] == "0.250000"
    recorded = await create(person, agent=AGENT, status="COMPLETED")
    assert recorded["usage"]["budgetUsd"] is None
    [first, second] = (await person.get("/api/tasks")).json()["tasks"]
    assert (first["usage"]["budgetUsd"], second["usage"]["budgetUsd"]) == (None, "0.250000")


async def test_an_unknown_or_locked_agent_creates_nothing(board: Service) -> None:
    person = await newcomer(board, tier="basic")
    unknown = await person.post("/api/tasks", {"name": "x", "agent": "nobody"})
    assert unknown.status_code == 400
    assert unknown.json()["error"]["details"][0]["field"] == "agent"
    for status in ("PENDING", "WAITING_APPROVAL", "COMPLETED"):
        body = {"name": "x", "agent": LOCKED_AGENT, "status": status}
        locked = await person.post("/api/tasks", body)
        assert locked.status_code == 403
        assert locked.json()["error"]["code"] == "AUTHORIZATION_ERROR"
        needed = {"a": "ADVANCED", "b": "BUSINESS"}[board.variant]
        assert needed in locked.json()["error"]["message"]
        # Variant B does not sell tiers: its operator sets them.
        remedy = {"a": "a higher plan", "b": "ask the operator"}[board.variant]
        assert remedy in locked.json()["error"]["message"]
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert not any(seen[table] for table in ("tasks", "events", "outbox", "task_counts"))
    await create(await newcomer(board), agent=LOCKED_AGENT)


async def test_a_subtask_needs_a_parent_that_exists_is_open_and_is_not_too_deep(
    board: Service,
) -> None:
    person, stranger = await newcomer(board), await newcomer(board)
    foreign = await create(stranger)
    for parent in (NO_TASK, foreign["id"], "nonsense"):
        response = await person.post("/api/tasks", {"name": "x", "parentTaskId": parent})
        assert response.status_code == 404
    for status in ("COMPLETED", "FAILED", "CANCELLED"):
        ended = await create(person, status=status)
        response = await person.post("/api/tasks", {"name": "x", "parentTaskId": ended["id"]})
        assert response.status_code == 409
        assert status in response.json()["error"]["message"]
    parent = None
    for _ in range(8):
        parent = (await create(person, parentTaskId=parent))["id"]
    response = await person.post("/api/tasks", {"name": "x", "parentTaskId": parent})
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "parentTaskId"


async def test_a_task_of_another_account_gets_the_same_404_as_a_missing_one(board: Service) -> None:
    person, stranger = await newcomer(board), await newcomer(board)
    foreign = await create(stranger, status="WAITING_APPROVAL")
    calls = [
        ("GET", "", None),
        ("PATCH", "", {"name": "mine"}),
        ("POST", "/approve", None),
        ("POST", "/reject", None),
        ("POST", "/retry", None),
        ("GET", "/review", None),
        ("GET", "/events", None),
    ]
    for method, suffix, body in calls:
        bodies = []
        for task_id in (foreign["id"], NO_TASK, "nonsense"):
            path = f"/api/tasks/{task_id}{suffix}"
            response = await person.request(method, path, json=body)
            assert response.status_code == 404, path
            error = response.json()["error"]
            assert error.pop("path") == path
            error.pop("timestamp")
            bodies.append(error)
        assert bodies == [{"message": "Task not found.", "code": "NOT_FOUND"}] * 3
    shown = (await stranger.get(f"/api/tasks/{foreign['id']}")).json()["task"]
    assert shown == foreign


async def test_a_review_shows_pending_and_past_decisions(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person)
    path = f"/api/tasks/{task['id']}"
    none = (await person.get(f"{path}/review")).json()
    assert none == {
        "review": {
            "taskId": task["id"],
            "state": "none",
            "number": None,
            "digest": None,
            "work": None,
            "summary": None,
            "gate": None,
            "requestedAt": None,
            "expiresAt": None,
            "items": [],
            "secondPerson": False,
            "shaped": [],
            "history": [],
        }
    }
    await patch(person, task["id"], status="WAITING_APPROVAL")
    pending = (await person.get(f"{path}/review")).json()["review"]
    assert (pending["state"], pending["history"]) == ("pending", [])
    assert pending["requestedAt"] < pending["expiresAt"]
    response = await person.post(f"{path}/reject", {"reason": "Look again.", "resume": True})
    decided = response.json()["review"]
    assert decided["state"] == "rejected"
    past = decided["history"][0]
    assert (past["reason"], past["decidedBy"]["userId"][:5]) == ("Look again.", "user_")
    await patch(person, task["id"], status="WAITING_APPROVAL")
    again = (await person.post(f"{path}/approve")).json()["review"]
    assert [review["state"] for review in again["history"]] == ["approved", "rejected"]
    assert (await person.get(f"{path}/review")).json()["review"] == again


async def test_approving_an_item_that_is_not_pending_is_refused(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, status="WAITING_APPROVAL")
    path = f"/api/tasks/{task['id']}/approve"
    response = await person.post(path, {"decisions": [{"id": "item-1"}]})
    assert response.status_code == 400
    assert "item-1" in response.json()["error"]["message"]
    assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"] == task
