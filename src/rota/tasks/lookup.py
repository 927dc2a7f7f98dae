"""Finding the task that a request is about."""

from uuid import UUID

from rota.auth.caller import Caller
from rota.platform.db import AccountTransaction
from rota.platform.errors import NotFound
from rota.tasks import queries
from rota.tasks.model import Task


class TaskNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("There is no such task.")


async def for_change(tx: AccountTransaction, caller: Caller, task_id: UUID | None) -> Task:
    """The task as it will stay until this transaction ends."""
    task = task_id and await queries.find_for_change(tx, task_id)
    if not task:
        raise TaskNotFound
    return task
