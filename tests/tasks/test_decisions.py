"""Concurrent decisions about one task, and reviews that expire."""

import asyncio
from collections import Counter

import structlog

from rota.platform import ids
from rota.tasks.reviews import Reviews
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.wire import HttpResponse, Wire, wires
from tests.tasks.world import (
    AGENT,
    create,
    expire_reviews,
    newcomer,
    newcomers,
    picture,
    until_waiting_for_locks,
)

ROUNDS = size(10, 50)
EACH = 100
ACCOUNTS = 2
CONNECTIONS = 20


async def test_of_many_concurrent_decisions_exactly_one_takes_effect(
    board_a: Service, process: Service
) -> None:
    for _ in range(ACCOUNTS):
        people = await newcomers(board_a, 2)
        tokens = [person.token for person in people]
        async with wires(process.settings.port, tokens, CONNECTIONS) as connections:
            for round_ in range(ROUNDS // ACCOUNTS):
                await decide_at_once(board_a, people[0], connections, round_)


async def decide_at_once(
    service: Service, person: Person, connections: list[Wire], round_: int
) -> None:
    task = await create(person, status="WAITING_APPROVAL")
    path = f"/api/tasks/{task['id']}"
    per_connection = 2 * EACH // len(connections)

    async def decide(wire: Wire, first: int) -> list[tuple[str, HttpResponse]]:
        decisions = ["approve" if (first + n) % 2 else "reject" for n in range(per_connection)]
        return [(d, await wire.request("POST", f"{path}/{d}")) for d in decisions]

    # The first decision alternates between rounds.
    responses = await asyncio.gather(
        *[decide(wire, at + round_) for at, wire in enumerate(connections)]
    )
    tally = Counter(
        (decision, response.status) for some in responses for decision, response in some
    )
    async with service.owner() as connection:
        seen = await picture(connection, person.user_id)
    task_id = ids.from_wire("task", task["id"])
    [row] = [row for row in seen["tasks"] if row["id"] == task_id]
    [review] = [row for row in seen["reviews"] if row["task_id"] == task_id]
    events = [event["type"] for event in seen["events"] if event["task_id"] == task_id]
    won, lost = ("approve", "reject") if row["status"] == "RUNNING" else ("reject", "approve")
    past = {"approve": "approved", "reject": "rejected"}[won]
    assert tally == {(won, 200): EACH, (lost, 409): EACH}
    assert review["state"] == past
    ended = ["task.cancelled"] if won == "reject" else []
    assert events == ["task.created", "task.waiting_approval", f"task.{past}", *ended]


async def test_an_expired_review_cancels_its_task_and_all_subtasks(
    board_a: Service, reviews: Reviews
) -> None:
    person, other = await newcomer(board_a), await newcomer(board_a)
    late = await create(person, status="WAITING_APPROVAL", agent=AGENT)
    child = await create(person, parentTaskId=late["id"])
    in_time = await create(person, status="WAITING_APPROVAL")
    elsewhere = await create(other, status="WAITING_APPROVAL")
    async with board_a.owner() as connection:
        await expire_reviews(connection, late, elsewhere)
        # Two workers sweep at the same time. Each review expires once.
        both = await asyncio.gather(reviews.expire_due(100), reviews.expire_due(100))
        assert sum(both) == 2
        seen = await picture(connection, person.user_id)
        there = await picture(connection, other.user_id)
    shown = {task["id"]: task for task in (await person.get("/api/tasks")).json()["tasks"]}
    assert shown[late["id"]]["status"] == "CANCELLED"
    assert shown[child["id"]]["status"] == "CANCELLED"
    assert shown[in_time["id"]]["status"] == "WAITING_APPROVAL"
    review = (await person.get(f"/api/tasks/{late['id']}/review")).json()["review"]
    assert review["state"] == "expired"
    assert review["history"][0]["decidedBy"] is None
    assert [event["type"] for event in seen["events"]][5:] == ["task.cancelled"] * 2
    assert [event["type"] for event in there["events"]] == [
        "task.created", "task.waiting_approval", "task.cancelled",
    ]  # fmt: skip
    assert [row["kind"] for row in seen["outbox"]] == ["run.cancel"]
    for decision in ("approve", "reject"):
        response = await person.post(f"/api/tasks/{late['id']}/{decision}")
        assert response.status_code == 409


async def test_a_decision_after_the_expiry_is_refused_before_the_sweep(
    board_a: Service, reviews: Reviews
) -> None:
    person = await newcomer(board_a)
    task = await create(person, status="WAITING_APPROVAL")
    async with board_a.owner() as connection:
        await expire_reviews(connection, task)
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", person.user_id
        )
        # The approval is first in the queue for the account's lock, the sweep second.
        approval = asyncio.create_task(person.post(f"/api/tasks/{task['id']}/approve"))
        await until_waiting_for_locks(board_a, 1)
        sweep = asyncio.create_task(reviews.expire_due(100))
        await until_waiting_for_locks(board_a, 2)
        await transaction.rollback()
    assert (await approval).status_code == 409
    assert await sweep == 1
    assert (await person.get(f"/api/tasks/{task['id']}")).json()["task"]["status"] == "CANCELLED"


async def test_one_sweep_expires_all_that_is_due_and_two_share_the_work(
    board_a: Service, reviews: Reviews
) -> None:
    people = [await newcomer(board_a) for _ in range(3)]
    tasks = [await create(person, status="WAITING_APPROVAL") for person in people for _ in range(4)]
    async with board_a.owner() as connection:
        await expire_reviews(connection, *tasks)
        both = await asyncio.gather(reviews.expire_due(5), reviews.expire_due(5))
        # Each skips an account while the other expires its reviews.
        assert sum(both) == len(tasks)
        assert await reviews.expire_due(5) == 0


async def test_an_account_whose_reviews_cannot_expire_does_not_delay_the_others(
    board_a: Service, reviews: Reviews
) -> None:
    broken, other = await newcomer(board_a), await newcomer(board_a)
    tasks = [await create(person, status="WAITING_APPROVAL") for person in (broken, other)]
    async with board_a.owner() as connection:
        await connection.execute(
            f"""
            CREATE FUNCTION refuse_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.account_id = '{broken.user_id}' THEN RAISE 'refused'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse_expiry BEFORE UPDATE ON reviews
                FOR EACH ROW EXECUTE FUNCTION refuse_expiry()
            """
        )
        try:
            await connection.execute("ALTER TABLE reviews DISABLE TRIGGER refuse_expiry")
            await expire_reviews(connection, *tasks)
            await connection.execute("ALTER TABLE reviews ENABLE TRIGGER refuse_expiry")
            with structlog.testing.capture_logs() as logs:
                assert await reviews.expire_due(1) == 1
        finally:
            await connection.execute("DROP TRIGGER refuse_expiry ON reviews")
            await connection.execute("DROP FUNCTION refuse_expiry")
        assert "review_expiry_failed" in {line["event"] for line in logs}
        assert await reviews.expire_due(1) == 1
