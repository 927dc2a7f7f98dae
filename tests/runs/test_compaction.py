"""What the model reads of a long run, computed from the rows."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rota.platform import clock
from rota.platform.settings import ModelChoice
from rota.runs import compaction
from rota.runs.compaction import View, Window
from rota.runs.models import DEFAULT_WINDOW_TOKENS, Models
from rota.runs.steps import Kind, Step

WINDOW = Window.of(6_000, 1_000)
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
        note = compaction.removed(each) if each.step < view.whole_from else None
        total += 24 + compaction.size_of(note or view.shown(each, calls))
    return total


runs = st.lists(
    st.lists(st.integers(min_value=0, max_value=8_000), min_size=1, max_size=4),
    min_size=1,
    max_size=8,
)


@given(runs)
def test_what_is_sent_fits_or_a_summary_comes_first(results: list[list[int]]) -> None:
    rows = steps_of(results)
    view = compaction.view(rows, len(results) + 1, FIXED, WINDOW)
    if view.summarize_through is None and len(results) > 1:
        assert size(rows, view) <= LIMIT * 1.05
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


def test_the_tokens_that_a_provider_counts_correct_the_estimate() -> None:
    rows = steps_of([[1_800]] * 5)
    assert compaction.view(rows, 6, FIXED, WINDOW).whole_from <= 1
    # The provider counted a token for every one and a half characters.
    counted = replace(rows[8], input_tokens=7_000)
    rows = [*rows[:8], counted, *rows[9:]]
    assert compaction.view(rows, 6, FIXED, WINDOW).whole_from > 1


def test_the_window_comes_from_the_operator_or_from_the_table() -> None:
    def tokens(**changes: Any) -> int:
        choice = ModelChoice.model_validate({"apiKey": "k", "free": True, **changes})
        return Models({"default": choice}, None).chain("default").choose().window.tokens

    assert tokens(model="gpt-4o") == 128_000
    assert tokens(provider="anthropic", model="claude-sonnet-4-0") == 200_000
    assert tokens(model="gpt-4o", contextWindow=50_000) == 50_000
    assert tokens(model="our-own") == DEFAULT_WINDOW_TOKENS
