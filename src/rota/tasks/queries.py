"""The SQL of tasks. A transaction that changes a task locks the account first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

from rota.events import journal, outbox
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid
from rota.tasks.errors import TaskNotFound
from rota.tasks.model import Task
from rota.tasks.states import STATUSES, Status

# The columns are the fields of `Task`. Column lists, placeholders and values are all made from
# these tuples, so they cannot get out of step.
COLUMNS = tuple(field.name for field in fields(Task) if field.name != "queue_position")
_CHANGEABLE = (
    "status",
    "run",
    "agent_version",
    "budget_cents",
    "depth",
    "project_id",
    "parent_task_id",
    "name",
    "priority",
    "updated_at",
    "started_at",
    "finished_at",
    "description",
    "output",
    "actions",
    "error",
    "inherited_approval",
    "fence",
    "output_schema",
    "deadline",
    "limited",
    "start_run",
)
_TEXTS = ("description", "output", "actions", "output_schema")
_SHORT = tuple(name for name in _CHANGEABLE if name not in _TEXTS)
SELECTED = ", ".join(COLUMNS)
_values = attrgetter(*COLUMNS)
_changeable_values = attrgetter(*_CHANGEABLE)
_text_values, _short_values = attrgetter(*_TEXTS), attrgetter(*_SHORT)


def _placeholders(columns: tuple[str, ...], first: int) -> dict[str, str]:
    """Each column with its placeholder: `$first` and the numbers after it."""
    return {column: f"${number}" for number, column in enumerate(columns, first)}


STATUS_COLUMN: dict[str, str] = {
    "PENDING": "pending",
    "RUNNING": "running",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "WAITING_APPROVAL": "waiting_approval",
}


def _insert_statement(status: Status) -> str:
    task = _placeholders(COLUMNS, first=9)
    count = STATUS_COLUMN[status]
    return f"""
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + 1, {count} = {count} + 1
            WHERE account_id = $1 RETURNING last_sequence
        ), task AS (
            INSERT INTO tasks (account_id, created_by, {SELECTED})
            SELECT $1, $2, {", ".join(task.values())} FROM head
        ), event AS (
            INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
            SELECT $1, last_sequence, $3, 'task.created', {task["id"]}, $4, clock_timestamp()
            FROM head
        ), instruction AS (
            INSERT INTO outbox (account_id, kind, task_id, payload)
            SELECT $1, $5, {task["id"]}, $6 FROM head WHERE $5::text IS NOT NULL
        )
        INSERT INTO task_counts AS c (account_id, dimension, value, status, tasks)
        SELECT $1, d.dimension, d.value, {task["status"]}, 1
        FROM head, unnest($7::text[], $8::text[]) AS d (dimension, value)
        ON CONFLICT (account_id, dimension, value, status) DO UPDATE SET tasks = c.tasks + 1
        """  # noqa: S608


_INSERT = {status: _insert_statement(status) for status in STATUSES}


async def insert(
    tx: AccountTransaction,
    task: Task,
    event_data: Mapping[str, Any],
    instruction: tuple[str, Mapping[str, Any]] | None,
    *,
    created_by: UUID | None = None,
) -> None:
    """Writes the task, its event, its totals and the instruction to run it in one statement.

    `created_by` is the transaction's user unless given.
    """
    kind, payload = instruction or (None, {})
    journal.note(tx, "task.created", event_data, task.id)
    if kind is not None:
        outbox.note(tx, kind)
    await tx.execute(
        _INSERT[task.status],
        tx.account_id,
        created_by or tx.user_id,
        new_uuid(),
        event_data,
        kind,
        payload,
        *_dimensions(task),
        *_values(task),
    )


def _dimensions(task: Task) -> tuple[list[str], list[str]]:
    """Names and values of the stored totals that include this task."""
    values = {
        "agent": task.agent,
        "parent": str(task.parent_task_id) if task.parent_task_id else None,
        "project": task.project_id,
    }
    present = {name: value for name, value in values.items() if value is not None}
    return list(present), list(present.values())


async def get(tx: AccountReader, task_id: UUID | None) -> Task:
    """The task. Raises if it does not exist; None is an id that could not be parsed."""
    task = await find(tx, task_id) if task_id else None
    if task is None:
        raise TaskNotFound
    return task


async def get_for_change(tx: AccountTransaction, task_id: UUID | None) -> Task:
    """Like `get`, and locks the account, so that nothing else changes the task."""
    task = await find_for_change(tx, task_id) if task_id else None
    if task is None:
        raise TaskNotFound
    return task


_FIND = f"SELECT {SELECTED} FROM tasks WHERE account_id = $1 AND id = $2"  # noqa: S608


async def find(tx: AccountReader, task_id: UUID) -> Task | None:
    row = await tx.fetchrow(_FIND, tx.account_id, task_id)
    # The columns are the fields in their order. By name, this takes three times as long.
    return Task(*row) if row else None


@dataclass(frozen=True, slots=True)
class Fence:
    """Which slice carries the run of a task, and where the task is."""

    run: int
    fence: int
    status: Status
    parent_task_id: UUID | None


async def fences(tx: AccountReader, task_ids: list[UUID]) -> dict[UUID, Fence]:
    rows = await tx.fetch(
        """
        SELECT id, run, fence, status, parent_task_id FROM tasks
        WHERE account_id = $1 AND id = ANY($2)
        """,
        tx.account_id,
        task_ids,
    )
    return {id: Fence(*rest) for id, *rest in rows}  # noqa: A001


async def is_running(tx: AccountReader, task_id: UUID, run: int) -> bool:
    """Whether the task is RUNNING, in this run."""
    found = await tx.fetchval(
        """
        SELECT true FROM tasks
        WHERE account_id = $1 AND id = $2 AND run = $3 AND status = 'RUNNING'
        """,
        tx.account_id,
        task_id,
        run,
    )
    return bool(found)


async def created_by(tx: AccountReader, task_id: UUID) -> UUID:
    user_id: UUID = await tx.fetchval(
        "SELECT created_by FROM tasks WHERE account_id = $1 AND id = $2", tx.account_id, task_id
    )
    return user_id


async def find_for_change(tx: AccountTransaction, task_id: UUID) -> Task | None:
    """Locks the account, then reads the task. It cannot change until the transaction ends."""
    await journal.lock_account(tx)
    return await find(tx, task_id)


async def raise_fence(tx: AccountTransaction, task: Task) -> Task:
    """Makes every earlier slice of the task's run stop. The account must be locked."""
    fence = await tx.fetchval(
        "UPDATE tasks SET fence = fence + 1 WHERE account_id = $1 AND id = $2 RETURNING fence",
        tx.account_id,
        task.id,
    )
    return replace(task, fence=fence)


