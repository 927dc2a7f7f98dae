"""Errors of model providers, mistakes of models, and prices."""

import asyncio
import sys
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel

from rota.platform import clock
from rota.platform.model_choice import ModelChoice
from rota.platform.settings import Settings
from rota.runs.model_errors import (
    ContentFiltered,
    ContextTooLong,
    ModelAnswerMalformed,
    ModelNotConfigured,
    ModelWithoutPrice,
    TryAgain,
    classify_error,
)
from rota.runs.model_problems import problems
from rota.runs.models import Models, price_of
from rota.runs.prices import TokenUsage
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person


async def test_temporary_errors_of_a_provider_are_retried(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def one(*failures: dict[str, Any]) -> None:
        script = await scripted.script(says("Completed.", failures=list(failures)))
        task = await runner.finish(person, "writer", script)
        assert task["output"] == "Completed."
        asked = await scripted.asked(script)
        assert len(asked) == len(failures) + 1
        # Never at once.
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


async def test_the_retry_after_header_of_a_provider_is_respected(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    wait = {"status": 429, "headers": {"Retry-After": "2"}}
    script = await scripted.script(says("Completed.", failures=[wait]))
    await runner.finish(person, "writer", script)
    first, second = await scripted.asked(script)
    assert second["at"] - first["at"] >= 2


PERMANENT: dict[str, tuple[bool, dict[str, Any]]] = {
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


async def test_each_permanent_error_fails_the_run_with_its_own_code(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def one(code: str, retryable: bool, turn: dict[str, Any]) -> None:
        script = await scripted.script(turn)
        task = await runner.finish(person, "writer", script, "FAILED")
        assert (task["error"]["code"], task["error"]["retryable"]) == (code, retryable)
        times = 3 if code == "MODEL_ANSWER_MALFORMED" else 1
        assert await scripted.count(script) == {0: times}
        # The provider bills a filtered answer, so it is charged.
        charged = "0.000020" if code == "CONTENT_FILTERED" else "0.000000"
        assert task["usage"]["costUsd"] == charged
        assert (await runner.events(person, task))[-1] == "task.failed"

    await asyncio.gather(*[one(code, *rest) for code, rest in PERMANENT.items()])


async def test_a_provider_that_keeps_failing_fails_the_run_which_can_be_retried(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # A short pause between attempts keeps the test fast.
    down = {"status": 503, "headers": {"retry-after-ms": "10"}}
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "down"})), says("Completed.", failures=[down] * 8)
    )
    task = await runner.finish(person, "writer", script, "FAILED")
    assert task["error"]["code"] == "MODEL_UNAVAILABLE"
    assert task["error"]["retryable"] is True
    assert await scripted.count(script) == {0: 1, 1: 8}
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 9}


