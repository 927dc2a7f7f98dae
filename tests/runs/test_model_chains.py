"""Chains of models: the next one takes over when one is not available."""

from datetime import timedelta
from typing import Any

import pytest

from rota.platform.model_choice import ModelChoice
from rota.runs.backoff import MODEL_ATTEMPTS, Exhausted
from rota.runs.models import AVOIDED_S, ModelChain, Models
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person

# A provider that asks for so short a pause is asked again in the next test.
BRIEFLY = {"headers": {"Retry-After": "0.01"}}


async def models_of(runner: Runner, person: Person, task: dict[str, Any]) -> list[Any]:
    steps, _ = await runner.timeline(person, task)
    return [(step["name"], step["arguments"]) for step in steps if step["kind"] == "model"]


async def test_the_third_model_answers_while_two_are_not_available(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    down = {"model-1": {"status": 503}}
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "chain"}), byModel=down),
        says("Completed.", byModel=down, inputTokens=100, outputTokens=50),
    )
    task = await runner.finish(person, "rescued", script)
    assert task["output"] == "Completed."
    by_third = ("model-3", {"insteadOf": ["model-1", "model-2"]})
    assert await models_of(runner, person, task) == [by_third, by_third]
    # The second call of the run does not ask the broken ones again.
    assert [call["model"] for call in await scripted.asked(script)] == ["model-1"] + ["model-3"] * 2
    # At the third one's price: 10 and 5 tokens, then 100 and 50, at $1 and $1,000 for a million.
    assert task["usage"]["costUsd"] == "0.055110"


async def test_the_first_model_is_asked_again_after_all_have_failed(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    fails = {"status": 500, **BRIEFLY}
    script = await scripted.script(says("Completed.", failures=[fails] * 3))
    task = await runner.finish(person, "relayed", script)
    asked = [call["model"] for call in await scripted.asked(script)]
    assert asked == ["model-1", "model-2", "model-3", "model-1"]
    assert await models_of(runner, person, task) == [("model-1", None)]
    assert task["usage"]["costUsd"] == "0.000060"


async def test_the_next_model_takes_over_in_the_middle_of_an_answer(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    broken = {"text": "This text is never finished, whatever happens.", "breakAfter": 1}
    script = await scripted.script(says("Completed.", byModel={"model-1": broken}))
    task = await runner.finish(person, "relayed", script)
    assert task["output"] == "Completed."
    assert await models_of(runner, person, task) == [("model-2", {"insteadOf": ["model-1"]})]


async def test_an_error_that_does_not_end_by_itself_is_not_taken_over(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    refused = {"status": 401}
    script = await scripted.script(
        says("Never.", byModel=dict.fromkeys(("model-1", "model-2", "model-3"), refused))
    )
    task = await runner.finish(person, "relayed", script, "FAILED")
    assert task["error"]["code"] == "MODEL_AUTHENTICATION_FAILED"
    assert len(await scripted.asked(script)) == 1


async def test_the_hold_limits_a_call_at_the_price_of_the_model_that_is_asked(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    fails = {"status": 500, **BRIEFLY}
    down = dict.fromkeys(("model-1", "model-2"), fails)
    script = await scripted.script(
        says("Completed.", byModel=down, inputTokens=1_000, outputTokens=90)
    )
    task = await runner.finish(person, "rescued", script, budgetCents=10)
    last = (await scripted.asked(script))[-1]
    assert last["model"] == "model-3"
    # 10 cents at $1,000 for a million tokens of output.
    assert 64 <= last["maxTokens"] <= 100
    assert float(task["usage"]["costUsd"]) <= 0.10


def chain(now: list[float]) -> tuple[ModelChain, list[Any]]:
    def choice(name: str) -> dict[str, Any]:
        return {"model": name, "apiKey": "k", "free": True}

    first = ModelChoice.model_validate(choice("a") | {"fallbacks": [choice("b"), choice("c")]})
    made = Models({"default": first}, None).chain("default")
    found = ModelChain(made._models, lambda: now[0])
    return found, made._models


def test_a_model_is_avoided_for_a_while_after_an_outage() -> None:
    now = [100.0]
    found, (a, b, c) = chain(now)
    assert (len(found), found.choose()) == (3, a)
    found.failed(a, None)
    assert found.choose() is b
    assert found.before(c) == ["a", "b"]
    found.failed(b, timedelta(minutes=2))
    assert found.choose() is c
    # If all have failed, the one that is available first.
    found.failed(c, timedelta(minutes=1))
    assert found.choose() is a
    now[0] += AVOIDED_S
    assert found.choose() is a
    found.failed(a, timedelta(minutes=5))
    assert found.choose() is c


def test_each_failed_attempt_moves_a_call_on_to_the_next_model_on_every_worker() -> None:
    # This worker has not seen any outage.
    found, (a, b, c) = chain([100.0])
    assert [found.choose(attempts) for attempts in range(5)] == [a, b, c, a, b]
    assert found.choose(1, [b]) is c
    # A failure that says nothing about other calls.
    found.failed(a, None, avoided=False)
    assert found.choose() is a


def test_a_call_pauses_until_the_first_model_can_be_asked() -> None:
    now = [100.0]
    found, (a, b, c) = chain(now)
    found.failed(a, None)
    assert found.pause_s(1) == 0
    found.failed(b, timedelta(minutes=5))
    assert found.pause_s(1) == 0
    # The last one left is too expensive.
    assert found.pause_s(1, [c]) == 1
    found.failed(c, timedelta(minutes=2))
    # The first one did not say when to ask it again, so it is asked after the usual pause.
    assert found.pause_s(1) == 1
    now[0] += 1
    assert found.choose(3) is a
    assert found.pause_s(1) == 0
    # It asks for more time than the others.
    found.failed(a, timedelta(minutes=4))
    assert found.pause_s(2) == 119
    assert found.choose(4) is c


def test_a_call_fails_after_eight_attempts_for_each_model() -> None:
    assert [MODEL_ATTEMPTS.pause_s("C", failed) for failed in (1, 2, 7)] == [1, 2, 60]
    assert [MODEL_ATTEMPTS.pause_s("C", failed, 3) for failed in (1, 3, 4, 23)] == [1, 1, 2, 60]
    for models in (1, 3):
        with pytest.raises(Exhausted):
            MODEL_ATTEMPTS.pause_s("C", 8 * models, models)


async def test_a_model_that_is_too_expensive_for_the_run_does_not_take_over(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    fails = {"status": 500, **BRIEFLY}
    script = await scripted.script(says("Completed.", failures=[fails]))
    # The second model is unreachable, and the third one costs more than a cent for any answer.
    task = await runner.finish(person, "rescued", script, budgetCents=1)
    assert task["output"] == "Completed."
    assert [call["model"] for call in await scripted.asked(script)] == ["model-1"] * 2
