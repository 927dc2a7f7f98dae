"""Forks: what they copy from a task, what they do again, and what a person must approve."""

from typing import Any

from rota.agents.sync import sync
from tests.assertions import assert_error
from tests.runs.runner import CATALOG, Runner, shown
from tests.runs.scripted import Scripted, calls, conversation, delegates, says
from tests.runs.test_deadlines import soon
from tests.service import Person
from tests.tasks.world import patch, uuid_of

REFUSED = {"status": 401, "error": {"message": "No such key.", "code": "invalid_api_key"}}


async def fork(person: Person, task: dict[str, Any], **body: Any) -> dict[str, Any]:
    response = await person.post(f"/api/tasks/{task['id']}/fork", body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()["task"]
    return found


async def charged(runner: Runner, person: Person, task: dict[str, Any]) -> list[tuple[int, str]]:
    """The step and the model of each charge of a task."""
    async with runner.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT step, model FROM entries WHERE account_id = $1 AND task_id = $2 "
            "AND kind = 'charge' ORDER BY step",
            person.user_id,
            uuid_of(task),
        )
    return [(row["step"], row["model"]) for row in rows]


async def test_a_fork_takes_finished_steps_without_making_or_charging_them_again(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "copied-1"})),
        calls(("desk__lookup", {"ref": "copied-2"})),
        says("The first answer."),
    )
    original = await runner.finish(person, "writer", script, projectId="forks", priority=3)
    assert len(await scripted.done("copied-1")) == 1
    made = await fork(person, original, fromStep=2, model="strong")
    assert made["id"] != original["id"]
    assert made["forkedFrom"] == {"taskId": original["id"], "run": 1, "step": 2}
    assert (made["model"], made["agentVersion"]) == ("strong", original["agentVersion"])
    for field in ("name", "input", "assignedAgent", "projectId", "priority", "description"):
        assert made[field] == original[field]
    ended = await runner.until(person, made, "COMPLETED")
    # The model read the recorded results, and was asked once more.
    assert await scripted.count(script) == {0: 1, 1: 1, 2: 2}
    asked = (await scripted.asked(script))[-1]
    assert conversation(asked) == conversation((await scripted.asked(script))[2])
    assert len(await scripted.done("copied-1")) == len(await scripted.done("copied-2")) == 1
    assert (await scripted.asked(script))[-1]["model"] == "scripted-strong"
    assert await charged(runner, person, ended) == [(3, "scripted-strong")]
    assert ended["usage"] | {"run": 1, "steps": 1, "costUsd": "0.000040"} == ended["usage"]
    steps, total = await runner.timeline(person, ended)
    assert total == 5
    assert [(s["step"], s["kind"], s["copied"]) for s in steps] == [
        (1, "model", True),
        (1, "tool", True),
        (2, "model", True),
        (2, "tool", True),
        (3, "model", False),
    ]
    before, _ = await runner.timeline(person, original)
    assert [s["result"] for s in steps[:4]] == [s["result"] for s in before[:4]]
    assert {s["costUsd"] for s in steps[:4]} == {"0.000000"}
    assert await runner.events(person, ended) == [
        "task.created", "task.forked", "task.started", "task.completed",
    ]  # fmt: skip
    # Nothing of the original has changed.
    assert await runner.task(person, original["id"]) == original
    assert await runner.events(person, original) == [
        "task.created", "task.started", "task.completed",
    ]  # fmt: skip


async def test_every_writing_call_of_a_fork_waits_for_a_person_whatever_its_agent_says(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "read-1"})),
        calls(("desk__send", {"ref": "gated-1"}), ("desk__lookup", {"ref": "read-2"})),
        says("Done."),
    )
    original = await runner.finish(person, "writer", script)
    assert len(await scripted.done("gated-1")) == 1
    made = await fork(person, original, fromStep=0)
    review = await runner.waiting(person, made, "tool")
    assert [item["tool"] for item in review["items"]] == ["send"]
    assert "fork" in review["items"][0]["reason"]
    assert len(await scripted.done("gated-1")) == 1
    # A fork of the fork asks too, and the call that waits is not one to continue from.
    response = await person.post(f"/api/tasks/{made['id']}/fork", {"fromStep": 2})
    assert_error(response, 409, "CONFLICT")
    again = await fork(person, made, fromStep=1)
    await runner.waiting(person, again, "tool")
    # A decision about one of them decides nothing in the other.
    stale = await person.post(f"/api/tasks/{again['id']}/approve", {"review": shown(review)})
    assert_error(stale, 409, "CONFLICT")
    await runner.approve(person, made)
    await runner.until(person, made, "COMPLETED")
    assert len(await scripted.done("gated-1")) == 2
    assert (await runner.task(person, again["id"]))["status"] == "WAITING_APPROVAL"
    await runner.reject(person, again)


