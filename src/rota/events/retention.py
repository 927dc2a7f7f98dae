"""Deletes old events from the beginning of an account's journal. Only background work can."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.transactions import execute_count


@dataclass(frozen=True, slots=True)
class OldEvent:
    sequence: int
    task_id: UUID | None


async def oldest(tx: AccountReader, before: datetime, limit: int) -> list[OldEvent]:
    """The first events, up to one that is not older than a time."""
    rows = await tx.fetch(
        """
        SELECT sequence, task_id, created_at < $2 AS old FROM events
        WHERE account_id = $1 ORDER BY sequence LIMIT $3
        """,
        tx.account_id,
        before,
        limit,
    )
    found = []
    for row in rows:
        if not row["old"]:
            break
        found.append(OldEvent(row["sequence"], row["task_id"]))
    return found


async def cut(tx: AccountTransaction, through: int) -> int:
    """Deletes the events up to a number. The account must be locked."""
    gone = await execute_count(
        tx, "DELETE FROM events WHERE account_id = $1 AND sequence <= $2", tx.account_id, through
    )
    await tx.execute(
        """
        UPDATE account_heads SET first_sequence = greatest(first_sequence, $2 + 1)
        WHERE account_id = $1
        """,
        tx.account_id,
        through,
    )
    return gone


async def try_lock(tx: AccountTransaction) -> bool:
    """Locks the account, unless somebody else has locked it."""
    found = await tx.fetchval(
        "SELECT true FROM account_heads WHERE account_id = $1 FOR UPDATE SKIP LOCKED",
        tx.account_id,
    )
    return bool(found)


async def drop_instructions(tx: AccountTransaction) -> None:
    """Deletes all instructions of an account that is erased, except those that end a plan."""
    await tx.execute(
        "DELETE FROM outbox WHERE account_id = $1 AND lane <> 'plans'",
        tx.account_id,
    )


async def close_account(tx: AccountTransaction) -> None:
    """From now on, no run starts in the account."""
    await tx.execute("UPDATE account_heads SET erased = true WHERE account_id = $1", tx.account_id)


async def drop_runs(tx: AccountTransaction) -> None:
    """Deletes the instructions about runs of an account that is erased."""
    await tx.execute(
        "DELETE FROM outbox WHERE account_id = $1 AND lane = 'run'",
        tx.account_id,
    )
