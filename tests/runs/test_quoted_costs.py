"""The real cost of a task never passes its quote."""

import asyncio
import random
from decimal import Decimal
from typing import Any

import pytest

from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, Turn, calls, delegates, says
from tests.sizes import size

TASKS = size(16, 500)


@pytest.mark.long
async def test_the_real_cost_of_random_tasks_never_passes_the_quote(
    runner: Runner, scripted: Scripted
) -> None:
    """Answers use any number of tokens, also more than they may, and runs use tools and helpers."""
    slots = asyncio.Semaphore(12)
    # One account would reach its rate limit.
    people = [await runner.newcomer() for _ in range(TASKS // 20 + 1)]

    async def one(seed: int) -> tuple[Decimal, Decimal]:
        chance, person = random.Random(seed), people[seed // 20]
        agent = chance.choice(["writer", "lead", "frugal", "editor", "clerk"])
        async with slots:
            script = await scripted.script(*await _turns(chance, scripted, agent))
            body: dict[str, Any] = {"name": "Quoted", "agent": agent, "input": f"Do. {script}"}
            if chance.random() < 0.6:
                body["budgetCents"] = 1 if agent == "frugal" else chance.randint(1, 20)
            answer = await person.post("/api/tasks", {**body, "dryRun": True})
            assert answer.status_code == 200, answer.text
            quote = answer.json()["quote"]
            task = (await person.post("/api/tasks", body)).json()["task"]
            task = await runner.until(
                person, task, "COMPLETED", "FAILED", "WAITING_APPROVAL", deadline_s=300
            )
            if task["status"] == "WAITING_APPROVAL":
                await runner.approve(person, task)
            spent = Decimal(task["usage"]["costUsd"])
            for child in await runner.children(person, task):
                spent += Decimal(child["usage"]["costUsd"])
        assert spent <= Decimal(quote["maximumCostUsd"]), (seed, quote, task)
        return spent, Decimal(quote["maximumCostUsd"])

    costs = await asyncio.gather(*[one(seed) for seed in range(TASKS)])
    # The test means something: tasks came near their budgets, and were stopped there.
    assert any(spent > quoted / 2 for spent, quoted in costs)
    assert any(spent == quoted for spent, quoted in costs)


async def _turns(chance: random.Random, scripted: Scripted, agent: str) -> list[Turn]:
    def tokens() -> dict[str, int]:
        return {
            "inputTokens": chance.choice([10, 500, 5_000, 30_000]),
            "outputTokens": chance.choice([5, 300, 3_000, 40_000]),
        }

    turns: list[Turn] = []
    for _ in range(chance.randint(0, 4)):
        tools: list[tuple[str, Any]] = [("desk__lookup", {"ref": f"quoted-{chance.random()}"})]
        if agent in ("lead", "frugal"):
            helper = await scripted.script(
                calls(("desk__lookup", {"ref": "quoted-helper"}), **tokens()),
                says("Helped.", **tokens()),
            )
            tools = [delegates("writer", helper)] * chance.randint(1, 2)
        turns.append(calls(*tools, **tokens()))
    text = '{"total": 3}' if agent == "clerk" else "Done."
    return [*turns, says(text, **tokens())]
