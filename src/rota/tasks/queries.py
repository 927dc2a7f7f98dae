"""The SQL of tasks and reviews. Whatever changes a task locks the account's head first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rota.events import journal
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid
from rota.tasks.model import Task
from rota.tasks.states import Status

_COLUMNS = (
    "id, status, hosted, depth, run, agent, agent_version, project_id, parent_task_id, name,"
    " priority, created_at, updated_at, started_at, finished_at, description, input, output,"
    " actions, error, steps, input_tokens, output_tokens, cost_micros"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list is narrowed to. The totals of one of agent, project and parent are kept."""

    status: Status | None = None
    agent: str | None = None
    project_id: str | None = None
    parent_task_id: UUID | None = None

    @property
    def dimensions(self) -> list[tuple[str, str, object]]:
        """Column, name of the kept total, and value of every filter besides the status."""
        found: list[tuple[str, str, object]] = []
        if self.agent is not None:
            found.append(("agent", "agent", self.agent))
        if self.project_id is not None:
            found.append(("project_id", "project", self.project_id))
        if self.parent_task_id is not None:
            found.append(("parent_task_id", "parent", self.parent_task_id))
        return found


async def insert(
    tx: AccountTransaction,
    user_id: UUID,
    task: Task,
    event_data: Mapping[str, Any],
    instruction: tuple[str, Mapping[str, Any]] | None,
) -> None:
    """The task, its event, its totals and the instruction to run it, in one statement."""
    kind, payload = instruction or (None, {})
    tx.has_events = True
    await tx.execute(
        f"""
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + 1,
                {_STATUS_COLUMN[task.status]} = {_STATUS_COLUMN[task.status]} + 1
            WHERE account_id = $1 RETURNING last_sequence
        ), task AS (
            INSERT INTO tasks (account_id, created_by, {_COLUMNS})
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                   $18, $19, $20, $21, $22, $23, $24, $25, $26 FROM head
        ), event AS (
            INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
            SELECT $1, last_sequence, $27, 'task.created', $3, $28, clock_timestamp() FROM head
        ), instruction AS (
            INSERT INTO outbox (account_id, kind, task_id, payload)
            SELECT $1, $29, $3, $30 FROM head WHERE $29::text IS NOT NULL
        )
        INSERT INTO task_counts AS c (account_id, dimension, value, status, tasks)
        SELECT $1, d.dimension, d.value, $4, 1
        FROM head, unnest($31::text[], $32::text[]) AS d (dimension, value)
        ON CONFLICT (account_id, dimension, value, status) DO UPDATE SET tasks = c.tasks + 1
        """,  # noqa: S608
        tx.account_id,
        user_id,
        task.id,
        task.status,
        task.hosted,
        task.depth,
        task.run,
        task.agent,
        task.agent_version,
        task.project_id,
        task.parent_task_id,
        task.name,
        task.priority,
        task.created_at,
        task.updated_at,
        task.started_at,
        task.finished_at,
        task.description,
        task.input,
        task.output,
        task.actions,
        task.error,
        task.steps,
        task.input_tokens,
        task.output_tokens,
        task.cost_micros,
        new_uuid(),
        event_data,
        kind,
        payload,
        *_dimensions(task),
    )


_STATUS_COLUMN: dict[str, str] = {
    "PENDING": "pending",
    "RUNNING": "running",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "WAITING_APPROVAL": "waiting_approval",
}


def _dimensions(task: Task) -> tuple[list[str], list[str]]:
    """The totals besides the account's own in which a task counts."""
    values = {
        "agent": task.agent,
        "parent": str(task.parent_task_id) if task.parent_task_id else None,
        "project": task.project_id,
    }
    present = {name: value for name, value in values.items() if value is not None}
    return list(present), list(present.values())


async def find(tx: AccountReader, task_id: UUID) -> Task | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM tasks WHERE account_id = $1 AND id = $2",  # noqa: S608
        tx.account_id,
        task_id,
    )
    return Task(**row) if row else None


async def created_by(tx: AccountReader, task_id: UUID) -> UUID:
    user_id: UUID = await tx.fetchval(
        "SELECT created_by FROM tasks WHERE account_id = $1 AND id = $2", tx.account_id, task_id
    )
    return user_id


async def find_for_change(tx: AccountTransaction, task_id: UUID) -> Task | None:
    """The task as it will stay until this transaction ends."""
    await journal.lock_account(tx)
    return await find(tx, task_id)


