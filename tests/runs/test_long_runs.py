"""Runs whose conversation is longer than the window of their model."""

import json
import random
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from rota.credits import verify
from rota.dev.stack import Stack
from rota.platform.db import Database
from rota.runs import token_estimate
from tests.runs.reading_model import FACT
from tests.runs.runner import KILLED_HEARTBEAT_S, Runner, until
from tests.runs.scripted import Scripted, calls, conversation, says
from tests.runs.test_comparison import compared
from tests.service import Person
from tests.sizes import size

# `make chaos` reads 300 parts with a window of 32,000 tokens.
PARTS = size(30, 300)
WINDOW = size(8_000, 32_000)
PART_CHARACTERS = 10_000
MODELS: dict[str, Any] = {
    "contextWindow": WINDOW,
    "inputUsdPerMillion": 0.1,
    "outputUsdPerMillion": 0.2,
    "maxOutputTokens": 2_000,
}


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("long") / "log"
    models = scripted.models(**MODELS)
    settings: dict[str, Any] = {
        "run_max_tokens": 100_000_000,
        "run_heartbeat_s": KILLED_HEARTBEAT_S,
    }
    async with Runner.start(stack, scripted, "long", log, models=models, **settings) as started:
        yield started
    print(log.read_text()[-4000:])


class Text:
    """A text in parts, some of which have a fact. The second part is an appendix."""

    def __init__(self, parts: int) -> None:
        self.name = f"r{uuid4().hex[:12]}"
        self.parts = parts
        self.facts: dict[int, str] = {}
        for number in {1, 2, 3, 7, parts // 3, parts // 2, parts - 1, parts}:
            self.facts[number] = f"FACT-{number}-{uuid4().hex[:8]}"

    def part(self, number: int) -> str:
        words = random.Random(number)
        lines = ["APPENDIX" if number == 2 else f"Part {number}"]
        while sum(map(len, lines)) < PART_CHARACTERS:
            lines.append(f"Row {words.randint(1, 99_999)} of {words.choice(_NOUNS)} is checked.")
        if number in self.facts:
            lines[len(lines) // 2] = f"Remember {self.facts[number]}."
        return "\n".join(lines)[:PART_CHARACTERS]

    async def serve(self, scripted: Scripted, **reader: Any) -> str:
        """Returns the text that selects the reader in a task's input."""
        body = {"parts": self.parts, "window": WINDOW, **reader}
        await scripted.http.post(f"/readers/{self.name}", json=body)
        for number in range(1, self.parts + 1):
            result = {"result": self.part(number)}
            await scripted.http.post(f"/always/{self.name}-{number}", json=result)
        return f"reader:{self.name}"

    async def requests(self, scripted: Scripted) -> list[dict[str, Any]]:
        answer = await scripted.http.get(f"/readers/{self.name}")
        found: list[dict[str, Any]] = answer.json()["calls"]
        return found


_NOUNS = ("the ledger", "the archive", "the north store", "an invoice", "the second shelf")


@pytest.fixture
async def person(runner: Runner) -> AsyncIterator[Person]:
    """A new account. After the test, its books must agree."""
    found = await runner.newcomer()
    yield found
    database = Database(runner.service.database_url, pool_size=1)
    await database.open()
    async with database.snapshot(found.user_id) as tx:
        assert await verify.problems(tx) == []
    await database.close()


async def whole_timeline(runner: Runner, person: Person, task: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page, total = await runner.timeline(person, task, limit=100, offset=len(found))
        found += page
        if len(found) >= total:
            return found


async def test_a_run_longer_than_the_window_keeps_what_its_task_needs(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    text = Text(PARTS)
    task = await runner.begin(person, "endless", await text.serve(scripted))
    task = await runner.until(person, task, "COMPLETED", deadline_s=300)

    assert set(FACT.findall(task["output"])) == set(text.facts.values())
    requests = await text.requests(scripted)
    assert not any(request["refused"] for request in requests)
    assert all(request["tokens"] + request["maxTokens"] <= WINDOW for request in requests)
    steps = await whole_timeline(runner, person, task)
    model_calls = [step for step in steps if step["kind"] == "model"]
    summaries = [step for step in steps if step["kind"] == "summary"]
    # One call for each part, one to read the appendix again, and the answer.
    assert len(model_calls) == text.parts + 2
    assert 1 <= len(summaries) == sum(request["summary"] for request in requests)
    assert len(requests) == len(model_calls) + len(summaries)
    # Everything that was compacted is still there.
    for place in (1, len(steps) // 2):
        offset = next(at for at in range(place, len(steps)) if steps[at]["kind"] == "tool")
        [step], _ = await runner.timeline(person, task, limit=1, offset=offset)
        number = int(step["arguments"]["ref"].split("-")[-1])
        assert step["result"] == text.part(number)
    replaced = [summary["arguments"]["throughStep"] for summary in summaries]
    assert replaced == sorted(set(replaced))
    for summary in summaries:
        assert summary["outcome"] == "ok"
        assert Decimal(summary["costUsd"]) > 0
        assert text.facts[1] in summary["result"]["text"]
    costs = sum(Decimal(step["costUsd"]) for step in steps)
    assert costs == Decimal(task["usage"]["costUsd"])
    # A fork continues from the summary, and does not write it again.
    await text.serve(scripted)
    last = summaries[-1]
    fork = await person.post(f"/api/tasks/{task['id']}/fork", {"fromStep": last["step"]})
    assert fork.status_code == 201, fork.text
    forked = await runner.until(person, fork.json()["task"], "COMPLETED")
    assert set(FACT.findall(forked["output"])) == set(text.facts.values())
    later = [
        step["id"] for step in steps if step["kind"] == "model" and step["step"] > last["step"]
    ]
    requests = await text.requests(scripted)
    assert not any(request["summary"] for request in requests)
    assert len(requests) == len(later) == forked["usage"]["steps"]


@pytest.mark.long
async def test_a_summary_that_a_crash_interrupts_is_charged_once(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    text = Text(PARTS)
    task = await runner.begin(person, "endless", await text.serve(scripted, hold_summary=1))

    async def summarizes() -> bool:
        return any(request["summary"] for request in await text.requests(scripted))

    await until(summarizes)
    await runner.worker.kill()
    await runner.worker.start()
    # The reader holds only its first summary.
    task = await runner.until(person, task, "COMPLETED")
    await scripted.http.post(f"/release-reader/{text.name}")
    assert set(FACT.findall(task["output"])) == set(text.facts.values())
    steps = await whole_timeline(runner, person, task)
    summaries = [step for step in steps if step["kind"] == "summary"]
    requests = await text.requests(scripted)
    assert sum(request["summary"] for request in requests) == len(summaries) + 1


@pytest.mark.long
async def test_an_empty_summary_is_asked_for_once_more(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    once, twice = Text(PARTS), Text(PARTS)
    first = await runner.begin(person, "endless", await once.serve(scripted, empty_summaries=1))
    second = await runner.begin(person, "endless", await twice.serve(scripted, empty_summaries=2))
    first = await runner.until(person, first, "COMPLETED")
    assert set(FACT.findall(first["output"])) == set(once.facts.values())
    outcomes = [
        step["outcome"]
        for step in await whole_timeline(runner, person, first)
        if step["kind"] == "summary"
    ]
    assert outcomes[:2] == ["failed", "ok"]
    # So does a replay.
    for empty, error in ((1, None), (2, "EMPTY_ANSWER")):
        await once.serve(scripted, empty_summaries=empty)
        versions = ("--from", "1", "--to", "1")
        ends = {"exit_code": 1 if error else 0, **MODELS}
        found = await compared(runner, person, "endless", *versions, **ends)
        after = found[first["id"]]["to"]
        assert (after["error"] or "").partition(":")[0] == (error or "")
        assert after["output"] == (None if error else first["output"])
    second = await runner.until(person, second, "FAILED")
    assert second["error"]["code"] == "EMPTY_ANSWER"
    # A retry from failure asks once more, and keeps what the run has read.
    await runner.retry(person, second, "failure")
    second = await runner.until(person, second, "COMPLETED")
    assert set(FACT.findall(second["output"])) == set(twice.facts.values())
    read = [call["arguments"]["ref"] for call in await scripted.done(f"{twice.name}-1")]
    assert len(read) == 1


async def test_a_summary_that_was_cut_off_is_asked_for_once_more(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    once, twice = Text(12), Text(12)
    first = await runner.begin(person, "endless", await once.serve(scripted, cut_summaries=1))
    second = await runner.begin(person, "endless", await twice.serve(scripted, cut_summaries=2))
    first = await runner.until(person, first, "COMPLETED")
    assert set(FACT.findall(first["output"])) == set(once.facts.values())
    second = await runner.until(person, second, "FAILED")
    assert second["error"]["code"] == "OUTPUT_CUT_OFF"


class Dense(Text):
    """IDs, of which a token has about two characters."""

    def part(self, number: int) -> str:
        ids = random.Random(number)
        listed = [f"{ids.getrandbits(128):032x}" for _ in range(80)]
        if number in self.facts:
            listed[40] = self.facts[number]
        return ("APPENDIX " if number == 2 else "") + json.dumps(listed)


async def test_a_dense_text_fits_into_the_window_also_after_a_retry(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    text = Dense(30)
    task = await runner.begin(person, "endless", await text.serve(scripted, empty_summaries=2))
    task = await runner.until(person, task, "FAILED")
    await runner.retry(person, task, "failure")
    task = await runner.until(person, task, "COMPLETED")
    assert set(FACT.findall(task["output"])) == set(text.facts.values())
    refused = [request for request in await text.requests(scripted) if request["refused"]]
    # Only before the provider has counted the tokens of a long request.
    assert len(refused) <= 1


async def test_a_request_that_the_provider_refuses_as_too_long_is_shortened(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    # The operator's window is larger than the real one.
    text = Text(12)
    begin = await text.serve(scripted, window=int(WINDOW * 0.7))
    task = await runner.until(person, await runner.begin(person, "endless", begin), "COMPLETED")
    assert set(FACT.findall(task["output"])) == set(text.facts.values())
    requests = await text.requests(scripted)
    assert 1 <= sum(request["refused"] for request in requests) <= 2
    # No attempt is counted: the run does not pause.
    steps = await whole_timeline(runner, person, task)
    assert any("bytesPerToken" in (step["arguments"] or {}) for step in steps)
    # So does a replay.
    await text.serve(scripted, window=int(WINDOW * 0.7))
    found = await compared(runner, person, "endless", "--from", "1", "--to", "1", **MODELS)
    assert found[task["id"]]["to"]["output"] == task["output"]
    requests = await text.requests(scripted)
    assert 1 <= sum(request["refused"] for request in requests) <= 2


async def test_a_step_with_many_large_results_fits_into_the_window(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    refs = [f"wide-{uuid4().hex[:8]}" for _ in range(12)]
    text = Text(12).part(4)
    for ref in refs:
        await scripted.http.post(f"/always/{ref}", json={"result": f"{ref} {text}"})
    wanted = [("desk__lookup", {"ref": ref}) for ref in refs]
    script = await scripted.script(calls(*wanted), says("All read."))
    task = await runner.finish(person, "endless", script)
    assert task["output"] == "All read."
    asked = (await scripted.asked(script))[-1]
    sent = conversation(asked)
    tokens = token_estimate.count(sent + json.dumps(asked["tools"]))
    assert tokens + asked["maxTokens"] <= WINDOW
    assert all(f"{ref} Part 4" in sent for ref in refs)
    assert sent.count("truncated from 10014 characters") == len(refs)
    assert "read_result" in [tool["name"] for tool in asked["tools"]]


async def test_a_short_run_is_sent_whole_and_without_the_tool_that_reads_results(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__lookup", {"ref": "short"})), says("Done."))
    await runner.finish(person, "endless", script)
    asked = await scripted.asked(script)
    assert len(asked) == 2
    assert all("read_result" not in [tool["name"] for tool in call["tools"]] for call in asked)


async def test_read_result_returns_earlier_results_in_parts(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"long-{uuid4().hex[:8]}"
    text = "".join(f"{number:07d} " for number in range(3_750))
    await scripted.http.post(f"/always/{ref}", json={"result": text})
    script = await scripted.script(
        calls(("desk__lookup", {"ref": ref})),
        calls(("read_result", {"step": 1, "call": 1, "start": 10_000})),
        calls(("read_result", {"step": 7, "call": 1}), ("read_result", {"step": 2, "call": 0})),
        says("Done."),
    )
    task = await runner.begin(person, "wary", script)
    await runner.waiting(person, task, "tool")
    # A person approves the lookup. What the run has read, it can read again without asking.
    await runner.approve(person, task)
    task = await runner.until(person, task, "COMPLETED")
    steps = await whole_timeline(runner, person, task)
    [read, missing, invalid] = [step for step in steps if step["name"] == "read_result"]
    assert read["outcome"] == "ok"
    assert (
        read["result"]
        == text[10_000:29_500]
        + "\n[500 more characters. To read them, call read_result again with start 29500.]"
    )
    assert (missing["outcome"], invalid["outcome"]) == ("failed", "failed")
    assert missing["result"] == "Step 7 has no result for call 1."
