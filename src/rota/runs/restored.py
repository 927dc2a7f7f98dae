"""Ends a run that has made calls which the restored database does not know of."""

from uuid import UUID

from rota.platform.db import AccountTransaction
from rota.runs.deadlines import Deadlines
from rota.tasks import queries
from rota.tasks.states import TERMINAL

CODE = "RESTORED"
MESSAGE = (
    "The service was restored to an earlier point in time. After that point, this run "
    "called a tool that writes, and Rota no longer knows the result. Check what the call "
    "did, then retry the "
    "task or create another one."
)


async def stop(deadlines: Deadlines, tx: AccountTransaction, task_id: UUID) -> bool:
    """Fails the task, because its run would make the call again. Whether it was open."""
    task = await queries.find_for_change(tx, task_id)
    if task is None or task.status in TERMINAL:
        return False
    await deadlines.fail(tx, task, CODE, MESSAGE, reason="The service was restored.")
    return True
