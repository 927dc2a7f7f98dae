"""SQL that looks at many tasks of an account at once: labels for lists of money, statistics."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.platform import ids
from rota.platform.db import AccountReader
from rota.tasks.states import Status


@dataclass(frozen=True, slots=True)
class Label:
    """What other lists show about a task."""

    name: str
    agent: str | None
    status: Status


@dataclass(frozen=True, slots=True)
class Statistics:
    """How the tasks of one agent went."""

    tasks: int
    completed: int
    failed: int
    cancelled: int
    waiting: int
    running: int
    # Of completed tasks. None if there are none.
    median_cost_micros: int | None
    median_duration_ms: int | None


@dataclass(frozen=True, slots=True)
class TypicalCost:
    """The cost of an agent's tasks that completed in their first run, in micro-dollars."""

    tasks: int
    median_micros: int
    p90_micros: int


# How many tasks the typical cost is computed from, and how many are scanned to find them.
TYPICAL_OF = 100
TYPICAL_AMONG = 1_000


async def typical_cost(tx: AccountReader, agent: str) -> TypicalCost | None:
    """What the account's newest completed tasks of an agent cost. None if there are none."""
    row = await tx.fetchrow(
        """
        SELECT count(*) AS tasks,
               round(percentile_cont(0.5) WITHIN GROUP (ORDER BY cost_micros))::bigint
                   AS median_micros,
               round(percentile_cont(0.9) WITHIN GROUP (ORDER BY cost_micros))::bigint
                   AS p90_micros
        FROM (
            SELECT cost_micros FROM (
                SELECT id, status, run, hosted, cost_micros, forked_from FROM tasks
                WHERE account_id = $1 AND agent = $2 ORDER BY id DESC LIMIT $4
            ) AS newest
            WHERE status = 'COMPLETED' AND run = 1 AND hosted AND forked_from IS NULL
            ORDER BY id DESC LIMIT $3
        ) AS completed
        """,
        tx.account_id,
        agent,
        TYPICAL_OF,
        TYPICAL_AMONG,
    )
    return TypicalCost(**row) if row["tasks"] else None


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


async def statistics(
    tx: AccountReader, agent: str, created_from: datetime, created_before: datetime
) -> Statistics:
    """The account's hosted tasks of this agent that were created in this time, apart from forks.

    The index by agent finds them. The time in which a task waited for people after its start is
    not part of its duration. Reviews can overlap: one that continues another keeps its start.
    """
    row = await tx.fetchrow(
        """
        WITH found AS (
            SELECT id, status, cost_micros, finished_at - started_at AS took, started_at
            FROM tasks
            WHERE account_id = $1 AND agent = $2 AND id >= $3 AND id < $4 AND hosted
              AND forked_from IS NULL
        ), worked AS (
            SELECT cost_micros, extract(epoch FROM took - coalesce((
                SELECT sum(upper(span) - lower(span)) FROM (
                    SELECT unnest(range_agg(
                        tstzrange(greatest(r.requested_at, f.started_at), r.decided_at)
                    )) AS span
                    FROM reviews r WHERE r.account_id = $1 AND r.task_id = f.id
                      AND r.decided_at > greatest(r.requested_at, f.started_at)
                ) AS spans
            ), interval '0')) * 1000 AS ms
            FROM found f WHERE status = 'COMPLETED'
        )
        SELECT count(*) AS tasks,
               count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
               count(*) FILTER (WHERE status = 'FAILED') AS failed,
               count(*) FILTER (WHERE status = 'CANCELLED') AS cancelled,
               count(*) FILTER (WHERE status = 'WAITING_APPROVAL') AS waiting,
               count(*) FILTER (WHERE status IN ('PENDING', 'RUNNING')) AS running,
               (SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY cost_micros))::bigint
                FROM worked) AS median_cost_micros,
               (SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms))::bigint
                FROM worked) AS median_duration_ms
        FROM found
        """,
        tx.account_id,
        agent,
        ids.first_from(created_from),
        ids.first_from(created_before),
    )
    return Statistics(**row)
