"""PATCH: unknown fields, sending back what was read, moving tasks, clearing texts, errors."""

from typing import Any

import pytest

from tests.assertions import assert_error, assert_invalid
from tests.service import Person, Service
from tests.tasks.world import AGENT, assert_consistent, create, newcomer, patch, picture

NO_TASK = "task_" + "0" * 32


@pytest.mark.parametrize(
    ("field", "suggestion"),
    [
        ("agnet", "Did you mean `agent`?"),
        ("assigned_agent", "Did you mean `assignedAgent`?"),
        ("Status", "Did you mean `status`?"),
        ("parent_id", "Did you mean `parentTaskId`?"),
        ("zzzzzzzz", ""),
    ],
)
async def test_an_unknown_field_is_refused_with_the_nearest_name(
    board: Service, field: str, suggestion: str
) -> None:
    person = await newcomer(board)
    task = await create(person)
    for response in (
        await person.post("/api/tasks", {"name": "x", field: "process-writer"}),
        await patch(person, task["id"], **{field: 1}),
    ):
        [detail] = assert_invalid(response, field)["details"]
        assert detail["message"].startswith("Unknown field.")
    made = await person.post("/api/tasks", {"name": "x", field: 1})
    assert suggestion in made.json()["error"]["details"][0]["message"]
    assert (await person.get("/api/tasks")).json()["total"] == 1


async def test_unknown_fields_are_reported_with_the_other_errors(board_a: Service) -> None:
    person = await newcomer(board_a)
    response = await person.post("/api/tasks", {"agnet": "x", "priority": "5"})
    assert_invalid(response, "name", "priority", "agnet")
    # Also in an object inside the body, and however many there are.
    path = f"/api/tasks/{NO_TASK}/approve"
    response = await person.post(path, {"decisions": [{"id": "x", "argument": {}}]})
    [detail] = assert_invalid(response, "decisions.0.argument")["details"]
    assert detail["message"] == "Unknown field. Did you mean `arguments`?"
    many = {"name": "x"} | {f"unknown{number}": 1 for number in range(5_000)}
    response = await person.post("/api/tasks", many)
    assert response.status_code == 400
    assert len(response.json()["error"]["details"]) == 20


async def test_an_unknown_parameter_is_refused_with_the_nearest_name(board: Service) -> None:
    person = await newcomer(board)
    for path, name, known in (
        ("/api/tasks", "assignedAgent", "agent"),
        ("/api/tasks", "project_id", "projectId"),
        ("/api/approvals", "limits", "limit"),
        ("/api/agents", "departement", "department"),
        ("/api/usage", "groupby", "groupBy"),
    ):
        [detail] = assert_invalid(await person.get(f"{path}?{name}=x"), name)["details"]
        assert detail["message"] == f"Unknown parameter. Did you mean `{known}`?"
    assert_invalid(await person.post("/api/tasks?dryRun=true", {"name": "x"}), "dryRun")
    assert (await person.get("/api/tasks")).json()["total"] == 0
    # A page is not part of the API: the payment processor adds its own parameters.
    assert (await person.get("/money?session_id=cs_1")).status_code == 200


async def test_an_error_names_the_field_that_was_sent(board: Service) -> None:
    person = await newcomer(board)
    for body, field in (
        ({"priority": "5"}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 10.5}, "priority"),
        ({"agent": "nobody"}, "agent"),
        ({"assignedAgent": "nobody"}, "assignedAgent"),
    ):
        assert_invalid(await person.post("/api/tasks", {"name": "x", **body}), field)


@pytest.mark.parametrize(
    "name", [" ", "\t\n", "\u200b", "\u2060\ufeff ", "\u3164", "\u2800", "\u202e", "\ufe0f"]
)
async def test_a_name_without_a_visible_character_is_refused(board_a: Service, name: str) -> None:
    person = await newcomer(board_a)
    task = await create(person, name=f"{name}x{name}")
    assert task["name"] == f"{name}x{name}"
    assert_invalid(await person.post("/api/tasks", {"name": name}), "name")
    assert_invalid(await patch(person, task["id"], name=name), "name")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"agent": AGENT},
        {"agent": AGENT, "status": "WAITING_APPROVAL"},
        {"status": "WAITING_APPROVAL"},
        {"status": "COMPLETED", "output": "done", "actions": ["one"], "description": "d"},
        {"status": "RUNNING", "projectId": "p", "priority": 2.5, "input": "i"},
    ],
)
async def test_a_task_that_was_read_can_be_sent_back(board: Service, body: Any) -> None:
    person = await newcomer(board)
    parent = await create(person)
    task = await create(person, parentTaskId=parent["id"], **body)
    answer = await patch(person, task["id"], **task)
    assert (answer.status_code, answer.json()) == (200, {"task": task})
    copy = await person.post("/api/tasks", task)
    assert copy.status_code == 201, copy.text
    own = ("id", "createdAt", "updatedAt", "startedAt", "finishedAt", "metadata")
    assert {k: v for k, v in copy.json()["task"].items() if k not in own} == {
        k: v for k, v in task.items() if k not in own
    }


async def test_a_failed_task_with_an_error_can_be_sent_back(board_a: Service) -> None:
    person = await newcomer(board_a)
    task = await create(person, status="RUNNING")
    error = {"code": "IMPORT_FAILED", "message": "Row 17 has no date."}
    failed = (await patch(person, task["id"], status="FAILED", error=error)).json()["task"]
    assert failed["error"] == error | {"retryable": False}
    answer = await patch(person, task["id"], **failed)
    assert (answer.status_code, answer.json()) == (200, {"task": failed})
    better = error | {"message": "Row 18.", "retryable": True}
    again = (await patch(person, task["id"], error=better)).json()["task"]
    assert again["error"] == better
    retried = await person.post(f"/api/tasks/{task['id']}/retry")
    assert retried.json()["task"]["error"] is None


