"""Places: how many tasks of one agent an account works on at the same time.

The agent's file can limit it (`maxConcurrent`). A task that works then holds a place. A task for
which no place is free is queued: the instruction that starts or continues its run is parked in the
outbox. The transaction in which a run ends, or waits for a person, gives the place to the next task
in the queue. The account is locked in all of these transactions.

Runs delegate only to agents of a lower rank, so tasks that wait for each other always end.
"""

from dataclasses import replace
from typing import Literal
from uuid import UUID

from rota.agents import queries as agents
from rota.events import outbox
from rota.platform.db import AccountTransaction
from rota.tasks.model import Task
from rota.tasks.states import Status

Place = Literal["held", "queued"]

WORKING: frozenset[Status] = frozenset({"PENDING", "RUNNING"})

# A later position is shown as this one.
MAX_POSITION = 1_000
# Runs that have started come first, then higher priorities, then older tasks.
_ORDER = "(started_at IS NULL), (-priority), id"


def position_of(row: str) -> str:
    """The expression for the position of a row of tasks in the queue of its agent."""
    return f"""
        CASE WHEN {row}.place = 'queued' THEN 1 + (
            SELECT count(*) FROM (
                SELECT FROM tasks AS q
                WHERE q.account_id = {row}.account_id AND q.agent = {row}.agent
                  AND q.place = 'queued'
                  AND (q.started_at IS NULL, -q.priority, q.id)
                      < ({row}.started_at IS NULL, -{row}.priority, {row}.id)
                LIMIT {MAX_POSITION - 1}
            ) AS ahead
        ) END AS queue_position
    """  # noqa: S608


async def take(tx: AccountTransaction, task: Task, limit: int | None) -> Task:
    """Takes a place for a task that begins or continues to work, or queues it."""
    if limit is None:
        return task
    place: Place = await tx.fetchval(
        """
        UPDATE tasks SET place = CASE WHEN (
            SELECT count(*) FROM tasks WHERE account_id = $1 AND agent = $2 AND place = 'held'
        ) < $4 THEN 'held' ELSE 'queued' END
        WHERE account_id = $1 AND id = $3 RETURNING place
        """,
        tx.account_id,
        task.agent,
        task.id,
        limit,
    )
    position = await _position(tx, task.id) if place == "queued" else None
    return replace(task, place=place, queue_position=position)


async def settle(tx: AccountTransaction, before: Task, after: Task) -> Task:
    """Takes or gives back a place, if the change of the task's status calls for it."""
    if not after.hosted or after.agent is None:
        return after
    if after.status in WORKING:
        if before.status in WORKING:
            return after
        return await take(tx, after, await agents.max_concurrent(tx, after.agent))
    if before.place is None:
        return after
    await tx.execute(
        "UPDATE tasks SET place = NULL WHERE account_id = $1 AND id = $2", tx.account_id, after.id
    )
    await _admit_next(tx, after.agent)
    return replace(after, place=None, queue_position=None)


async def _admit_next(tx: AccountTransaction, agent: str) -> None:
    """Gives the free places of an agent to the next tasks in its queue."""
    limit = await agents.max_concurrent(tx, agent)
    rows = await tx.fetch(
        f"""
        UPDATE tasks SET place = 'held' WHERE account_id = $1 AND id = ANY (ARRAY(
            SELECT id FROM tasks WHERE account_id = $1 AND agent = $2 AND place = 'queued'
            ORDER BY {_ORDER} LIMIT CASE WHEN $3::integer IS NOT NULL THEN greatest(0, $3 - (
                SELECT count(*) FROM tasks WHERE account_id = $1 AND agent = $2 AND place = 'held'
            )) END
        )) RETURNING id
        """,  # noqa: S608
        tx.account_id,
        agent,
        limit,
    )
    if rows:
        await outbox.release_parked(tx, [row["id"] for row in rows])


async def _position(tx: AccountTransaction, task_id: UUID) -> int:
    position: int = await tx.fetchval(
        f"SELECT {position_of('tasks')} FROM tasks WHERE account_id = $1 AND id = $2",  # noqa: S608
        tx.account_id,
        task_id,
    )
    return position
