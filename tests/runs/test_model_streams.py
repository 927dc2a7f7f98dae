"""Streams of model providers: the same answers and charges as without streaming, and errors."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from rota.platform import clock
from rota.platform.model_choice import ModelChoice
from rota.runs.model_errors import (
    ContextTooLong,
    ModelAuthenticationFailed,
    TryAgain,
    classify_error,
)
from rota.runs.models import Models, ask, usage_of
from rota.runs.prices import TokenUsage
from tests.runs.scripted import Scripted, Turn, calls, says

PROVIDERS = ("openai", "anthropic")
NAMES = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5"}
LOOKUP = ToolDefinition(
    name="lookup",
    description="Looks something up.",
    parameters_json_schema={"type": "object", "properties": {"ref": {"type": "string"}}},
)


async def answer_of(
    scripted: Scripted, provider: str, turn: Turn, *, stream: bool = True
) -> tuple[ModelResponse, list[str], ModelChoice]:
    """What a provider answers, and the pieces of its text."""
    script = await scripted.script(turn)
    url = f"{scripted.url}/v1" if provider == "openai" else scripted.url
    choice = ModelChoice.model_validate(
        {
            "provider": provider,
            "model": NAMES[provider],
            "apiKey": "k",
            "baseUrl": url,
            "stream": stream,
        }
    )
    chosen = Models({"default": choice}, None).chain("default").choose()
    question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(f"Please. {script}")])]
    pieces: list[str] = []
    parameters = ModelRequestParameters(function_tools=[LOOKUP])
    settings = ModelSettings(max_tokens=1_000)
    return await ask(chosen, question, settings, parameters, pieces.append), pieces, choice


TURNS: dict[str, Turn] = {
    "text": says("Words and more words, with an ü and a 🜁.", inputTokens=2_000, outputTokens=90),
    "cached input": says("Words.", inputTokens=5_000, cachedTokens=3_000, outputTokens=40),
    "tool calls": calls(
        ("lookup", {"ref": "a long reference that needs more than one piece"}),
        ("lookup", {"ref": "b"}),
        text="I look both up.",
        inputTokens=300,
        outputTokens=70,
    ),
    "only a tool call": calls(("lookup", {})),
    "cut off": says("Words that stop", finishReason="length"),
    "usage in every chunk": says("Words. " * 20, inputTokens=800, usageInEveryChunk=True),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", TURNS)
async def test_a_streamed_answer_is_the_whole_answer_at_the_same_price(
    scripted: Scripted, provider: str, name: str
) -> None:
    streamed, pieces, choice = await answer_of(scripted, provider, TURNS[name])
    whole, none, _ = await answer_of(scripted, provider, TURNS[name], stream=False)
    assert none == []
    assert "".join(pieces) == (streamed.text or "") == (whole.text or "")
    assert [(c.tool_name, c.args_as_dict(), c.tool_call_id) for c in streamed.tool_calls] == [
        (c.tool_name, c.args_as_dict(), c.tool_call_id) for c in whole.tool_calls
    ]
    assert streamed.finish_reason == whole.finish_reason
    usage = usage_of(streamed)
    assert usage == usage_of(whole)
    assert usage.input_tokens == TURNS[name].get("inputTokens", 10)
    assert usage.cache_read_tokens == TURNS[name].get("cachedTokens", 0)
    price = Models({"default": choice}, None).chain("default").choose().price
    assert price.cost_micros(usage, clock.now()) > 0


async def test_reasoning_and_writes_to_the_cache_are_counted_in_a_stream(
    scripted: Scripted,
) -> None:
    turn = says("Words.", inputTokens=100, outputTokens=50, reasoningTokens=30)
    streamed, _, _ = await answer_of(scripted, "openai", turn)
    assert usage_of(streamed) == TokenUsage(100, 50, reasoning_tokens=30)
    turn = says("Words.", inputTokens=900, cachedTokens=200, cacheWriteTokens=300)
    streamed, _, _ = await answer_of(scripted, "anthropic", turn)
    found = usage_of(streamed)
    assert (found.input_tokens, found.cache_read_tokens) == (900, 200)
    assert found.cache_write_tokens == 300


async def test_a_stream_without_usage_has_none(scripted: Scripted) -> None:
    streamed, _, _ = await answer_of(scripted, "openai", says("Words.", usage=False))
    assert usage_of(streamed) == TokenUsage(0, 0)


LONG = "Words and more words, and then some."
FAILURES: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "breaks off": (says(LONG, breakAfter=1), TryAgain),
    "breaks off at once": (says(LONG, breakAfter=0), TryAgain),
    "ends too early": (says(LONG, endAfter=1), TryAgain),
    "is overloaded in the middle": (says(LONG, errorAfter=1), TryAgain),
    "sends something else": (says(LONG, malformed="{]"), TryAgain),
    "is down": ({"status": 503}, TryAgain),
    "refuses the key": ({"status": 401}, ModelAuthenticationFailed),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", FAILURES)
async def test_a_stream_that_fails_is_classified_like_other_failures(
    scripted: Scripted, provider: str, name: str
) -> None:
    turn, kind = FAILURES[name]
    with pytest.raises(Exception) as raised:
        await answer_of(scripted, provider, turn)
    assert type(classify_error(raised.value)) is kind
    if kind is TryAgain and "malformed" not in turn:
        # Attempts after the third one are made, too.
        assert type(classify_error(raised.value, attempt=5)) is kind


async def test_a_context_that_is_too_long_is_noticed_before_the_stream(scripted: Scripted) -> None:
    code = {"message": "maximum context length", "code": "context_length_exceeded"}
    with pytest.raises(Exception) as raised:
        await answer_of(scripted, "openai", {"status": 400, "error": code})
    assert type(classify_error(raised.value)) is ContextTooLong


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_busy_provider_says_when_to_try_again(scripted: Scripted, provider: str) -> None:
    with pytest.raises(Exception) as raised:
        await answer_of(scripted, provider, {"status": 429, "headers": {"Retry-After": "7"}})
    found = classify_error(raised.value)
    assert isinstance(found, TryAgain)
    assert found.after == timedelta(seconds=7)


async def test_an_answer_with_a_reason_that_nobody_knows_is_whole(scripted: Scripted) -> None:
    turn = says("Words.", finishReason="guardrail_intervened")
    answer, _, _ = await answer_of(scripted, "openai", turn)
    assert (answer.text, answer.finish_reason) == ("Words.", None)
