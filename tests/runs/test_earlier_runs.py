"""Runs that an earlier version started go on as they began: a call of Temporal for every step."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.dev.stack import Stack
from rota.runs.contracts import TASK_QUEUE, RunInput
from rota.runs.earlier_workflow import Run
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import Person


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("earlier") / "log"
    async with Runner.start(stack, scripted, "earlier", log, run_heartbeat_s=3.0) as started:
        yield started
    print(log.read_text()[-4000:])


async def test_runs_of_an_earlier_version_go_on_and_are_not_started_twice(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("earlier-away", {"unavailable": True})
    part = await scripted.script(says("The part is done."))
    held = await scripted.script(says("Never.", hold=True))
    scripts = {
        "plain": ("writer", [calls(("desk__lookup", {"ref": "earlier"})), says("Done.")]),
        "delegating": ("lead", [calls(delegates("writer", part)), says("With help.")]),
        "asking": ("careful", [calls(("desk__send", {"ref": "earlier-ask"})), says("Sent.")]),
        "tool away": ("writer", [calls(("desk__send", {"ref": "earlier-away"})), says("Sent.")]),
        "model down": ("writer", [says("Answered.", failures=[{"status": 503}])]),
        "refused": ("writer", [{"status": 401}]),
    }
    tasks: dict[str, dict[str, Any]] = {}
    await runner.worker.stop()
    try:
        for name, (agent, turns) in scripts.items():
            script = await scripted.script(*turns)
            tasks[name] = await runner.begin(person, agent, script)
        tasks["cancelled"] = await runner.begin(person, "writer", held)
        for task in tasks.values():
            await runner.temporal.start_workflow(
                Run.run,
                RunInput(f"acct_{person.user_id.hex}", task["id"], run=1, heartbeat_s=3.0),
                id=f"run/{task['id']}/1",
                task_queue=TASK_QUEUE,
            )
    finally:
        await runner.worker.start()
    await runner.waiting(person, tasks["asking"], "tool")
    await runner.approve(person, tasks["asking"])
    await until(lambda: scripted.asked(held))
    await runner.cancel(person, tasks["cancelled"])
    await runner.until(person, tasks["refused"], "FAILED")
    for name in ("plain", "delegating", "asking", "tool away", "model down"):
        task = await runner.until(person, tasks[name], "COMPLETED")
        handle = runner.temporal.get_workflow_handle(f"run/{task['id']}/1")
        assert (await handle.describe()).workflow_type == "run", name
    for ref in ("earlier", "earlier-ask", "earlier-away"):
        assert len(await scripted.done(ref)) == 1
    # The provider bills the call of the cancelled task, so it is charged when it ends.
    await runner.history_ends(tasks["cancelled"])
    await scripted.release(held)
    await until(
        lambda: runner.task(person, tasks["cancelled"]["id"]),
        lambda seen: seen["usage"]["steps"] == 1,
    )
