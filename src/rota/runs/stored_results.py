"""The stored results of a run's tool calls: how much of them is kept, and the tool `read_result`,
which reads one again.
"""

from collections.abc import Sequence
from typing import Any

from rota.platform.db import AccountTransaction
from rota.runs import compaction, step_events, steps, tool_steps
from rota.runs.steps import Step
from rota.tasks.model import Task

# So that the model reads the part and the note after it as a whole.
MAX_PART_CHARACTERS = compaction.MAX_RESULT_CHARACTERS - 500
# A worker holds the results of each run in progress in memory. When a run has stored this much,
# each further result keeps only what the model reads.
MAX_RUN_CHARACTERS = 8 * 1024 * 1024


def limited(content: Any, stored_characters: int) -> Any:
    """What a run that has already stored so much keeps of a result."""
    if stored_characters <= MAX_RUN_CHARACTERS:
        return content
    text = compaction.as_text(content)
    if len(text) <= compaction.MAX_RESULT_CHARACTERS:
        return content
    note = compaction.truncated(len(text))
    return text[: compaction.MAX_RESULT_CHARACTERS - len(note)] + note


async def read(tx: AccountTransaction, task: Task, row: Step) -> None:
    """Finishes the call with the stored result."""
    if row.state == "finished":
        return
    found = await steps.one(tx, task.id, task.run, *_call_key(row.sealed_arguments))
    await step_events.tool_calls_start(tx, task.id, [row], are_new=True)
    text, outcome = reading([found] if found else [], row.step, row.sealed_arguments)
    await tool_steps.finish(tx, task.id, row, text, outcome)


def reading(rows: Sequence[Step], before: int, given: dict[str, Any]) -> tuple[str, str]:
    """The part of a result that a call of `read_result` in the step `before` asks for."""
    step, call = _call_key(given)
    for row in rows:
        if (row.step, row.call) == (step, call) and row.state == "finished" and step < before:
            return _part(compaction.text_of(row), int(given.get("start", 0))), "ok"
    return f"Step {step} has no result for call {call}.", "failed"


def _call_key(given: dict[str, Any]) -> tuple[int, int]:
    return int(given["step"]), int(given["call"])


def _part(text: str, start: int) -> str:
    end = start + MAX_PART_CHARACTERS
    left = len(text) - end
    if left <= 0:
        return text[start:]
    return (
        f"{text[start:end]}\n[{left} more characters. "
        f"To read them, call read_result again with start {end}.]"
    )
