"""Runs that are retried, cancelled or stopped by a limit."""

from typing import Any

from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import Person
from tests.tasks.world import uuid_of

REFUSED = {"status": 401, "error": {"message": "No such key.", "code": "invalid_api_key"}}


def failed(task: dict[str, Any]) -> tuple[str, bool]:
    assert task["status"] == "FAILED"
    assert task["error"].keys() == {"code", "message", "retryable"}
    assert task["error"]["message"]
    return task["error"]["code"], task["error"]["retryable"]


async def test_a_retry_from_failure_keeps_finished_steps_and_does_not_charge_them_again(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "kept-1"})),
        calls(("desk__lookup", {"ref": "kept-2"}), failures=[REFUSED, REFUSED]),
        says("Completed."),
    )
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    await runner.approve(person, task)
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == ("MODEL_AUTHENTICATION_FAILED", True)
    await runner.retry(person, task, "failure")
    await until(lambda: scripted.count(script), lambda seen: seen.get(1) == 2)
    assert failed(await runner.until(person, task, "FAILED"))
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 3, 2: 1}
    assert len(await scripted.done("kept-1")) == 1
    assert len(await scripted.done("kept-2")) == 1
    # Three answers cost 20 micro-dollars each. Refusals cost nothing.
    assert task["usage"] == {
        "run": 3, "steps": 3, "inputTokens": 30, "outputTokens": 15, "costUsd": "0.000060",
        "budgetUsd": "1.000000",
    }  # fmt: skip
    assert task["error"] is None
    steps, total = await runner.timeline(person, task)
    assert total == len(steps) == 6
    assert [s["run"] for s in steps if s["kind"] != "approval"] == [1, 1, 3, 3, 3]
    assert (await runner.events(person, task))[-3:] == [
        "task.retried", "task.started", "task.completed",
    ]  # fmt: skip


async def test_a_retry_from_the_start_repeats_everything(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "again"})), says("Done.", failures=[REFUSED])
    )
    task = await runner.finish(person, "writer", script, "FAILED")
    await runner.retry(person, task, "start")
    task = await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 2, 1: 2}
    first, second = await scripted.done("again")
    assert first["key"] != second["key"]
    assert task["usage"]["costUsd"] == "0.000060"


async def test_a_model_call_during_which_the_task_is_cancelled_finishes_and_is_charged(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "cancel"})),
        calls(("desk__lookup", {"ref": "cancel"}), hold=True),
        says("Not reached."),
    )
    task = await runner.begin(person, "writer", script)
    await until(lambda: scripted.count(script), lambda seen: seen.get(1))
    await runner.cancel(person, task)
    await runner.history_ends(task)
    # The worker knows of the cancellation before the answer arrives.
    await runner.call_continues(task)
    await scripted.release(script)
    charged = await until(
        lambda: runner.task(person, task["id"]), lambda seen: seen["usage"]["steps"] == 2
    )
    assert charged["status"] == "CANCELLED"
    assert charged["usage"]["costUsd"] == "0.000040"
    assert await scripted.count(script) == {0: 1, 1: 1}
    assert not (await scripted.asked(script))[1]["hungUp"]
    # The answer is discarded: its tool call is not made.
    assert len(await scripted.done("cancel")) == 1


async def test_a_model_call_answered_after_the_cancellation_is_still_counted(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "late-answer"}), hold=True))
    task = await runner.begin(person, "writer", script)
    await until(lambda: scripted.asked(script))
    # The worker learns of the cancellation at its next heartbeat; the answer arrives before.
    await runner.cancel(person, task)
    await scripted.release(script)
    await runner.history_ends(task)
    charged = await until(
        lambda: runner.task(person, task["id"]), lambda seen: seen["usage"]["steps"] == 1
    )
    assert charged["status"] == "CANCELLED"
    assert charged["usage"]["costUsd"] == "0.000020"
    assert await scripted.done("late-answer") == []


async def test_the_step_limit_stops_a_run_and_a_retry_continues_with_a_new_limit(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        *[calls(("desk__lookup", {"ref": "steps"}))] * 3, says("Completed.")
    )
    task = await runner.finish(person, "hasty", script, "FAILED")
    assert failed(task) == ("STEP_LIMIT", True)
    assert "limit of 2 steps" in task["error"]["message"]
    assert await scripted.count(script) == {0: 1, 1: 1}
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 1, 2: 1, 3: 1}


