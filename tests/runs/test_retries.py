"""Retries: which version runs, which gates open, and what the quote of a retry says."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.runs.deadlines import Deadlines
from rota.tasks import queries
from tests.assertions import assert_error
from tests.runs.gated_run import GatedRun, decide
from tests.runs.runner import until
from tests.service import Service
from tests.tasks.world import create, newcomer, patch

AGENT = """\
---
name: {name}
displayName: Operator
description: An agent for tests of retries.
department: Tests
tier: 3
tags: [test]
premium: false
requiredTier: {required}
model: default
tools: ["peer/*"]
describe: {{peer/send: "{sentence}"}}
approval: {{run: {run}, tools: writes, output: {output}}}
budgetCents: {budget}
maxSteps: 20
---
Follow the script.
"""
FIRST = {"budget": 100, "sentence": "Send {text}", "output": "false"}
SECOND = {"budget": 250, "sentence": "Send {text} to {recipient}", "output": "true"}


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"retries_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        yield started


async def publish(service: Service, folder: Path, name: str, **fields: Any) -> None:
    """Makes an agent the whole catalog."""
    values = {"name": name, "required": "BASIC", "run": "false", **FIRST, **fields}
    (folder / "agent.md").write_text(AGENT.format(**values))
    await sync(service.database_url, folder)


async def failed(run: GatedRun, agent: str) -> None:
    """A run that has made one approved call, for 20 micro-dollars, and then fails."""
    await run.open(agent)
    await continued(run)


async def continued(run: GatedRun) -> None:
    await run.begin()
    await run.answer({"text": "hello"})
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await run.act()
    await run.write("UPDATE steps SET cost_micros = 20 WHERE account_id = $1 AND kind = 'model'")
    await run.fail()


async def quote(run: GatedRun) -> dict[str, Any]:
    response = await run.editor.get(f"{run.path}/retry")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["retry"]
    return found


async def retry(run: GatedRun, start_at: str) -> dict[str, Any]:
    response = await run.editor.post(f"{run.path}/retry", {"from": start_at})
    assert response.status_code == 200, response.text
    run.run += 1
    task: dict[str, Any] = response.json()["task"]
    return task


async def version(run: GatedRun) -> int:
    async with run.service.owner() as connection:
        found: int = await connection.fetchval(
            "SELECT agent_version FROM tasks WHERE account_id = $1", run.account_id
        )
    return found


async def test_a_retry_from_failure_keeps_version_and_approvals_and_one_from_the_start_neither(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "keeper")
    await failed(run, "keeper")
    await publish(run.service, tmp_path, "keeper", **SECOND)
    start, failure = (await quote(run))["options"]
    assert failure == {
        "from": "failure",
        "version": 1,
        "keptSteps": 2,
        "repeatedSteps": 0,
        "keptCostUsd": "0.000020",
        "maximumCostUsd": "1.000000",
        # Also those that the newest version asks for.
        "opensGates": ["tool", "output"],
        "textChanged": False,
    }
    assert start == {
        "from": "start",
        "version": 2,
        "keptSteps": 0,
        "repeatedSteps": 2,
        "keptCostUsd": "0.000000",
        "maximumCostUsd": "2.500000",
        "opensGates": ["tool", "output"],
        "textChanged": False,
    }

    assert (await retry(run, "failure"))["usage"]["budgetUsd"] == "1.000000"
    assert await version(run) == 1
    next_step = await run.begin(resume=True)
    assert (next_step.kind, next_step.step) == ("think", 2)
    assert len(run.client.made) == 1
    await run.fail()
    # The kept steps were paid for in the first run.
    [_, failure] = (await quote(run))["options"]
    assert (failure["keptSteps"], failure["keptCostUsd"]) == (2, "0.000020")

    assert (await retry(run, "start"))["usage"]["budgetUsd"] == "2.500000"
    assert await version(run) == 2
    await run.begin()
    assert (await run.answer({"text": "hello"})).kind == "wait"
    assert (await run.review(run.one))["gate"] == "tool"
    assert len(run.client.made) == 1


async def ended_before_it_began(run: GatedRun) -> None:
    """The run fails while it waits for a worker or at its gate, as it does at its deadline."""
    async with run.parts.db.write(run.account_id) as tx:
        task = await queries.find_for_change(tx, (await run.context_task(tx)).id)
        assert task is not None
        deadlines = Deadlines(run.context, run.loop)
        await deadlines.fail(tx, task, "RUN_FAILED", "It failed.", reason="It failed.")


async def test_a_retry_from_failure_keeps_the_steps_of_the_last_run_that_began(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "patient")
    await failed(run, "patient")
    for _ in range(2):
        await retry(run, "failure")
        await ended_before_it_began(run)
    start, failure = (await quote(run))["options"]
    assert (failure["keptSteps"], failure["keptCostUsd"]) == (2, "0.000020")
    assert (start["keptSteps"], start["repeatedSteps"]) == (0, 2)
    await retry(run, "failure")
    next_step = await run.begin(resume=True)
    assert (next_step.kind, next_step.step) == ("think", 2)
    [kept] = await run.tool_rows()
    assert (kept.planned_run, kept.copied) == (1, True)
    await run.fail()

    # Nothing from before a retry from the start is kept, even if that run has not begun.
    await retry(run, "start")
    await ended_before_it_began(run)
    _, failure = (await quote(run))["options"]
    assert (failure["keptSteps"], failure["repeatedSteps"]) == (0, 0)
    await retry(run, "failure")
    next_step = await run.begin(resume=True)
    assert (next_step.kind, next_step.step) == ("think", 1)


async def test_a_summary_has_the_sentence_of_the_version_that_runs(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "describer")
    await run.open("describer")
    await run.begin()
    with capture_logs() as logs:
        await run.answer({"text": "hello"})
    assert not [entry for entry in logs if entry["event"] == "describe_argument_unknown"]
    await publish(run.service, tmp_path, "describer", **SECOND)
    review = await run.review(run.one)
    assert [item["summary"] for item in review["items"]] == ["Send hello"]
    await run.fail()
    await decide(run, run.one, review)
    await run.fail()
    await retry(run, "start")
    await run.begin()
    with capture_logs() as logs:
        await run.answer({"text": "hello"})
    [warning] = [entry for entry in logs if entry["event"] == "describe_argument_unknown"]
    assert (warning["tool"], warning["arguments"]) == ("peer/send", ["recipient"])
    review = await run.review(run.one)
    assert [item["summary"] for item in review["items"]] == ["Send (text: hello)"]
    assert [item["summary"] for item in review["history"][0]["items"]] == ["Send hello"]


async def test_the_quote_says_when_the_run_gate_opens(run: GatedRun, tmp_path: Path) -> None:
    await publish(run.service, tmp_path, "gated", run="true")
    await run.open("gated")
    await decide(run, run.one, await run.review(run.one))
    await continued(run)
    start, failure = (await quote(run))["options"]
    assert (start["opensGates"], failure["opensGates"]) == (["run", "tool"], ["tool"])
    assert (start["textChanged"], failure["textChanged"]) == (False, False)
    assert (await patch(run.editor, run.task_id, name="Another")).status_code == 200
    start, failure = (await quote(run))["options"]
    assert (start["opensGates"], failure["opensGates"]) == (["run", "tool"], ["run", "tool"])
    assert (start["textChanged"], failure["textChanged"]) == (True, True)
    assert (await retry(run, "failure"))["status"] == "WAITING_APPROVAL"


async def test_a_newer_version_that_is_locked_leaves_only_the_retry_from_failure(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "locked")
    await failed(run, "locked")
    await run.write("UPDATE accounts SET tier = 'basic' WHERE id = $1")
    await publish(run.service, tmp_path, "locked", required="ENTERPRISE")
    # The tier of a key is cached for a moment.
    found = await until(lambda: quote(run), lambda seen: len(seen["options"]) < 2)
    assert (found["available"], found["reason"]) == (True, None)
    assert [option["from"] for option in found["options"]] == ["failure"]


async def test_a_retry_from_failure_asks_what_the_newest_version_asks(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "stricter")
    await failed(run, "stricter")
    await publish(run.service, tmp_path, "stricter", run="true", **SECOND)
    _, failure = (await quote(run))["options"]
    assert failure["opensGates"] == ["run", "tool", "output"]
    assert (await retry(run, "failure"))["status"] == "WAITING_APPROVAL"
    await decide(run, run.one, await run.review(run.one))
    await run.begin(resume=True)
    await run.complete("Done.")
    assert (await run.review(run.one))["gate"] == "output"
    assert await version(run) == 1


async def test_a_retry_from_the_start_asks_only_what_the_newest_version_asks(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "relaxed")
    await failed(run, "relaxed")
    await publish(run.service, tmp_path, "relaxed", **SECOND)
    await retry(run, "failure")
    await run.begin(resume=True)
    await run.fail()
    await publish(run.service, tmp_path, "relaxed", budget=300)
    start, failure = (await quote(run))["options"]
    assert failure["opensGates"] == ["tool", "output"]
    assert (start["version"], start["opensGates"]) == (3, ["tool"])
    await retry(run, "start")
    await run.begin()
    await run.complete("Done.")
    assert (await run.task())["status"] == "COMPLETED"


async def test_a_subtask_that_starts_again_inherits_from_its_parent(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "inheriting", output="true")
    await run.open("inheriting")
    parent = run.task_id
    await publish(run.service, tmp_path, "inheriting", budget=300)
    run.task_id = (await create(run.editor, agent="inheriting", parentTaskId=parent))["id"]
    await continued(run)
    start, _ = (await quote(run))["options"]
    assert start["opensGates"] == ["tool", "output"]


@pytest.mark.parametrize("between", [False, True])
async def test_a_subtask_that_goes_on_asks_what_the_tasks_above_require_now(
    run: GatedRun, tmp_path: Path, between: bool
) -> None:
    values = {"name": "below", "required": "BASIC", "run": "false", **FIRST}
    (tmp_path / "below.md").write_text(AGENT.format(**values))
    await publish(run.service, tmp_path, "above")
    await run.open("above")
    parent = run.task_id
    # A task that stays as it was may be between the two.
    under = (await create(run.editor, parentTaskId=parent))["id"] if between else parent
    child = (await create(run.editor, agent="below", parentTaskId=under))["id"]
    run.task_id = child
    await continued(run)
    run.task_id = parent
    await run.begin()
    await run.fail()
    await publish(run.service, tmp_path, "above", **SECOND)
    await retry(run, "failure")

    run.task_id, run.run = child, 1
    _, failure = (await quote(run))["options"]
    assert failure["opensGates"] == ["tool", "output"]
    await retry(run, "failure")
    await run.begin(resume=True)
    await run.complete("Done.")
    assert (await run.review(run.one))["gate"] == "output"


async def test_a_task_of_a_retired_agent_cannot_be_retried(run: GatedRun, tmp_path: Path) -> None:
    await publish(run.service, tmp_path, "retired")
    await failed(run, "retired")
    await publish(run.service, tmp_path, "successor")
    quoted = await quote(run)
    assert (quoted["available"], quoted["options"]) == (False, [])
    assert "was removed from the catalog" in quoted["reason"]
    for start_at in ("start", "failure"):
        refused = await run.editor.post(f"{run.path}/retry", {"from": start_at})
        assert (refused.status_code, refused.json()["error"]["message"]) == (409, quoted["reason"])
    # The agent returns, and so do its tasks.
    await publish(run.service, tmp_path, "retired")
    await retry(run, "failure")


async def test_a_quote_says_why_a_task_cannot_be_retried(service: Service) -> None:
    person = await newcomer(service)
    task = await create(person)
    path = f"/api/tasks/{task['id']}/retry"
    assert (await person.get(path)).json() == {
        "retry": {
            "available": False,
            "reason": "A task that is PENDING cannot become PENDING. Only a failed task can be "
            "retried.",
            "options": [],
        }
    }
    await patch(person, task["id"], status="FAILED")
    # Its client runs it, so there is nothing to keep or to pay.
    quoted = (await person.get(path)).json()["retry"]
    assert quoted == {"available": True, "reason": None, "options": []}
    stranger = await newcomer(service)
    assert_error(await stranger.get(path), 404, "NOT_FOUND")
