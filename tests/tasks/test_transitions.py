"""Every operation in every status, for hosted and external tasks: allowed, or a 409."""

from typing import Any

import pytest

from tests.service import Person, Service
from tests.tasks.world import (
    AGENT,
    STATUSES,
    assert_consistent,
    create,
    newcomer,
    patch,
    picture,
    place,
    uuid_of,
)

# The situation of a task: hosted or external, its status, and the gate of a hosted task.
Situation = tuple[str, str, str | None]
EXTERNAL: list[Situation] = [("external", status, None) for status in STATUSES]
HOSTED: list[Situation] = [
    ("hosted", status, None) for status in STATUSES if status != "WAITING_APPROVAL"
]
GATED: list[Situation] = [
    ("hosted", "WAITING_APPROVAL", gate) for gate in ("run", "tool", "output")
]

OPERATIONS: dict[str, tuple[str, str, Any]] = {
    **{f"PATCH {status}": ("PATCH", "", {"status": status}) for status in STATUSES},
    "approve": ("POST", "/approve", None),
    "reject": ("POST", "/reject", {"reason": "Not like this."}),
    "resume": ("POST", "/reject", {"resume": True}),
    "retry": ("POST", "/retry", None),
}

# The status that each allowed operation leads to, its event, and the state of its review. Written
# by hand, so that the test does not depend on the table under test.
ALLOWED: dict[tuple[Situation, str], tuple[str, str, str | None]] = {
    (("external", "PENDING", None), "PATCH RUNNING"): ("RUNNING", "task.started", None),
    (("external", "PENDING", None), "PATCH WAITING_APPROVAL"): (
        *("WAITING_APPROVAL", "task.waiting_approval", "pending"),
    ),
    (("external", "PENDING", None), "PATCH COMPLETED"): ("COMPLETED", "task.completed", None),
    (("external", "PENDING", None), "PATCH FAILED"): ("FAILED", "task.failed", None),
    (("external", "PENDING", None), "PATCH CANCELLED"): ("CANCELLED", "task.cancelled", None),
    (("external", "RUNNING", None), "PATCH WAITING_APPROVAL"): (
        *("WAITING_APPROVAL", "task.waiting_approval", "pending"),
    ),
    (("external", "RUNNING", None), "PATCH COMPLETED"): ("COMPLETED", "task.completed", None),
    (("external", "RUNNING", None), "PATCH FAILED"): ("FAILED", "task.failed", None),
    (("external", "RUNNING", None), "PATCH CANCELLED"): ("CANCELLED", "task.cancelled", None),
    (("external", "WAITING_APPROVAL", None), "PATCH CANCELLED"): (
        *("CANCELLED", "task.cancelled", "cancelled"),
    ),
    (("external", "WAITING_APPROVAL", None), "approve"): ("RUNNING", "task.approved", "approved"),
    (("external", "WAITING_APPROVAL", None), "reject"): ("CANCELLED", "task.rejected", "rejected"),
    (("external", "WAITING_APPROVAL", None), "resume"): ("RUNNING", "task.rejected", "rejected"),
    (("external", "FAILED", None), "retry"): ("PENDING", "task.retried", None),
    (("hosted", "PENDING", None), "PATCH CANCELLED"): ("CANCELLED", "task.cancelled", None),
    (("hosted", "RUNNING", None), "PATCH CANCELLED"): ("CANCELLED", "task.cancelled", None),
    (("hosted", "FAILED", None), "retry"): ("PENDING", "task.retried", None),
    (GATED[0], "approve"): ("PENDING", "task.approved", "approved"),
    (GATED[1], "approve"): ("RUNNING", "task.approved", "approved"),
    (GATED[2], "approve"): ("COMPLETED", "task.approved", "approved"),
    (GATED[1], "resume"): ("RUNNING", "task.rejected", "rejected"),
    (GATED[2], "resume"): ("RUNNING", "task.rejected", "rejected"),
    **{(s, "PATCH CANCELLED"): ("CANCELLED", "task.cancelled", "cancelled") for s in GATED},
    **{(s, "reject"): ("CANCELLED", "task.rejected", "rejected") for s in GATED},
}
# Their refusals say why the decision was not applied.
DECISIONS = ("approve", "reject", "resume")


