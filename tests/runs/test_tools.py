"""Tool calls whose worker or server fails. Calls to write tools are not repeated unasked."""

from typing import Any

import pytest

from rota.runs.call_texts import UNKNOWN
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, last_message, says
from tests.service import Person


async def test_an_interrupted_call_to_a_writing_tool_is_repeated_if_a_person_approves(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("hung-up", {"drop": True})
    script = await scripted.script(calls(("desk__send", {"ref": "hung-up"})), says("Sent."))
    task = await runner.begin(person, "writer", script)
    [item] = (await runner.waiting(person, task, "tool"))["items"]
    assert item["reason"] == UNKNOWN
    assert item["arguments"] == {"ref": "hung-up"}
    assert len(await scripted.done("hung-up")) == 1
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    first, second = await scripted.done("hung-up")
    # The same key, so that a server can detect the repetition.
    assert first["key"] == second["key"]


async def test_an_interrupted_call_to_a_writing_tool_is_not_repeated_if_a_person_rejects(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("unknown", {"status": 500})
    script = await scripted.script(calls(("desk__send", {"ref": "unknown"})), says("I see."))
    task = await runner.begin(person, "writer", script)
    await runner.waiting(person, task, "tool")
    await runner.reject(person, task, resume=True, reason="It arrived.")
    await runner.until(person, task, "COMPLETED")
    assert len(await scripted.done("unknown")) == 1
    text = last_message((await scripted.asked(script))[1])
    assert "may have taken effect" in text
    assert "Reason: It arrived." in text


async def test_each_of_two_interrupted_calls_to_writing_tools_is_decided_by_a_person(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    for ref in ("both-1", "both-2"):
        await scripted.behave(ref, {"drop": True})
    script = await scripted.script(
        calls(("desk__send", {"ref": "both-1"}), ("desk__send", {"ref": "both-2"})),
        says("I see."),
    )
    task = await runner.begin(person, "writer", script)

    async def review() -> dict[str, Any]:
        return await runner.review(person, task)

    asked = set()
    for earlier in range(2):
        seen = await runner.seen(review, lambda r, n=earlier: len(r["history"]) == n, pending=True)  # type: ignore[misc]
        asked |= {item["arguments"]["ref"] for item in seen["items"]}
        await runner.reject(person, task, resume=True)
    await runner.until(person, task, "COMPLETED")
    assert asked == {"both-1", "both-2"}
    assert [len(await scripted.done(ref)) for ref in sorted(asked)] == [1, 1]


async def test_calls_that_did_not_reach_the_tool_and_failed_reads_are_repeated(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("away", {"unavailable": True})
    await scripted.behave("flaky-1", {"status": 500})
    await scripted.behave("flaky-2", {"drop": True})
    script = await scripted.script(
        calls(
            ("desk__send", {"ref": "away"}),
            ("desk__lookup", {"ref": "flaky-1"}),
            ("desk__lookup", {"ref": "flaky-2"}),
        ),
        says("All there."),
    )
    await runner.finish(person, "writer", script)
    assert len(await scripted.done("away")) == 1
    assert len(await scripted.done("flaky-1")) == 2
    assert len(await scripted.done("flaky-2")) == 2


async def test_the_model_gets_the_error_of_a_tool(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("error", {"result": "No such customer.", "isError": True})
    script = await scripted.script(calls(("desk__send", {"ref": "error"})), says("I see."))
    task = await runner.finish(person, "writer", script)
    assert last_message((await scripted.asked(script))[1]) == "No such customer."
    steps, _ = await runner.timeline(person, task)
    assert [s["outcome"] for s in steps if s["kind"] == "tool"] == ["failed"]


@pytest.mark.long
async def test_a_worker_killed_during_calls_loses_nothing_and_repeats_no_write(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    for ref in ("killed-send", "killed-lookup"):
        await scripted.behave(ref, {"hold": True})
    sending, reading, answering = (
        await scripted.script(calls(("desk__send", {"ref": "killed-send"})), says("Sent.")),
        await scripted.script(calls(("desk__lookup", {"ref": "killed-lookup"})), says("Read.")),
        await scripted.script(
            calls(("desk__lookup", {"ref": "killed-kept"})),
            says("Answered.", failures=[{"hold": True}]),
        ),
    )
    tasks = [await runner.begin(person, "writer", s) for s in (sending, reading, answering)]
    await until(lambda: scripted.done("killed-send"))
    await until(lambda: scripted.done("killed-lookup"))
    await until(lambda: scripted.count(answering), lambda seen: seen.get(1) == 1)

    await runner.worker.kill()
    await runner.worker.start()

    read = await runner.until(person, tasks[1], "COMPLETED")
    answered = await runner.until(person, tasks[2], "COMPLETED")
    await runner.until(person, tasks[0], "WAITING_APPROVAL")
    review = await runner.review(person, tasks[0])
    assert review["items"][0]["reason"] == UNKNOWN
    assert len(await scripted.done("killed-send")) == 1
    assert len(await scripted.done("killed-lookup")) == 2
    assert read["output"] == "Read."
    # Finished calls are not repeated. The interrupted model call is (on a busy machine, its next
    # attempt can be interrupted too), and is charged once.
    asked = await scripted.count(answering)
    assert asked[0] == 1
    assert asked[1] >= 2
    assert len(await scripted.done("killed-kept")) == 1
    assert answered["usage"]["costUsd"] == "0.000040"
    await runner.cancel(person, tasks[0])