async def test_an_approval_of_the_origin_does_not_start_its_fork(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__lookup", {"ref": "run-gate"})), says("Done."))
    original = await runner.begin(person, "careful", script, status="WAITING_APPROVAL")
    first = await runner.waiting(person, original, "run")
    assert first["work"]["forkedFrom"] is None
    await runner.approve(person, original)
    await runner.until(person, original, "COMPLETED")
    made = await fork(person, original, fromStep=1, model="fast")
    review = await runner.waiting(person, made, "run")
    assert review["work"]["forkedFrom"] == {"taskId": original["id"], "run": 1, "step": 1}
    assert review["work"]["model"] == "fast"
    stale = await person.post(f"/api/tasks/{made['id']}/approve", {"review": shown(first)})
    assert_error(stale, 409, "CONFLICT")
    await runner.approve(person, made)
    await runner.until(person, made, "COMPLETED")
    assert len(await scripted.done("run-gate")) == 1
    # The same for an agent that always asks.
    original = await runner.begin(person, "starter", script)
    await runner.waiting(person, original, "run")
    made = await fork(person, original, fromStep=0)
    await runner.waiting(person, made, "run")
    for each in (original, made):
        await runner.cancel(person, each)


async def test_a_retried_fork_keeps_its_steps_its_version_and_its_model(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "kept-fork"})),
        # The original gets an answer, and the fork is refused twice.
        {**says("Done."), "failures": [says("Done."), REFUSED, REFUSED]},
    )
    original = await runner.finish(person, "writer", script)
    made = await fork(person, original, fromStep=1, model="fast")
    await runner.until(person, made, "FAILED")
    await runner.retry(person, made, "start")
    failed = await runner.until(person, made, "FAILED")
    assert (failed["usage"]["run"], failed["model"]) == (2, "fast")
    await runner.retry(person, made, "failure")
    ended = await runner.until(person, made, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 4}
    assert len(await scripted.done("kept-fork")) == 1
    assert ended["usage"]["steps"] == 1
    steps, _ = await runner.timeline(person, ended)
    assert [(s["run"], s["copied"]) for s in steps] == [(1, True), (1, True), (3, False)]


async def test_a_fork_keeps_its_steps_also_if_a_retry_of_it_ended_before_it_began(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "kept-twice"})),
        {**says("Done."), "failures": [says("Done."), REFUSED]},
    )
    original = await runner.begin(person, "starter", script)
    await runner.waiting(person, original, "run")
    await runner.approve(person, original)
    await runner.until(person, original, "COMPLETED")
    made = await fork(person, original, fromStep=1)
    await runner.waiting(person, made, "run")
    await runner.approve(person, made)
    await runner.until(person, made, "FAILED")
    await runner.retry(person, made, "start")
    await runner.waiting(person, made, "run")
    # The run of the retry never begins.
    assert (await patch(person, made["id"], deadline=soon(0.5))).status_code == 200
    await runner.until(person, made, "FAILED")
    assert (await patch(person, made["id"], deadline=None)).status_code == 200
    options = (await person.get(f"/api/tasks/{made['id']}/retry")).json()["retry"]["options"]
    assert options
    for option in options:
        assert (option["keptSteps"], option["repeatedSteps"]) == (2, 0)
    await runner.retry(person, made, "failure")
    ended = await runner.until(person, made, "COMPLETED")
    assert ended["usage"]["run"] == 3
    assert await scripted.count(script) == {0: 1, 1: 3}
    assert len(await scripted.done("kept-twice")) == 1


