"""What a model provider's errors mean for a run, and what a model may get wrong."""

import asyncio
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel

from rota.platform.settings import ModelChoice
from rota.runs.models import (
    ContentFiltered,
    ModelAnswerMalformed,
    ModelNotConfigured,
    Models,
    ModelWithoutPrice,
    TryAgain,
    classify_error,
    price_of,
)
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person


async def test_passing_faults_of_a_provider_are_waited_out(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def one(*failures: dict[str, Any]) -> None:
        script = await scripted.script(says("In the end.", failures=list(failures)))
        task = await runner.finish(person, "writer", script)
        assert task["output"] == "In the end."
        asked = await scripted.asked(script)
        assert len(asked) == len(failures) + 1
        # Later each time, and never at once.
        pauses = [b["at"] - a["at"] for a, b in pairwise(asked)]
        assert all(pause > 0.9 for pause in pauses)
        assert task["usage"]["costUsd"] == "0.000020"

    await asyncio.gather(
        one({"status": 429}),
        one({"status": 500}),
        one({"status": 503}, {"drop": True}),
        one({"drop": True}),
        one({"malformed": "{]"}),
        one({"malformed": '{"choices": []}'}),
        one({"status": 408}),
    )


async def test_a_provider_that_says_when_to_come_back_is_believed(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    wait = {"status": 429, "headers": {"Retry-After": "2"}}
    script = await scripted.script(says("In the end.", failures=[wait]))
    await runner.finish(person, "writer", script)
    first, second = await scripted.asked(script)
    assert second["at"] - first["at"] >= 2


LASTING: dict[str, tuple[bool, dict[str, Any]]] = {
    "MODEL_AUTHENTICATION_FAILED": (True, {"status": 401}),
    "MODEL_NOT_FOUND": (
        True,
        {"status": 404, "error": {"message": "No such model.", "code": "model_not_found"}},
    ),
    "CONTEXT_TOO_LONG": (
        False,
        {
            "status": 400,
            "error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "code": "context_length_exceeded",
            },
        },
    ),
    "MODEL_QUOTA_EXCEEDED": (
        True,
        {
            "status": 429,
            "error": {"message": "Quota.", "type": "insufficient_quota",
                      "code": "insufficient_quota"},
        },
    ),
    "MODEL_REFUSED_REQUEST": (False, {"status": 400, "error": {"message": "Not like this."}}),
    "MODEL_ANSWER_MALFORMED": (True, {"malformed": '{"choices": "none"}'}),
    "CONTENT_FILTERED": (False, {"text": "I", "finishReason": "content_filter"}),
}  # fmt: skip


async def test_lasting_faults_fail_the_run_with_a_code_of_their_own(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def one(code: str, retryable: bool, turn: dict[str, Any]) -> None:
        script = await scripted.script(turn)
        task = await runner.finish(person, "writer", script, "FAILED")
        assert (task["error"]["code"], task["error"]["retryable"]) == (code, retryable)
        times = 3 if code == "MODEL_ANSWER_MALFORMED" else 1
        assert await scripted.count(script) == {0: times}
        # A filtered answer was given, so it was paid for.
        paid = "0.000020" if code == "CONTENT_FILTERED" else "0.000000"
        assert task["usage"]["costUsd"] == paid
        assert (await runner.events(person, task))[-1] == "task.failed"

    await asyncio.gather(*(one(code, *rest) for code, rest in LASTING.items()))


async def test_a_provider_that_keeps_failing_fails_the_run_which_can_go_on_later(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # It asks for the shortest of pauses, so that eight attempts are soon over.
    down = {"status": 503, "headers": {"retry-after-ms": "10"}}
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "down"})), says("In the end.", failures=[down] * 8)
    )
    task = await runner.finish(person, "writer", script, "FAILED")
    assert task["error"]["code"] == "MODEL_UNAVAILABLE"
    assert task["error"]["retryable"] is True
    assert await scripted.count(script) == {0: 1, 1: 8}
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 9}


