"""Answers that cannot be used: cut off, empty, too long, or with too many tool calls."""

from typing import Any

import pytest

from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, conversation, last_message, says
from tests.runs.test_ends import failed
from tests.service import Person

CUT_OFF = says("It begins", finishReason="length")
EMPTY = says("")
BLANK = says(" \n")
TOO_LONG = says("é" * 50_001)
THOUGHT_ONLY = says("", finishReason="length")

UNUSABLE = [
    pytest.param(CUT_OFF, "OUTPUT_CUT_OFF", "was cut off at the output limit", id="cut-off"),
    pytest.param(THOUGHT_ONLY, "OUTPUT_CUT_OFF", "was cut off at the output limit", id="nothing"),
    pytest.param(EMPTY, "EMPTY_ANSWER", "Your answer was empty.", id="empty"),
    pytest.param(BLANK, "EMPTY_ANSWER", "Your answer was empty.", id="blank"),
    pytest.param(TOO_LONG, "OUTPUT_TOO_LONG", "in at most 50000 characters", id="too-long"),
]


def answers(*turns: Any) -> list[Any]:
    """A script with these answers. Rota leaves an empty answer out of the conversation, so the
    answer after it is another attempt of the same turn."""
    script: list[Any] = []
    skipped: list[Any] = []
    for turn in turns:
        if turn in (EMPTY, BLANK, THOUGHT_ONLY):
            skipped.append(turn)
        else:
            script.append({**turn, "failures": skipped})
            skipped = []
    return script


@pytest.mark.parametrize(("answer", "code", "told"), UNUSABLE)
async def test_the_model_can_answer_again_after_an_unusable_answer(
    runner: Runner, scripted: Scripted, person: Person, answer: Any, code: str, told: str
) -> None:
    script = await scripted.script(*answers(answer, says("Usable.")))
    task = await runner.finish(person, "writer", script)
    assert task["output"] == "Usable."
    # Both answers are charged.
    assert task["usage"]["costUsd"] == "0.000040"
    first, second = await scripted.asked(script)
    assert told in last_message(second)
    assert told not in conversation(first)


@pytest.mark.parametrize(("answer", "code", "told"), UNUSABLE)
async def test_the_second_unusable_answer_in_a_row_fails_the_run_and_a_retry_continues(
    runner: Runner, scripted: Scripted, person: Person, answer: Any, code: str, told: str
) -> None:
    usable = says("Usable.")
    script = await scripted.script(*answers(answer, answer, answer, usable))
    task = await runner.finish(person, "writer", script, "FAILED")
    assert failed(task) == (code, True)
    assert task["output"] is None
    assert task["usage"]["costUsd"] == "0.000040"
    await runner.retry(person, task, "failure")
    # The new run has its own second chance.
    task = await runner.until(person, task, "COMPLETED")
    assert (task["output"], task["usage"]["costUsd"]) == ("Usable.", "0.000080")
    assert len(await scripted.asked(script)) == 4


async def test_an_unusable_answer_is_not_shown_for_approval(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(CUT_OFF, says("Whole."))
    task = await runner.begin(person, "editor", script)
    review = await runner.waiting(person, task, "output")
    assert review["items"][0]["arguments"] == {"output": "Whole."}
    assert review["history"] == []
    await runner.approve(person, task)


async def test_two_unusable_answers_with_work_between_them_do_not_fail_the_run(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    lookup = calls(("desk__lookup", {"ref": "between"}))
    script = await scripted.script(CUT_OFF, lookup, TOO_LONG, says("Usable."))
    assert (await runner.finish(person, "writer", script))["output"] == "Usable."


@pytest.mark.parametrize("arguments", ['{"ref": "cut", "te', {"ref": "cut"}, ""])
async def test_a_tool_call_that_was_cut_off_is_not_made(
    runner: Runner, scripted: Scripted, person: Person, arguments: Any
) -> None:
    script = await scripted.script(
        calls(
            ("desk__send", {"ref": "before-cut"}),
            ("desk__send", arguments),
            finishReason="length",
        ),
        says("Done."),
    )
    before = len(await scripted.done("before-cut"))
    task = await runner.finish(person, "writer", script)
    assert len(await scripted.done("before-cut")) == before + 1
    assert await scripted.done("cut") == []
    assert "this call was not made" in last_message((await scripted.asked(script))[1])
    steps, _ = await runner.timeline(person, task)
    outcomes = {s["id"]: s["outcome"] for s in steps if s["kind"] == "tool"}
    assert outcomes == {"call-1-1-1": "ok", "call-1-1-2": "failed"}


@pytest.mark.long
async def test_of_2100_tool_calls_in_one_answer_64_are_made_and_the_model_learns_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(*[("desk__lookup", {"ref": "many"})] * 2_100), says("Enough.")
    )
    task = await runner.begin(person, "writer", script)
    task = await runner.until(person, task, "COMPLETED")
    assert task["output"] == "Enough."
    assert len(await scripted.done("many")) == 64
    _, second = await scripted.asked(script)
    results = [message for message in second["messages"] if message["role"] == "tool"]
    # Providers require a result for each call, so the others are left out of the conversation.
    [assistant] = [message for message in second["messages"] if message["role"] == "assistant"]
    assert len(results) == len(assistant["tool_calls"]) == 64
    assert last_message(second).startswith(
        "Your answer contained 2100 tool calls. Only the first 64 were made."
    )
    _, total = await runner.timeline(person, task)
    assert total == 66
    await runner.history_ends(task)