async def test_what_a_fork_delegates_asks_before_it_writes_and_a_subtask_can_be_forked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    part = await scripted.script(calls(("desk__send", {"ref": "delegated"})), says("Sent."))
    script = await scripted.script(calls(delegates("writer", part)), says("All done."))
    original = await runner.finish(person, "lead", script)
    [helper] = await runner.children(person, original)
    assert len(await scripted.done("delegated")) == 1
    made = await fork(person, original, fromStep=0)
    child = await runner.child(person, made, "WAITING_APPROVAL")
    [item] = (await runner.review(person, child))["items"]
    assert (item["tool"], item["reason"]) == (
        "send",
        "Approval is required because this task is a fork, belongs to one, or inherits the policy "
        "of a task above it.",
    )
    assert len(await scripted.done("delegated")) == 1
    await runner.approve(person, child)
    await runner.until(person, made, "COMPLETED")
    assert len(await scripted.done("delegated")) == 2
    # The fork of a subtask has no parent, and pays for itself.
    alone = await fork(person, helper, fromStep=1)
    assert (alone["parentTaskId"], alone["name"]) == (None, helper["name"])
    alone = await runner.until(person, alone, "COMPLETED")
    assert (alone["output"], alone["usage"]["costUsd"]) == ("Sent.", "0.000020")
    assert len(await scripted.done("delegated")) == 2


async def test_a_fork_keeps_the_schema_that_its_original_had(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "schema"})), says('{"n": 1}'), says('{"n": 2}')
    )
    original = await runner.finish(person, "clerk", script, outputSchema=schema)
    made = await runner.until(person, await fork(person, original, fromStep=1), "COMPLETED")
    assert (made["outputSchema"], made["outputData"]) == (schema, {"n": 1})
    # Without one of its own, the version decides.
    script = await scripted.script(says('{"total": 1}'))
    original = await runner.finish(person, "clerk", script)
    made = await runner.until(person, await fork(person, original, fromStep=0), "COMPLETED")
    assert made["outputSchema"] == original["outputSchema"] != schema


async def test_a_fork_goes_on_under_another_version_of_the_agent(
    runner: Runner, scripted: Scripted, person: Person, tmp_path: Any
) -> None:
    text = (CATALOG / "writer.md").read_text()
    for path in CATALOG.glob("*.md"):
        (tmp_path / path.name).write_text(path.read_text())
    own = tmp_path / "fork-writer.md"
    first = text.replace("name: writer", "name: fork-writer").replace("PLANTED", "FIRST")
    own.write_text(first)
    await sync(runner.service.database_url, tmp_path)
    script = await scripted.script(calls(("desk__lookup", {"ref": "versions"})), says("Done."))
    original = await runner.finish(person, "fork-writer", script)
    second = first.replace("FIRST", "SECOND").replace("budgetCents: 100", "budgetCents: 40")
    own.write_text(second.replace("{tools: never}", "{tools: never, output: true}"))
    await sync(runner.service.database_url, tmp_path)
    try:
        options = (await person.get(f"/api/tasks/{original['id']}/fork")).json()["fork"]
        assert options == {
            "available": True,
            "reason": None,
            "steps": [1],
            "versions": [2, 1],
            "models": ["default", "fast", "strong"],
        }
        made = await fork(person, original, fromStep=1, agentVersion=2)
        await runner.waiting(person, made, "output")
        await runner.approve(person, made)
        made = await runner.until(person, made, "COMPLETED")
        assert (made["agentVersion"], made["usage"]["budgetUsd"]) == (2, "0.400000")
        assert "SECOND-INSTRUCTIONS" in conversation((await scripted.asked(script))[-1])
        # The version of the task is the default.
        kept = await fork(person, original, fromStep=1)
        # It does not avoid the gate that the agent has now.
        await runner.waiting(person, kept, "output")
        await runner.approve(person, kept)
        kept = await runner.until(person, kept, "COMPLETED")
        assert kept["agentVersion"] == 1
        assert "FIRST-INSTRUCTIONS" in conversation((await scripted.asked(script))[-1])
    finally:
        await sync(runner.service.database_url, CATALOG)
    retired = await person.post(f"/api/tasks/{original['id']}/fork", {"fromStep": 1})
    assert_error(retired, 409, "CONFLICT")
    options = (await person.get(f"/api/tasks/{original['id']}/fork")).json()["fork"]
    assert (options["available"], options["steps"]) == (False, [])
    assert "removed from the catalog" in options["reason"]