async def failed_among(tx: AccountReader, task_ids: Sequence[UUID], creator: UUID) -> set[UUID]:
    """Those of these tasks that this user created and that have failed."""
    rows = await tx.fetch(
        """
        SELECT id FROM tasks
        WHERE account_id = $1 AND id = ANY($2) AND created_by = $3 AND status = 'FAILED'
        """,
        tx.account_id,
        list(task_ids),
        creator,
    )
    return {row["id"] for row in rows}


async def open_among(tx: AccountReader, task_ids: Sequence[UUID]) -> set[UUID]:
    """Those of these tasks that have not ended."""
    rows = await tx.fetch(
        """
        SELECT id FROM tasks WHERE account_id = $1 AND id = ANY($2)
          AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
        """,
        tx.account_id,
        task_ids,
    )
    return {row["id"] for row in rows}


async def add_usage(
    tx: AccountTransaction,
    task_id: UUID,
    *,
    input_tokens: int,
    output_tokens: int,
    cost_micros: int,
) -> tuple[Status, int]:
    """Counts one model call in the task's usage. Returns the task's status and run."""
    row = await tx.fetchrow(
        """
        UPDATE tasks SET steps = steps + 1, input_tokens = input_tokens + $3,
            output_tokens = output_tokens + $4, cost_micros = cost_micros + $5
        WHERE account_id = $1 AND id = $2
        RETURNING status, run
        """,
        tx.account_id,
        task_id,
        input_tokens,
        output_tokens,
        cost_micros,
    )
    return row["status"], row["run"]


def _update_statement(columns: tuple[str, ...]) -> str:
    changes = ", ".join(f"{name} = {at}" for name, at in _placeholders(columns, first=3).items())
    return f"UPDATE tasks SET {changes} WHERE account_id = $1 AND id = $2"  # noqa: S608


_UPDATE = _update_statement(_CHANGEABLE)
# PostgreSQL would store texts that have not changed again.
_UPDATE_SHORT = _update_statement(_SHORT)


async def update(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    event: tuple[str, Mapping[str, Any]],
) -> None:
    """Writes a changed task, its totals and its event."""
    if _text_values(before) == _text_values(after):
        await tx.execute(_UPDATE_SHORT, tx.account_id, after.id, *_short_values(after))
    else:
        await tx.execute(_UPDATE, tx.account_id, after.id, *_changeable_values(after))
    await _append_event(tx, before, after, event, _count_changes(before, after))


_Changes = tuple[list[str], list[str], list[str], list[int]]

_CHANGE_COUNTS = """
    INSERT INTO task_counts AS c (account_id, dimension, value, status, tasks)
    SELECT $1, d.* FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS d
    ON CONFLICT (account_id, dimension, value, status)
        DO UPDATE SET tasks = c.tasks + excluded.tasks
"""


def _count_changes(before: Task, after: Task) -> _Changes:
    """Which stored totals change: dimensions, values, statuses and differences."""
    totals: Counter[tuple[str, str, str]] = Counter()
    for task, difference in ((before, -1), (after, 1)):
        for dimension, value in zip(*_dimensions(task), strict=True):
            totals[dimension, value, task.status] += difference
    changes: _Changes = ([], [], [], [])
    for (dimension, value, status), difference in sorted(totals.items()):
        if difference:
            changes[0].append(dimension)
            changes[1].append(value)
            changes[2].append(status)
            changes[3].append(difference)
    return changes


async def _append_event(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    event: tuple[str, Mapping[str, Any]],
    changes: _Changes,
) -> None:
    source, target = STATUS_COLUMN[before.status], STATUS_COLUMN[after.status]
    moved = f", {source} = {source} - 1, {target} = {target} + 1" if source != target else ""
    kind, data = event
    journal.note(tx, kind, data, after.id)
    await tx.execute(
        f"""
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + 1 {moved}
            WHERE account_id = $1 RETURNING last_sequence
        ), counts AS ({_CHANGE_COUNTS})
        INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
        SELECT $1, last_sequence, $7, $8, $6, $9, clock_timestamp() FROM head
        """,  # noqa: S608
        tx.account_id,
        *changes,
        after.id,
        new_uuid(),
        kind,
        data,
    )
