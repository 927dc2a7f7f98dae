"""`maxConcurrent`: how many tasks of one agent an account works on at the same time."""

import random
from pathlib import Path
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.tasks import places as places_of_service
from tests.runs.runner import CATALOG, TERMINAL, Runner, until
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import Person
from tests.tasks.world import patch, uuid_of

AGENT, LIMIT = "narrow", 2


async def places(runner: Runner, person: Person) -> tuple[int, int]:
    """How many tasks of the account hold a place, and how many wait for one."""
    async with runner.service.owner() as connection:
        row = await connection.fetchrow(
            """
            SELECT count(*) FILTER (WHERE held) AS held,
                   count(*) FILTER (WHERE NOT held) AS queued
            FROM places WHERE account_id = $1
            """,
            person.user_id,
        )
    return row["held"], row["queued"]


async def check(runner: Runner, person: Person) -> None:
    """No more tasks than allowed work, and none waits while a place is free."""
    held, queued = await places(runner, person)
    assert held <= LIMIT
    assert queued == 0 or held == LIMIT


async def position(runner: Runner, person: Person, task: dict[str, Any]) -> int | None:
    answer = await person.get(f"/api/tasks/{task['id']}")
    found: int | None = answer.json()["task"]["queuePosition"]
    return found


async def test_tasks_over_the_limit_wait_in_order_and_start_when_others_end(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Done.", hold=True))
    tasks = [await runner.begin(person, AGENT, script) for _ in range(4)]
    urgent = await runner.begin(person, AGENT, script, priority=9)
    assert [task["queuePosition"] for task in tasks] == [None, None, 1, 2]
    assert urgent["queuePosition"] == 1
    assert [await position(runner, person, task) for task in tasks] == [None, None, 2, 3]
    listed = (await person.get("/api/tasks")).json()["tasks"]
    assert [task["queuePosition"] for task in listed] == [1, 3, 2, None, None]
    # Another agent, and another account, have their own places.
    other = await runner.newcomer()
    done = await scripted.script(says("Done."))
    await runner.finish(person, "writer", done)
    await runner.finish(other, AGENT, done)
    await until(lambda: scripted.asked(script), lambda asked: len(asked) == LIMIT)
    await patch(person, tasks[0]["id"], status="CANCELLED")
    await until(lambda: scripted.asked(script), lambda asked: len(asked) == LIMIT + 1)
    assert await position(runner, person, urgent) is None
    assert [await position(runner, person, task) for task in tasks[2:]] == [1, 2]
    await check(runner, person)
    # A queued task that is cancelled leaves the queue.
    await patch(person, tasks[2]["id"], status="CANCELLED")
    assert await position(runner, person, tasks[3]) == 1
    await scripted.release(script)
    for task in (tasks[1], tasks[3], urgent):
        await runner.until(person, task, "COMPLETED")
    assert await places(runner, person) == (0, 0)


async def test_a_run_that_waits_for_a_person_leaves_its_place_and_waits_for_another(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    asking = await scripted.script(calls(("desk__send", {"ref": "placed"})), says("Sent."))
    waiting = await runner.begin(person, AGENT, asking)
    await runner.until(person, waiting, "WAITING_APPROVAL")
    assert await places(runner, person) == (0, 0)
    holding = await scripted.script(says("Done.", hold=True))
    others = [await runner.begin(person, AGENT, holding) for _ in range(3)]
    await until(lambda: scripted.asked(holding), lambda asked: len(asked) == LIMIT)
    decided = await runner.approve(person, waiting)
    # It has started, so it comes before tasks that have not.
    assert (decided["task"]["status"], decided["task"]["queuePosition"]) == ("RUNNING", 1)
    assert await position(runner, person, others[2]) == 2
    # A worker that looks at the run meanwhile does nothing with it.
    async with runner.service.owner() as connection:
        await connection.execute(
            "INSERT INTO outbox (account_id, kind, task_id, payload) "
            """VALUES ($1, 'run.nudge', $2, '{"run": 1, "again": true}')""",
            person.user_id,
            uuid_of(waiting),
        )

        async def left() -> int:
            found: int = await connection.fetchval(
                "SELECT count(*) FROM outbox WHERE task_id = $1 AND due_at < 'infinity' "
                "AND kind = 'run.nudge'",
                uuid_of(waiting),
            )
            return found

        await until(left, lambda count: count == 0)
    # Its turn in Temporal comes before that of a task which is created now.
    await runner.finish(person, "writer", await scripted.script(says("Done.")))
    assert await scripted.done("placed") == []
    await check(runner, person)
    await scripted.release(holding)
    for task in (waiting, *others):
        await runner.until(person, task, "COMPLETED")
    assert len(await scripted.done("placed")) == 1
    assert await places(runner, person) == (0, 0)


async def test_a_retried_task_waits_for_a_place(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    failing = await scripted.script(says("", status=400, error={"message": "Refused."}))
    task = await runner.begin(person, AGENT, failing)
    await runner.until(person, task, "FAILED")
    holding = await scripted.script(says("Done.", hold=True))
    others = [await runner.begin(person, AGENT, holding) for _ in range(LIMIT)]
    await scripted.script(says("Better."), name=failing.removeprefix("script:"))
    answer = await person.post(f"/api/tasks/{task['id']}/retry")
    assert (answer.json()["task"]["status"], answer.json()["task"]["queuePosition"]) == (
        "PENDING",
        1,
    )
    await scripted.release(holding)
    for each in (task, *others):
        await runner.until(person, each, "COMPLETED")


async def test_a_changed_priority_moves_a_task_in_the_queue(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    holding = await scripted.script(says("Done.", hold=True))
    tasks = [await runner.begin(person, AGENT, holding) for _ in range(4)]
    answer = await patch(person, tasks[3]["id"], priority=5)
    assert answer.json()["task"]["queuePosition"] == 1
    assert await position(runner, person, tasks[2]) == 2
    await scripted.release(holding)
    for task in tasks:
        await runner.until(person, task, "COMPLETED")


async def test_subtasks_wait_for_a_place_too(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    holding = await scripted.script(says("Done.", hold=True))
    others = [await runner.begin(person, AGENT, holding) for _ in range(LIMIT)]
    done = await scripted.script(says("A part."))
    script = await scripted.script(calls(delegates(AGENT, done)), says("The whole."))
    parent = await runner.begin(person, "lead", script)

    async def children() -> list[dict[str, Any]]:
        answer = await person.get("/api/tasks", params={"parentTaskId": parent["id"]})
        found: list[dict[str, Any]] = answer.json()["tasks"]
        return found

    [child] = await until(children)
    assert (child["status"], child["queuePosition"]) == ("PENDING", 1)
    await scripted.release(holding)
    await runner.until(person, parent, "COMPLETED")
    for task in others:
        await runner.until(person, task, "COMPLETED")


async def test_a_raised_limit_admits_the_queue_and_a_retired_agent_keeps_its_limit(
    runner: Runner, scripted: Scripted, person: Person, tmp_path: Path
) -> None:
    for path in CATALOG.glob("*.md"):
        (tmp_path / path.name).write_text(path.read_text())
    file = tmp_path / f"{AGENT}.md"
    database = runner.service.database_url
    holding = await scripted.script(says("Done.", hold=True))
    tasks = [await runner.begin(person, AGENT, holding) for _ in range(6)]
    try:
        async with Composition(runner.service.settings, pool_size=2) as parts:
            file.unlink()
            await sync(database, tmp_path)
            await places_of_service.admit_all(parts.db)
            assert await places(runner, person) == (2, 4)
            text = (CATALOG / f"{AGENT}.md").read_text()
            file.write_text(text.replace("maxConcurrent: 2", "maxConcurrent: 3"))
            await sync(database, tmp_path)
            # Those that wait come before a new task.
            newest = await runner.begin(person, AGENT, holding)
            assert newest["queuePosition"] == 4
            assert await places(runner, person) == (3, 4)
            # A service of an earlier version ends a task without giving back its place.
            async with runner.service.owner() as connection:
                await connection.execute(
                    "UPDATE tasks SET status = 'CANCELLED' WHERE id = $1", uuid_of(tasks[0])
                )
            await places_of_service.admit_all(parts.db)
            assert await places(runner, person) == (3, 3)
            assert await position(runner, person, tasks[3]) is None
    finally:
        await sync(database, CATALOG)
        await scripted.release(holding)
    for task in (*tasks[1:], newest):
        await runner.until(person, task, "COMPLETED")


@pytest.mark.long
async def test_places_are_never_lost_and_never_too_many(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    """Random tasks that ask, fail, end and are cancelled, with decisions at random times."""
    chance = random.Random(20261116)
    scripts = [
        await scripted.script(says("Done.", delayS=0.1)),
        await scripted.script(calls(("desk__send", {"ref": "random"})), says("Sent.", delayS=0.1)),
        await scripted.script(
            calls(("desk__lookup", {"ref": "random"}), delayS=0.1), says("Found.", delayS=0.1)
        ),
        await scripted.script(says("", status=400, error={"message": "Refused."})),
    ]
    tasks: list[dict[str, Any]] = []
    for _ in range(60):
        what = chance.random()
        if what < 0.5:
            tasks.append(await runner.begin(person, AGENT, chance.choice(scripts)))
        elif what < 0.6 and tasks:
            await cancel_idle(person, chance)
        else:
            await decide_any(runner, person, chance)
        await check(runner, person)

    async def rest() -> int:
        await decide_any(runner, person, chance)
        await check(runner, person)
        listed = (await person.get("/api/tasks?limit=100")).json()["tasks"]
        return sum(task["status"] not in TERMINAL for task in listed)

    await until(rest, lambda left: left == 0)
    assert await places(runner, person) == (0, 0)
    calls_made = [call for script in scripts for call in await scripted.asked(script)]
    assert len(calls_made) >= len(tasks) // 2
    for call in calls_made:
        beside = [each for each in calls_made if each["at"] <= call["at"] < each["until"]]
        assert len(beside) <= LIMIT
    async with runner.service.owner() as connection:
        parked = await connection.fetchval(
            "SELECT count(*) FROM outbox WHERE task_id = ANY ($1) AND due_at = 'infinity'",
            [uuid_of(task) for task in tasks],
        )
    assert parked == 0


async def cancel_idle(person: Person, chance: random.Random) -> None:
    """Cancels a task that makes no call: a cancelled run frees its place before its call ends."""
    listed = (await person.get("/api/tasks?limit=100")).json()["tasks"]
    idle = [task for task in listed if task["queuePosition"] and not task["startedAt"]]
    if idle:
        answer = await patch(person, chance.choice(idle)["id"], status="CANCELLED")
        assert answer.status_code in (200, 409)


async def decide_any(runner: Runner, person: Person, chance: random.Random) -> None:
    waiting = (await person.get("/api/tasks?status=WAITING_APPROVAL&limit=100")).json()["tasks"]
    if waiting:
        await runner.approve(person, chance.choice(waiting))
