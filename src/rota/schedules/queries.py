"""The SQL of schedules. A transaction that locks a schedule and the account locks the schedule
first."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction, ReadConnection
from rota.schedules.model import Schedule

_NAMES = tuple(field.name for field in fields(Schedule))
_COLUMNS = ", ".join(_NAMES)
_values = attrgetter(*_NAMES)
_INSERT = f"""
    INSERT INTO schedules (account_id, {_COLUMNS})
    VALUES ($1, {", ".join(f"${number}" for number in range(2, 2 + len(_NAMES)))})
"""  # noqa: S608
_UPDATE = f"""
    UPDATE schedules SET {", ".join(f"{name} = ${at}" for at, name in enumerate(_NAMES[1:], 3))}
    WHERE account_id = $1 AND id = $2
"""  # noqa: S608
# Of a schedule, this many tasks are shown. The others are remembered until they end.
SHOWN_TASKS = 10


async def count(tx: AccountReader) -> int:
    found: int = await tx.fetchval(
        "SELECT count(*) FROM schedules WHERE account_id = $1", tx.account_id
    )
    return found


async def page(tx: AccountReader, limit: int, offset: int) -> list[Schedule]:
    """Newest first."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM schedules WHERE account_id = $1
        ORDER BY id DESC LIMIT $2 OFFSET $3
        """,  # noqa: S608
        tx.account_id,
        limit,
        offset,
    )
    return [Schedule(**row) for row in rows]


async def find(tx: AccountReader, schedule_id: UUID) -> Schedule | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM schedules WHERE account_id = $1 AND id = $2",  # noqa: S608
        tx.account_id,
        schedule_id,
    )
    return Schedule(**row) if row else None


async def find_for_change(tx: AccountTransaction, schedule_id: UUID) -> Schedule | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM schedules WHERE account_id = $1 AND id = $2 FOR UPDATE",  # noqa: S608
        tx.account_id,
        schedule_id,
    )
    return Schedule(**row) if row else None


async def insert(tx: AccountTransaction, schedule: Schedule) -> None:
    await tx.execute(_INSERT, tx.account_id, *_values(schedule))


async def update(tx: AccountTransaction, schedule: Schedule) -> None:
    await tx.execute(_UPDATE, tx.account_id, *_values(schedule))


async def delete(tx: AccountTransaction, schedule_id: UUID) -> bool:
    deleted = await tx.fetchval(
        "DELETE FROM schedules WHERE account_id = $1 AND id = $2 RETURNING true",
        tx.account_id,
        schedule_id,
    )
    return bool(deleted)


async def add_task(
    tx: AccountTransaction, schedule_id: UUID, task_id: UUID, forgotten: Sequence[UUID]
) -> None:
    """Remembers a task of the schedule, and forgets others."""
    await tx.execute(
        """
        WITH forgotten AS (
            DELETE FROM schedule_tasks
            WHERE account_id = $1 AND schedule_id = $2 AND task_id = ANY($4)
        )
        INSERT INTO schedule_tasks (account_id, schedule_id, task_id) VALUES ($1, $2, $3)
        """,
        tx.account_id,
        schedule_id,
        task_id,
        list(forgotten),
    )


async def tasks_of(tx: AccountReader, schedule_id: UUID) -> list[UUID]:
    """The tasks of a schedule that are shown or open, newest first."""
    rows = await tx.fetch(
        """
        SELECT task_id FROM schedule_tasks WHERE account_id = $1 AND schedule_id = $2
        ORDER BY task_id DESC
        """,
        tx.account_id,
        schedule_id,
    )
    return [row["task_id"] for row in rows]


async def due(
    connection: ReadConnection, now: datetime, limit: int, own: int, without: Collection[UUID]
) -> list[tuple[UUID, UUID]]:
    """Accounts and ids of due schedules, at most `own` of each account. Accounts take turns."""
    rows = await connection.fetch(
        """
        SELECT account_id, id FROM (
            SELECT account_id, id, check_at,
                   row_number() OVER (PARTITION BY account_id ORDER BY check_at) AS turn
            FROM schedules WHERE check_at <= $1 AND account_id <> ALL($4::uuid[])
        ) AS found
        WHERE turn <= $3 ORDER BY turn, check_at LIMIT $2
        """,
        now,
        limit,
        own,
        list(without),
    )
    return [(row["account_id"], row["id"]) for row in rows]


async def next_check(connection: ReadConnection, now: datetime) -> datetime | None:
    """When the next schedule of all accounts that is not due yet will be due."""
    found: datetime | None = await connection.fetchval(
        "SELECT check_at FROM schedules WHERE check_at > $1 ORDER BY check_at LIMIT 1", now
    )
    return found


async def claim_due(tx: AccountTransaction, schedule_id: UUID, now: datetime) -> Schedule | None:
    """Locks a due schedule, unless another worker has it or it was run in the meantime."""
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM schedules
        WHERE account_id = $1 AND id = $2 AND check_at <= $3 FOR UPDATE SKIP LOCKED
        """,  # noqa: S608
        tx.account_id,
        schedule_id,
        now,
    )
    return Schedule(**row) if row else None


async def postpone(tx: AccountTransaction, schedule_id: UUID, until: datetime) -> None:
    """Makes workers leave a due schedule alone for a while."""
    await tx.execute(
        """
        UPDATE schedules SET check_at = $3
        WHERE account_id = $1 AND id = $2 AND check_at < $3
        """,
        tx.account_id,
        schedule_id,
        until,
    )


async def pause_of(tx: AccountTransaction, user_id: UUID, error: dict[str, str]) -> list[UUID]:
    """Pauses the schedules that a user saved last. Their IDs."""
    rows = await tx.fetch(
        """
        UPDATE schedules
        SET paused = true, next_at = NULL, check_at = NULL, last_error = $3, updated_at = now()
        WHERE account_id = $1 AND saved_by = $2 AND NOT paused RETURNING id
        """,
        tx.account_id,
        user_id,
        error,
    )
    return [row["id"] for row in rows]


async def pause_all(tx: AccountTransaction, *, wait: bool = True) -> None:
    """Without `wait`, leaves out schedules that another transaction has locked."""
    skip = "" if wait else "SKIP LOCKED"
    await tx.execute(
        f"""
        UPDATE schedules SET paused = true, next_at = NULL, check_at = NULL, updated_at = now()
        WHERE account_id = $1 AND id IN (
            SELECT id FROM schedules WHERE account_id = $1 AND NOT paused FOR UPDATE {skip})
        """,  # noqa: S608
        tx.account_id,
    )


async def listed_among(tx: AccountReader, task_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the tasks that a schedule shows."""
    rows = await tx.fetch(
        f"""
        SELECT task_id FROM schedule_tasks AS t WHERE account_id = $1 AND task_id = ANY($2)
          AND {SHOWN_TASKS} > (
            SELECT count(*) FROM schedule_tasks AS newer WHERE newer.account_id = $1
              AND newer.schedule_id = t.schedule_id AND newer.task_id > t.task_id)
        """,  # noqa: S608
        tx.account_id,
        list(task_ids),
    )
    return {row["task_id"] for row in rows}
