"""The SQL of reviews."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction, ReadConnection
from rota.tasks.model import Review

_COLUMNS = "number, state, gate, requested_at, expires_at, decided_at, decided_by, reason, items"


async def of_task(tx: AccountReader, task_id: UUID) -> list[Review]:
    """All reviews of a task, newest first."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM reviews WHERE account_id = $1 AND task_id = $2
        ORDER BY number DESC
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Review(**row) for row in rows]


# The reviews of a task ($2) as entries of its timeline. The database sorts and pages them together
# with the steps, which the package `runs` owns, so this is a statement and not a function.
TIMELINE_ENTRIES = """
    SELECT format('review-%s', number) AS id, 'approval' AS kind, NULL::integer AS run,
           NULL::integer AS step, gate AS name, NULL AS server, state, NULL AS outcome,
           items AS arguments, to_jsonb(reason) AS result, NULL::uuid AS child_task_id,
           0 AS input_tokens, 0 AS output_tokens, 0 AS cached_input_tokens,
           0 AS cache_write_tokens, 0 AS reasoning_tokens, false AS estimated,
           0 AS cost_micros, NULL AS price_version,
           requested_at AS started_at, decided_at AS finished_at, decided_by
    FROM reviews WHERE account_id = $1 AND task_id = $2
"""


async def open_pending(
    tx: AccountTransaction,
    task_id: UUID,
    gate: str | None,
    requested_at: datetime,
    expires_at: datetime,
    items: Sequence[Mapping[str, Any]],
) -> None:
    await tx.execute(
        """
        INSERT INTO reviews (account_id, task_id, number, state, gate, requested_at, expires_at,
                             items)
        SELECT $1, $2, coalesce(max(number), 0) + 1, 'pending', $3, $4, $5, $6
        FROM reviews WHERE account_id = $1 AND task_id = $2
        """,
        tx.account_id,
        task_id,
        gate,
        requested_at,
        expires_at,
        list(items),
    )


async def pending(tx: AccountReader, task_ids: Sequence[UUID]) -> dict[UUID, list[Review]]:
    """The pending review of each of these tasks that has one."""
    rows = await tx.fetch(
        f"""
        SELECT task_id, {_COLUMNS} FROM reviews
        WHERE account_id = $1 AND task_id = ANY($2) AND state = 'pending'
        """,  # noqa: S608
        tx.account_id,
        list(task_ids),
    )
    found: dict[UUID, list[Review]] = {}
    for row in rows:
        columns = dict(row)
        task_id = columns.pop("task_id")
        found[task_id] = [Review(**columns)]
    return found


async def save_items(
    tx: AccountTransaction,
    task_id: UUID,
    items: Sequence[Mapping[str, Any]],
) -> None:
    """Stores the items of the pending review with the decisions so far."""
    if items:
        await tx.execute(
            """
            UPDATE reviews SET items = $3
            WHERE account_id = $1 AND task_id = $2 AND state = 'pending'
            """,
            tx.account_id,
            task_id,
            list(items),
        )


async def close(
    tx: AccountTransaction,
    task_id: UUID,
    state: str,
    decided_by: UUID | None,
    reason: str | None,
    at: datetime,
) -> None:
    """Closes the pending review."""
    await tx.execute(
        """
        UPDATE reviews SET state = $3, decided_by = $4, reason = $5, decided_at = $6
        WHERE account_id = $1 AND task_id = $2 AND state = 'pending'
        """,
        tx.account_id,
        task_id,
        state,
        decided_by,
        reason,
        at,
    )


async def due(connection: ReadConnection, limit: int) -> list[tuple[UUID, UUID]]:
    """Account and task of expired reviews, of all accounts. Needs a relay transaction."""
    rows = await connection.fetch(
        """
        SELECT account_id, task_id FROM reviews
        WHERE state = 'pending' AND expires_at <= now() ORDER BY expires_at LIMIT $1
        """,
        limit,
    )
    return [(row["account_id"], row["task_id"]) for row in rows]