async def create_in(connection: Any, person: Person, situation: Situation) -> dict[str, Any]:
    kind, status, gate = situation
    body: dict[str, Any] = {"projectId": "p"}
    if kind == "hosted":
        body["agent"] = AGENT
    else:
        body["status"] = status
    task = await create(person, **body)
    if kind == "hosted" and status != "PENDING":
        await place(connection, task, status, gate)
    return task


@pytest.mark.parametrize(
    "situation", [*EXTERNAL, *HOSTED, *GATED], ids=lambda s: "-".join(filter(None, s))
)
async def test_only_the_transitions_of_the_table_are_possible(
    board: Service, situation: Situation
) -> None:
    person = await newcomer(board)
    async with board.owner() as connection:
        for operation in OPERATIONS:
            await check(connection, person, situation, operation)


async def check(connection: Any, person: Person, situation: Situation, operation: str) -> None:
    method, suffix, body = OPERATIONS[operation]
    task = await create_in(connection, person, situation)
    before = await picture(connection, person.user_id)
    response = await person.request(method, f"/api/tasks/{task['id']}{suffix}", json=body)
    after = await picture(connection, person.user_id)
    assert_consistent(after)
    where = f"{situation} {operation}: {response.text}"
    if operation == f"PATCH {situation[1]}":
        assert response.status_code == 200, where
        assert response.json()["task"]["status"] == situation[1], where
        assert after == before, where
    elif (situation, operation) in ALLOWED:
        status, event, review = ALLOWED[situation, operation]
        assert response.status_code == 200, where
        shown = (await person.get(f"/api/tasks/{task['id']}")).json()["task"]
        assert response.json()["task"] == shown, where
        assert shown["status"] == status, where
        assert (shown["finishedAt"] is not None) == (
            status in ("COMPLETED", "FAILED", "CANCELLED")
        ), where
        events = [e["type"] for e in after["events"][len(before["events"]) :]]
        # A decision that ends the task appends two events, for clients that listen for only one.
        ended = {"COMPLETED": "task.completed", "CANCELLED": "task.cancelled"}.get(status)
        both = event in ("task.approved", "task.rejected") and ended
        assert events == ([event, ended] if both else [event]), where
        reviews = [r["state"] for r in after["reviews"] if r["task_id"] == uuid_of(task)]
        assert reviews == [review] * bool(review), where
        known = {row["id"] for row in before["outbox"]}
        written = [row["kind"] for row in after["outbox"] if row["id"] not in known]
        assert written == instruction(situation, operation), where
        if ended:
            left = {row["kind"] for row in after["outbox"] if row["task_id"] == uuid_of(task)}
            assert left <= {"run.cancel", "run.nudge"}, where
    else:
        assert response.status_code == 409, where
        error = response.json()["error"]
        assert error["code"] == "CONFLICT", where
        if operation in DECISIONS and situation[1] != "WAITING_APPROVAL":
            why = f"Your decision was not applied, because the task is {situation[1]}"
        else:
            wanted = {"retry": "PENDING", "resume": "RUNNING"}.get(
                operation, operation.removeprefix("PATCH ")
            )
            why = f"is {situation[1]} cannot become {wanted}"
        assert why in error["message"], where
        assert after == before, where


