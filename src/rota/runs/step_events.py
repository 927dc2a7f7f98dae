"""The events of a run's calls, and the text of a finished model call.

Each call has at most one event of each type in a run, even if it is repeated.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rota.credits.model import RunId
from rota.events import journal
from rota.events.journal import STEP_FINISHED, STEP_STARTED
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import to_wire
from rota.runs import steps, transcript
from rota.runs.steps import Step

Data = dict[str, Any]


def of_model(run: int, step: int) -> Data:
    return {"run": run, "step": step, "call": 0, "kind": "model", "tool": None, "server": None}


def of_tool(row: Step) -> Data:
    place = {"run": row.run, "step": row.step, "call": row.call}
    return {**place, "kind": "tool", "tool": row.name, "server": row.server}


async def model_call_starts(
    tx: AccountTransaction, run_id: RunId, step: int, *, is_new: bool
) -> None:
    """`is_new` if the call was not next before this transaction."""
    data = of_model(run_id.run, step)
    if is_new or not await journal.has(tx, run_id.task_id, STEP_STARTED, data):
        await journal.append(tx, STEP_STARTED, data, run_id.task_id)


async def model_call_finished(tx: AccountTransaction, run_id: RunId, step: int) -> None:
    data = {**of_model(run_id.run, step), "outcome": "ok"}
    await journal.append(tx, STEP_FINISHED, data, run_id.task_id)


async def tool_calls_start(
    tx: AccountTransaction, task_id: UUID, rows: Sequence[Step], *, are_new: bool
) -> None:
    """Leaves out the calls that have started before, unless `are_new`: if none can have.

    All rows are of one step.
    """
    started: list[Data] = []
    if rows and not are_new:
        # The row of a call that was started and not sent does not say so.
        answered = (STEP_FINISHED, of_model(rows[0].run, rows[0].step))
        started = await journal.since(tx, task_id, answered, STEP_STARTED)
    first = [row for row in rows if of_tool(row) not in started]
    await journal.append_all(tx, [(STEP_STARTED, of_tool(row)) for row in first], task_id)
    for row in rows:
        if row not in first:
            tx.record("step.repeated", of_tool(row), to_wire("task", task_id))


async def tool_calls_finished(tx: AccountTransaction, task_id: UUID, rows: Sequence[Step]) -> None:
    finished = [(STEP_FINISHED, {**of_tool(row), "outcome": row.outcome}) for row in rows]
    await journal.append_all(tx, finished, task_id)


async def stored_text(tx: AccountReader, task_id: UUID, run: int, step: int) -> str:
    """The text of a finished model call, as it is stored."""
    row = await steps.one(tx, task_id, run, step, 0)
    if row is None or row.result is None:
        return ""
    return transcript.response_of(row).text or ""
