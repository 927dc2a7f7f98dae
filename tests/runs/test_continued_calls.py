"""Calls without a result that a retry from failure continues: where the timeline and the receipt
have them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.runs.contracts import CallInput
from rota.runs.tool_call import Started
from tests.runs.gated_run import ASKED, CATALOG, GatedRun, decide
from tests.service import Service


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="continued_calls") as started:
        await sync(started.database_url, CATALOG)
        yield started


async def approved(run: GatedRun) -> None:
    """A run with a call that a person approved and that has not started."""
    await run.open()
    await run.begin()
    await run.answer(ASKED)
    await decide(run, run.one, await run.review(run.one))
    await run.begin()


async def continue_after_failure(run: GatedRun) -> None:
    await run.fail()
    response = await run.editor.post(f"{run.path}/retry", {"from": "failure"})
    assert response.status_code == 200, response.text
    run.run += 1
    await run.begin(resume=True)


async def shown_calls(run: GatedRun) -> list[tuple[Any, ...]]:
    """The tool calls of the timeline: run, state, and whether another task made them."""
    response = await run.editor.get(f"{run.path}/timeline")
    assert response.status_code == 200, response.text
    page = response.json()
    assert page["total"] == len(page["steps"])
    # The runs follow each other.
    assert [s["run"] for s in page["steps"]] == sorted(s["run"] for s in page["steps"])
    return [(s["run"], s["state"], s["copied"]) for s in page["steps"] if s["kind"] == "tool"]


async def signed_calls(run: GatedRun) -> list[tuple[Any, ...]]:
    receipt = (await run.editor.get(f"{run.path}/receipt")).json()["receipt"]
    return [(c["id"], c["state"], c["copied"]) for c in receipt["calls"] if c["kind"] == "tool"]


async def test_a_call_is_in_the_run_that_made_it(run: GatedRun) -> None:
    await approved(run)
    await continue_after_failure(run)
    assert await shown_calls(run) == [(2, "planned", False)]
    await run.act()
    assert len(run.client.made) == 1
    assert await shown_calls(run) == [(2, "finished", False)]
    assert await signed_calls(run) == [
        ("call-1-1-1", "planned", False),
        ("call-2-1-1", "finished", False),
    ]
    # Another retry keeps it as a call of the run before.
    await run.begin()
    await continue_after_failure(run)
    assert await shown_calls(run) == [(2, "finished", False)]
    assert (await signed_calls(run))[-1] == ("call-3-1-1", "finished", True)


async def test_a_call_that_was_made_twice_is_shown_twice(run: GatedRun) -> None:
    await approved(run)
    assert run.next is not None
    [late] = (await run.tool_caller.start(run.run_input, 1, [1])).values()
    assert isinstance(late, Started)

    async def meanwhile() -> None:
        run.client.meanwhile = None
        await continue_after_failure(run)
        await run.act()
        # A person has to decide whether to repeat it.
        assert await shown_calls(run) == [(2, "gated", False)]

    run.client.meanwhile = meanwhile
    await run.tool_caller.make(CallInput(run.run_input, 1, 1), late)
    assert await shown_calls(run) == [(1, "finished", False), (2, "gated", False)]
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await run.act()
    assert len(run.client.made) == 2
    assert await shown_calls(run) == [(1, "finished", False), (2, "finished", False)]


async def test_a_delegation_that_had_not_begun_is_in_the_run_that_delegates(run: GatedRun) -> None:
    await run.open("foreman")
    await run.begin()
    await run.answer({"agent": "operator", "name": "A part", "input": "Help."}, tool="delegate")
    await continue_after_failure(run)
    assert await shown_calls(run) == [(2, "planned", False)]
    await run.act()
    assert await shown_calls(run) == [(2, "delegated", False)]