async def test_a_model_nobody_configured_is_told_as_that(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    task = await runner.finish(person, "stranger", "", "FAILED")
    assert task["error"]["code"] == "MODEL_NOT_CONFIGURED"
    assert "'nowhere'" in task["error"]["message"]
    assert task["error"]["retryable"] is True


async def test_a_model_that_calls_wrongly_is_told_and_goes_on(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(
            ("no_such_tool", {}),
            ("desk__send", "{not json"),
            ("desk__send", "[1]"),
            ("desk__send", {"text": "no ref"}),
            ("desk__send", {"ref": "wrong", "unknown": True}),
            ("desk__lookup", {"ref": "right"}),
        ),
        says("Now I know."),
    )
    task = await runner.finish(person, "writer", script)
    assert task["output"] == "Now I know."
    told = [
        message["content"]
        for message in (await scripted.asked(script))[1]["messages"]
        if message["role"] == "tool"
    ]
    assert told[0] == (
        "There is no tool of that name. There are: ask_person, desk__lookup, desk__send."
    )
    assert told[1] == told[2] == "The arguments are not a JSON object. Call it again, rightly."
    assert told[3] == "The arguments do not fit the tool: 'ref' is a required property"
    assert "'unknown' was unexpected" in told[4]
    assert told[5] == 'lookup did {"ref": "right"}'
    assert await scripted.done("wrong") == []
    steps, _ = await runner.timeline(person, task)
    outcomes = [step["outcome"] for step in steps if step["kind"] == "tool"]
    assert sorted(outcomes) == ["failed"] * 5 + ["ok"]


async def test_characters_no_database_holds_do_not_stop_a_run(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("half\ufffd", {"result": {"a\0": ["b\0"]}})
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "half\0"}), ("no\0tool", {}), text="x\0y\ud800z"),
        says("x\0y\ud800z"),
    )
    task = await runner.finish(person, "writer", script)
    assert task["output"] == "x\ufffdy?z"
    steps, _ = await runner.timeline(person, task)
    assert {"a\ufffd": ["b\ufffd"]} in [step["result"] for step in steps]


async def test_calls_of_one_step_are_made_side_by_side(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    refs = [f"side-{number}" for number in range(3)]
    for ref in refs:
        await scripted.behave(ref, {"hold": True})
    script = await scripted.script(
        calls(*(("desk__lookup", {"ref": ref}) for ref in refs)), says("All three.")
    )
    task = await runner.begin(person, "writer", script)
    for ref in refs:
        # Each has begun before any has ended.
        await until(lambda ref=ref: scripted.done(ref))  # type: ignore[misc]
    for ref in reversed(refs):
        await scripted.release_tool(ref)
    await runner.until(person, task, "COMPLETED")
    second = (await scripted.asked(script))[1]
    told = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    assert told == [f'lookup did {{"ref": "{ref}"}}' for ref in refs]


@pytest.mark.parametrize(
    ("error", "attempt", "kind"),
    [
        (TimeoutError(), 1, TryAgain),
        (ConnectionResetError(), 9, TryAgain),
        (UnexpectedModelBehavior("What?"), 2, TryAgain),
        (UnexpectedModelBehavior("What?"), 3, ModelAnswerMalformed),
        (ContentFilterError("No."), 1, ContentFiltered),
        (ModelHTTPError(418, "m"), 1, TryAgain),
        (ZeroDivisionError(), 1, TryAgain),
        (ZeroDivisionError(), 3, ModelAnswerMalformed),
    ],
)
def test_errors_are_told_apart(error: Exception, attempt: int, kind: type) -> None:
    assert type(classify_error(error, attempt)) is kind


def test_a_provider_cannot_make_a_run_wait_for_hours() -> None:
    found = classify_error(ModelHTTPError(429, "m", headers={"Retry-After": "86400"}))
    assert isinstance(found, TryAgain)
    assert found.after is not None
    assert found.after.total_seconds() == 300


@pytest.mark.parametrize(
    ("provider", "model", "kind"),
    [
        ("openai", "gpt-4o", OpenAIChatModel),
        ("anthropic", "claude-3-5-haiku-latest", AnthropicModel),
        ("google", "gemini-2.0-flash", GoogleModel),
    ],
)
def test_each_provider_has_its_model_and_a_public_price(
    provider: Any, model: str, kind: type
) -> None:
    choice = ModelChoice.model_validate({"provider": provider, "model": model, "apiKey": "k"})
    found = Models({"default": choice}, None).get("default")
    assert isinstance(found.model, kind)
    assert found.price.input_micros > 0
    assert found.price.output_micros > found.price.input_micros
    assert found.price.version.startswith("genai-prices/")


def test_prices_are_the_operators_if_given_and_fractions_round_up() -> None:
    own = ModelChoice(
        model="own", input_usd_per_million=Decimal("0.15"), output_usd_per_million=Decimal("0.6")
    )
    price = price_of(own)
    assert (price.input_micros, price.output_micros, price.version) == (
        150_000,
        600_000,
        "operator",
    )
    assert price.cost_micros(1, 0) == 1
    assert price.cost_micros(1_000_000, 1_000_000) == 750_000
    free = price_of(ModelChoice(model="own", free=True))
    assert free.cost_micros(10**9, 10**9) == 0
    with pytest.raises(ModelWithoutPrice) as raised:
        price_of(ModelChoice(model="nobody-knows-this"))
    assert raised.value.code == "MODEL_WITHOUT_PRICE"


def test_a_local_model_stands_in_for_every_name_while_none_is_configured() -> None:
    models = Models({}, "http://127.0.0.1:1/v1")
    assert {models.get(name).name for name in ("default", "fast", "strong")} == {"smollm2"}
    with pytest.raises(ModelNotConfigured) as raised:
        models.get("another")
    assert raised.value.code == "MODEL_NOT_CONFIGURED"
