"""Deletes finished tasks. Only background work can. The account must be locked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.transactions import execute_count
from rota.tasks.queries import STATUS_COLUMN

# What belongs to a task besides its row.
_PARTS = ("reviews", "task_words", "task_shapers", "review_snoozes", "places")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task that is old enough to be looked at."""

    id: UUID
    run: int
    hosted: bool
    # Whether it has ended, has not changed since the time that was asked for, and no review waits.
    finished: bool
    # Whether no other task needs it: no subtask, no open parent task and no fork. Who shaped it has
    # shaped its forks too, also those that have ended: they can be retried and forked again.
    unneeded: bool


async def page(
    tx: AccountReader,
    after: UUID,
    before: datetime,
    limit: int,
    *,
    created_before: UUID,
    newest_first: bool = False,
) -> list[Candidate]:
    """The next tasks in the order of their IDs, of those that were created before a time."""
    order = "DESC" if newest_first else "ASC"
    rows = await tx.fetch(
        f"""
        WITH page AS (
            SELECT id, run, hosted, status, finished_at, updated_at, parent_task_id FROM tasks
            WHERE account_id = $1 AND id > $2 AND id < $3 ORDER BY id {order} LIMIT $5
        )
        SELECT p.id, p.run, p.hosted,
            p.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                AND greatest(p.finished_at, p.updated_at) < $4
                AND NOT EXISTS (SELECT FROM reviews r WHERE r.account_id = $1
                                AND r.task_id = p.id AND r.state = 'pending') AS finished,
            NOT EXISTS (SELECT FROM tasks c WHERE c.account_id = $1 AND c.parent_task_id = p.id)
                AND NOT EXISTS (SELECT FROM tasks a WHERE a.account_id = $1
                    AND a.id = p.parent_task_id
                    AND a.status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL'))
                AND NOT EXISTS (SELECT FROM tasks f
                    WHERE f.account_id = $1 AND f.forked_from = p.id) AS unneeded
        FROM page p ORDER BY p.id {order}
        """,  # noqa: S608
        tx.account_id,
        after,
        created_before,
        before,
        limit,
    )
    return [Candidate(**row) for row in rows]


async def open_among(tx: AccountReader, task_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the tasks that the service still runs."""
    rows = await tx.fetch(
        """
        SELECT id FROM tasks WHERE account_id = $1 AND id = ANY($2) AND hosted
          AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
        """,
        tx.account_id,
        list(task_ids),
    )
    return {row["id"] for row in rows}


async def delete(tx: AccountTransaction, task_ids: Sequence[UUID]) -> int:
    """Deletes tasks with their reviews, and corrects the totals. Returns how many rows are gone."""
    gone = await tx.fetch(
        """
        DELETE FROM tasks WHERE account_id = $1 AND id = ANY($2)
        RETURNING status, agent, project_id, parent_task_id
        """,
        tx.account_id,
        list(task_ids),
    )
    rows = len(gone)
    for table in _PARTS:
        rows += await execute_count(
            tx,
            f"DELETE FROM {table} WHERE account_id = $1 AND task_id = ANY($2)",  # noqa: S608
            tx.account_id,
            list(task_ids),
        )
    statuses = Counter(row["status"] for row in gone)
    if statuses:
        changes = ", ".join(
            f"{STATUS_COLUMN[status]} = {STATUS_COLUMN[status]} - {number:d}"
            for status, number in statuses.items()
        )
        await tx.execute(
            f"UPDATE account_heads SET {changes} WHERE account_id = $1",  # noqa: S608
            tx.account_id,
        )
    totals: Counter[tuple[str, str, str]] = Counter()
    for row in gone:
        for dimension, column in (
            ("agent", "agent"),
            ("parent", "parent_task_id"),
            ("project", "project_id"),
        ):
            if row[column] is not None:
                totals[dimension, str(row[column]), row["status"]] += 1
    await _reduce_totals(tx, totals)
    return rows


async def _reduce_totals(tx: AccountTransaction, totals: Counter[tuple[str, str, str]]) -> None:
    if not totals:
        return
    keys = sorted(totals)
    arguments = (
        tx.account_id,
        *([key[part] for key in keys] for part in range(3)),
        [totals[key] for key in keys],
    )
    await tx.execute(
        """
        UPDATE task_counts c SET tasks = c.tasks - d.tasks
        FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[])
            AS d (dimension, value, status, tasks)
        WHERE c.account_id = $1
          AND (c.dimension, c.value, c.status) = (d.dimension, d.value, d.status)
        """,
        *arguments,
    )
    # The value can be a text of a person, such as the name of a project.
    await tx.execute(
        """
        DELETE FROM task_counts c USING unnest($2::text[], $3::text[], $4::text[])
            AS d (dimension, value, status)
        WHERE c.account_id = $1 AND c.tasks = 0
          AND (c.dimension, c.value, c.status) = (d.dimension, d.value, d.status)
        """,
        *arguments[:4],
    )


async def cancel_all(tx: AccountTransaction) -> None:
    """Ends every open task and review of an account that is erased, without an event for each.

    A worker that carries a run stops at its next write. Their holds are released later.
    """
    await tx.execute(
        """
        UPDATE tasks SET status = 'CANCELLED', fence = fence + 1, finished_at = now(),
            updated_at = now()
        WHERE account_id = $1 AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
        """,
        tx.account_id,
    )
    await tx.execute(
        """
        UPDATE reviews SET state = 'cancelled', decided_at = now()
        WHERE account_id = $1 AND state = 'pending'
        """,
        tx.account_id,
    )
    await tx.execute("DELETE FROM places WHERE account_id = $1", tx.account_id)
