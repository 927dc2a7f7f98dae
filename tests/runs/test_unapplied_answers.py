"""Answers that are stored and charged, but that the run must not continue from."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from rota.platform.db import Database
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import RunInput
from rota.runs.run_context import RunContext
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, conversation, says
from tests.service import Person
from tests.tasks.world import uuid_of


@pytest.fixture
async def db(runner: Runner) -> AsyncIterator[Database]:
    database = Database(runner.service.database_url, pool_size=1)
    await database.open()
    yield database
    await database.close()


async def test_a_retry_after_a_filtered_answer_asks_the_model_again(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    name = f"filtered-{uuid4().hex[:8]}"
    script = await scripted.script(says("Half of it", finishReason="content_filter"), name=name)
    task = await runner.finish(person, "writer", script, "FAILED")
    assert task["error"]["code"] == "CONTENT_FILTERED"
    await scripted.script(says("Fine."), name=name)
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert task["output"] == "Fine."
    [asked] = await scripted.asked(script)
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert "Half of it" not in conversation(asked)


async def test_a_retry_does_not_continue_from_an_answer_that_came_after_its_run_had_failed(
    runner: Runner, scripted: Scripted, person: Person, db: Database
) -> None:
    ref = f"late-{uuid4().hex[:8]}"
    script = await scripted.script(
        calls(("desk__lookup", {"ref": ref}), text="I look.", hold=True), says("Fine.")
    )
    task = await runner.begin(person, "writer", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    context, loop = RunContext(db), AgentLoop(gate_time=timedelta(days=1))
    run_input = RunInput(f"acct_{person.user_id.hex}", task["id"], run=1)
    async with context.locked(run_input) as (tx, found):
        assert found is not None
        await loop.fail(tx, found, "RUN_FAILED", "A step failed too often.", retryable=True)
    await scripted.release(script)

    async def recorded() -> bool:
        return (await runner.timeline(person, task))[1] > 0

    await until(recorded)
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 2, 1: 1}
    assert len(await scripted.done(ref)) == 1
    assert task["usage"]["costUsd"] == "0.000060"


async def test_the_rejection_of_a_call_is_not_told_as_the_rejection_of_an_answer(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    name = f"refused-{uuid4().hex[:8]}"
    asks = calls(("desk__send", {"ref": name}))
    blocked = says("Half of it", finishReason="content_filter")
    script = await scripted.script(asks, blocked, name=name)
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    await runner.reject(person, task, resume=True, reason="No mail.")
    await runner.until(person, task, "FAILED")
    # An earlier version finished the step of a filtered answer.
    async with runner.service.owner() as connection:
        await connection.execute(
            "UPDATE steps SET state = 'finished', outcome = 'ok' WHERE task_id = $1 AND step = 2",
            uuid_of(task),
        )
    await scripted.script(asks, blocked, says("Fine."), name=name)
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    [asked] = await scripted.asked(script)
    assert "A person rejected this call. Reason: No mail." in conversation(asked)
    assert "A person rejected this answer" not in conversation(asked)
