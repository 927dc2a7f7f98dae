"""Cancels a task and every open task below it.

A small tree is cancelled in one transaction. Of a larger one, that transaction cancels only the
root, and workers cancel the rest in batches, so that the account is never locked for long. Until
then, a run below a cancelled task starts no call (`rota.runs.run_context`).
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from uuid import UUID

from rota.events import journal, outbox
from rota.events.outbox import Handler, Instruction, Reschedule
from rota.platform.db import AccountTransaction, Database
from rota.tasks import gates, queries, transitions, trees
from rota.tasks.model import Task
from rota.tasks.states import EVENT_OF, TERMINAL, Trigger

# Tasks below the root that are cancelled in one transaction.
BATCH = 100
# After this time, a worker lets other instructions continue. Less than a relay's lease.
TURN_S = 2.0
# Trees that one worker cancels at the same time. Each keeps a database connection busy.
MAX_CONCURRENT = 2
BUSY_S = 0.5

# The kind of the instruction. It is stored in the outbox.
CANCEL_SUBTASKS = "run.cancel_subtasks"

PARENT_CANCELLED = "The parent task was cancelled."


async def cancel(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    trigger: Trigger,
    *,
    event: str | None = None,
    reason: str | None = None,
    at_once: int = BATCH,
) -> Task:
    """Cancels a task and closes its pending review. The account must be locked.

    If more than `at_once` tasks below it are open, workers cancel them after the commit.
    """
    cancelled = await transitions.apply(
        tx, before, after, "CANCELLED", trigger, event=event, reason=reason
    )
    if event is not None:
        # Clients may listen for only one of the two events, so both are sent.
        data = transitions.event_data(tx, before.status, "CANCELLED", reason)
        await journal.append(tx, EVENT_OF["CANCELLED"], data, before.id)
    if trigger is Trigger.CANCEL:
        await gates.close_review(tx, before, "cancelled", "The task was cancelled.")
    below = await trees.open_subtasks(tx, before.id, limit=at_once + 1)
    if len(below) <= at_once:
        await _cancel_all(tx, below)
    else:
        payload = {"user": str(tx.user_id)}
        await outbox.put(tx, Instruction(tx.account_id, CANCEL_SUBTASKS, before.id, payload))
    return cancelled


async def _cancel_all(tx: AccountTransaction, task_ids: Iterable[UUID]) -> None:
    """Cancels those of the tasks that are open. Only one of them is in memory at a time."""
    for task_id in task_ids:
        task = await queries.find(tx, task_id)
        if task is not None and task.status not in TERMINAL:
            await transitions.apply(
                tx, task, task, "CANCELLED", Trigger.CANCEL, reason=PARENT_CANCELLED
            )
            await gates.close_review(tx, task, "cancelled", PARENT_CANCELLED)


class Cancellation:
    """Cancels the tasks below a cancelled task, for a relay."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {CANCEL_SUBTASKS: self.cancel_subtasks}

    async def cancel_subtasks(self, instruction: Instruction) -> Reschedule | None:
        """Cancels batches for a while. The instruction stays until no open task is left."""
        if self._slots.locked():
            return Reschedule(CANCEL_SUBTASKS, BUSY_S)
        async with self._slots:
            ended = await self._cancel_for_a_while(instruction)
        return None if ended else Reschedule(CANCEL_SUBTASKS, 0)

    async def _cancel_for_a_while(self, instruction: Instruction) -> bool:
        """Whether no open task is left."""
        account_id, root_id = instruction.account_id, instruction.task_id
        assert root_id is not None
        ends_at = time.monotonic() + TURN_S
        async with self._db.read(account_id) as tx:
            below = await trees.open_subtasks(tx, root_id)
        for start in range(0, len(below), BATCH):
            if start and time.monotonic() >= ends_at:
                return False
            # The cancellation goes on if the user has left the company meanwhile.
            user_id = UUID(instruction.payload["user"])
            async with self._db.write(account_id, user_id, check_member=False) as tx:
                await journal.lock_account(tx)
                await _cancel_all(tx, below[start : start + BATCH])
        # Otherwise it looks again, because a task may have been added meanwhile.
        return not below
