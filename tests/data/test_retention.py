"""Retention deletes exactly what is old, and everything else still agrees."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asyncpg import LockNotAvailableError

from rota.audit import checkpoints, export, heads
from rota.audit import queries as audit
from rota.data import retention
from rota.platform import clock
from rota.platform.signatures import NotSigned
from tests.audit.world import rota
from tests.data.world import DAYS, World
from tests.service import Person
from tests.tasks.world import create, patch, uuid_of


async def set_days(person: Person, **days: int | None) -> Any:
    body = {
        "approvals": {"secondPerson": False, "approvers": "named"},
        "retention": days,
    }
    return await person.request("PUT", "/api/policies", json=body)


async def ended(person: Person, **body: Any) -> dict[str, Any]:
    return await create(person, status="COMPLETED", **body)


def later(moment: datetime) -> datetime:
    """When what is older than `moment` is too old."""
    return moment + timedelta(days=DAYS)


async def ids_of(person: Person) -> set[str]:
    response = await person.get("/api/tasks?limit=100")
    found = response.json()
    assert found["total"] == len(found["tasks"])
    return {task["id"] for task in found["tasks"]}


async def dispute(world: World, person: Person) -> None:
    async with world.service.owner() as connection:
        await connection.execute(
            """
            INSERT INTO entries (account_id, id, kind, key, at, outside, owed, reference)
            VALUES ($1, gen_random_uuid(), 'dispute', 'd', now(), 5, -5, 'pi_1')
            """,
            person.user_id,
        )


async def test_only_old_finished_tasks_go_and_all_totals_stay_right(world: World) -> None:
    person = await world.service.sign_in()
    account = person.user_id
    assert (await set_days(person, tasks=DAYS)).status_code == 200
    paid = await world.run_task(person, account)
    old = await ended(person, projectId="p1")
    waiting = await create(person, status="WAITING_APPROVAL")
    unfinished = await create(person)
    usage = (await person.get("/api/usage")).json()
    balance = (await person.get("/api/credits/balance")).json()
    moment = clock.now()
    new = await ended(person, projectId="p1")

    deleted = await world.retention(later(moment)).apply(account)

    assert deleted["tasks"] >= 3
    assert await ids_of(person) == {waiting["id"], unfinished["id"], new["id"]}
    for gone in (paid, old):
        assert (await person.get(f"/api/tasks/{gone['id']}")).status_code == 404
    found = (await person.get("/api/tasks?projectId=p1")).json()
    assert found["total"] == 1
    assert await world.rows("steps", account) == 0
    assert (await person.get("/api/usage")).json() == usage
    assert (await person.get("/api/credits/balance")).json() == balance
    shown = (await person.get("/api/credits/transactions")).json()
    assert {each["kind"] for each in shown["transactions"]} >= {"hold", "charge", "release"}
    assert await world.ledger_problems(account) == []
    assert await world.audit_problems(account) == []
    assert await world.retention(later(moment)).apply(account) == {}


async def test_a_parent_goes_after_its_subtasks_and_not_before_an_open_one(
    world_a: World,
) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    parent = await create(person)
    child = await create(person, parentTaskId=parent["id"], status="COMPLETED")
    other = await create(person)
    below = await create(person, parentTaskId=other["id"])
    await patch(person, other["id"], status="COMPLETED")
    await world_a.retention(later(clock.now())).apply(person.user_id)
    # An open parent keeps its subtasks, and an open subtask its parent.
    assert await ids_of(person) == {each["id"] for each in (parent, child, other, below)}
    for each in (parent, below):
        await patch(person, each["id"], status="COMPLETED")
    await world_a.retention(later(clock.now())).apply(person.user_id)
    assert await ids_of(person) == set()


async def test_what_was_forked_or_a_schedule_shows_is_kept(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    origin, fork, scheduled, free = [await ended(person) for _ in range(4)]
    # The fork has ended, but not its own fork.
    open_fork = await create(person)
    schedule = await person.post(
        "/api/schedules",
        {
            "name": "Weekly",
            "cron": "0 9 * * 1",
            "timeZone": "UTC",
            "task": {"name": "Report"},
            "overlap": "skip",
        },
    )
    assert schedule.status_code == 201, schedule.text
    async with world_a.service.owner() as connection:
        for forked_from, task in ((origin, fork), (fork, open_fork)):
            await connection.execute(
                "UPDATE tasks SET forked_from = $2, forked_run = 1, forked_step = 1 "
                "WHERE account_id = $1 AND id = $3",
                person.user_id,
                uuid_of(forked_from),
                uuid_of(task),
            )
        await connection.execute(
            "INSERT INTO schedule_tasks SELECT account_id, id, $2 FROM schedules "
            "WHERE account_id = $1",
            person.user_id,
            uuid_of(scheduled),
        )
    await world_a.retention(later(clock.now())).apply(person.user_id)
    assert await ids_of(person) == {each["id"] for each in (origin, fork, open_fork, scheduled)}
    assert free["id"] not in await ids_of(person)
    await patch(person, open_fork["id"], status="COMPLETED")
    await world_a.retention(later(clock.now())).apply(person.user_id)
    assert await ids_of(person) == {scheduled["id"]}


async def test_steps_go_before_their_tasks_and_the_ledger_agrees(world: World) -> None:
    person = await world.service.sign_in()
    account = person.user_id
    await set_days(person, steps=DAYS)
    task = await world.run_task(person, account)
    still_open = await create(person, agent="bug-triager")
    await world.pay_step(account, uuid_of(still_open))
    deleted = await world.retention(later(clock.now())).apply(account)
    assert deleted == {"steps": 1}
    assert (await person.get(f"/api/tasks/{task['id']}")).status_code == 200
    timeline = await person.get(f"/api/tasks/{task['id']}/timeline")
    assert timeline.json()["total"] == 0
    assert await world.rows("steps", account) == 1
    assert await world.ledger_problems(account) == []
    # The open task is looked at again when it has ended.
    await patch(person, still_open["id"], status="CANCELLED")
    assert await world.retention(later(clock.now())).apply(account) == {"steps": 1}
    assert await world.ledger_problems(account) == []
    # A step that is missing although nothing deleted it is still found.
    other = await world.service.sign_in()
    await world.run_task(other, other.user_id)
    async with world.service.owner() as connection:
        await connection.execute("DELETE FROM steps WHERE account_id = $1", other.user_id)
    assert len(await world.ledger_problems(other.user_id)) == 1


async def test_steps_go_in_small_pieces_also_those_of_a_retry(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS", 2)
    person = await world_a.service.sign_in()
    account = person.user_id
    await set_days(person, steps=DAYS)
    tasks = [await world_a.run_task(person, account) for _ in range(2)]

    async def add_steps(task: dict[str, Any], run: int) -> None:
        async with world_a.service.owner() as connection:
            await connection.execute(
                """
                INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name)
                SELECT $1, $2, $3, number, 0, 'tool', 'finished', 'tool'
                FROM generate_series(2, 6) AS number
                """,
                account,
                uuid_of(task),
                run,
            )

    for task in tasks:
        await add_steps(task, 1)
    assert (await world_a.retention(later(clock.now())).apply(account))["steps"] == 12
    await add_steps(tasks[0], 2)
    assert (await world_a.retention(later(clock.now())).apply(account))["steps"] == 5
    assert await world_a.rows("steps", account) == 0


async def test_a_run_does_not_continue_after_steps_that_are_gone(world_a: World) -> None:
    person = await world_a.service.sign_in()
    account = person.user_id
    await set_days(person, steps=DAYS)
    task = await world_a.run_task(person, account)
    async with world_a.service.owner() as connection:
        await connection.execute("UPDATE tasks SET status = 'FAILED' WHERE id = $1", uuid_of(task))
    path = f"/api/tasks/{task['id']}/retry"
    await world_a.retention(later(clock.now())).apply(account)
    assert await world_a.rows("steps", account) == 0
    refused = await person.post(path, {"from": "failure"})
    assert refused.status_code == 409, refused.text
    assert "Retry from the start" in refused.json()["error"]["message"]
    again = await person.post(path, {"from": "start"})
    assert again.status_code == 200, again.text


async def test_a_fork_is_not_retried_without_the_steps_that_it_began_with(world_a: World) -> None:
    person = await world_a.service.sign_in()
    account = person.user_id
    origin = await world_a.run_task(person, account)
    response = await person.post(f"/api/tasks/{origin['id']}/fork", {"fromStep": 0})
    assert response.status_code == 201, response.text
    fork = response.json()["task"]
    await patch(person, fork["id"], status="CANCELLED")
    async with world_a.service.owner() as connection:
        await connection.execute(
            "UPDATE tasks SET status = 'FAILED', forked_step = 1 WHERE id = $1", uuid_of(fork)
        )
    await set_days(person, steps=DAYS)
    await world_a.retention(later(clock.now())).apply(account)
    retry = (await person.get(f"/api/tasks/{fork['id']}/retry")).json()["retry"]
    assert "Create a new task" in retry["reason"], retry
    for start in ("failure", "start"):
        refused = await person.post(f"/api/tasks/{fork['id']}/retry", {"from": start})
        assert refused.status_code == 409, refused.text
        assert refused.json()["error"]["message"] == retry["reason"]


async def test_a_piece_whose_commit_fails_is_repeated(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "TASKS", 1)
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    for _ in range(3):
        await ended(person)
    db, failures = world_a.parts.db, 0
    real = db.removal

    @contextlib.asynccontextmanager
    async def failing(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        nonlocal failures
        async with real(*arguments, **options) as tx:
            yield tx
            if failures % 2:
                failures += 1
                raise LockNotAvailableError
            failures += 1

    monkeypatch.setattr(db, "removal", failing)
    old_tasks = retention._OldTasks(later(clock.now()))
    await world_a.retention()._repeat(person.user_id, old_tasks)
    assert failures > 3
    assert await ids_of(person) == set()


async def test_old_events_go_and_the_list_counts_those_that_are_left(world: World) -> None:
    person = await world.service.sign_in()
    await set_days(person, events=DAYS)
    for _ in range(3):
        await ended(person)
    moment = clock.now()
    await ended(person)
    before = (await person.get("/api/events", headers={"Accept": "application/json"})).json()
    deleted = await world.retention(later(moment)).apply(person.user_id)
    after = (await person.get("/api/events?limit=1", headers={"Accept": "application/json"})).json()
    assert after["lastSequence"] == before["lastSequence"]
    assert after["total"] == before["total"] - deleted["events"] == 2
    assert after["events"][0]["sequence"] == before["lastSequence"] - 1


async def test_events_of_a_run_in_progress_stay(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await create(person, agent="bug-triager")
    await set_days(person, events=DAYS)
    await ended(person)
    total = await world_a.rows("events", person.user_id)
    deleted = await world_a.retention(later(clock.now())).apply(person.user_id)
    # Only what is older than the run, such as the sign-in.
    assert await world_a.rows("events", person.user_id) == total - deleted["events"] >= 3


async def test_the_trail_is_cut_behind_a_signed_checkpoint(world: World, tmp_path: Path) -> None:
    person = await world.service.sign_in()
    account = person.user_id
    await set_days(person, audit=DAYS)
    oldest = (await person.get("/api/audit")).json()["head"]
    task = await ended(person)
    moment = clock.now()
    await patch(person, task["id"], priority=5)
    early = (await person.get("/api/audit")).json()["head"]
    deleted = await world.retention(later(moment)).apply(account)
    assert deleted["audit"] >= 3
    assert await world.audit_problems(account) == []
    keys = list(world.parts.signer.public_keys())
    async with world.parts.db.snapshot(account) as tx:
        found = await checkpoints.find(tx)
        stored = await audit.after(tx, 0, 100)
    assert found is not None
    assert found.sequence == stored[0].sequence - 1 == deleted["audit"]
    # Neither passes for the other.
    with pytest.raises(NotSigned):
        heads.read(found.signed, keys)
    with pytest.raises(NotSigned):
        checkpoints.read(early["jws"], keys)
    # The receipt of a task whose first entries are gone can still be verified.
    receipt = await person.get(f"/api/tasks/{task['id']}/receipt")
    assert receipt.status_code == 200
    # An export begins with the checkpoint.
    lines = (
        await person.get("/api/audit", headers={"Accept": "application/x-ndjson"})
    ).content.splitlines()
    head, problems = export.check(lines, keys)
    assert problems == []
    with pytest.raises(export.NotAnExport):
        export.check([lines[0].replace(b'"ey', b'"xy'), *lines[1:]], keys)
    _, problems = export.check(lines[1:], keys)
    assert "missing" in problems[0].description
    assert head.account_id == account
    verify = ("admin", "audit", "verify")
    checked = await rota(world.service, *verify)
    assert checked.exit_code == 0, checked.output
    # A head from before the checkpoint is not compared, and that is not silent.
    kept = tmp_path / "kept.jws"
    kept.write_text(oldest["jws"])
    trail = tmp_path / "trail.ndjson"
    trail.write_bytes(b"\n".join(lines))
    for options in ((), ("--file", str(trail))):
        checked = await rota(world.service, *verify, "--head", str(kept), *options, "--json")
        [problem] = json.loads(checked.stdout)["problems"]
        assert (checked.exit_code, problem["entry"]) == (1, oldest["sequence"])
        assert "cannot be compared" in problem["problem"]
    kept.write_text(early["jws"])
    checked = await rota(world.service, *verify, "--head", str(kept))
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM audit_checkpoints WHERE account_id = $1",
        "UPDATE audit_checkpoints SET hash = sha256(hash) WHERE account_id = $1",
        "UPDATE audit_checkpoints SET sequence = sequence + 1 WHERE account_id = $1",
        "DELETE FROM audit_entries WHERE account_id = $1 AND sequence = (SELECT min(sequence) "
        "FROM audit_entries WHERE account_id = $1)",
        "UPDATE audit_checkpoints SET signed = signed || 'x' WHERE account_id = $1",
    ],
)
async def test_a_trail_that_was_shortened_otherwise_is_found(world_a: World, damage: str) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, audit=DAYS)
    moment = clock.now()
    for _ in range(2):
        await ended(person)
    await world_a.retention(later(moment)).apply(person.user_id)
    async with world_a.service.owner() as connection:
        await connection.execute(damage, person.user_id)
    assert await world_a.audit_problems(person.user_id)


async def test_requests_go_on_while_retention_deletes(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS, events=DAYS)
    for _ in range(40):
        await ended(person)
    moment = clock.now()
    deleting = asyncio.create_task(world_a.retention(later(moment)).apply(person.user_id))
    new = await asyncio.gather(*[ended(person) for _ in range(20)])
    deleted = await deleting
    assert deleted["tasks"] >= 40
    assert await ids_of(person) == {each["id"] for each in new}
    assert await world_a.ledger_problems(person.user_id) == []


async def test_an_account_in_dispute_keeps_everything(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    await ended(person)
    await dispute(world_a, person)
    assert await world_a.retention(later(clock.now())).apply(person.user_id) == {}
    assert len(await ids_of(person)) == 1
