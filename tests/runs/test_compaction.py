"""What the model reads of a long run, computed from the rows."""

import json
import random
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelResponse

from rota.dev import model as dev_model
from rota.platform import clock
from rota.platform.model_choice import ModelChoice
from rota.runs import compaction, model_request, token_estimate, transcript
from rota.runs.compaction import ContextWindow, View
from rota.runs.model_request import Conversation, ModelCallRequest
from rota.runs.models import DEFAULT_WINDOW_TOKENS, Models, PricedModel
from rota.runs.output_formats import OutputFormats
from rota.runs.prices import TokenUsage
from rota.runs.steps import Kind, Step
from rota.runs.tools import Tool

WINDOW = ContextWindow.of(6_000, 1_000)
FIXED = 2_000
LIMIT = WINDOW.input_tokens * 3


def row(step: int, call: int, kind: Kind, result: Any, **more: Any) -> Step:
    now = clock.now()
    return Step(
        run=1,
        step=step,
        call=call,
        kind=kind,
        state="finished",
        name="lookup" if call else "scripted",
        server="desk" if call else None,
        call_id=f"call-{step}-{call}",
        read_only=True,
        arguments=more.pop("arguments", {}),
        sealed=None,
        approved_digest=None,
        maybe_made=False,
        planned_run=None,
        result=result,
        outcome="ok",
        note=None,
        child_task_id=None,
        input_tokens=more.pop("input_tokens", 0),
        output_tokens=0,
        cache_read_tokens=0,
        cache_write_tokens=0,
        reasoning_tokens=0,
        estimated=False,
        cost_micros=0,
        price_version=None,
        copied=False,
        planned_at=now,
        started_at=now,
        finished_at=now,
        **more,
    )


def answer(text: str = "") -> dict[str, Any]:
    return {"parts": [{"part_kind": "text", "content": text}], "kind": "response"}