async def open_children(tx: AccountReader, task_id: UUID) -> list[Task]:
    """Every task below this one that is not at its end, however deep."""
    rows = await tx.fetch(
        f"""
        WITH RECURSIVE below (id) AS (
            SELECT id FROM tasks WHERE account_id = $1 AND parent_task_id = $2
            UNION ALL
            SELECT t.id FROM below b
            JOIN tasks t ON t.account_id = $1 AND t.parent_task_id = b.id
        )
        SELECT {_COLUMNS} FROM tasks
        WHERE account_id = $1 AND id IN (SELECT id FROM below)
          AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
        ORDER BY id
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Task(**row) for row in rows]


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
        SELECT {_COLUMNS} FROM tasks
        WHERE account_id = $1 AND id IN (SELECT id FROM above) AND hosted AND status = 'RUNNING'
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Task(**row) for row in rows]


async def add_usage(
    tx: AccountTransaction,
    task_id: UUID,
    *,
    input_tokens: int,
    output_tokens: int,
    cost_micros: int,
) -> None:
    """Counts one model call in the task's usage."""
    await tx.execute(
        """
        UPDATE tasks SET steps = steps + 1, input_tokens = input_tokens + $3,
            output_tokens = output_tokens + $4, cost_micros = cost_micros + $5
        WHERE account_id = $1 AND id = $2
        """,
        tx.account_id,
        task_id,
        input_tokens,
        output_tokens,
        cost_micros,
    )


async def update(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    event: tuple[str, Mapping[str, Any]] | None,
) -> None:
    """Writes a changed task, with the event that tells of it and the totals it moves."""
    await tx.execute(
        """
        UPDATE tasks SET status = $3, run = $4, name = $5, priority = $6, updated_at = $7,
            started_at = $8, finished_at = $9, description = $10, output = $11, actions = $12,
            error = $13
        WHERE account_id = $1 AND id = $2
        """,
        tx.account_id,
        after.id,
        after.status,
        after.run,
        after.name,
        after.priority,
        after.updated_at,
        after.started_at,
        after.finished_at,
        after.description,
        after.output,
        after.actions,
        after.error,
    )
    if event is not None:
        await _tell(tx, before, after, event)


async def _tell(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    event: tuple[str, Mapping[str, Any]],
) -> None:
    source, target = _STATUS_COLUMN[before.status], _STATUS_COLUMN[after.status]
    moved = f", {source} = {source} - 1, {target} = {target} + 1" if source != target else ""
    kind, data = event
    tx.has_events = True
    await tx.execute(
        f"""
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + 1 {moved}
            WHERE account_id = $1 RETURNING last_sequence
        ), counts AS (
            INSERT INTO task_counts AS c (account_id, dimension, value, status, tasks)
            SELECT $1, d.dimension, d.value, s.status, s.change
            FROM unnest($6::text[], $7::text[]) AS d (dimension, value),
                 (VALUES ($8, -1), ($9, 1)) AS s (status, change)
            WHERE $8 <> $9
            ORDER BY d.dimension, s.status
            ON CONFLICT (account_id, dimension, value, status)
                DO UPDATE SET tasks = c.tasks + excluded.tasks
        )
        INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
        SELECT $1, last_sequence, $3, $4, $2, $5, clock_timestamp() FROM head
        """,  # noqa: S608
        tx.account_id,
        after.id,
        new_uuid(),
        kind,
        data,
        *_dimensions(after),
        before.status,
        after.status,
    )


async def total(tx: AccountReader, wanted: Filter) -> int:
    """How many tasks match, read from the totals that every change keeps.

    Filters by two of agent, project and parent at once have no kept total; then
    the entries of an index are counted.
    """
    dimensions = wanted.dimensions
    if not dimensions:
        columns = (
            [_STATUS_COLUMN[wanted.status]] if wanted.status else list(_STATUS_COLUMN.values())
        )
        count = await tx.fetchval(
            f"SELECT {' + '.join(columns)} FROM account_heads WHERE account_id = $1",  # noqa: S608
            tx.account_id,
        )
    elif len(dimensions) == 1:
        _, name, value = dimensions[0]
        count = await tx.fetchval(
            """
            SELECT sum(tasks)::bigint FROM task_counts
            WHERE account_id = $1 AND dimension = $2 AND value = $3
              AND ($4::text IS NULL OR status = $4)
            """,
            tx.account_id,
            name,
            str(value),
            wanted.status,
        )
    else:
        where, arguments = _where(tx.account_id, wanted)
        count = await tx.fetchval(
            f"SELECT count(*) FROM tasks WHERE {where}",  # noqa: S608
            *arguments,
        )
    return count or 0


def _where(account_id: UUID, wanted: Filter) -> tuple[str, list[object]]:
    conditions, arguments = ["account_id = $1"], [account_id]
    pairs: list[tuple[str, object]] = [(column, v) for column, _, v in wanted.dimensions]
    if wanted.status is not None:
        pairs.append(("status", wanted.status))
    for column, value in pairs:
        arguments.append(value)  # type: ignore[arg-type]
        conditions.append(f"{column} = ${len(arguments)}")
    return " AND ".join(conditions), list(arguments)


async def page(
    tx: AccountReader,
    wanted: Filter,
    limit: int,
    offset: int,
    matching: int,
) -> list[Task]:
    """A page, newest first. `matching` is the exact total in the same snapshot.

    Ids are skipped over in an index, from whichever end is nearer, and only the
    rows of the page itself are read.
    """
    limit = min(limit, matching - offset)
    if limit <= 0:
        return []
    direction, skip = "DESC", offset
    if offset > matching // 2:
        direction, skip = "ASC", matching - offset - limit
    where, arguments = _where(tx.account_id, wanted)
    rows = await tx.fetch(
        # An array of ids and not a join: PostgreSQL also plans for accounts it knows
        # nothing of, and for those it would join by reading all of the account.
        f"""
        SELECT {_COLUMNS} FROM tasks
        WHERE account_id = $1 AND id = ANY (ARRAY(
            SELECT id FROM tasks WHERE {where} ORDER BY id {direction}
            LIMIT ${len(arguments) + 1} OFFSET ${len(arguments) + 2}
        ))
        ORDER BY id DESC
        """,  # noqa: S608
        *arguments,
        limit,
        skip,
    )
    return [Task(**row) for row in rows]
