"""SQL that looks at many tasks of an account at once: labels for lists of money."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from rota.platform.db import AccountReader
from rota.tasks.states import Status


@dataclass(frozen=True, slots=True)
class Label:
    """What other lists show about a task."""

    name: str
    agent: str | None
    status: Status


async def labels(tx: AccountReader, task_ids: Collection[UUID]) -> dict[UUID, Label]:
    """The labels of those of the tasks that exist."""
    if not task_ids:
        return {}
    rows = await tx.fetch(
        "SELECT id, name, agent, status FROM tasks WHERE account_id = $1 AND id = ANY ($2)",
        tx.account_id,
        list(task_ids),
    )
    return {row["id"]: Label(row["name"], row["agent"], row["status"]) for row in rows}