def instructions(seen: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [row["kind"] for row in seen["outbox"]]


def instruction(situation: Situation, operation: str) -> list[str]:
    """The instructions to the worker, written in the same transaction."""
    if situation[0] == "external":
        return []
    if operation == "retry" or (operation == "approve" and situation[2] == "run"):
        return ["run.start"]
    if operation in ("PATCH CANCELLED", "reject"):
        return ["run.cancel"]
    return ["run.nudge"]


async def test_cancelling_a_task_cancels_its_open_subtasks_at_any_depth(board: Service) -> None:
    person = await newcomer(board)

    async def add(parent: dict[str, Any] | None, **body: Any) -> dict[str, Any]:
        return await create(person, **body, parentTaskId=parent["id"] if parent else None)

    top = await add(None, status="RUNNING")
    done = await add(top, status="RUNNING")
    below_done = await add(done, agent=AGENT)
    waiting = await add(top, agent=AGENT, status="WAITING_APPROVAL")
    beside = await add(None)
    path = f"/api/tasks/{done['id']}"
    assert (await person.request("PATCH", path, json={"status": "COMPLETED"})).status_code == 200
    path = f"/api/tasks/{top['id']}"
    assert (await person.request("PATCH", path, json={"status": "CANCELLED"})).status_code == 200
    tasks = (await person.get("/api/tasks")).json()["tasks"]
    assert {task["id"]: task["status"] for task in tasks} == {
        top["id"]: "CANCELLED",
        done["id"]: "COMPLETED",
        below_done["id"]: "CANCELLED",
        waiting["id"]: "CANCELLED",
        beside["id"]: "PENDING",
    }
    review = (await person.get(f"/api/tasks/{waiting['id']}/review")).json()["review"]
    assert review["state"] == "cancelled"
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert_consistent(seen)
    assert instructions(seen) == ["run.cancel", "run.cancel"]


async def test_a_task_of_an_agent_with_a_run_gate_waits_before_it_starts(
    board: Service,
) -> None:
    person = await newcomer(board)
    task = await create(person, agent="finance-director")
    assert task["status"] == "WAITING_APPROVAL"
    path = f"/api/tasks/{task['id']}"
    assert (await person.get(f"{path}/review")).json()["review"]["gate"] == "run"
    async with board.owner() as connection:
        assert instructions(await picture(connection, person.user_id)) == []
        assert (await person.post(f"{path}/approve")).json()["task"]["status"] == "PENDING"
        assert instructions(await picture(connection, person.user_id)) == ["run.start"]


async def test_the_end_of_a_hosted_subtask_wakes_its_hosted_parent(board: Service) -> None:
    person = await newcomer(board)
    parent = await create(person, agent=AGENT)
    child = await create(person, agent=AGENT, parentTaskId=parent["id"])
    assert (await patch(person, child["id"], status="CANCELLED")).status_code == 200
    async with board.owner() as connection:
        rows = (await picture(connection, person.user_id))["outbox"]
    assert [(row["kind"], row["task_id"]) for row in rows[1:]] == [
        ("run.cancel", uuid_of(child)),
        ("run.nudge", uuid_of(parent)),
    ]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("approve", "approve", 200),
        ("approve", "reject", 409),
        ("approve", "resume", 409),
        ("reject", "reject", 200),
        ("reject", "approve", 409),
        ("reject", "resume", 409),
        ("resume", "resume", 200),
        ("resume", "reject", 409),
        ("resume", "approve", 409),
    ],
)
async def test_a_repeated_decision_succeeds_and_a_different_one_is_a_conflict(
    board_a: Service, first: str, second: str, status: int
) -> None:
    person = await newcomer(board_a)
    task = await create(person, status="WAITING_APPROVAL")

    async def decide(operation: str) -> Any:
        method, suffix, body = OPERATIONS[operation]
        return await person.request(method, f"/api/tasks/{task['id']}{suffix}", json=body)

    winner = await decide(first)
    assert winner.status_code == 200
    async with board_a.owner() as connection:
        before = await picture(connection, person.user_id)
        loser = await decide(second)
        assert loser.status_code == status, loser.text
        assert await picture(connection, person.user_id) == before
    if status == 200:
        assert loser.json() == winner.json()


async def test_a_client_cannot_write_the_output_of_a_hosted_task(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, agent=AGENT)
    path = f"/api/tasks/{task['id']}"
    for refused in ({"output": "x"}, {"logs": "x"}, {"status": "CANCELLED", "output": "x"}):
        response = await person.request("PATCH", path, json=refused)
        assert response.status_code == 409
        assert (await person.get(path)).json()["task"] == task
    body: dict[str, Any] = {
        "name": "Other",
        "description": "New",
        "priority": 3.5,
        "actions": ["looked"],
    }
    response = await person.request("PATCH", path, json=body)
    changed = response.json()["task"]
    assert (changed["name"], changed["description"], changed["priority"]) == ("Other", "New", 3.5)
    assert changed["metadata"] == {"actions": ["looked"]}
    assert changed["updatedAt"] >= task["updatedAt"]
