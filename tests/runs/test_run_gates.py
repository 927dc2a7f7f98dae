"""The run gate, and the texts of tasks: what was approved is what runs."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from tests.runs.gated_run import CATALOG, GatedRun, current_review, decide
from tests.runs.runner import shown
from tests.service import Service
from tests.tasks.world import create, newcomers, patch


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"run_gates_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, CATALOG)
        yield started


async def test_the_run_gate_shows_everything_that_is_decided(service: Service) -> None:
    [person] = await newcomers(service)
    task = await create(person, agent="operator", status="WAITING_APPROVAL", input="Do it.")
    review = (await person.get(f"/api/tasks/{task['id']}/review")).json()["review"]
    assert review["work"] == {
        "name": "A task",
        "description": None,
        "input": "Do it.",
        "agent": "operator",
        "version": 1,
        "model": "default",
        "budgetCents": 100,
        "outputSchema": None,
        "forkedFrom": None,
    }


async def test_the_text_that_was_approved_at_the_run_gate_is_the_text_that_runs(
    service: Service,
) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open(status="WAITING_APPROVAL", description="Harmless.")
        review = await run.review(run.one)

        async def change(**body: Any) -> int:
            response: httpx.Response = await patch(run.editor, run.task_id, **body)
            return response.status_code

        assert await change(name="Another") == 409
        assert await change(description="Harmful.") == 409
        assert await change(name="A task", priority=3) == 200
        assert (await decide(run, run.one, review)).status_code == 200
        assert await change(description="Harmful.") == 409  # PENDING after its gate.
        await run.begin()
        assert await change(description="Harmful.") == 409  # RUNNING.
        await run.fail()
        # The same text continues without a gate.
        assert (await retry(run, "failure"))["status"] == "PENDING"
        assert await change(description="Harmful.") == 409  # PENDING after the gate of run 1.
        run.run = 2
        await run.begin()
        await run.fail()
        assert await change(description="Harmful.") == 200
        assert (await retry(run, "failure"))["status"] == "WAITING_APPROVAL"
        stale = current_review(await decide(run, run.one, review))
        assert (stale["gate"], stale["state"]) == ("run", "pending")
        run.run = 3
        assert (await run.begin()).kind == "wait"
        assert (await decide(run, run.two, stale)).json()["task"]["status"] == "PENDING"
        assert (await run.begin()).kind == "think"


async def test_a_retry_from_the_start_opens_the_run_gate_again(service: Service) -> None:
    async with Composition(service.settings, pool_size=4) as parts:
        run = GatedRun(service, parts)
        await run.open(status="WAITING_APPROVAL")
        assert (await decide(run, run.one, await run.review(run.one))).status_code == 200
        await run.begin()
        await run.fail()
        assert (await retry(run, "start"))["status"] == "WAITING_APPROVAL"
        review = await run.review(run.one)
        assert (review["gate"], review["state"]) == ("run", "pending")
        run.run = 2
        assert (await run.begin()).kind == "wait"
        assert (await decide(run, run.one, review)).json()["task"]["status"] == "PENDING"
        assert (await run.begin()).kind == "think"


async def retry(run: GatedRun, start_at: str) -> dict[str, Any]:
    response = await run.editor.post(f"{run.path}/retry", {"from": start_at})
    task: dict[str, Any] = response.json()["task"]
    return task


async def test_a_pending_task_without_a_gate_can_still_be_renamed(service: Service) -> None:
    [person] = await newcomers(service)
    task = await create(person, agent="operator")
    assert (await patch(person, task["id"], name="Another")).status_code == 200


async def test_a_change_of_an_external_task_opens_a_new_review(service: Service) -> None:
    one, two = await newcomers(service, 2)
    task = await create(one, status="WAITING_APPROVAL", output="A draft.")
    path = f"/api/tasks/{task['id']}"
    first = (await one.get(f"{path}/review")).json()["review"]
    for body in ({"name": "Another"}, {"description": "More."}, {"output": "B"}, {"logs": "C"}):
        before = (await one.get(f"{path}/review")).json()["review"]
        assert (await patch(two, task["id"], **body)).status_code == 200
        response = await one.post(f"{path}/approve", {"review": shown(before)})
        newest = current_review(response)
        assert newest["number"] == before["number"] + 1
        assert newest["history"][0]["state"] == "cancelled"
        waits = ("requestedAt", "expiresAt")
        assert [newest[name] for name in waits] == [first[name] for name in waits]
    assert (await patch(two, task["id"], priority=4)).status_code == 200
    assert (await one.post(f"{path}/approve", {"review": shown(newest)})).status_code == 200
