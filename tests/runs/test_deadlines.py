"""Deadlines: a task that has not ended in time fails, whatever it is doing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.runs.runner import Runner, shown, until
from tests.runs.scripted import Scripted, calls, conversation, delegates, last_message, says
from tests.runs.test_ends import failed
from tests.service import Person
from tests.tasks.world import patch, uuid_of

EXCEEDED = ("DEADLINE_EXCEEDED", False)


def soon(seconds: float = 1.5) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def held(runner: Runner, task: dict[str, Any]) -> int:
    async with runner.service.owner() as connection:
        found: int = await connection.fetchval(
            "SELECT count(*) FROM holds WHERE task_id = $1 AND open", uuid_of(task)
        )
    return found


async def test_a_running_task_fails_at_its_deadline_and_its_call_is_charged(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "too-late"}), hold=True))
    task = await runner.begin(person, "writer", script, deadline=soon())
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == EXCEEDED
    assert task["deadline"] in task["error"]["message"]
    assert await held(runner, task) == 0
    await scripted.release(script)
    await runner.history_ends(task)
    charged = await until(
        lambda: runner.task(person, task["id"]), lambda seen: seen["usage"]["steps"] == 1
    )
    assert charged["usage"]["costUsd"] == "0.000020"
    assert await scripted.done("too-late") == []
    assert (await runner.events(person, task))[-1] == "task.failed"


async def test_a_call_that_waits_for_a_person_is_asked_for_again_after_a_retry(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    send = calls(("desk__send", {"ref": "decided-late"}))
    script = await scripted.script(send, says("Sent."))
    task = await runner.begin(person, "careful", script)
    review = await runner.waiting(person, task, "tool")
    deadline = (await patch(person, task["id"], deadline=soon())).json()["task"]["deadline"]
    assert (await runner.review(person, task))["expiresAt"] == deadline < review["expiresAt"]
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == EXCEEDED
    ended = await runner.review(person, task)
    assert (ended["state"], ended["history"][0]["reason"]) == (
        "expired", "The deadline of the task passed.",
    )  # fmt: skip
    late = await person.post(f"/api/tasks/{task['id']}/approve", {"review": shown(review)})
    assert late.status_code == 409
    await runner.history_ends(task)
    # The deadline has to change first.
    refused = await person.post(f"/api/tasks/{task['id']}/retry", {"from": "failure"})
    assert refused.status_code == 409
    assert "deadline" in refused.json()["error"]["message"]
    quote = (await person.get(f"/api/tasks/{task['id']}/retry")).json()["retry"]
    assert (quote["available"], quote["reason"]) == (False, refused.json()["error"]["message"])
    assert (await patch(person, task["id"], deadline=None)).status_code == 200
    await runner.retry(person, task, "failure")
    await runner.waiting(person, task, "tool")
    assert await scripted.done("decided-late") == []
    await runner.approve(person, task)
    task = await runner.until(person, task, "COMPLETED")
    assert len(await scripted.done("decided-late")) == 1
    assert await scripted.count(script) == {0: 1, 1: 1}
    steps, _ = await runner.timeline(person, task)
    [made] = [step for step in steps if step["kind"] == "tool"]
    assert (made["run"], made["outcome"], made["copied"]) == (2, "ok", False)


async def test_a_decision_before_the_deadline_counts_although_the_run_has_not_read_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    send = calls(("desk__send", {"ref": "decided-early"}), ("ask_person", {"question": "Which?"}))
    script = await scripted.script(send, says("Sent."))
    task = await runner.begin(person, "narrow", script)
    review = await runner.waiting(person, task, "tool")
    # Others have all places of the agent, so the run does not continue after the decision.
    holding = await scripted.script(says("Done.", hold=True))
    others = [await runner.begin(person, "narrow", holding) for _ in range(2)]
    await until(lambda: scripted.asked(holding), lambda asked: len(asked) == 2)
    answer = {"id": review["items"][1]["id"], "arguments": {"answer": "Both."}}
    await runner.approve(person, task, {"id": review["items"][0]["id"]}, answer)
    await patch(person, task["id"], deadline=soon(0.5))
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == EXCEEDED
    await patch(person, task["id"], deadline=None)
    await scripted.release(holding)
    await runner.retry(person, task, "failure")
    # Nobody is asked again.
    for each in (task, *others):
        await runner.until(person, each, "COMPLETED")
    assert len(await scripted.done("decided-early")) == 1
    assert last_message((await scripted.asked(script))[1]) == "Both."
    assert len((await runner.review(person, task))["history"]) == 1


async def test_a_decision_about_one_of_several_calls_before_the_deadline_counts(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    send = calls(
        ("desk__send", {"ref": "decided-alone"}),
        ("ask_person", {"question": "Which?"}),
        ("desk__send", {"ref": "undecided"}),
    )
    script = await scripted.script(send, says("Sent."))
    task = await runner.begin(person, "careful", script)
    items = (await runner.waiting(person, task, "tool"))["items"]
    answer = {"id": items[1]["id"], "arguments": {"answer": "Both."}}
    await runner.approve(person, task, {"id": items[0]["id"]}, answer)
    await patch(person, task["id"], deadline=soon(0.5))
    await runner.until(person, task, "FAILED")
    await runner.history_ends(task)
    await patch(person, task["id"], deadline=None)
    await runner.retry(person, task, "failure")
    # Only the call that nobody decided about waits again.
    [item] = (await runner.waiting(person, task, "tool"))["items"]
    assert item["arguments"] == {"ref": "undecided"}
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    for ref in ("decided-alone", "undecided"):
        assert len(await scripted.done(ref)) == 1
    assert "Both." in conversation((await scripted.asked(script))[1])


async def test_a_rejected_answer_is_rejected_although_the_run_has_not_read_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("A draft."), says("Better."))
    task = await runner.begin(person, "editor", script)
    await runner.waiting(person, task, "output")
    await runner.worker.stop()
    try:
        await runner.reject(person, task, resume=True, reason="Too short.")
        await patch(person, task["id"], deadline=soon(0.1))
        await until(_passed(soon(0.2)))
    finally:
        await runner.worker.start()
    await runner.until(person, task, "FAILED")
    await patch(person, task["id"], deadline=None)
    await runner.retry(person, task, "failure")
    await runner.waiting(person, task, "output")
    assert "Too short." in last_message((await scripted.asked(script))[1])


async def test_a_question_without_an_answer_is_told_to_the_model_after_a_retry(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("ask_person", {"question": "Which?"})), says("Guessed."))
    task = await runner.begin(person, "writer", script, deadline=soon(2))
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == EXCEEDED
    await patch(person, task["id"], deadline=soon(3600))
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    _, second = await scripted.asked(script)
    assert last_message(second) == "No person answered before the deadline of the task."


async def test_a_run_that_waits_at_its_gate_and_an_output_end_too(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Done."))
    tasks = [
        await runner.begin(person, "writer", script, status="WAITING_APPROVAL", deadline=soon(2)),
        await runner.begin(person, "editor", script, deadline=soon(2)),
    ]
    for task in tasks:
        ended = await runner.until(person, task, "FAILED")
        assert failed(ended) == EXCEEDED
        assert (await runner.review(person, task))["state"] == "expired"
        assert await held(runner, task) == 0
    # A retry asks again, and the agent is told why it has to answer again.
    for task, gate in zip(tasks, ("run", "output"), strict=True):
        assert (await patch(person, task["id"], deadline=None)).status_code == 200
        await runner.retry(person, task, "failure")
        await runner.waiting(person, task, gate)
    assert "before the deadline" in last_message((await scripted.asked(script))[-1])


async def test_a_run_that_nobody_approved_does_not_start_by_a_retry(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Done."))
    for start_at in ("failure", "start"):
        task = await runner.begin(
            person, "writer", script, status="WAITING_APPROVAL", deadline=soon(1)
        )
        await runner.until(person, task, "FAILED")
        await patch(person, task["id"], deadline=None)
        await runner.retry(person, task, start_at)
        await runner.waiting(person, task, "run")
    assert await scripted.asked(script) == []


async def test_delegated_subtasks_are_cancelled_at_the_deadline_of_their_parent(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    helper = await scripted.script(says("Never.", hold=True))
    script = await scripted.script(calls(delegates("writer", helper)), says("Not reached."))
    task = await runner.begin(person, "lead", script, deadline=soon(2))
    child = (await until(lambda: runner.children(person, task)))[0]
    assert failed(await runner.until(person, task, "FAILED")) == EXCEEDED
    assert (await runner.until(person, child, "CANCELLED"))["deadline"] is None
    await scripted.release(helper)
    await patch(person, task["id"], deadline=None)
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    # Both runs have delegated, each to a subtask of its own.
    steps, _ = await runner.timeline(person, task)
    first, second = [step for step in steps if step["kind"] == "tool"]
    assert (first["run"], first["childTaskId"]) == (1, child["id"])
    again = (await runner.children(person, task))[1]
    assert (second["run"], second["childTaskId"], second["outcome"]) == (2, again["id"], "ok")


@pytest.mark.long
async def test_a_deadline_that_passes_while_no_worker_runs_still_holds(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("Done."))
    await runner.worker.stop()
    try:
        task = await runner.begin(person, "writer", script, deadline=soon(0.5))
    finally:
        await until(_passed(soon(0.6)))
        await runner.worker.start()
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == EXCEEDED
    assert await scripted.asked(script) == []


def _passed(moment: str) -> Any:
    async def look() -> bool:
        return datetime.now(UTC) > datetime.fromisoformat(moment)

    return look


async def test_a_task_that_ends_in_time_is_not_touched_by_its_deadline(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("In time."))
    task = await runner.finish(person, "writer", script, deadline=soon(3600))
    async with runner.service.owner() as connection:
        left = await connection.fetchval(
            "SELECT count(*) FROM outbox WHERE task_id = $1 AND kind = 'run.deadline'",
            uuid_of(task),
        )
    assert left == 0
