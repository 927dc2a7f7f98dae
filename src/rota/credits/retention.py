"""What retention and erasure ask the ledger. Its entries, holds and usage always stay."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from rota.credits import holds
from rota.credits.model import RunId
from rota.credits.money import MICROS_PER_CENT
from rota.platform.db import AccountReader, AccountTransaction


async def held_among(tx: AccountReader, task_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the tasks that have an open hold."""
    rows = await tx.fetch(
        """
        SELECT DISTINCT task_id FROM holds
        WHERE account_id = $1 AND task_id = ANY($2) AND open
        """,
        tx.account_id,
        list(task_ids),
    )
    return {row["task_id"] for row in rows}


async def in_dispute(tx: AccountReader, since: datetime) -> bool:
    """Whether a payment was disputed since a time, and the money has not come back."""
    found = await tx.fetchval(
        """
        SELECT true FROM entries
        WHERE account_id = $1 AND reference IS NOT NULL
          AND kind IN ('dispute', 'dispute_reversal')
        GROUP BY reference HAVING sum(outside) > 0 AND max(at) >= $2 LIMIT 1
        """,
        tx.account_id,
        since,
    )
    return bool(found)


async def debt_micros(tx: AccountReader) -> int:
    """What the account owes after its holds are released. Less than a cent is nothing."""
    found: int | None = await tx.fetchval(
        "SELECT -owed - held_allowance - held_topup FROM balances WHERE account_id = $1",
        tx.account_id,
    )
    return found if found is not None and found >= MICROS_PER_CENT else 0


async def note_cut(tx: AccountTransaction, before: datetime | None) -> None:
    """Charges from before this time can be without their step. None: all of them."""
    await tx.execute(
        """
        UPDATE balances
        SET steps_cut_at = greatest(steps_cut_at, coalesce($2::timestamptz, 'infinity'))
        WHERE account_id = $1
          AND (steps_cut_at IS NULL OR steps_cut_at < coalesce($2::timestamptz, 'infinity'))
        """,
        tx.account_id,
        before,
    )


async def release_some(tx: AccountTransaction, limit: int) -> int:
    """Releases open holds of an account that is erased. Returns how many there were."""
    rows = await tx.fetch(
        "SELECT task_id, run FROM holds WHERE account_id = $1 AND open LIMIT $2",
        tx.account_id,
        limit,
    )
    for row in rows:
        await holds.release(tx, RunId(row["task_id"], row["run"]))
    return len(rows)


async def steps_cut_at(tx: AccountReader) -> datetime | None:
    """Steps of runs that ended before can be deleted. None: all are there."""
    found: datetime | None = await tx.fetchval(
        "SELECT steps_cut_at FROM balances WHERE account_id = $1", tx.account_id
    )
    return found
