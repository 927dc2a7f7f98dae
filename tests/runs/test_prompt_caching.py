"""Prompt caching: what providers are asked to cache, and what that costs."""

from typing import Any

from rota.platform.model_choice import ModelChoice
from rota.runs.models import Models
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person


def is_cached(block: dict[str, Any]) -> bool:
    return (block.get("cache_control") or {}).get("type") == "ephemeral"


async def test_a_conversation_with_anthropic_is_cached_at_its_price(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(
            ("desk__lookup", {"ref": "cache"}),
            inputTokens=5_000,
            cacheWriteTokens=4_900,
            outputTokens=100,
        ),
        says(
            "Completed.",
            inputTokens=6_000,
            cachedTokens=4_900,
            cacheWriteTokens=1_000,
            outputTokens=200,
        ),
    )
    task = await runner.finish(person, "cached", script)
    first, second = await scripted.asked(script)
    for request in (first, second):
        assert is_cached(request["system"][-1])
        assert is_cached(request["tools"][-1])
        # Everything up to here: the next call of the run begins with it.
        assert is_cached(request["messages"][-1]["content"][-1])
    # A million tokens of input cost $3, written to the cache $3.75, read from it $0.30, output $15.
    costs = (100 * 3 + 4_900 * 3.75 + 100 * 15, 100 * 3 + 1_000 * 3.75 + 4_900 * 0.3 + 200 * 15)
    steps, _ = await runner.timeline(person, task)
    model_calls = [step for step in steps if step["kind"] == "model"]
    assert [float(step["costUsd"]) * 1e6 for step in model_calls] == [round(cost) for cost in costs]
    assert [step["cachedInputTokens"] for step in model_calls] == [0, 4_900]
    assert [step["cacheWriteTokens"] for step in model_calls] == [4_900, 1_000]


def test_only_anthropic_is_asked_to_cache_and_the_operator_can_prevent_it() -> None:
    def caching(**changes: Any) -> Any:
        choice = ModelChoice.model_validate({"model": "m", "apiKey": "k", "free": True, **changes})
        return Models({"default": choice}, None).chain("default").choose().caching

    assert caching(provider="anthropic")
    assert not caching(provider="anthropic", promptCaching=False)
    assert not caching(provider="openai")
