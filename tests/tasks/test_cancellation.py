"""Cancelling a tree: a small one at once, a large one in batches that survive a crash."""

import os
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from rota.composition import Composition
from rota.events.relay import Relay
from rota.platform import ids
from rota.tasks import cancellation
from rota.tasks.cancellation import BATCH, CANCEL_SUBTASKS, Cancellation
from tests.assertions import assert_error
from tests.events.relaying import make_due
from tests.service import Person, Service
from tests.tasks.world import (
    AGENT,
    assert_consistent,
    create,
    newcomer,
    patch,
    picture,
    recount,
    uuid_of,
)

# The largest tree that was tried has 30,000 tasks.
TREE = int(os.environ.get("ROTA_TREE_TASKS", "1000"))


@pytest.fixture
async def parts(board: Service) -> AsyncIterator[Composition]:
    """The parts as a worker uses them."""
    async with Composition(board.settings, pool_size=4) as built:
        yield built


async def tree(board: Service, person: Person, count: int) -> tuple[dict[str, Any], UUID]:
    """A task with this many tasks below it on three levels, one of ten ended, and the first of
    them."""
    root = await create(person, status="RUNNING")
    child = await create(person, status="RUNNING", parentTaskId=root["id"])
    new = [uuid_of(child), *(ids.new_uuid() for _ in range(count - 1))]
    parents = [uuid_of(root) if number < 10 else new[number % 10] for number in range(count)]
    async with board.owner() as owner:
        await owner.execute(
            """
            INSERT INTO tasks (account_id, id, status, hosted, depth, parent_task_id, name,
                created_at, updated_at, created_by)
            SELECT $1, n.id, CASE WHEN n.number % 10 = 0 THEN 'COMPLETED' ELSE 'PENDING' END, false,
                CASE WHEN n.parent = $4 THEN 1 ELSE 2 END, n.parent, 'x', now(), now(), $1
            FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS n (id, parent, number)
            """,
            person.user_id,
            new[1:],
            parents[1:],
            uuid_of(root),
        )
        await recount(owner, person.user_id)
    return root, new[0]


async def open_tasks(board: Service, person: Person) -> int:
    async with board.owner() as owner:
        found: int = await owner.fetchval(
            "SELECT count(*) FROM tasks WHERE account_id = $1"
            " AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')",
            person.user_id,
        )
    return found


async def instructions(board: Service, person: Person) -> int:
    async with board.owner() as owner:
        found: int = await owner.fetchval(
            "SELECT count(*) FROM outbox WHERE account_id = $1 AND kind = $2",
            person.user_id,
            CANCEL_SUBTASKS,
        )
    return found


async def cancel(person: Person, task: dict[str, Any]) -> None:
    response = await patch(person, task["id"], status="CANCELLED")
    assert response.status_code == 200, response.text
    assert response.json()["task"]["status"] == "CANCELLED"


async def assert_all_cancelled(board: Service, person: Person) -> None:
    """Every task that was open is cancelled once, by the person, and no total is wrong."""
    assert await open_tasks(board, person) == 0
    assert await instructions(board, person) == 0
    async with board.owner() as owner:
        seen = await picture(owner, person.user_id)
    cancelled = [task["id"] for task in seen["tasks"] if task["status"] == "CANCELLED"]
    events = Counter(
        event["task_id"] for event in seen["events"] if event["type"] == "task.cancelled"
    )
    assert events == dict.fromkeys(cancelled, 1)
    by = ids.to_wire("user", person.user_id)
    assert all(f'"by": "{by}"' in event["data"] for event in seen["events"])
    for number, event in enumerate(sorted(seen["events"], key=lambda each: each["sequence"]), 1):
        assert event["sequence"] == number
    for status in ("PENDING", "RUNNING", "COMPLETED", "CANCELLED"):
        assert seen["account_heads"][0][status.lower()] == sum(
            task["status"] == status for task in seen["tasks"]
        )


