"""Structured output: an answer matches the task's schema, or the task does not complete."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import SecretStr
from pydantic_ai.exceptions import ModelRequestRejectedError

from rota.platform.model_choice import ModelChoice
from rota.runs.models import Models, PricedModel
from rota.runs.output_formats import OutputFormats
from tests.runs.generated_schemas import Case, case
from tests.runs.runner import Runner, shown
from tests.runs.scripted import Scripted, calls, conversation, delegates, last_message, says
from tests.runs.test_ends import failed
from tests.service import Person
from tests.sizes import size
from tests.tasks.world import create, uuid_of

SCHEMAS = size(6, 200)
MAX_REPAIRS = 3

INVOICE: dict[str, Any] = {
    "type": "object",
    "properties": {"total": {"type": "number"}, "paid": {"type": "boolean"}},
    "required": ["total", "paid"],
    "additionalProperties": False,
}
GOOD = {"total": 12.5, "paid": True}


async def test_an_answer_that_matches_the_schema_becomes_data(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says('{"total": 12.5, "paid": true}'))
    task = await runner.finish(person, "writer", script, outputSchema=INVOICE)
    assert task["outputData"] == GOOD
    assert json.loads(task["output"]) == GOOD
    assert task["outputSchema"] == INVOICE
    [asked] = await scripted.asked(script)
    # The provider gets the schema, and so does the model, because not every provider enforces it.
    assert asked["responseFormat"]["json_schema"]["schema"]["required"] == ["total", "paid"]
    assert json.dumps(INVOICE, separators=(",", ":")) in last_message(asked)
    [listed] = (await person.get("/api/tasks", params={"limit": 1})).json()["tasks"]
    assert (listed["outputData"], listed["outputSchema"]) == (GOOD, INVOICE)


async def test_json_in_a_code_block_is_accepted(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says(f"```json\n{json.dumps(GOOD)}\n```"))
    task = await runner.finish(person, "writer", script, outputSchema=INVOICE)
    assert task["outputData"] == GOOD


async def test_the_model_is_told_what_is_wrong_and_each_correction_is_a_charged_step(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says('{"total": "much", "paid": true}'), says(json.dumps(GOOD)))
    task = await runner.finish(person, "writer", script, outputSchema=INVOICE)
    assert task["usage"]["costUsd"] == "0.000040"
    _, second = await scripted.asked(script)
    assert 'total: "much" is not of type "number"' in last_message(second)
    steps, _ = await runner.timeline(person, task)
    assert [(s["kind"], s["outcome"], s["costUsd"]) for s in steps] == [
        ("model", "failed", "0.000020"), ("model", "ok", "0.000020"),
    ]  # fmt: skip
    assert "does not match the JSON Schema" in steps[0]["note"]
    assert steps[1]["note"] is None


async def test_after_three_corrections_the_task_fails_and_a_retry_has_three_more(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(*[says("No JSON.")] * 7, says(json.dumps(GOOD)))
    task = await runner.finish(person, "writer", script, "FAILED", outputSchema=INVOICE)
    assert failed(task) == ("OUTPUT_SCHEMA_MISMATCH", True)
    assert (task["output"], task["outputData"]) == (None, None)
    assert len(await scripted.asked(script)) == 4
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert task["outputData"] == GOOD
    assert task["usage"]["steps"] == 8


async def test_corrections_are_counted_over_the_whole_run(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    lookup = calls(("desk__lookup", {"ref": "between-repairs"}))
    turns = [turn for _ in range(4) for turn in (says("No JSON."), lookup)]
    script = await scripted.script(*turns)
    task = await runner.finish(person, "writer", script, "FAILED", outputSchema=INVOICE)
    assert failed(task) == ("OUTPUT_SCHEMA_MISMATCH", True)
    assert len(await scripted.asked(script)) == 7


async def test_a_provider_that_refuses_the_schema_is_asked_without_it(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    error = {"message": "Invalid schema for response_format", "type": "invalid_request_error"}
    refused = {"status": 400, "error": error}
    schema = {**INVOICE, "title": "Refused by the provider"}
    script = await scripted.script(says(json.dumps(GOOD), failures=[refused]))
    task = await runner.finish(person, "writer", script, outputSchema=schema)
    assert task["outputData"] == GOOD
    formats = [asked["responseFormat"] for asked in await scripted.asked(script)]
    assert [each is None for each in formats] == [False, True]
    # It does not count as a failed attempt.
    attempts = "SELECT sum(attempts) FROM steps WHERE task_id = $1"
    async with runner.service.owner() as connection:
        assert await connection.fetchval(attempts, uuid_of(task)) == 0


def test_a_refusal_concerns_one_provider() -> None:
    formats, refusal = OutputFormats(), ModelRequestRejectedError("m", "Invalid schema.")

    def chosen(url: str) -> PricedModel:
        choice = ModelChoice(model="gpt-4o", base_url=url, api_key=SecretStr("k"), free=True)
        return Models({"default": choice}, None).chain("default").choose()

    first, second = chosen("https://one.example.com/v1"), chosen("https://two.example.com/v1")
    asked = formats.parameters(first, [], INVOICE)
    assert asked.output_mode == "native"
    assert formats.is_refused(first, asked, INVOICE, refusal)
    assert formats.parameters(first, [], INVOICE).output_mode != "native"
    assert formats.parameters(second, [], INVOICE).output_mode == "native"


async def test_anthropic_gets_the_schema_and_its_answer_is_checked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says('{"number": 5}'), says(json.dumps(GOOD)))
    task = await runner.finish(person, "cached", script, outputSchema=INVOICE)
    assert task["outputData"] == GOOD
    asked = await scripted.asked(script)
    assert len(asked) == 2
    for call in asked:
        sent = call["responseFormat"]["format"]
        assert sent["type"] == "json_schema"
        assert sent["schema"]["properties"].keys() == INVOICE["properties"].keys()


async def test_the_agents_schema_applies_unless_the_task_has_its_own(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says('{"total": 0.25}'), says('{"total": 2}'))
    task = await runner.finish(person, "clerk", script)
    assert task["outputData"] == {"total": 2}
    assert task["outputSchema"]["properties"]["total"] == {"type": "number", "minimum": 0.5}
    assert "0.25 is less than the minimum of 0.5" in last_message((await scripted.asked(script))[1])
    script = await scripted.script(says(json.dumps(GOOD)))
    task = await runner.finish(person, "clerk", script, outputSchema=INVOICE)
    assert (task["outputData"], task["outputSchema"]) == (GOOD, INVOICE)
    await runner.cancel(person, await create(person, agent="clerk", input="Please."))


async def test_a_parent_reads_the_data_of_a_delegated_task(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    helper = await scripted.script(says('{"total": 7, "lines": [{"sku": "AB"}]}'))
    script = await scripted.script(calls(delegates("clerk", helper)), says(json.dumps(GOOD)))
    task = await runner.finish(person, "lead", script, outputSchema=INVOICE)
    assert task["outputData"] == GOOD
    child = await runner.child(person, task, "COMPLETED")
    assert child["outputData"] == {"total": 7, "lines": [{"sku": "AB"}]}
    assert child["output"] in json.loads(f'"{_result(await scripted.asked(script))}"')


def _result(asked: list[dict[str, Any]]) -> str:
    return json.dumps(last_message(asked[1]))[1:-1]


async def test_an_edit_at_the_output_gate_must_match_the_schema(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says(json.dumps(GOOD)))
    task = await runner.begin(person, "editor", script, outputSchema=INVOICE)
    review = await runner.waiting(person, task, "output")
    [item] = review["items"]
    assert (item["arguments"], item["argumentsSchema"]) == (GOOD, INVOICE)

    async def approve(arguments: Any) -> Any:
        decision = {"id": item["id"], "arguments": arguments}
        body = {"review": shown(review), "decisions": [decision]}
        return await person.post(f"/api/tasks/{task['id']}/approve", body)

    for wrong in ({"total": "x", "paid": True}, {"total": 1}, {"output": "Text."}):
        answer = await approve(wrong)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["details"][0]["field"].endswith(".arguments")
    assert "total:" in (await approve({"total": "x", "paid": True})).text
    edited = {"total": 99, "paid": False}
    answer = await approve(edited)
    assert answer.status_code == 200, answer.text
    task = await runner.until(person, task, "COMPLETED")
    assert task["outputData"] == edited == json.loads(task["output"])
    # The digest of the decided item covers the data.
    [decided] = answer.json()["review"]["items"]
    assert decided["edited"]
    assert decided["digest"] != item["digest"]


async def test_a_rejected_structured_output_can_be_answered_again(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    better = {"total": 1, "paid": False}
    script = await scripted.script(says(json.dumps(GOOD)), says(json.dumps(better)))
    task = await runner.begin(person, "editor", script, outputSchema=INVOICE)
    first = await runner.waiting(person, task, "output")
    await runner.reject(person, task, reason="Not paid.", resume=True)
    await runner.seen(
        lambda: runner.review(person, task), lambda r: r["number"] > first["number"], pending=True
    )
    await runner.approve(person, task)
    task = await runner.until(person, task, "COMPLETED")
    assert task["outputData"] == better


async def test_a_run_gate_shows_and_seals_the_schema_and_the_budget(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says(json.dumps(GOOD)))
    task = await runner.begin(
        person, "writer", script, outputSchema=INVOICE, budgetCents=7, status="WAITING_APPROVAL"
    )
    work = (await runner.waiting(person, task, "run"))["work"]
    assert (work["outputSchema"], work["budgetCents"]) == (INVOICE, 7)
    await runner.approve(person, task)
    task = await runner.until(person, task, "COMPLETED")
    assert task["usage"]["budgetUsd"] == "0.070000"


@pytest.mark.long
async def test_whatever_the_schema_a_completed_task_has_data_that_fits(
    runner: Runner, scripted: Scripted
) -> None:
    """Each schema with answers that need 0 to 4 corrections. Every third waits for a person."""
    slots = asyncio.Semaphore(16)
    # One account would reach its rate limit.
    people = [await runner.newcomer() for _ in range(SCHEMAS // 5 + 1)]

    async def one(seed: int, repairs: int) -> tuple[str, int]:
        made, person = case(seed, wrong=repairs), people[seed // 5]
        turns = [says(answer) for answer in made.wrong] + [says(json.dumps(made.fits))]
        async with slots:
            script = await scripted.script(*turns)
            agent = "editor" if seed % 3 == 0 else "writer"
            task = await runner.begin(person, agent, script, outputSchema=made.schema)
            if agent == "editor" and repairs <= MAX_REPAIRS:
                await _decide(runner, person, task, made)
            task = await runner.until(person, task, "COMPLETED", "FAILED")
        assert (task["status"] == "COMPLETED") == (repairs <= MAX_REPAIRS), (seed, task["error"])
        if task["status"] == "COMPLETED":
            assert made.matches(task["outputData"]), (seed, task["outputData"])
            assert task["outputData"] == made.fits == json.loads(task["output"])
        else:
            assert failed(task) == ("OUTPUT_SCHEMA_MISMATCH", True), (seed, task["error"])
            assert (task["output"], task["outputData"]) == (None, None)
        assert task["usage"]["steps"] == min(repairs, MAX_REPAIRS) + 1, (seed, repairs)
        return task["status"], repairs

    ended = await asyncio.gather(
        *[one(seed, repairs) for seed in range(SCHEMAS) for repairs in range(5)]
    )
    assert len(ended) == SCHEMAS * 5
    assert sum(status == "COMPLETED" for status, _ in ended) == SCHEMAS * 4


async def _decide(runner: Runner, person: Person, task: dict[str, Any], made: Case) -> None:
    review = await runner.waiting(person, task, "output")
    [item] = review["items"]
    assert made.matches(item["arguments"])
    wrong = {"id": item["id"], "arguments": {**made.fits, **dict.fromkeys(made.fits, object)}}
    for name in made.fits:
        wrong["arguments"] = {**made.fits, name: [[["surely wrong"]]]}
        if not made.matches(wrong["arguments"]):
            body = {"review": shown(review), "decisions": [wrong]}
            answer = await person.post(f"/api/tasks/{task['id']}/approve", body)
            assert answer.status_code == 400, answer.text
            break
    await runner.approve(person, task, {"id": item["id"], "arguments": made.fits})


@pytest.mark.parametrize(
    "text",
    ['{"total": 1, "total": 2, "paid": true}', '{"total": NaN, "paid": true}', "null", "[1]",
     '{"total": 1, "paid": true} and more', '"\\u0000"'],
)  # fmt: skip
async def test_what_is_not_one_json_object_is_sent_back(
    runner: Runner, scripted: Scripted, person: Person, text: str
) -> None:
    script = await scripted.script(says(text), says(json.dumps(GOOD)))
    task = await runner.finish(person, "writer", script, outputSchema=INVOICE)
    assert (task["outputData"], task["usage"]["steps"]) == (GOOD, 2)
    assert "does not match the JSON Schema" in conversation((await scripted.asked(script))[1])
