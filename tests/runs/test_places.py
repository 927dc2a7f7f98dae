"""`maxConcurrent`: how many tasks of one agent an account works on at the same time."""

import asyncio
import random
from typing import Any

from tests.runs.runner import TERMINAL, Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.tasks.world import patch, uuid_of

AGENT, LIMIT = "narrow", 2


async def places(runner: Runner, person: Person) -> tuple[int, int]:
    """How many tasks of the account hold a place, and how many wait for one."""
    async with runner.service.owner() as connection:
        row = await connection.fetchrow(
            """
            SELECT count(*) FILTER (WHERE place = 'held') AS held,
                   count(*) FILTER (WHERE place = 'queued') AS queued
            FROM tasks WHERE account_id = $1
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
    await runner.worker.stop()
    await runner.worker.start()
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


async def test_places_are_never_lost_and_never_too_many(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    """Random tasks that ask, fail, end and are cancelled, with decisions at random times."""
    chance = random.Random(20261116)
    scripts = [
        await scripted.script(says("Done.")),
        await scripted.script(calls(("desk__send", {"ref": "random"})), says("Sent.")),
        await scripted.script(calls(("desk__lookup", {"ref": "random"})), says("Found.")),
        await scripted.script(says("", status=400, error={"message": "Refused."})),
    ]
    tasks: list[dict[str, Any]] = []
    for _ in range(60):
        what = chance.random()
        if what < 0.5:
            tasks.append(await runner.begin(person, AGENT, chance.choice(scripts)))
        elif what < 0.6 and tasks:
            await cancel(person, chance.choice(tasks))
        else:
            await decide_any(runner, person, chance)
        await check(runner, person)
        await asyncio.sleep(chance.random() / 20)

    async def rest() -> int:
        await decide_any(runner, person, chance)
        await check(runner, person)
        listed = (await person.get("/api/tasks?limit=100")).json()["tasks"]
        return sum(task["status"] not in TERMINAL for task in listed)

    await until(rest, lambda left: left == 0)
    assert await places(runner, person) == (0, 0)
    async with runner.service.owner() as connection:
        parked = await connection.fetchval(
            "SELECT count(*) FROM outbox WHERE task_id = ANY ($1) AND due_at = 'infinity'",
            [uuid_of(task) for task in tasks],
        )
    assert parked == 0


async def cancel(person: Person, task: dict[str, Any]) -> None:
    answer = await patch(person, task["id"], status="CANCELLED")
    assert answer.status_code in (200, 409)


async def decide_any(runner: Runner, person: Person, chance: random.Random) -> None:
    waiting = (await person.get("/api/tasks?status=WAITING_APPROVAL&limit=100")).json()["tasks"]
    if waiting:
        await runner.approve(person, chance.choice(waiting))
