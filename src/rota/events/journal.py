"""The event journal: append-only, with a sequence number per account.

The numbers have no gaps, except where a restore of the database has lost events: their numbers are
not used again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.events.access import EventVisibility
from rota.platform import json
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.errors import Forbidden
from rota.platform.ids import new_uuid, to_wire

# A call of a run begins or ends. `kind` in their data says whether it is a model call.
STEP_STARTED, STEP_FINISHED = "step.started", "step.finished"
MEMBER_REMOVED = "member.removed"

# What events of a family are about: the field of their data that has its ID.
_RESOURCE_FIELD = {
    "invitation": "invitationId",
    "key": "keyId",
    "mcp": "serverId",
    "member": "userId",
    "rule": "ruleId",
    "schedule": "scheduleId",
    "session": "sessionId",
    "webhook": "webhookId",
}


@dataclass(frozen=True, slots=True)
class Event:
    sequence: int
    id: UUID
    type: str
    task_id: UUID | None
    data: dict[str, Any]
    created_at: datetime


class AccountClosed(Forbidden):
    def __init__(self) -> None:
        super().__init__("The account was erased. It can no longer be used.")


async def lock_open_account(tx: AccountTransaction) -> None:
    """As `lock_account`, for what must not start in an account that is erased."""
    erased = await tx.fetchval(
        "SELECT erased FROM account_heads WHERE account_id = $1 FOR UPDATE", tx.account_id
    )
    if erased:
        raise AccountClosed


async def lock_account(tx: AccountTransaction) -> bool:
    """Makes other changes of the account wait. Returns whether the account exists."""
    found = await tx.fetchval(
        "SELECT true FROM account_heads WHERE account_id = $1 FOR UPDATE", tx.account_id
    )
    return bool(found)


def note(
    tx: AccountTransaction, kind: str, data: Mapping[str, Any], task_id: UUID | None = None
) -> None:
    """For every event that a statement appends: announces it after the commit, and records it in
    the audit trail."""
    tx.has_events = True
    tx.record(kind, data, resource_of(kind, data, task_id))


def resource_of(kind: str, data: Mapping[str, Any], task_id: UUID | None) -> str | None:
    """What the event is about. None: the account."""
    if task_id is not None:
        return to_wire("task", task_id)
    field = _RESOURCE_FIELD.get(kind.partition(".")[0])
    return data.get(field) if field else None


async def append(
    tx: AccountTransaction,
    kind: str,
    data: Mapping[str, Any],
    task_id: UUID | None = None,
) -> None:
    """Appends an event. It becomes visible when the transaction commits."""
    note(tx, kind, data, task_id)
    await tx.execute(
        """
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + 1
            WHERE account_id = $1 RETURNING last_sequence
        )
        INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
        SELECT $1, last_sequence, $2, $3, $4, $5, clock_timestamp() FROM head
        """,
        tx.account_id,
        new_uuid(),
        kind,
        task_id,
        data,
    )


async def append_all(
    tx: AccountTransaction, new: Sequence[tuple[str, Mapping[str, Any]]], task_id: UUID
) -> None:
    """Appends several events of one task, each a type and its data, in one statement."""
    if not new:
        return
    for kind, data in new:
        note(tx, kind, data, task_id)
    await tx.execute(
        """
        WITH head AS (
            UPDATE account_heads SET last_sequence = last_sequence + $3
            WHERE account_id = $1 RETURNING last_sequence
        )
        INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
        SELECT $1, last_sequence - $3 + number, n.id, n.type, $2, n.data::jsonb, clock_timestamp()
        FROM head, unnest($4::uuid[], $5::text[], $6::text[]) WITH ORDINALITY
            AS n (id, type, data, number)
        ORDER BY number
        """,
        tx.account_id,
        task_id,
        len(new),
        [new_uuid() for _ in new],
        [kind for kind, _ in new],
        [json.dumps(data).decode() for _, data in new],
    )


async def has(tx: AccountReader, task_id: UUID, kind: str, data: Mapping[str, Any]) -> bool:
    """Whether the task has an event of this type with this data."""
    found = await tx.fetchval(
        """
        SELECT true FROM events
        WHERE account_id = $1 AND task_id = $2 AND type = $3 AND data @> $4
        ORDER BY sequence DESC LIMIT 1
        """,
        tx.account_id,
        task_id,
        kind,
        data,
    )
    return bool(found)


async def since(
    tx: AccountReader, task_id: UUID, start: tuple[str, Mapping[str, Any]], kind: str
) -> list[dict[str, Any]]:
    """The data of the task's events of this type after the latest event with the type and data of
    `start`. Reads no event before that one."""
    rows = await tx.fetch(
        """
        SELECT data FROM events
        WHERE account_id = $1 AND task_id = $2 AND type = $3 AND sequence > coalesce((
            SELECT sequence FROM events
            WHERE account_id = $1 AND task_id = $2 AND type = $4 AND data @> $5
            ORDER BY sequence DESC LIMIT 1), 0)
        """,
        tx.account_id,
        task_id,
        kind,
        *start,
    )
    return [row["data"] for row in rows]


async def after(
    tx: AccountReader,
    sequence: int,
    *,
    task_id: UUID | None = None,
    limit: int = 200,
) -> list[Event]:
    """The events after `sequence`, in order. With `task_id`, only those of that task."""
    of_task = "AND task_id = $4" if task_id is not None else ""
    arguments = (task_id,) if task_id is not None else ()
    rows = await tx.fetch(
        f"""
        SELECT sequence, id, type, task_id, data, created_at FROM events
        WHERE account_id = $1 AND sequence > $2 {of_task}
        ORDER BY sequence LIMIT $3
        """,  # noqa: S608
        tx.account_id,
        sequence,
        limit,
        *arguments,
    )
    return [Event(**row) for row in rows]


async def page(
    tx: AccountReader,
    sequence: int,
    visibility: EventVisibility,
    types: Collection[str],
    limit: int,
) -> tuple[list[Event], int, int]:
    """The first events after `sequence` that the caller sees, how many there are, and the number
    of the account's newest event. With `types`, only events of these types."""
    newest, first, has_gaps = await _ends(tx)
    conditions, arguments = ["account_id = $1", "sequence > $2"], [tx.account_id, sequence]
    for condition, values in (
        ("type = ANY(%s::text[])", types or None),
        ("split_part(type, '.', 1) = ANY(%s::text[])", visibility.families),
        ("split_part(type, '.', 1) <> ALL(%s::text[])", visibility.hidden or None),
    ):
        if values is not None:
            arguments.append(list(values))
            conditions.append(condition % f"${len(arguments)}")
    matching = f"FROM events WHERE {' AND '.join(conditions)}"
    rows = await tx.fetch(
        f"""
        SELECT sequence, id, type, task_id, data, created_at {matching}
        ORDER BY sequence LIMIT {limit:d}
        """,
        *arguments,
    )
    if len(rows) < limit:
        total = len(rows)
    elif visibility.is_whole and not types and not has_gaps:
        total = newest - max(sequence, first - 1)
    else:
        total = await tx.fetchval(f"SELECT count(*) {matching}", *arguments)
    return [Event(**row) for row in rows], total, newest


async def _ends(tx: AccountReader) -> tuple[int, int, bool]:
    """The numbers of the newest event and of the first one that retention has kept, and whether a
    restore has left a gap between them."""
    row = await tx.fetchrow(
        """
        SELECT last_sequence, first_sequence, skipped > 0 AS has_gaps
        FROM account_heads WHERE account_id = $1
        """,
        tx.account_id,
    )
    return tuple(row.values()) if row else (0, 1, False)


async def last_sequence(tx: AccountReader) -> int:
    """The number of the account's newest event, or 0."""
    number = await tx.fetchval(
        "SELECT last_sequence FROM account_heads WHERE account_id = $1", tx.account_id
    )
    return number or 0


async def restored_to(tx: AccountReader) -> str | None:
    """The moment of the newest `account.restored`. Only an account with skipped numbers has one."""
    found: str | None = await tx.fetchval(
        """
        SELECT (SELECT data->>'restoredTo' FROM events
                WHERE account_id = $1 AND type = 'account.restored'
                ORDER BY sequence DESC LIMIT 1)
        FROM account_heads WHERE account_id = $1 AND skipped > 0
        """,
        tx.account_id,
    )
    return found
