"""Which part of a long run its model reads, so that the conversation fits into the model's window.

First the oldest tool results are removed. If that is not enough, a summary replaces the oldest
steps. Everything here is computed from the rows of the run, from what every call of it has, and
from the chosen model, so every worker builds the same conversation for a model. The rows themselves
stay as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rota.platform import json
from rota.runs.prices import CHARACTERS_PER_TOKEN
from rota.runs.steps import Step

# The model reads at most this much of one tool result. The timeline keeps more.
MAX_RESULT_CHARACTERS = 20_000
# The newest steps stay whole, unless they alone fill half of the window.
RECENT_STEPS = 3
# A conversation that is too long is shortened to this part of the limit. So the next calls have the
# same beginning, which providers read from their caches.
TARGET = 0.7
# If what every call has fills more than this part of the limit, a summary would be due before
# nearly every call, so there is none.
MAX_FIXED = 0.85
# From this part of the limit on, the model has the tool that reads results again.
READ_RESULT_FROM = 0.5
# A removed result leaves its beginning, and the way to read it again.
BEGINNING_CHARACTERS = 200
# Shorter results stay: the note would save nothing.
MIN_REMOVED_CHARACTERS = 800
# What the format of a chat adds to each part of a message.
_PART_SIZE = 24
_MIN_SHARE = 500
# Shorter requests say little about the text of a run.
_MIN_COUNTED = 0.25


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """How much a model can read in one call."""

    tokens: int
    # The part that the longest answer needs.
    answer_tokens: int

    @property
    def input_tokens(self) -> int:
        return self.tokens - self.answer_tokens

    @classmethod
    def of(cls, tokens: int, max_output_tokens: int) -> "ContextWindow":
        return cls(tokens, min(max_output_tokens, tokens // 4))


@dataclass(frozen=True, slots=True)
class View:
    """The part of a run that its model reads."""

    # The summary that replaces the steps through `after_step`.
    summary: Step | None = None
    after_step: int = 0
    # The results of steps before this one are removed.
    whole_from: int = 0
    # The size that the results of one step can have together.
    step_size: int | None = None
    # Whether results are removed, or soon will be.
    is_long: bool = False
    # The model has to summarize the steps through this one before it can continue.
    summarize_through: int | None = None
    # How many bytes a token is estimated at, and how many bytes the conversation has.
    per_token: float = CHARACTERS_PER_TOKEN
    size: int = 0

    def shown(self, row: Step, calls: int) -> str:
        """What the model reads of a result of a step with this many calls."""
        whole = text_of(row)
        text = whole[:MAX_RESULT_CHARACTERS]
        if self.step_size is not None:
            text = first_part(text, max(_MIN_SHARE, self.step_size // calls))
        return text if len(text) == len(whole) else text + truncated(len(whole))


def text_of(row: Step) -> str:
    """The result of a tool call as the model reads it."""
    return as_text(row.result)


def as_text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result).decode()


def removal_note(row: Step) -> str | None:
    """What the model reads instead of a removed result. None if the result is short and stays."""
    text = text_of(row)
    if len(text) < MIN_REMOVED_CHARACTERS:
        return None
    where = json.dumps({"step": row.step, "call": row.call}).decode()
    return (
        f"[This result was removed, because the conversation is long. It has {len(text)} "
        f"characters. To read it again, call read_result with {where}. It begins: "
        f"{text[:BEGINNING_CHARACTERS]}…]"
    )


def size_of(text: str) -> int:
    """Bytes are closer to tokens than characters: a Chinese character can be a token."""
    return len(text.encode(errors="replace"))


def first_part(text: str, size: int) -> str:
    """The beginning of a text, of at most this size."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def truncated(characters: int) -> str:
    return f"\n[truncated from {characters} characters]"


def last_summary(rows: Sequence[Step]) -> Step | None:
    """The newest summary that replaces earlier steps."""
    return next(
        (row for row in reversed(rows) if row.kind == "summary" and row.outcome == "ok"), None
    )


@dataclass(slots=True)
class _StepSize:
    step: int
    whole: int
    # What removing the results saves.
    saved: int


def bytes_per_token(rows: Sequence[Step], model: str) -> float:
    """How many bytes a token of this model has, as far as earlier calls of the run have shown.

    Models split texts differently, so the counts of another model of the chain say nothing.
    """
    calls = (row for row in rows if row.call == 0 and row.name == model)
    found = ((row.arguments or {}).get("bytesPerToken") for row in calls)
    return min((each for each in found if each), default=float(CHARACTERS_PER_TOKEN))


