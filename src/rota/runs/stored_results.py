"""The tool `read_result`: reads the result of an earlier tool call of the same run again."""

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
    given = row.sealed_arguments
    place = (int(given["step"]), int(given["call"]))
    found = await steps.one(tx, task.id, task.run, *place)
    await step_events.tool_calls_start(tx, task.id, [row])
    if found is None or found.state != "finished" or found.step >= row.step:
        text, outcome = f"Step {place[0]} has no result of a call {place[1]}.", "failed"
    else:
        text, outcome = _part(compaction.text_of(found), int(given.get("start", 0))), "ok"
    await tool_steps.finish(tx, task.id, row, text, outcome)


def _part(text: str, start: int) -> str:
    end = start + MAX_PART_CHARACTERS
    left = len(text) - end
    if left <= 0:
        return text[start:]
    return f"{text[start:end]}\n[{left} more characters. To read them, use start {end}.]"
