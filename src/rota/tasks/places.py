"""Places: how many of an agent's tasks can run at the same time in one account.

The agent's file can limit it (`maxConcurrent`). A task of such an agent then needs a place while it
works. If none is free, the task is queued: the instruction that starts or continues its run is
parked in the outbox. The transaction in which a run ends, or waits for a person, gives the place to
the next task in the queue. The account is locked in all of these transactions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog

from rota.agents import queries as agents
from rota.events import journal, outbox
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.tasks.model import Task
from rota.tasks.states import Status

log = structlog.get_logger()

WORKING: frozenset[Status] = frozenset({"PENDING", "RUNNING"})

# A later position is shown as this one.
MAX_POSITION = 1_000

_ORDER = "started DESC, priority DESC, task_id"

AnyTask = TypeVar("AnyTask", bound=Task)


async def settle(tx: AccountTransaction, before: Task, after: Task) -> Task:
    """Takes or gives back a place, if the change of the task's status calls for it."""
    if not after.hosted or after.agent is None:
        return after
    if after.status in WORKING:
        if before.status in WORKING:
            return after
        limit = await agents.max_concurrent(tx, after.agent)
        return await take(tx, after) if limit else replace(after, limited=False)
    if not before.limited:
        return after
    await tx.execute(
        "DELETE FROM places WHERE account_id = $1 AND task_id = $2", tx.account_id, after.id
    )
    await _admit(tx, after.agent)
    return replace(after, limited=False, queue_position=None)


async def take(tx: AccountTransaction, task: Task) -> Task:
    """Takes a place for a task that begins to work or continues, or queues it."""
    assert task.agent is not None
    await tx.execute(
        """
        INSERT INTO places (account_id, task_id, agent, held, started, priority)
        VALUES ($1, $2, $3, false, $4, $5)
        ON CONFLICT (account_id, task_id) DO UPDATE
        SET held = false, started = excluded.started, priority = excluded.priority
        """,
        tx.account_id,
        task.id,
        task.agent,
        task.started_at is not None,
        task.priority,
    )
    await _admit(tx, task.agent)
    return await with_position(tx, replace(task, limited=True))


async def is_queued(tx: AccountReader, task: Task) -> bool:
    """Whether the task waits for a place."""
    if not task.limited:
        return False
    found: bool = await tx.fetchval(
        """
        SELECT EXISTS (
            SELECT FROM places WHERE account_id = $1 AND task_id = $2 AND NOT held
        )
        """,
        tx.account_id,
        task.id,
    )
    return found


async def set_priority(tx: AccountTransaction, task: Task) -> Task:
    """Moves a queued task, after its priority has changed."""
    await tx.execute(
        "UPDATE places SET priority = $3 WHERE account_id = $1 AND task_id = $2",
        tx.account_id,
        task.id,
        task.priority,
    )
    return await with_position(tx, task)


async def with_position(tx: AccountReader, task: AnyTask) -> AnyTask:
    [found] = await with_positions(tx, [task])
    return found


async def with_positions(tx: AccountReader, tasks: Sequence[AnyTask]) -> list[AnyTask]:
    """The tasks with their positions in the queues of their agents."""
    limited = [task for task in tasks if task.limited and task.status in WORKING]
    if not limited:
        return list(tasks)
    rows = await tx.fetch(
        f"""
        WITH first AS MATERIALIZED (
            SELECT queue.task_id, queue.position FROM unnest($3::text[]) AS each (agent), LATERAL (
                SELECT task_id, row_number() OVER (ORDER BY {_ORDER}) AS position FROM places
                WHERE account_id = $1 AND agent = each.agent AND NOT held
                ORDER BY {_ORDER} LIMIT {MAX_POSITION}
            ) AS queue
        )
        SELECT task_id, position FROM places LEFT JOIN first USING (task_id)
        WHERE account_id = $1 AND task_id = ANY ($2) AND NOT held
        """,  # noqa: S608
        tx.account_id,
        [task.id for task in limited],
        list({task.agent for task in limited}),
    )
    positions = {row["task_id"]: row["position"] or MAX_POSITION for row in rows}
    return [replace(task, queue_position=positions.get(task.id)) for task in tasks]


async def admit_all(db: Database) -> None:
    """Gives free places to queued tasks. Only a fallback, and for limits that were raised."""
    async with db.relay() as connection:
        rows = await connection.fetch("SELECT DISTINCT account_id FROM places WHERE NOT held")
    for row in rows:
        try:
            await _admit_of(db, row["account_id"])
        except Exception:
            # A failure must not delay the other accounts.
            log.exception("task_admission_failed", account_id=str(row["account_id"]))


async def _admit_of(db: Database, account_id: UUID) -> None:
    async with db.write(account_id) as tx:
        await journal.lock_account(tx)
        await _forget_ended(tx)
        queued = await tx.fetch(
            "SELECT DISTINCT agent FROM places WHERE account_id = $1 AND NOT held",
            tx.account_id,
        )
        for each in queued:
            await _admit(tx, each["agent"])


async def _forget_ended(tx: AccountTransaction) -> None:
    """A service of an earlier version ends tasks without giving back their places."""
    await tx.execute(
        """
        DELETE FROM places AS p WHERE p.account_id = $1 AND NOT EXISTS (
            SELECT FROM tasks AS t WHERE t.account_id = $1 AND t.id = p.task_id
              AND t.status IN ('PENDING', 'RUNNING')
        )
        """,
        tx.account_id,
    )


async def _admit(tx: AccountTransaction, agent: str) -> None:
    """Gives the free places of an agent to the next tasks in its queue."""
    limit = await agents.max_concurrent(tx, agent)
    rows = await tx.fetch(
        f"""
        UPDATE places SET held = true WHERE account_id = $1 AND task_id = ANY (ARRAY(
            SELECT task_id FROM places WHERE account_id = $1 AND agent = $2 AND NOT held
            ORDER BY {_ORDER} LIMIT CASE WHEN $3::integer IS NOT NULL THEN greatest(0, $3 - (
                SELECT count(*) FROM places WHERE account_id = $1 AND agent = $2 AND held
            )) END
        )) RETURNING task_id
        """,  # noqa: S608
        tx.account_id,
        agent,
        limit,
    )
    if rows:
        await outbox.release_parked(tx, [row["task_id"] for row in rows])
