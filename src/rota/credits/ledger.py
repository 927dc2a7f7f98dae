"""The ledger: every movement of an account's money, each one row that sums to zero.

A movement happens inside the caller's transaction, and changes the balance with
the entry that proves it. A transaction that also changes the account's tasks or
events does that first: their lock comes before the balance's.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.credits.money import MICROS_PER_CENT
from rota.platform import clock
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid


@dataclass(frozen=True, slots=True)
class RunId:
    """Whose hold it is: one run of a task."""

    task_id: UUID
    run: int

    def __str__(self) -> str:
        return f"{self.task_id.hex}/{self.run}"


@dataclass(frozen=True, slots=True)
class Charge:
    """A model call that is to be paid for."""

    owner: RunId
    step: int
    agent: str
    model: str
    price_version: str
    cost: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A movement: what it takes from and puts into each book."""

    kind: str
    key: str
    allowance: int = 0
    topup: int = 0
    spent: int = 0
    owed: int = 0
    granted: int = 0
    outside: int = 0
    reference: str | None = None
    charge: Charge | None = None
    at: datetime | None = None


async def enter(tx: AccountTransaction, entry: Entry, *, used: int = 0) -> None:
    """Writes a movement down and moves the balance. `used` is what it used of the allowance."""
    charge = entry.charge
    await tx.execute(
        """
        WITH entered AS (
            INSERT INTO entries (account_id, id, kind, key, at, allowance, topup, spent, owed,
                granted, outside, reference, task_id, run, step, model, price_version, cost)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18)
        )
        UPDATE balances SET allowance = allowance + $6, topup = topup + $7, spent = spent + $8,
            owed = owed + $9, granted = granted + $10, outside = outside + $11,
            allowance_used = allowance_used + $19, entries = entries + 1,
            told_depleted = told_depleted AND allowance + topup + $6 + $7 < $20
        WHERE account_id = $1
        """,
        tx.account_id,
        new_uuid(),
        entry.kind,
        entry.key,
        entry.at or clock.now(),
        entry.allowance,
        entry.topup,
        entry.spent,
        entry.owed,
        entry.granted,
        entry.outside,
        entry.reference,
        *((charge.owner.task_id, charge.owner.run, charge.step) if charge else (None,) * 3),
        *((charge.model, charge.price_version, charge.cost) if charge else (None,) * 3),
        used,
        MICROS_PER_CENT,
    )


async def lock(tx: AccountTransaction) -> dict[str, int]:
    row: dict[str, int] = await tx.fetchrow(
        """
        SELECT allowance, topup, owed, allow_overflow, allowance_total FROM balances
        WHERE account_id = $1 FOR NO KEY UPDATE
        """,
        tx.account_id,
    )
    return row


async def top_up(tx: AccountTransaction, micros: int, reference: str) -> bool:
    """Adds bought money. False when this payment was added before."""
    now = await lock(tx)
    key = f"top_up/{reference}"
    if await _entered(tx, key):
        return False
    paid = min(-now["owed"], micros)
    entry = Entry(
        "top_up", key, topup=micros - paid, owed=paid, outside=-micros, reference=reference
    )
    await enter(tx, entry)
    return True


async def refund(tx: AccountTransaction, micros: int, reference: str) -> int:
    """Takes back what was refunded of a payment, `micros` in all so far. How much that was now.

    What has been spent of it already is owed.
    """
    now = await lock(tx)
    before: int = await tx.fetchval(
        """
        SELECT coalesce(sum(outside), 0)::bigint FROM entries
        WHERE account_id = $1 AND kind = 'refund' AND reference = $2
        """,
        tx.account_id,
        reference,
    )
    due = micros - before
    if due <= 0:
        return 0
    taken = min(now["topup"], due)
    entry = Entry(
        "refund",
        f"refund/{reference}/{micros}",
        topup=-taken,
        owed=-(due - taken),
        outside=due,
        reference=reference,
    )
    await enter(tx, entry)
    return due


async def _entered(tx: AccountReader, key: str) -> bool:
    return bool(
        await tx.fetchval(
            "SELECT true FROM entries WHERE account_id = $1 AND key = $2", tx.account_id, key
        )
    )
