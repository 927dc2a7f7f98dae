"""Questions to a person, and subtasks for agents of a lower rank."""

from typing import Any

from tests.assertions import assert_error
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, delegates, last_message, says
from tests.service import Person
from tests.tasks.world import create, expire_reviews, uuid_of


async def test_a_person_gets_the_question_and_the_model_gets_the_answer(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("ask_person", {"question": "Which colour?"})),
        calls(("ask_person", {"question": "Really?"})),
        says("Painted."),
    )
    task = await runner.begin(person, "writer", script)
    [item] = (await runner.waiting(person, task, "tool"))["items"]
    assert (item["tool"], item["server"]) == ("ask_person", None)
    assert item["arguments"] == {"question": "Which colour?"}
    assert item["reason"] == "The agent asks a question."
    await runner.approve(person, task, {"id": item["id"], "arguments": {"answer": "Blue."}})

    async def review() -> dict[str, Any]:
        return await runner.review(person, task)

    await runner.seen(review, lambda r: len(r["history"]) == 1, pending=True)
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    _, second, third = await scripted.asked(script)
    assert last_message(second) == "Blue."
    assert last_message(third) == "Approved without an answer."


async def test_the_output_of_a_subtask_is_the_result_of_the_delegation(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    lower = await scripted.script(says("The part is done."))
    middle = await scripted.script(calls(delegates("writer", lower, "Lowest")), says("Mine too."))
    script = await scripted.script(calls(delegates("lead", middle, "Middle")), says("All done."))
    task = await runner.finish(person, "director", script, priority=7, projectId="p-1")
    assert task["output"] == "All done."
    assert last_message((await scripted.asked(script))[1]) == "Mine too."
    assert last_message((await scripted.asked(middle))[1]) == "The part is done."
    [child] = await runner.children(person, task)
    assert (child["name"], child["assignedAgent"], child["status"]) == (
        "Middle",
        "lead",
        "COMPLETED",
    )
    assert (child["priority"], child["projectId"]) == (7, "p-1")
    [grandchild] = await runner.children(person, child)
    assert (grandchild["name"], grandchild["output"]) == ("Lowest", "The part is done.")
    steps, _ = await runner.timeline(person, task)
    [delegation] = [step for step in steps if step["kind"] == "tool"]
    assert delegation["childTaskId"] == child["id"]
    assert delegation["outcome"] == "ok"
    # Each task counts only its own model calls.
    assert task["usage"]["steps"] == 2


async def test_the_model_learns_why_it_cannot_delegate_and_continues(
    runner: Runner, scripted: Scripted
) -> None:
    person = await runner.newcomer(tier="basic")
    script = await scripted.script(
        calls(
            delegates("nobody", ""),
            delegates("lead", ""),
            delegates("director", ""),
            delegates("exclusive", ""),
        ),
        says("By myself, then."),
    )
    task = await runner.finish(person, "lead", script)
    told = [
        message["content"]
        for message in (await scripted.asked(script))[1]["messages"]
        if message["role"] == "tool"
    ]
    assert told == [
        "The agent 'nobody' is not in the catalog. Check the name.",
        "The rank of lead is not lower than yours. Delegate to an agent of a lower rank.",
        "The rank of director is not lower than yours. Delegate to an agent of a lower rank.",
        "The agent exclusive requires the tier ENTERPRISE. Choose another agent or a higher plan.",
    ]
    assert await runner.children(person, task) == []
    steps, _ = await runner.timeline(person, task)
    assert [s["outcome"] for s in steps if s["kind"] == "tool"] == ["failed"] * 4


async def test_agents_of_the_lowest_rank_cannot_delegate(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(delegates("writer", "")), says("By myself."))
    await runner.finish(person, "writer", script)
    assert "Tool not found." in last_message((await scripted.asked(script))[1])


async def test_delegation_stops_at_the_deepest_level_of_subtasks(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    parent = await create(person)
    for _ in range(6):
        parent = await create(person, parentTaskId=parent["id"])
    script = await scripted.script(calls(delegates("writer", "")), says("By myself."))
    await runner.finish(person, "director", script, parentTaskId=parent["id"])
    assert (
        last_message((await scripted.asked(script))[1])
        == "Tasks can be nested at most 8 levels deep. Do the work yourself."
    )


async def test_a_call_that_is_repeated_later_does_not_end_the_wait_for_a_subtask(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # It fails often enough to end the slice, so that the next one starts with this call alone.
    await scripted.behave("beside", *[{"unavailable": True}] * 3)
    held = await scripted.script(says("The part is done.", hold=True))
    script = await scripted.script(
        calls(delegates("writer", held), ("desk__lookup", {"ref": "beside"})), says("All done.")
    )
    task = await runner.begin(person, "lead", script)
    await until(lambda: scripted.done("beside"))
    await until(lambda: scripted.asked(held))
    assert await scripted.count(script) == {0: 1}
    await scripted.release(held)
    await runner.until(person, task, "COMPLETED")
    told = [m["content"] for m in (await scripted.asked(script))[1]["messages"]]
    assert "The part is done." in told


async def test_waiting_subtasks_are_listed_longest_wait_first_while_their_parent_runs(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    sending = await scripted.script(calls(("desk__send", {"ref": "tree"})), says("Sent."))
    script = await scripted.script(
        calls(
            delegates("starter", await scripted.script(says("Started.")), "First"),
            delegates("careful", sending, "Second"),
        ),
        says("Both."),
    )
    other = await runner.begin(person, "starter", script, name="Oldest")
    task = await runner.begin(person, "director", script)

    async def listed() -> list[dict[str, Any]]:
        answer = await person.get("/api/approvals")
        body = answer.json()
        assert body["total"] == len(body["approvals"])
        found: list[dict[str, Any]] = body["approvals"]
        return found

    waiting = await until(listed, lambda seen: len(seen) == 3)
    assert waiting[0]["task"]["name"] == "Oldest"
    assert {entry["task"]["name"]: entry["review"]["gate"] for entry in waiting[1:]} == {
        "First": "run",
        "Second": "tool",
    }
    since = [entry["review"]["requestedAt"] for entry in waiting]
    assert since == sorted(since)
    assert waiting[1]["review"].keys() == (await runner.review(person, task)).keys()
    assert (await runner.task(person, task["id"]))["status"] == "RUNNING"
    for entry in waiting[1:]:
        await runner.approve(person, entry["task"])
    await runner.until(person, task, "COMPLETED")
    assert len(await listed()) == 1
    await runner.cancel(person, other)


async def test_cancelling_a_task_stops_its_subtask_after_the_call_in_progress(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    held = await scripted.script(says("Never.", hold=True))
    script = await scripted.script(calls(delegates("writer", held)), says("Never."))
    task = await runner.begin(person, "director", script)
    child = await runner.child(person, task, "RUNNING")
    await until(lambda: scripted.asked(held))
    await runner.cancel(person, task)
    assert (await runner.task(person, child["id"]))["status"] == "CANCELLED"
    await runner.history_ends(task)
    await runner.history_ends(child)
    await scripted.release(held)
    await until(lambda: runner.task(person, child["id"]), lambda seen: seen["usage"]["steps"] == 1)
    assert await scripted.count(held) == {0: 1}
    assert await scripted.count(script) == {0: 1}
    assert (await runner.events(person, child))[-1] == "task.cancelled"


async def test_the_model_learns_how_a_subtask_failed_or_expired(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    failing = await scripted.script({"status": 401})
    script = await scripted.script(
        calls(delegates("writer", failing), delegates("starter", failing, "Too late")),
        says("Without them."),
    )
    task = await runner.begin(person, "director", script)
    children = await until(
        lambda: runner.children(person, task), lambda seen: [c["name"] for c in seen][1:]
    )
    late = next(child for child in children if child["name"] == "Too late")
    async with runner.service.owner() as connection:
        await expire_reviews(connection, late)
    await runner.until(person, task, "COMPLETED")
    failed, expired = (
        message["content"]
        for message in (await scripted.asked(script))[1]["messages"]
        if message["role"] == "tool"
    )
    assert failed.startswith(
        "The subtask did not complete. Its status is FAILED. The model provider refused"
    )
    assert expired == "The subtask did not complete. Its status is CANCELLED."


async def test_the_cost_of_a_subtask_counts_against_the_budget_of_its_parent(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # One cent is 10,000 micro-dollars.
    expensive = await scripted.script(says("Expensive.", inputTokens=9_500, outputTokens=100))
    script = await scripted.script(calls(delegates("writer", expensive)), says("Not reached."))
    task = await runner.finish(person, "frugal", script, "FAILED")
    assert task["error"]["code"] == "BUDGET_EXCEEDED"
    assert task["error"]["retryable"] is True
    assert await scripted.count(script) == {0: 1}
    assert (await runner.child(person, task, "COMPLETED"))["usage"]["costUsd"] == "0.009700"


async def test_a_subtask_fails_when_the_budget_of_its_parent_is_used_up(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    expensive = await scripted.script(
        calls(("desk__lookup", {"ref": "expensive"}), inputTokens=9_900), says("Not reached.")
    )
    script = await scripted.script(calls(delegates("writer", expensive)), says("Not reached."))
    task = await runner.finish(person, "frugal", script, "FAILED")
    child = await runner.child(person, task, "FAILED")
    assert child["error"]["code"] == task["error"]["code"] == "BUDGET_EXCEEDED"
    assert await scripted.count(expensive) == {0: 1}
    again = await person.post(f"/api/tasks/{child['id']}/approve")
    assert_error(again, 409, "CONFLICT")


async def test_the_end_of_a_subtask_does_not_start_a_retried_run_from_its_first_step(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "retried"}), hold=True),
        says("Done.", failures=[{"status": 401}]),
    )
    task = await runner.begin(person, "director", script)
    part = await scripted.script(says("Not needed."))
    waiting = {"parentTaskId": task["id"], "status": "WAITING_APPROVAL"}
    child = await runner.begin(person, "writer", part, **waiting)
    await scripted.release(script)
    await runner.until(person, task, "FAILED")
    await runner.worker.stop()
    await runner.retry(person, task, "failure")
    await runner.cancel(person, child)
    async with runner.service.owner() as connection:

        async def instructions() -> list[str]:
            found = await connection.fetch(
                "SELECT kind FROM outbox WHERE task_id = $1 AND payload->>'run' = '2' ORDER BY id",
                uuid_of(task),
            )
            return [row["kind"] for row in found]

        async def start_in(seconds: int) -> None:
            await connection.execute(
                """
                UPDATE outbox SET due_at = now() + make_interval(secs => $2)
                WHERE task_id = $1 AND kind = 'run.start'
                """,
                uuid_of(task),
                seconds,
            )

        assert await instructions() == ["run.start", "run.nudge"]
        # The run is woken before it is started.
        await start_in(3_600)
        await runner.worker.start()
        await until(instructions, lambda kinds: "run.nudge" not in kinds)
        assert await instructions() == ["run.start"]
        await start_in(0)
    await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 2}