async def test_an_error_needs_a_failed_external_task(board: Service) -> None:
    person = await newcomer(board)
    error = {"code": "X", "message": "x"}
    task, hosted = await create(person), await create(person, agent=AGENT)
    assert_invalid(await patch(person, task["id"], error=error), "error")
    assert_invalid(await patch(person, task["id"], status="RUNNING", error=error), "error")
    assert_invalid(
        await patch(person, task["id"], status="FAILED", error={}), "error.code", "error.message"
    )
    refused = await patch(person, hosted["id"], status="FAILED", error=error)
    assert_error(refused, 409, "CONFLICT")
    assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"] == task


async def test_null_clears_optional_texts_and_leaves_the_rest(board: Service) -> None:
    person = await newcomer(board)
    body = {"description": "d", "output": "o", "projectId": "p", "priority": 3}
    task = await create(person, **body)
    cleared = await patch(
        person,
        task["id"],
        description=None,
        output=None,
        projectId=None,
        name=None,
        priority=None,
        status=None,
        logs=None,
        actions=None,
        error=None,
    )
    shown = cleared.json()["task"]
    assert (shown["description"], shown["output"], shown["projectId"]) == (None, None, None)
    assert (shown["name"], shown["priority"], shown["status"]) == ("A task", 3, "PENDING")
    assert (await person.get("/api/tasks?projectId=p")).json()["total"] == 0


async def test_a_task_moves_between_projects_with_its_totals(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, projectId="north")
    moved = (await patch(person, task["id"], projectId="south", status="RUNNING")).json()["task"]
    assert moved["projectId"] == "south"
    moved = (await patch(person, task["id"], projectId="west")).json()["task"]
    for project, total in (("north", 0), ("south", 0), ("west", 1)):
        page = (await person.get(f"/api/tasks?projectId={project}&status=RUNNING")).json()
        assert page == {"tasks": [moved] * total, "total": total}
    async with board.owner() as connection:
        assert_consistent(await picture(connection, person.user_id))


async def depths(board: Service, person: Person) -> dict[str, int]:
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
        assert_consistent(seen)
    return {f"task_{row['id'].hex}": row["depth"] for row in seen["tasks"]}


async def test_a_pending_task_moves_to_another_parent_with_its_subtasks(board: Service) -> None:
    person = await newcomer(board)
    old, new = await create(person), await create(person, parentTaskId=None)
    task = await create(person, parentTaskId=old["id"])
    below = await create(person, parentTaskId=task["id"], agent=AGENT)
    middle = await create(person, parentTaskId=new["id"])
    moved = (await patch(person, task["id"], parentTaskId=middle["id"])).json()["task"]
    assert moved["parentTaskId"] == middle["id"]
    found = await depths(board, person)
    assert (found[task["id"]], found[below["id"]]) == (2, 3)
    for parent, total in ((old, 0), (middle, 1)):
        page = (await person.get(f"/api/tasks?parentTaskId={parent['id']}")).json()
        assert page["total"] == total
    assert (await patch(person, task["id"], parentTaskId=None)).json()["task"][
        "parentTaskId"
    ] is None
    found = await depths(board, person)
    assert (found[task["id"]], found[below["id"]]) == (0, 1)


async def test_a_task_cannot_move_below_itself_too_deep_or_to_a_parent_that_has_ended(
    board: Service,
) -> None:
    person, stranger = await newcomer(board), await newcomer(board)
    top = await create(person)
    below = await create(person, parentTaskId=top["id"])
    lowest = await create(person, parentTaskId=below["id"])
    for parent in (top, below, lowest):
        refused = await patch(person, top["id"], parentTaskId=parent["id"])
        assert_invalid(refused, "parentTaskId")
    chain = None
    for _ in range(6):
        chain = (await create(person, parentTaskId=chain))["id"]
    assert_invalid(await patch(person, top["id"], parentTaskId=chain), "parentTaskId")
    assert (await patch(person, lowest["id"], parentTaskId=chain)).status_code == 200
    ended, foreign = await create(person, status="COMPLETED"), await create(stranger)
    refused = await patch(person, below["id"], parentTaskId=ended["id"])
    assert_error(refused, 409, "CONFLICT")
    for parent_id in (NO_TASK, "nonsense", foreign["id"]):
        refused = await patch(person, below["id"], parentTaskId=parent_id)
        assert_error(refused, 404, "NOT_FOUND")


async def test_only_a_pending_external_task_can_move(board: Service) -> None:
    person = await newcomer(board)
    parent = await create(person)
    for body in ({"agent": AGENT}, {"status": "RUNNING"}, {"status": "COMPLETED"}):
        task = await create(person, **body)
        refused = await patch(person, task["id"], parentTaskId=parent["id"])
        assert_error(refused, 409, "CONFLICT")
        assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"] == task


async def test_the_timeline_shows_a_review_whose_text_changed(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, status="WAITING_APPROVAL", name="Import")
    await patch(person, task["id"], name="Import all")
    response = await person.get(f"/api/tasks/{task['id']}/timeline")
    assert response.status_code == 200, response.text
    assert [step["state"] for step in response.json()["steps"]] == ["cancelled", "pending"]