def steps_of(results: list[list[int]]) -> list[Step]:
    """The rows of a run whose calls have results of these sizes."""
    rows = []
    for step, sizes in enumerate(results, 1):
        rows.append(row(step, 0, "model", answer("Next.")))
        rows += [row(step, call, "tool", "ab " * (size // 3)) for call, size in enumerate(sizes, 1)]
    return rows


def size(rows: list[Step], view: View) -> int:
    total = FIXED
    for each in rows:
        if each.kind != "tool":
            total += 24 + 100
            continue
        calls = sum(other.kind == "tool" and other.step == each.step for other in rows)
        note = compaction.removal_note(each) if each.step < view.whole_from else None
        total += 24 + compaction.size_of(note or view.shown(each, calls))
    return total


runs = st.lists(
    st.lists(st.integers(min_value=0, max_value=8_000), min_size=1, max_size=4),
    min_size=1,
    max_size=8,
)


@given(runs, st.sampled_from((3.0, 2.5, 2.0)))
def test_what_is_sent_fits_or_a_summary_comes_first(
    results: list[list[int]], per_token: float
) -> None:
    rows = steps_of(results)
    view = compaction.view(rows, len(results) + 1, FIXED, WINDOW, per_token)
    if view.summarize_through is None and len(results) > 1:
        assert size(rows, view) <= WINDOW.input_tokens * per_token * 1.1
    # The newest step is never removed or summarized.
    assert view.whole_from <= len(results)
    assert (view.summarize_through or 0) < len(results)


@given(runs)
def test_a_result_that_was_removed_stays_removed(results: list[list[int]]) -> None:
    earlier = 0
    for count in range(1, len(results) + 1):
        view = compaction.view(steps_of(results[:count]), count + 1, FIXED, WINDOW)
        assert view.whole_from >= earlier
        earlier = view.whole_from


def test_a_summary_replaces_the_steps_that_it_covers() -> None:
    rows = steps_of([[3_000]] * 6)
    rows.append(row(7, 0, "summary", answer("So far."), arguments={"throughStep": 4}))
    view = compaction.view(rows, 8, FIXED, WINDOW)
    assert (view.summary, view.after_step) == (rows[-1], 4)
    assert view.is_long
    assert view.summarize_through is None
    # A summary that cannot be used replaces nothing.
    refused = [*rows[:-1], replace(rows[-1], outcome="failed")]
    assert compaction.view(refused, 8, FIXED, WINDOW).summary is None


def priced(**changes: Any) -> PricedModel:
    choice = {"model": "scripted", "apiKey": "k", "free": True, "contextWindow": 32_000, **changes}
    found = ModelChoice.model_validate(choice)
    return Models({"default": found}, None).chain("default").choose()


AGENT: Any = SimpleNamespace(instructions="Work through all of it.")
TASK: Any = SimpleNamespace(
    name="A long task", description=None, input="Go on.", output_schema=None
)


def asked(rows: list[Step], chosen: PricedModel, **changes: Any) -> ModelCallRequest:
    step = rows[-1].step + 1
    conversation = Conversation(AGENT, TASK, rows, step, {})
    return model_request.build(chosen, OutputFormats(), conversation, **changes)


def tokens(request: ModelCallRequest) -> int:
    return token_estimate.input_tokens(request.messages, request.tools)


def dense_step(step: int, count: int = 150, **more: Any) -> list[Step]:
    """A step whose result is a list of IDs: a token has less than two characters."""
    ids = random.Random(step)
    listed = [str(UUID(int=ids.getrandbits(128))) for _ in range(count)]
    # Dense answers too: they are never removed, so a summary is due in the end.
    return [
        row(step, 0, "model", answer(json.dumps(listed[:30])), **more),
        row(step, 1, "tool", json.dumps(listed)),
    ]


def test_the_descriptions_of_tools_count_in_bytes() -> None:
    def size_with(description: str) -> tuple[int, int]:
        tools = {"lookup": Tool("lookup", "desk", description, {"type": "object"})}
        conversation = Conversation(AGENT, TASK, steps_of([[100]]), 2, tools)
        request = model_request.build(priced(), OutputFormats(), conversation)
        return request.size, request.input_characters

    assert size_with("說明" * 100) == size_with("e" * 600)


def test_a_dense_run_and_the_request_for_its_summary_fit_into_the_window() -> None:
    chosen = priced()
    rows = dense_step(1)
    kinds = []
    for step in range(2, 40):
        request = asked(rows, chosen)
        assert tokens(request) <= chosen.window.input_tokens, (step, request.kind)
        kinds.append(request.kind)
        # The provider counts the tokens of the request.
        facts = request.facts(chosen.window, TokenUsage(tokens(request), 10))
        if request.kind == "summary":
            rows.append(row(step, 0, "summary", answer("All lists so far."), arguments=facts))
        else:
            rows += dense_step(step, arguments=facts)
    assert kinds.count("summary") >= 1
    assert compaction.bytes_per_token(rows, "scripted") < 2


def test_what_a_provider_counted_stays_known_in_copies_and_only_for_its_model() -> None:
    chosen = priced()
    rows = dense_step(1, 500)
    request = asked(rows, chosen)
    facts = request.facts(chosen.window, TokenUsage(tokens(request), 10))
    assert 1 <= facts["bytesPerToken"] < 2
    # A retry from failure and a fork copy a step without its tokens.
    rows.append(row(2, 0, "model", answer("Next."), arguments=facts, input_tokens=0))
    assert asked(rows, chosen).per_token == facts["bytesPerToken"]
    assert asked(rows, priced(model="another")).per_token == 3
    # It is stored once.
    request = asked(rows, chosen)
    assert request.facts(chosen.window, TokenUsage(tokens(request), 10)) == {}
    # Rota's own estimate and short requests say nothing about the provider.
    request = asked(rows[:2], chosen)
    assert request.facts(chosen.window, TokenUsage(90_000, 10, estimated=True)) == {}
    assert request.facts(chosen.window, TokenUsage(chosen.window.input_tokens // 5, 10)) == {}


def test_a_request_that_is_refused_as_too_long_is_shortened() -> None:
    chosen = priced()
    rows = steps_of([[5_000]] * 16)
    sizes, lower = [], 3.0
    for _ in range(3):
        request = asked(rows, chosen, max_per_token=lower)
        sizes.append(request.size)
        lower = request.per_token * 0.75
    assert sizes[1] < sizes[0] * 0.9
    assert sizes[2] < sizes[1] * 0.9
    # The step stores the estimate that worked, however few tokens the provider counted.
    assert request.facts(chosen.window, TokenUsage(5_000, 10))["bytesPerToken"] == request.per_token


def test_a_summary_of_a_model_with_a_larger_window_is_cut_for_the_next_summary() -> None:
    rows = steps_of([[15_000]] * 12)
    long = row(2, 0, "summary", answer("So far. " * 20_000), arguments={"throughStep": 1})
    rows = [*rows[:2], long, *rows[4:]]
    request = asked(rows, priced())
    assert request.kind == "summary"
    text = str(request.messages)
    # The steps are still there.
    assert "## Step 3, call 1" in text
    assert tokens(request) <= priced().window.input_tokens


def test_a_summary_has_words_that_fit_into_its_answer() -> None:
    rows = [row(step, 0, "model", answer("Word " * 2_000)) for step in range(1, 12)]

    def words(**changes: Any) -> int:
        request = asked(changes.pop("rows", rows), priced(**changes))
        assert request.kind == "summary"
        found = re.search(r"at most (\d+) words", str(request.messages))
        assert found is not None
        return int(found[1])

    assert words(maxOutputTokens=8_000) == 1_000
    assert words(maxOutputTokens=600) == 300
    # The last one may have been cut off.
    refused = row(13, 0, "summary", answer("Half of"), arguments={"throughStep": 9})
    assert words(rows=[*rows, replace(refused, outcome="failed")], maxOutputTokens=600) == 150
    # A summary needs more money than any answer.
    assert asked(rows, priced()).least_tokens == 1_000
    assert asked(rows, priced(maxOutputTokens=600)).least_tokens == 600
    assert asked(rows[:2], priced()).least_tokens == 64


def test_large_instructions_and_tools_do_not_cause_a_summary_before_every_call() -> None:
    for fixed in (LIMIT * 9 // 10, LIMIT * 2):
        rows = steps_of([[3_000]] * 6)
        view = compaction.view(rows, 7, fixed, WINDOW)
        assert view.summarize_through is None
        # The newest results are not cut to nothing.
        assert view.step_size is not None
        assert view.step_size >= LIMIT // 8
    # With less, the steps after a summary have room.
    rows = steps_of([[600]] * 8)
    view = compaction.view(rows, 9, LIMIT * 3 // 4, WINDOW)
    assert view.summarize_through is not None
    summary = row(9, 0, "summary", answer("S" * 300), arguments={"throughStep": 5})
    assert compaction.view([*rows, summary], 10, LIMIT * 3 // 4, WINDOW).summarize_through is None


def test_calls_have_ids_that_every_provider_accepts() -> None:
    calls: list[dict[str, Any]] = [
        {"part_kind": "tool-call", "tool_name": "desk__lookup", "args": {}, "tool_call_id": given}
        for given in ("toolu:1/x", "call-which-is-very-long-indeed", "not-made")
    ]
    rows = [row(7, 0, "model", {"parts": calls, "kind": "response"})]
    rows += [replace(row(7, call, "tool", "Found."), call_id="other") for call in (1, 2)]
    _, response, reply = transcript.messages(AGENT, TASK, rows, View())
    requested = [call.tool_call_id for call in cast(ModelResponse, response).tool_calls]
    assert requested == ["c00007001", "c00007002"]
    assert [getattr(part, "tool_call_id", None) for part in reply.parts] == requested
    # Mistral: exactly nine letters and digits.
    assert all(len(each) == 9 and each.isalnum() for each in requested)


def test_the_window_comes_from_the_operator_or_from_the_table() -> None:
    def tokens(**changes: Any) -> int:
        choice = ModelChoice.model_validate({"apiKey": "k", "free": True, **changes})
        return Models({"default": choice}, None).chain("default").choose().window.tokens

    assert tokens(model="gpt-4o") == 128_000
    assert tokens(provider="anthropic", model="claude-sonnet-4-0") == 200_000
    assert tokens(model="gpt-4o", contextWindow=50_000) == 50_000
    # OpenAI reserves a part of these for the answer.
    assert tokens(model="gpt-5.1") == 272_000
    assert tokens(model="gpt-4.1") == 1_000_000
    assert tokens(model="our-own") == DEFAULT_WINDOW_TOKENS
    local = Models({}, "http://127.0.0.1:1/v1").chain("default").choose()
    assert local.window.tokens == dev_model.CONTEXT_TOKENS // dev_model.PARALLEL
