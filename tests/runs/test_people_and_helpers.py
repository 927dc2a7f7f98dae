"""Asking the person in charge, and handing work to agents of a lower rank."""

from typing import Any

from tests.assertions import assert_error
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, last_told, says
from tests.service import Person
from tests.tasks.world import create, run_out


def hands_over(agent: str, script: str, name: str = "A part of it") -> tuple[str, dict[str, Any]]:
    return "delegate", {"agent": agent, "name": name, "input": f"Help, please. {script}"}


async def test_a_question_reaches_the_person_and_the_answer_the_model(
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
    assert last_told(second) == "Blue."
    assert last_told(third) == "Approved, without further words."


async def test_a_helper_does_its_part_and_the_result_reaches_the_one_who_asked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    lower = await scripted.script(says("The part is done."))
    middle = await scripted.script(calls(hands_over("writer", lower, "Lowest")), says("Mine too."))
    script = await scripted.script(calls(hands_over("lead", middle, "Middle")), says("All done."))
    task = await runner.finish(person, "director", script, priority=7, projectId="p-1")
    assert task["output"] == "All done."
    assert last_told((await scripted.asked(script))[1]) == "Mine too."
    assert last_told((await scripted.asked(middle))[1]) == "The part is done."
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
    [handed] = [step for step in steps if step["kind"] == "tool"]
    assert handed["childTaskId"] == child["id"]
    assert handed["outcome"] == "ok"
    # Each is paid for where it was done.
    assert task["usage"]["steps"] == 2


async def test_who_cannot_help_is_told_to_the_model_which_goes_on(
    runner: Runner, scripted: Scripted
) -> None:
    person = await runner.newcomer(tier="basic")
    script = await scripted.script(
        calls(
            hands_over("nobody", ""),
            hands_over("lead", ""),
            hands_over("director", ""),
            hands_over("exclusive", ""),
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
        "There is no agent of that name in the catalog.",
        "lead is not of a lower rank than you.",
        "director is not of a lower rank than you.",
        "exclusive needs a higher plan than this account has.",
    ]
    assert await runner.children(person, task) == []
    steps, _ = await runner.timeline(person, task)
    assert [s["outcome"] for s in steps if s["kind"] == "tool"] == ["failed"] * 4


async def test_agents_of_the_lowest_rank_cannot_hand_on(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(hands_over("writer", "")), says("By myself."))
    await runner.finish(person, "writer", script)
    assert "There is no tool of that name." in last_told((await scripted.asked(script))[1])


async def test_work_is_not_handed_on_deeper_than_tasks_nest(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    above = await create(person)
    for _ in range(6):
        above = await create(person, parentTaskId=above["id"])
    script = await scripted.script(calls(hands_over("writer", "")), says("By myself."))
    await runner.finish(person, "director", script, parentTaskId=above["id"])
    assert last_told((await scripted.asked(script))[1]) == "Tasks nest at most 8 deep."


async def test_everything_below_that_waits_is_listed_oldest_first_while_the_one_above_runs(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    sending = await scripted.script(calls(("desk__send", {"ref": "tree"})), says("Sent."))
    script = await scripted.script(
        calls(
            hands_over("starter", await scripted.script(says("Started.")), "First"),
            hands_over("careful", sending, "Second"),
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
    assert [e["task"]["createdAt"] for e in waiting] == sorted(
        e["task"]["createdAt"] for e in waiting
    )
    assert waiting[1]["review"].keys() == (await runner.review(person, task)).keys()
    assert (await runner.task(person, task["id"]))["status"] == "RUNNING"
    for entry in waiting[1:]:
        await runner.approve(person, entry["task"])
    await runner.until(person, task, "COMPLETED")
    assert len(await listed()) == 1
    await runner.cancel(person, other)


async def test_cancelling_the_task_above_stops_the_helper_in_the_middle_of_its_call(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    held = await scripted.script(says("Never.", hold=True))
    script = await scripted.script(calls(hands_over("writer", held)), says("Never."))
    task = await runner.begin(person, "director", script)
    child = await runner.child(person, task, "RUNNING")
    await until(lambda: scripted.asked(held))
    await runner.cancel(person, task)
    assert (await runner.task(person, child["id"]))["status"] == "CANCELLED"
    await until(lambda: scripted.asked(held), lambda seen: seen[0]["hungUp"])
    await runner.history_ends(task)
    await runner.history_ends(child)
    assert await scripted.count(held) == {0: 1}
    assert await scripted.count(script) == {0: 1}
    assert (await runner.events(person, child))[-1] == "task.cancelled"


async def test_how_a_helper_failed_or_was_refused_is_told_to_the_one_who_asked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    failing = await scripted.script({"status": 401})
    script = await scripted.script(
        calls(hands_over("writer", failing), hands_over("starter", failing, "Too late")),
        says("Without them."),
    )
    task = await runner.begin(person, "director", script)
    children = await until(
        lambda: runner.children(person, task), lambda seen: [c["name"] for c in seen][1:]
    )
    late = next(child for child in children if child["name"] == "Too late")
    async with runner.service.owner() as connection:
        await run_out(connection, late)
    await runner.until(person, task, "COMPLETED")
    failed, expired = (
        message["content"]
        for message in (await scripted.asked(script))[1]["messages"]
        if message["role"] == "tool"
    )
    assert failed.startswith("The subtask ended as FAILED. The model provider refused")
    assert expired == "The subtask ended as CANCELLED."


async def test_what_helpers_cost_counts_against_the_budget_of_the_one_who_asked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # One cent is 10,000 micro-dollars.
    dear = await scripted.script(says("Dear.", inputTokens=9_500, outputTokens=100))
    script = await scripted.script(calls(hands_over("writer", dear)), says("Never said."))
    task = await runner.finish(person, "frugal", script, "FAILED")
    assert task["error"]["code"] == "BUDGET_EXCEEDED"
    assert task["error"]["retryable"] is True
    assert await scripted.count(script) == {0: 1}
    assert (await runner.child(person, task, "COMPLETED"))["usage"]["costUsd"] == "0.009700"


async def test_a_helper_stops_when_the_budget_above_it_is_used_up(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    dear = await scripted.script(
        calls(("desk__lookup", {"ref": "dear"}), inputTokens=9_900), says("Never said.")
    )
    script = await scripted.script(calls(hands_over("writer", dear)), says("Never said."))
    task = await runner.finish(person, "frugal", script, "FAILED")
    child = await runner.child(person, task, "FAILED")
    assert child["error"]["code"] == task["error"]["code"] == "BUDGET_EXCEEDED"
    assert await scripted.count(dear) == {0: 1}
    again = await person.post(f"/api/tasks/{child['id']}/approve")
    assert_error(again, 409, "CONFLICT")