def rounded(per_token: float) -> float:
    """Rounded down, so that slightly different counts do not change what the model reads."""
    return max(1.0, math.floor(per_token * 4) / 4)


def counted(size: int, input_tokens: int, window: ContextWindow) -> float | None:
    """The bytes per token of a request for which the provider counted so many tokens."""
    if input_tokens < window.input_tokens * _MIN_COUNTED:
        return None
    return rounded(size / input_tokens)


def view(
    rows: Sequence[Step],
    next_step: int,
    fixed: int,
    window: ContextWindow,
    per_token: float = CHARACTERS_PER_TOKEN,
) -> View:
    """What the model reads in the call of `next_step`.

    `fixed` is the size of what every call has: instructions, task and tools. The calls since the
    last summary are gone through in order, because what is removed stays removed.
    """
    summary = last_summary(rows)
    after_step, first_call = 0, 1
    limit = int(window.input_tokens * per_token)
    room = max(limit // 4, limit - fixed)
    target = max(limit * TARGET, (limit + fixed) / 2)
    total = fixed
    if summary is not None:
        after_step, first_call = (summary.arguments or {})["throughStep"], summary.step
        total += min(size_of(summary_text(summary)), room // 4)
    base = View(summary, after_step, step_size=room // 2)
    sizes = _sizes(rows, base)
    removed_steps, is_long = 0, summary is not None
    recent, too_long = 0, False
    for at, size in enumerate(sizes):
        total += size.whole
        call_step = sizes[at + 1].step if at + 1 < len(sizes) else next_step
        if call_step < first_call:
            continue
        is_long = is_long or total > limit * READ_RESULT_FROM
        recent = _first_recent(sizes[: at + 1], room // 2)
        too_long = total > limit
        if too_long:
            while total > target and removed_steps < recent:
                total -= sizes[removed_steps].saved
                removed_steps += 1
            too_long = total > target and fixed <= limit * MAX_FIXED
    return View(
        summary,
        after_step,
        whole_from=sizes[removed_steps].step if removed_steps < len(sizes) else 0,
        step_size=base.step_size,
        is_long=is_long or removed_steps > 0,
        summarize_through=sizes[recent - 1].step if too_long and recent > 0 else None,
        per_token=per_token,
        size=total,
    )


def _first_recent(sizes: Sequence[_StepSize], half: int) -> int:
    """The index of the first step that stays whole."""
    first, total = len(sizes) - 1, sizes[-1].whole
    while first > 0 and len(sizes) - first < RECENT_STEPS:
        total += sizes[first - 1].whole
        if total > half:
            break
        first -= 1
    return first


def _sizes(rows: Sequence[Step], base: View) -> list[_StepSize]:
    """The sizes of the steps after the summary."""
    results: dict[int, list[Step]] = {}
    for row in rows:
        if row.kind == "tool":
            results.setdefault(row.step, []).append(row)
    found = []
    for row in rows:
        if row.kind != "model" or not row.is_answered or row.step <= base.after_step:
            continue
        calls = results.get(row.step, [])
        # A person may have made the arguments longer.
        sealed = [json.dumps(call.arguments).decode() for call in calls if call.sealed]
        whole = max(_answer_size(row), sum(map(size_of, sealed))) + size_of(row.note or "")
        saved = 0
        for call in calls:
            size = size_of(base.shown(call, len(calls)))
            note = removal_note(call)
            whole += size + _PART_SIZE
            saved += max(0, size - size_of(note)) if note else 0
        found.append(_StepSize(row.step, whole, saved))
    return found


def _answer_size(row: Step) -> int:
    parts = row.result["parts"] if row.result else []
    size = 0
    for part in parts:
        args = part.get("args")
        given = args if isinstance(args, str) else json.dumps(args).decode()
        content = part.get("content")
        texts = (content if isinstance(content, str) else "", part.get("tool_name") or "", given)
        size += _PART_SIZE + sum(map(size_of, texts))
    return size


def summary_text(row: Step) -> str:
    """The text of a summary."""
    parts = row.result["parts"] if row.result else []
    return "".join(part["content"] for part in parts if part["part_kind"] == "text").strip()
