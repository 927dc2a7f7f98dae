"""Subtasks that a client creates while the parent's model call needs the parent's hold."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from rota.credits import ledger, verify
from rota.credits.money import of_cents
from rota.dev.stack import Stack
from rota.platform.db import Database
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person
from tests.tasks.world import uuid_of


@pytest.fixture(scope="module")
async def shop(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    """A service without allowances: an account has only its top-ups."""
    log = tmp_path_factory.mktemp("waiting") / "log"
    async with Runner.start(stack, scripted, "waiting", log, allowances={}) as started:
        yield started


@pytest.fixture
async def person(shop: Runner) -> AsyncIterator[Person]:
    """A person with 101 cents. After the test, the account's books must agree."""
    found = await shop.newcomer(tier="basic")
    db = Database(shop.service.database_url, pool_size=1)
    await db.open()
    async with db.write(found.user_id) as tx:
        await ledger.top_up(tx, of_cents(101), f"pi_{uuid4().hex}")
    yield found
    async with db.snapshot(found.user_id) as tx:
        assert await verify.problems(tx) == []
    await db.close()


async def busy_parent(
    shop: Runner, scripted: Scripted, person: Person
) -> tuple[dict[str, Any], str]:
    """A task that holds 100 cents and calls its model, and its script."""
    script = await scripted.script(says("Mine.", hold=True))
    task = await shop.begin(person, "director", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    return task, script


async def test_a_subtask_runs_if_the_account_covers_its_budget_but_not_the_longest_answer(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    task, script = await busy_parent(shop, scripted, person)
    # Its budget is one cent. The longest answer of its model would cost more.
    part = await scripted.script(says("A part."))
    child = await shop.begin(person, "frugal", part, parentTaskId=task["id"])
    await shop.until(person, child, "COMPLETED")
    await scripted.release(script)
    await shop.until(person, task, "COMPLETED")


async def test_a_waiting_subtask_looks_again_less_and_less_often_and_is_checked_once(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    task, script = await busy_parent(shop, scripted, person)
    part = await scripted.script(says("A part."))
    child = await shop.begin(person, "writer", part, parentTaskId=task["id"])
    async with shop.service.owner() as connection:
        for waited_s in (0, 10, 30, 900):
            await connection.execute(
                "UPDATE tasks SET started_at = now() - make_interval(secs => $2) WHERE id = $1",
                uuid_of(child),
                waited_s,
            )

            async def waits(seconds: float = min(waited_s, 55)) -> bool:
                return await _is_woken_after(connection, child, seconds)

            await until(waits)
        checks = "SELECT count(*) FROM outbox WHERE task_id = $1 AND kind = 'run.check'"
        assert await connection.fetchval(checks, uuid_of(child)) == 1
        await scripted.release(script)
        await shop.until(person, task, "COMPLETED")
        await _wake(connection, child, before_s=60)
    await shop.until(person, child, "COMPLETED")


async def _is_woken_after(connection: Any, task: dict[str, Any], seconds: float) -> bool:
    """Whether the task waits at least this long, and at most a minute. If not, it is woken."""
    await _wake(connection, task, before_s=seconds - 1)
    found = await connection.fetchval(
        """
        SELECT true FROM outbox WHERE task_id = $1 AND kind = 'run.nudge'
            AND due_at BETWEEN now() + make_interval(secs => $2 - 1) AND now() + interval '60 s'
        """,
        uuid_of(task),
        seconds,
    )
    return bool(found)


async def _wake(connection: Any, task: dict[str, Any], *, before_s: float) -> None:
    await connection.execute(
        """
        UPDATE outbox SET due_at = now() WHERE task_id = $1 AND kind = 'run.nudge'
            AND due_at BETWEEN now() AND now() + make_interval(secs => $2)
        """,
        uuid_of(task),
        before_s,
    )