async def test_a_small_tree_is_cancelled_when_the_response_arrives(board: Service) -> None:
    person = await newcomer(board)
    root, _ = await tree(board, person, BATCH)
    await cancel(person, root)
    await assert_all_cancelled(board, person)
    async with board.owner() as owner:
        assert_consistent(await picture(owner, person.user_id))


async def test_a_large_tree_is_cancelled_in_batches_that_survive_a_crash(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(board)
    root, _ = await tree(board, person, TREE)
    before = await open_tasks(board, person)
    await cancel(person, root)
    assert await open_tasks(board, person) == before - 1
    assert await instructions(board, person) == 1

    cancel_all, batches = cancellation._cancel_all, 0

    async def dies(*arguments: Any) -> None:
        """The third batch is not committed."""
        nonlocal batches
        batches += 1
        await cancel_all(*arguments)
        if batches == 3:
            raise RuntimeError("expected")

    relay = Relay(parts.db, Cancellation(parts.db).handlers)
    with monkeypatch.context() as patched:
        patched.setattr(cancellation, "_cancel_all", dies)
        assert await relay.step()
    assert await open_tasks(board, person) == before - 1 - 2 * BATCH
    assert await instructions(board, person) == 1
    # One batch at a time: the relay lets other instructions continue in between.
    monkeypatch.setattr(cancellation, "TURN_S", 0)
    steps = 0
    await make_due(board, CANCEL_SUBTASKS)
    while await instructions(board, person):
        steps += await relay.step()
    assert steps >= (before - 2 * BATCH) // BATCH
    await assert_all_cancelled(board, person)


async def test_many_trees_at_the_same_time_take_turns(board: Service, parts: Composition) -> None:
    people = [await newcomer(board) for _ in range(4)]
    for person in people:
        root, _ = await tree(board, person, BATCH + 20)
        await cancel(person, root)
    relay = Relay(parts.db, Cancellation(parts.db).handlers)
    while any([await instructions(board, person) for person in people]):
        await make_due(board, CANCEL_SUBTASKS)
        await relay.step()
    for person in people:
        await assert_all_cancelled(board, person)


async def test_rejecting_and_expiring_cancel_a_large_tree_too(
    board: Service, parts: Composition
) -> None:
    person = await newcomer(board)
    root, _ = await tree(board, person, BATCH + 20)
    response = await patch(person, root["id"], status="WAITING_APPROVAL")
    assert response.status_code == 200, response.text
    response = await person.post(f"/api/tasks/{root['id']}/reject", {})
    assert response.json()["task"]["status"] == "CANCELLED"
    assert await instructions(board, person) == 1
    relay = Relay(parts.db, Cancellation(parts.db).handlers)
    while await instructions(board, person):
        await relay.step()
    assert await open_tasks(board, person) == 0


async def test_what_is_added_below_a_cancelled_task_meanwhile_is_cancelled_too(
    board: Service, parts: Composition
) -> None:
    person = await newcomer(board)
    root, first = await tree(board, person, BATCH + 20)
    await cancel(person, root)
    added = await create(person, agent=AGENT, parentTaskId=ids.to_wire("task", first))
    relay = Relay(parts.db, Cancellation(parts.db).handlers)
    while await instructions(board, person):
        await relay.step()
    assert await open_tasks(board, person) == 0
    found = (await person.get(f"/api/tasks/{added['id']}")).json()["task"]
    assert found["status"] == "CANCELLED"
    held = (await person.get("/api/credits/balance")).json()["balance"]["reservedCents"]
    assert held == 0


async def test_a_failed_task_below_a_cancelled_one_cannot_be_retried(board: Service) -> None:
    person = await newcomer(board)
    top = await create(person, status="RUNNING")
    middle = await create(person, status="RUNNING", parentTaskId=top["id"])
    lowest = await create(person, status="RUNNING", parentTaskId=middle["id"])
    for task in (lowest, middle):
        assert (await patch(person, task["id"], status="FAILED")).status_code == 200
    await cancel(person, top)
    assert_error(await person.post(f"/api/tasks/{lowest['id']}/retry"), 409, "CONFLICT")