async def test_the_token_limit_stops_a_run(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "tokens"}), inputTokens=9_999_990, outputTokens=10),
        says("Not reached."),
    )
    task = await runner.finish(person, "endless", script, "FAILED")
    assert failed(task) == ("TOKEN_LIMIT", True)
    assert await scripted.count(script) == {0: 1}
    assert task["usage"]["costUsd"] == "10.000010"


async def test_the_time_limit_stops_a_run(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "time"}), hold=True), says("Not reached.")
    )
    task = await runner.begin(person, "writer", script)
    await until(lambda: scripted.asked(script))
    async with runner.service.owner() as connection:
        await connection.execute(
            "UPDATE tasks SET started_at = now() - interval '25 hours' WHERE id = $1",
            uuid_of(task),
        )
    await scripted.release(script)
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == ("TIME_LIMIT", True)
    assert "longer than 24 hours" in task["error"]["message"]


async def make_older(
    runner: Runner, task: dict[str, Any], hours: int, *, waiting_hours: int = 0
) -> None:
    """Moves the start of a run, and of the wait for a person that it is in, into the past."""
    async with runner.service.owner() as connection:
        await connection.execute(
            "UPDATE tasks SET started_at = started_at - make_interval(hours => $2) WHERE id = $1",
            uuid_of(task),
            hours,
        )
        await connection.execute(
            """
            UPDATE reviews SET requested_at = requested_at - make_interval(hours => $2)
            WHERE task_id = $1 AND state = 'pending'
            """,
            uuid_of(task),
            waiting_hours,
        )


QUESTION = calls(("ask_person", {"question": "Which colour?"}))


async def test_the_time_in_which_a_run_waits_for_people_does_not_count(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(QUESTION, QUESTION, says("Painted."))
    task = await runner.begin(person, "writer", script)
    # Asked on Friday, answered on Monday, twice. The run worked for 20 hours.
    await runner.waiting(person, task, "tool")
    await make_older(runner, task, 72, waiting_hours=62)
    await runner.approve(person, task)

    async def review() -> dict[str, Any]:
        return await runner.review(person, task)

    await runner.seen(review, lambda r: len(r["history"]) == 1, pending=True)
    async with runner.service.owner() as connection:
        await connection.execute(
            """
            UPDATE reviews SET requested_at = requested_at - interval '72 h',
                decided_at = decided_at - interval '72 h'
            WHERE task_id = $1 AND state = 'approved'
            """,
            uuid_of(task),
        )
    await make_older(runner, task, 72, waiting_hours=62)
    await runner.approve(person, task)
    assert (await runner.until(person, task, "COMPLETED"))["output"] == "Painted."


async def test_the_time_in_which_a_run_worked_before_it_waited_counts(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(QUESTION, says("Not reached."))
    task = await runner.begin(person, "writer", script)
    await runner.waiting(person, task, "tool")
    await make_older(runner, task, 72, waiting_hours=47)
    await runner.approve(person, task)
    task = await runner.until(person, task, "FAILED")
    assert failed(task) == ("TIME_LIMIT", True)
    # A retry continues with a new limit, and keeps the answer.
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 1}


async def test_the_time_in_which_a_delegated_subtask_waits_for_people_does_not_count(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    asking = await scripted.script(QUESTION, says("Blue."))
    middle = await scripted.script(calls(delegates("writer", asking)), says("It is blue."))
    script = await scripted.script(calls(delegates("lead", middle)), says("Painted."))
    task = await runner.begin(person, "director", script)
    child = await runner.child(person, task, "RUNNING")
    grandchild = await runner.child(person, child, "WAITING_APPROVAL")
    for each in (task, child):
        await make_older(runner, each, 72)
    await make_older(runner, grandchild, 72, waiting_hours=71)
    await runner.approve(person, grandchild)
    await runner.until(person, task, "COMPLETED")


async def test_the_budget_stops_a_run_before_it_can_be_exceeded(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "budget"}), inputTokens=9_800), says("Not reached.")
    )
    task = await runner.finish(person, "frugal", script, "FAILED")
    assert failed(task) == ("BUDGET_EXCEEDED", True)
    assert await scripted.count(script) == {0: 1}
    # The requested answer was no longer than the budget allows.
    [asked] = await scripted.asked(script)
    assert asked["maxTokens"] * 2 <= 10_000
    assert float(task["usage"]["costUsd"]) <= 0.01
