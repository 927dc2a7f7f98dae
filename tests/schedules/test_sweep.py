"""Workers create the tasks of due schedules, once and at the right times."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota.auth.caller import Caller
from rota.composition import Composition
from rota.platform import clock, ids
from rota.platform.idempotency import Idempotency
from rota.schedules import queries, times
from rota.schedules.bodies import CreateSchedule
from rota.schedules.service import Schedules
from rota.schedules.sweep import Sweep
from rota.tasks.creation import TaskCreation
from tests.auth.key_requests import company_of
from tests.schedules.test_times import CHANGES
from tests.schedules.world import Clock, create, make_due, patch, read, total, uuid_of
from tests.service import Person, Service
from tests.tasks.world import (
    AGENT,
    HIGHEST_TIER,
    LOCKED_AGENT,
    assert_consistent,
    newcomer,
    picture,
)
from tests.tasks.world import patch as patch_task


@pytest.fixture
def sweep(parts: Composition) -> Sweep:
    return Sweep(parts.db, parts.task_creation)


async def test_a_due_schedule_creates_its_task_and_moves_on(board: Service, sweep: Sweep) -> None:
    person = await newcomer(board)
    schedule = await create(person, task={"name": "Work", "agent": AGENT, "input": "x"})
    due_at = await make_due(board, schedule)
    assert await sweep.handle_due() == 1
    assert await sweep.handle_due() == 0
    details = await read(person, schedule)
    (task,) = details["lastTasks"]
    assert (task["name"], task["assignedAgent"], task["input"]) == ("Work", AGENT, "x")
    after = details["schedule"]
    assert (after["lastOutcome"], after["lastError"]) == ("created", None)
    assert after["nextAt"] == schedule["nextAt"]
    assert after["lastDueAt"] <= clock.to_wire(due_at)
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert_consistent(seen)
    assert seen["tasks"][0]["created_by"] == person.user_id
    assert len(seen["outbox"]) == 1
    created = next(event for event in seen["events"] if event["type"] == "task.created")
    assert '"by": null' in created["data"]


async def test_many_workers_create_one_task(board: Service, parts: Composition) -> None:
    person = await newcomer(board)
    schedules = [await create(person, name=f"schedule {number}") for number in range(20)]
    for schedule in schedules:
        await make_due(board, schedule)
    workers = [Sweep(parts.db, parts.task_creation) for _ in range(4)]
    handled = await asyncio.gather(*[worker.handle_due() for worker in workers])
    assert sum(handled) == 20
    assert await total(person) == 20


async def test_after_an_outage_only_the_newest_missed_time_runs(
    board: Service, parts: Composition
) -> None:
    person = await newcomer(board)
    schedule = await create(person, cron="* * * * *", timeZone="UTC")
    await make_due(board, schedule, timedelta(days=3))
    # With the real clock, the next minute could begin during the sweep.
    now = Clock(clock.now())
    assert await Sweep(parts.db, parts.task_creation, now=now).handle_due() == 1
    after = (await read(person, schedule))["schedule"]
    assert await total(person) == 1
    minute = timedelta(minutes=1)
    assert timedelta(0) <= now.now - datetime.fromisoformat(after["lastDueAt"]) < minute
    assert timedelta(0) < datetime.fromisoformat(after["nextAt"]) - now.now <= minute


async def test_a_time_is_skipped_while_an_earlier_task_is_open(
    board: Service, sweep: Sweep
) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    await make_due(board, schedule)
    await sweep.handle_due()
    await make_due(board, schedule)
    assert await sweep.handle_due() == 1
    details = await read(person, schedule)
    assert details["schedule"]["lastOutcome"] == "skipped"
    assert details["schedule"]["nextAt"] == schedule["nextAt"]
    (task,) = details["lastTasks"]
    await patch_task(person, task["id"], status="COMPLETED")
    await make_due(board, schedule)
    await sweep.handle_due()
    assert await total(person) == 2


async def test_an_open_task_is_not_forgotten_after_many_later_ones(
    board: Service, sweep: Sweep
) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    path = f"/api/schedules/{schedule['id']}/run"
    tasks = [(await person.post(path)).json()["task"] for _ in range(13)]
    for task in tasks[1:]:
        await patch_task(person, task["id"], status="COMPLETED")
    await make_due(board, schedule)
    await sweep.handle_due()
    shown = await read(person, schedule)
    assert shown["schedule"]["lastOutcome"] == "skipped"
    assert [task["id"] for task in shown["lastTasks"]] == [
        task["id"] for task in reversed(tasks[3:])
    ]
    await patch_task(person, tasks[0]["id"], status="COMPLETED")
    await make_due(board, schedule)
    await sweep.handle_due()
    assert (await read(person, schedule))["schedule"]["lastOutcome"] == "created"
    async with board.owner() as connection:
        remembered = await connection.fetchval(
            "SELECT count(*) FROM schedule_tasks WHERE schedule_id = $1", uuid_of(schedule)
        )
    assert remembered == 10


async def test_a_queued_time_waits_for_the_earlier_task(board: Service, parts: Composition) -> None:
    person = await newcomer(board)
    now = Clock(clock.now())
    sweep = Sweep(parts.db, parts.task_creation, now=now)
    schedule = await create(person, overlap="queue")
    await make_due(board, schedule)
    await sweep.handle_due()
    due_at = await make_due(board, schedule)
    for _ in range(3):
        now.now += timedelta(seconds=6)
        assert await sweep.handle_due() == 1
        assert await sweep.handle_due() == 0
    details = await read(person, schedule)
    assert details["schedule"]["nextAt"] == clock.to_wire(due_at)
    (task,) = details["lastTasks"]
    await patch_task(person, task["id"], status="FAILED")
    now.now += timedelta(seconds=6)
    assert await sweep.handle_due() == 1
    details = await read(person, schedule)
    assert len(details["lastTasks"]) == 2
    assert details["schedule"]["nextAt"] == schedule["nextAt"]


async def test_a_paused_schedule_creates_nothing(board: Service, sweep: Sweep) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    await make_due(board, schedule)
    await patch(person, schedule, paused=True)
    assert await sweep.handle_due() == 0
    assert await total(person) == 0


async def test_a_refused_task_is_reported_and_tried_at_the_next_time(
    board: Service, sweep: Sweep
) -> None:
    person = await newcomer(board)
    schedule = await create(person, task={"name": "x", "agent": LOCKED_AGENT})
    async with board.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = 'basic' WHERE id = $1", person.user_id)
    await make_due(board, schedule)
    assert await sweep.handle_due() == 1
    assert await sweep.handle_due() == 0
    after = (await read(person, schedule))["schedule"]
    assert (after["paused"], after["lastOutcome"]) == (False, "failed")
    assert after["lastError"]["code"] == "AUTHORIZATION_ERROR"
    assert after["nextAt"] == schedule["nextAt"]
    page = await person.get("/api/events", headers={"Accept": "application/json"})
    failed = page.json()["events"][-1]
    assert failed["type"] == "schedule.failed"
    assert failed["data"] == {"scheduleId": schedule["id"], "error": after["lastError"]}
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1",
            person.user_id,
            HIGHEST_TIER[board.variant],
        )
    await make_due(board, schedule)
    await sweep.handle_due()
    after = (await read(person, schedule))["schedule"]
    assert (after["lastOutcome"], after["lastError"]) == ("created", None)


async def test_a_balance_that_is_too_low_is_reported(board: Service, sweep: Sweep) -> None:
    person = await newcomer(board)
    schedule = await create(person, task={"name": "x", "agent": AGENT})
    await person.get("/api/credits/balance")
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE balances SET allowance = 0, topup = 0 WHERE account_id = $1", person.user_id
        )
    await make_due(board, schedule)
    await sweep.handle_due()
    after = (await read(person, schedule))["schedule"]
    assert after["lastError"]["code"] == "INSUFFICIENT_CREDITS"
    assert await total(person) == 0


async def test_a_schedule_whose_key_was_revoked_pauses(board: Service, sweep: Sweep) -> None:
    owner = await board.sign_in()
    made = (await owner.post("/api/keys", {"name": "robot"})).json()
    schedule = await create(Person(board, "robot", made["secret"]))
    assert (await owner.delete(f"/api/keys/{made['key']['id']}")).status_code == 200
    await make_due(board, schedule)
    assert await sweep.handle_due() == 1
    after = (await read(owner, schedule))["schedule"]
    assert (after["paused"], after["nextAt"]) == (True, None)
    assert after["lastError"]["code"] == "SCHEDULE_OWNER_INVALID"
    # It continues for the one who resumes it.
    resumed = (await patch(owner, schedule, paused=False)).json()["schedule"]
    assert (resumed["lastError"], resumed["nextAt"]) == (None, schedule["nextAt"])
    await make_due(board, schedule)
    await sweep.handle_due()
    assert await total(owner) == 1


async def test_a_schedule_of_a_former_member_pauses(board: Service, sweep: Sweep) -> None:
    owner, member = await board.sign_in(), await board.sign_in()
    company = await company_of(board, owner, member=member)
    selected = {"X-Service-Account": company}
    body = {"name": "x", "cron": "* * * * *", "timeZone": "UTC", "task": {"name": "x"}}
    made = await member.post("/api/schedules", body, headers=selected)
    schedule = made.json()["schedule"]
    await make_due(board, schedule)
    await sweep.handle_due()
    assert (await owner.get("/api/tasks", headers=selected)).json()["total"] == 1
    async with board.owner() as connection:
        await connection.execute(
            "DELETE FROM members WHERE account_id = $1 AND user_id = $2",
            ids.from_wire("acct", company),
            member.user_id,
        )
    await make_due(board, schedule)
    await sweep.handle_due()
    shown = await owner.get(f"/api/schedules/{schedule['id']}", headers=selected)
    assert shown.json()["schedule"]["paused"]
    assert (await owner.get("/api/tasks", headers=selected)).json()["total"] == 1


async def test_a_schedule_that_fails_unexpectedly_does_not_stop_the_others(
    board: Service, sweep: Sweep
) -> None:
    person = await newcomer(board)
    broken, good = await create(person), await create(person)
    await make_due(board, broken, timedelta(seconds=5))
    await make_due(board, good)
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE schedules SET time_zone = 'Gone/Away' WHERE id = $1", uuid_of(broken)
        )
    assert await sweep.handle_due() == 2
    assert await sweep.handle_due() == 0
    assert await total(person) == 1


async def test_a_crash_between_task_and_schedule_leaves_neither(
    board: Service, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(board)
    schedule = await create(person, task={"name": "x", "agent": AGENT})
    await make_due(board, schedule)
    with monkeypatch.context() as patched:

        async def killed(*_: object) -> None:
            raise asyncio.CancelledError

        patched.setattr(queries, "update", killed)
        with pytest.raises(asyncio.CancelledError):
            await sweep.handle_due()
    assert await total(person) == 0
    assert await sweep.handle_due() == 1
    assert await total(person) == 1


async def test_accounts_take_turns(board: Service, parts: Composition) -> None:
    busy, other = await newcomer(board), await newcomer(board)
    for number in range(5):
        schedule = await create(busy, name=f"busy {number}")
        await make_due(board, schedule, timedelta(minutes=1))
    await make_due(board, await create(other))
    async with parts.db.relay() as connection:
        due = await queries.due(connection, clock.now(), 2, 5, ())
        few = await queries.due(connection, clock.now(), 10, 2, ())
        rest = await queries.due(connection, clock.now(), 10, 2, {busy.user_id})
    assert {account_id for account_id, _ in due} == {busy.user_id, other.user_id}
    assert [each for each, _ in few] == [busy.user_id, other.user_id, busy.user_id]
    assert [each for each, _ in rest] == [other.user_id]


def caller_of(person: Person, tier: str) -> Caller:
    return Caller(person.user_id, person.user_id, "personal", "owner", tier, tier, None, None)


LOOK_EVERY = timedelta(minutes=10)
HOURS = 49


async def follow(
    parts: Composition, person: Person, zone: str, cron: str, start: datetime, down: range
) -> list[datetime]:
    """When tasks are created in two days, by workers that look every ten minutes but not in the
    hours `down`."""
    now = Clock(start - timedelta(minutes=5))
    creation: TaskCreation = parts.task_creation
    schedules = Schedules(
        parts.db, Idempotency(parts.vault), creation, parts.schema_checks, now=now
    )
    sweep = Sweep(parts.db, creation, now=now)
    body: dict[str, Any] = {
        **{"name": zone, "cron": cron, "timeZone": zone},
        # It has ended when it is created, so that none overlaps.
        "task": {"name": zone, "status": "COMPLETED"},
    }
    await schedules.create(
        caller_of(person, HIGHEST_TIER[parts.settings.variant]),
        CreateSchedule.model_validate(body),
        None,
    )
    ran = []
    for step in range(HOURS * 6):
        now.now = start + step * LOOK_EVERY
        if step // 6 not in down and await sweep.handle_due():
            ran.append(now.now)
    async with parts.db.write(person.user_id) as tx:
        for schedule in await queries.page(tx, 10, 0):
            await queries.delete(tx, schedule.id)
    return ran


@pytest.mark.parametrize("change", CHANGES[:6], ids=[each[0] for each in CHANGES[:6]])
async def test_changes_of_daylight_saving_lose_and_repeat_nothing(
    board: Service, parts: Composition, change: tuple[str, ...]
) -> None:
    zone, spring, skipped, _, autumn, repeated, _ = change
    person = await newcomer(board)
    for day, cron in ((spring, f"{skipped} * * *"), (autumn, f"{repeated} * * *")):
        start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        end = start + timedelta(hours=HOURS) - LOOK_EVERY
        following = times.upcoming(cron, zone, start - timedelta(seconds=1), 9)
        # A task is created at the first look from its time on.
        looks = [
            start + -(-(each - start) // LOOK_EVERY) * LOOK_EVERY
            for each in following
            if each <= end
        ]
        assert await follow(parts, person, zone, cron, start, range(0)) == looks
        # Workers that are down over the first time create its task when they are back.
        first = (looks[0] - start) // timedelta(hours=1)
        down = range(first, first + 6)
        ran = await follow(parts, person, zone, cron, start, down)
        assert ran == [start + timedelta(hours=down.stop), *looks[1:]]


async def test_10000_schedules_cost_an_idle_worker_one_index_lookup(
    board: Service, parts: Composition, sweep: Sweep
) -> None:
    async with board.owner() as connection:
        await connection.execute(
            """
            INSERT INTO schedules (account_id, id, name, cron, time_zone, task, overlap, paused,
                                   next_at, check_at, saved_by, created_at, updated_at)
            SELECT gen_random_uuid(), gen_random_uuid(), 'x', '0 9 * * *', 'UTC', '{"name": "x"}',
                   'skip', false, at, at, gen_random_uuid(), now(), now()
            FROM (SELECT now() + make_interval(mins => 10 + n) AS at FROM generate_series(1, 10000)
                  AS n) AS times
            """
        )
        await connection.execute("ANALYZE schedules")
    async with parts.db.relay() as connection:
        plans = [
            "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN (ANALYZE) {statement}"))
            for statement in (
                "SELECT account_id, id FROM schedules WHERE check_at <= now()",
                "SELECT check_at FROM schedules WHERE check_at > now() ORDER BY check_at LIMIT 1",
            )
        ]
    assert all("schedules_due" in plan for plan in plans), plans
    assert await sweep.handle_due() == 0
    assert 4 <= sweep._until_next() <= 6
