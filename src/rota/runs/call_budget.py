"""What a run can pay for its next model call. A subtask draws on its parent's hold."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.agents.model import AgentVersion
from rota.credits import holds
from rota.credits.allowance import AllowanceOf
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import AccountReader
from rota.runs import steps
from rota.runs.call_protection import retry_database
from rota.runs.model_request import ModelCallRequest
from rota.runs.models import PricedModel, max_answer_tokens
from rota.runs.run_context import FencedOut, RunContext, cancelled_parents
from rota.runs.steps import Step
from rota.tasks import queries, transitions, trees
from rota.tasks.model import Task
from rota.tasks.transitions import WAKE

# How long a subtask that cannot pay waits before it checks again whether its parent can.
MIN_WAIT_S, MAX_WAIT_S = 3.0, 60.0


class ParentBusy(Exception):
    """Only the parent's hold can pay, and it has to pay for the parent's own call first."""


@dataclass(frozen=True, slots=True)
class ModelCallInput:
    """What a model call needs from the database."""

    account_id: UUID
    task: Task
    agent: AgentVersion
    rows: list[Step]
    # What is left of the run's own hold.
    left_micros: int
    out_of_time: bool
    # Whether the answer is stored and charged, but not applied. An earlier attempt was interrupted.
    answered: bool
    # Failed attempts.
    attempts: int


class CallBudgets:
    def __init__(self, context: RunContext, allowance_of: AllowanceOf) -> None:
        self._context = context
        self._allowance_of = allowance_of

    async def answer_tokens(
        self, start: ModelCallInput, chosen: PricedModel, request: ModelCallRequest, at: datetime
    ) -> int:
        """How long an answer the run's hold can pay for."""
        input_characters, max_tokens = request.input_characters, request.max_tokens
        left_micros = start.left_micros
        if start.task.parent_task_id:
            needed_micros = chosen.price.max_cost_micros(input_characters, max_tokens, at)
            if needed_micros > left_micros:
                drawn = await retry_database(lambda: self._draw(start, needed_micros))
                if drawn is None:
                    raise ParentBusy
                left_micros = drawn
        least = request.least_tokens
        return max_answer_tokens(chosen.price, left_micros, input_characters, max_tokens, at, least)

    async def _draw(self, start: ModelCallInput, needed_micros: int) -> int | None:
        """Draws on the parent's hold, and returns what is left of the run's own hold then.

        A parent that calls its model needs its hold itself, so the account pays for the subtask
        from then on. If it cannot, the result is None, and the run is woken later.
        """
        run_id = start.task.run_id
        async with self._context.db.write(start.account_id) as tx:
            # While the account is locked, none of the runs can end.
            await journal.lock_account(tx)
            await _check_run(tx, start.task)
            left_micros = await holds.left(tx, run_id)
            # An earlier request for this call, which the provider refused, may have drawn already.
            if (missing_micros := needed_micros - left_micros) <= 0:
                return left_micros
            ancestors = await trees.running_ancestors(tx, start.task.id)
            if await holds.has_open_parent(tx, run_id) and await steps.any_without_open_tool_call(
                tx, ancestors
            ):
                if not await holds.detach(tx, run_id, missing_micros, self._allowance_of):
                    wait_s = _wait_s(start)
                    await transitions.enqueue(tx, WAKE, start.task, delay_s=wait_s, again=True)
                    return None
                moved = "credits.hold_detached"
            else:
                await holds.draw(tx, run_id, missing_micros, self._allowance_of)
                moved = "credits.hold_drawn"
            resource = ids.to_wire("task", start.task.id)
            tx.record(moved, {"run": run_id.run, "amountMicros": missing_micros}, resource)
            return await holds.left(tx, run_id)


async def _check_run(tx: AccountReader, task: Task) -> None:
    """Raises if the slice does not carry the run any more, or the run is about to be cancelled."""
    now = await queries.find(tx, task.id)
    if (
        now is None
        or (now.run, now.fence, now.status) != (task.run, task.fence, "RUNNING")
        or await cancelled_parents(tx, [now])
    ):
        raise FencedOut


def _wait_s(start: ModelCallInput) -> float:
    """As long as the run has waited so far. So the pauses grow to twice as long each time."""
    ended = [at for row in start.rows if (at := row.finished_at)]
    since = max(at for at in (start.task.started_at, *ended) if at)
    return min(MAX_WAIT_S, max(MIN_WAIT_S, (clock.now() - since).total_seconds()))
