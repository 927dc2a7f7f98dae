"""The SQL of task trees: the tasks above and below a task."""

from collections.abc import Collection
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks.model import Task
from rota.tasks.queries import SELECTED

# The tasks below a task ($2), each with its distance from it.
_BELOW = """
    WITH RECURSIVE below (id, level) AS (
        SELECT id, 1 FROM tasks WHERE account_id = $1 AND parent_task_id = $2
        UNION ALL
        SELECT t.id, b.level + 1 FROM below b
        JOIN tasks t ON t.account_id = $1 AND t.parent_task_id = b.id
    )
    SELECT id, level FROM below
"""


async def open_subtasks(
    tx: AccountReader, task_id: UUID, *, limit: int | None = None
) -> list[UUID]:
    """The tasks below this one, at any depth, that have not ended. With a limit, any of them."""
    rows = await tx.fetch(
        """
        WITH RECURSIVE below (id, status) AS (
            SELECT id, status FROM tasks WHERE account_id = $1 AND parent_task_id = $2
            UNION ALL
            SELECT t.id, t.status FROM below b
            JOIN tasks t ON t.account_id = $1 AND t.parent_task_id = b.id
        )
        SELECT id FROM below WHERE status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL') LIMIT $3
        """,
        tx.account_id,
        task_id,
        limit,
    )
    return sorted(row["id"] for row in rows)


async def above(tx: AccountReader, task: Task) -> list[Task]:
    """The tasks above this one, from the top down."""
    if task.parent_task_id is None:
        return []
    rows = await tx.fetch(
        f"""
        WITH RECURSIVE above (id) AS (
            SELECT $2::uuid
            UNION ALL
            SELECT t.parent_task_id FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        )
        SELECT {SELECTED} FROM tasks
        WHERE account_id = $1 AND id IN (SELECT id FROM above) ORDER BY depth
        """,  # noqa: S608
        tx.account_id,
        task.parent_task_id,
    )
    return [Task(**row) for row in rows]


async def cancelled_ancestor(tx: AccountReader, task: Task) -> Task | None:
    """The nearest task above this one that is CANCELLED."""
    if task.parent_task_id is None:
        return None
    row = await tx.fetchrow(
        f"""
        WITH RECURSIVE above (id, level) AS (
            SELECT $2::uuid, 1
            UNION ALL
            SELECT t.parent_task_id, a.level + 1 FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        )
        SELECT {SELECTED} FROM tasks WHERE account_id = $1 AND id = (
            SELECT t.id FROM above a JOIN tasks t ON t.account_id = $1 AND t.id = a.id
            WHERE t.status = 'CANCELLED' ORDER BY a.level LIMIT 1
        )
        """,  # noqa: S608
        tx.account_id,
        task.parent_task_id,
    )
    return Task(**row) if row else None


async def below_cancelled(tx: AccountReader, task_ids: Collection[UUID]) -> set[UUID]:
    """Those of the tasks that are CANCELLED, or below a task that is."""
    if not task_ids:
        return set()
    rows = await tx.fetch(
        """
        WITH RECURSIVE above (task_id, id) AS (
            SELECT id, id FROM unnest($2::uuid[]) AS id
            UNION
            SELECT a.task_id, t.parent_task_id FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.id
            WHERE t.parent_task_id IS NOT NULL
        )
        SELECT DISTINCT a.task_id FROM above a
        JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        WHERE t.status = 'CANCELLED'
        """,
        tx.account_id,
        list(task_ids),
    )
    return {row["task_id"] for row in rows}


async def belongs_to_fork(tx: AccountReader, task: Task) -> bool:
    """Whether this task or one above it is a fork."""
    found = await tx.fetchval(
        """
        WITH RECURSIVE above (parent_id, origin_id) AS (
            SELECT parent_task_id, forked_from FROM tasks WHERE account_id = $1 AND id = $2
            UNION ALL
            SELECT t.parent_task_id, t.forked_from FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.parent_id
        )
        SELECT EXISTS (SELECT FROM above WHERE origin_id IS NOT NULL)
        """,
        tx.account_id,
        task.id,
    )
    return bool(found)


async def running_ancestors(tx: AccountReader, task_id: UUID) -> list[Task]:
    """The hosted tasks above this one, at any depth, that are RUNNING."""
    rows = await tx.fetch(
        f"""
        WITH RECURSIVE above (id) AS (
            SELECT parent_task_id FROM tasks WHERE account_id = $1 AND id = $2
            UNION ALL
            SELECT t.parent_task_id FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        )
        SELECT {SELECTED} FROM tasks
        WHERE account_id = $1 AND id IN (SELECT id FROM above) AND hosted AND status = 'RUNNING'
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Task(**row) for row in rows]


async def subtree_height(tx: AccountReader, task_id: UUID) -> int:
    """The number of levels below this task."""
    height: int = await tx.fetchval(
        f"SELECT coalesce(max(level), 0) FROM ({_BELOW}) AS below",  # noqa: S608
        tx.account_id,
        task_id,
    )
    return height


async def is_below(tx: AccountReader, task_id: UUID, root_id: UUID) -> bool:
    """Whether a task is somewhere below another one."""
    found: bool = await tx.fetchval(
        f"SELECT EXISTS (SELECT FROM ({_BELOW}) AS below WHERE id = $3)",  # noqa: S608
        tx.account_id,
        root_id,
        task_id,
    )
    return found


async def move_subtasks(tx: AccountTransaction, task_id: UUID, levels: int) -> None:
    """Changes the depth of every task below this one, after it has moved."""
    await tx.execute(
        f"""
        UPDATE tasks SET depth = depth + $3
        WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM ({_BELOW}) AS below))
        """,  # noqa: S608
        tx.account_id,
        task_id,
        levels,
    )