async def test_an_agent_whose_model_is_not_configured_fails_with_its_own_code(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    task = await runner.finish(person, "stranger", "", "FAILED")
    assert task["error"]["code"] == "MODEL_NOT_CONFIGURED"
    assert "'nowhere'" in task["error"]["message"]
    assert task["error"]["retryable"] is True


async def test_the_model_learns_about_its_mistakes_and_continues(
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
    results = [
        message["content"]
        for message in (await scripted.asked(script))[1]["messages"]
        if message["role"] == "tool"
    ]
    assert results[0] == ("Tool not found. Available tools: ask_person, desk__lookup, desk__send.")
    not_an_object = "The arguments must be a JSON object. Correct them and call the tool again."
    assert results[1] == results[2] == not_an_object
    assert (
        results[3] == 'The arguments do not match the tool\'s schema: "ref" is a required property'
    )
    assert "'unknown' was unexpected" in results[4]
    assert results[5] == 'lookup did {"ref": "right"}'
    assert await scripted.done("wrong") == []
    steps, _ = await runner.timeline(person, task)
    outcomes = [step["outcome"] for step in steps if step["kind"] == "tool"]
    assert sorted(outcomes) == ["failed"] * 5 + ["ok"]


async def test_characters_that_postgresql_cannot_store_do_not_stop_a_run(
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


async def test_tool_calls_of_one_step_are_made_in_parallel(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    refs = [f"side-{number}" for number in range(3)]
    for ref in refs:
        await scripted.behave(ref, {"hold": True})
    script = await scripted.script(
        calls(*[("desk__lookup", {"ref": ref}) for ref in refs]), says("All three.")
    )
    task = await runner.begin(person, "writer", script)
    for ref in refs:
        # All have started before any has ended.
        await until(lambda ref=ref: scripted.done(ref))  # type: ignore[misc]
    for ref in reversed(refs):
        await scripted.release_tool(ref)
    await runner.until(person, task, "COMPLETED")
    second = (await scripted.asked(script))[1]
    results = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    assert results == [f'lookup did {{"ref": "{ref}"}}' for ref in refs]


TOO_LONG = "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000"


@pytest.mark.parametrize(
    ("error", "attempt", "kind"),
    [
        (TimeoutError(), 1, TryAgain),
        (ConnectionResetError(), 9, TryAgain),
        (UnexpectedModelBehavior("What?"), 2, TryAgain),
        (UnexpectedModelBehavior("What?"), 3, ModelAnswerMalformed),
        (ContentFilterError("No."), 1, ContentFiltered),
        (ModelHTTPError(418, "m"), 1, TryAgain),
        (ModelHTTPError(413, "m"), 1, ContextTooLong),
        (ModelRequestRejectedError("m", TOO_LONG), 1, ContextTooLong),
        (ZeroDivisionError(), 1, TryAgain),
        (ZeroDivisionError(), 3, ModelAnswerMalformed),
    ],
)
def test_each_error_is_classified(error: Exception, attempt: int, kind: type) -> None:
    assert type(classify_error(error, attempt)) is kind


def test_only_an_outage_concerns_other_runs() -> None:
    def is_outage(error: Exception) -> bool:
        found = classify_error(error)
        assert isinstance(found, TryAgain)
        return found.is_outage

    down = [ModelHTTPError(status, "m") for status in (408, 429, 500, 503, 529)]
    for error in (*down, TimeoutError(), ConnectionResetError(), ModelAPIError("m", "Broke off.")):
        assert is_outage(error)
    for other in (ModelHTTPError(409, "m"), UnexpectedModelBehavior("?"), ZeroDivisionError()):
        assert not is_outage(other)


def test_a_provider_cannot_make_a_run_wait_longer_than_five_minutes() -> None:
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
def test_each_provider_has_a_client_and_a_public_price(
    provider: Any, model: str, kind: type
) -> None:
    choice = ModelChoice.model_validate({"provider": provider, "model": model, "apiKey": "k"})
    found = Models({"default": choice}, None).chain("default").choose()
    assert isinstance(found.model, kind)
    now = clock.now()
    for_input = found.price.cost_micros(TokenUsage(1_000, 0), now)
    assert 0 < for_input < found.price.cost_micros(TokenUsage(0, 1_000), now)
    assert found.price.version.startswith("genai-prices/")


def test_the_operators_price_comes_first_and_fractions_round_up() -> None:
    own = ModelChoice(
        model="own", input_usd_per_million=Decimal("0.15"), output_usd_per_million=Decimal("0.6")
    )
    price, now = price_of(own), clock.now()
    assert price.version == "operator"
    assert price.cost_micros(TokenUsage(1, 0), now) == 1
    assert price.cost_micros(TokenUsage(1_000_000, 1_000_000), now) == 750_000
    # Without a price of its own, cached input costs as much as other input.
    half_cached = TokenUsage(1_000_000, 0, cache_read_tokens=500_000)
    assert price.cost_micros(half_cached, now) == 150_000
    with_cache = own.model_copy(update={"cached_input_usd_per_million": Decimal("0.015")})
    assert price_of(with_cache).cost_micros(half_cached, now) == 75_000 + 7_500
    # Anthropic bills what it writes to its cache at a quarter more, also against the hold.
    written = TokenUsage(1_000_000, 0, cache_write_tokens=1_000_000)
    assert price.cost_micros(written, now) == 150_000
    anthropic = price_of(own.model_copy(update={"provider": "anthropic"}))
    assert anthropic.cost_micros(written, now) == 187_500
    assert anthropic.max_cost_micros(3_000_000, 0, now) == 187_501
    own_write = own.model_copy(update={"cache_write_usd_per_million": Decimal("0.3")})
    assert price_of(own_write).cost_micros(written, now) == 300_000
    free = price_of(ModelChoice(model="own", free=True))
    assert free.cost_micros(TokenUsage(10**9, 10**9), now) == 0
    with pytest.raises(ModelWithoutPrice) as raised:
        price_of(ModelChoice(model="unknown-model"))
    assert raised.value.code == "MODEL_WITHOUT_PRICE"


def test_the_local_model_serves_every_name_while_none_is_configured() -> None:
    models = Models({}, "http://127.0.0.1:1/v1")
    assert {models.chain(name).choose().name for name in ("default", "fast", "strong")} == {
        "smollm2"
    }
    with pytest.raises(ModelNotConfigured) as raised:
        models.chain("another")
    assert raised.value.code == "MODEL_NOT_CONFIGURED"


@pytest.mark.parametrize(
    ("choice", "fix"),
    [
        ({"provider": "google", "model": "g", "free": True}, "Set apiKey for 'g'"),
        ({"provider": "anthropic", "model": "claude-sonnet-4-5"}, "Set apiKey"),
        ({"model": "gpt-5"}, "Set apiKey for 'gpt-5'"),
        ({"model": "unknown", "apiKey": "k"}, "Set inputUsdPerMillion and outputUsdPerMillion"),
        (
            [{"model": "gpt-5", "apiKey": "k"}, {"model": "unknown", "apiKey": "k"}],
            "the price of the model 'unknown' is unknown",
        ),
    ],
)
def test_a_model_that_cannot_be_called_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, choice: Any, fix: str
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    works = {"model": "m", "apiKey": "k", "free": True}
    found = problems(Settings(models={"broken": choice, "works": works}).models)
    assert list(found) == ["broken"]
    assert fix in found["broken"]


def test_a_provider_whose_package_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    settings = {"provider": "anthropic", "model": "m", "apiKey": "k", "free": True}
    found = problems({"broken": ModelChoice.model_validate(settings)})
    assert "pip install 'rota[anthropic]'" in found["broken"]
