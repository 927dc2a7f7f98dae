"""The tool `read_result`: reads the result of an earlier tool call of the same run again."""

from collections.abc import Sequence
from typing import Any

from rota.platform.db import AccountTransaction
from rota.runs import compaction, step_events, steps, tool_steps
from rota.runs.steps import Step
from rota.tasks.model import Task

# So that the model reads the part and the note after it as a whole.
MAX_PART_CHARACTERS = compaction.MAX_RESULT_CHARACTERS - 500


async def read(tx: AccountTransaction, task: Task, row: Step) -> None:
    """Finishes the call with the stored result."""
    if row.state == "finished":
        return
    found = await steps.one(tx, task.id, task.run, *_call_key(row.sealed_arguments))
    await step_events.tool_calls_start(tx, task.id, [row])
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
