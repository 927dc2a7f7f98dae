"""The ledger: every movement of an account's money is one entry whose amounts sum to zero.

An entry and the change of the balance are one statement in the caller's transaction. A transaction
that also changes tasks or events does that first: it locks the account before the balance.
"""

from rota.credits.model import REVERSALS, Entry, LockedBalance, Return
from rota.credits.money import MICROS_PER_CENT
from rota.platform import clock
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid

# The part of a balance's top-up that runs can use. An account with an allowance can turn it off.
USABLE_TOPUP = "CASE WHEN allow_overflow OR allowance_total = 0 THEN topup ELSE 0 END"


async def add_entry(tx: AccountTransaction, entry: Entry, *, used_micros: int = 0) -> None:
    """Writes an entry and changes the balance. `used_micros` is the part that uses allowance."""
    charge = entry.charge
    await tx.execute(
        """
        WITH moved AS (
            UPDATE balances SET allowance = allowance + $6, topup = topup + $7,
                spent = spent + $8, owed = owed + $9, granted = granted + $10,
                outside = outside + $11, allowance_used = allowance_used + $19,
                entries = entries + 1,
                told_depleted = told_depleted AND allowance + topup + $6 + $7 < $20
            WHERE account_id = $1
            RETURNING allowance + topup AS available
        )
        INSERT INTO entries (account_id, id, kind, key, at, allowance, topup, spent, owed,
            granted, outside, reference, task_id, run, step, model, price_version, cost,
            estimated, available_after)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
            $21, available FROM moved
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
        charge.run_id.task_id if charge else None,
        charge.run_id.run if charge else None,
        charge.step if charge else None,
        charge.model if charge else None,
        charge.price_version if charge else None,
        charge.cost_micros if charge else None,
        used_micros,
        MICROS_PER_CENT,
        charge.estimated if charge else False,
    )


async def lock_balance(tx: AccountTransaction) -> LockedBalance:
    row = await tx.fetchrow(
        f"""
        SELECT allowance, {USABLE_TOPUP} AS usable_topup, topup, owed FROM balances
        WHERE account_id = $1 FOR NO KEY UPDATE
        """,  # noqa: S608
        tx.account_id,
    )
    return LockedBalance(**row)


async def top_up(tx: AccountTransaction, amount_micros: int, reference: str) -> bool:
    """Adds a payment. Returns False if this payment was added before."""
    balance = await lock_balance(tx)
    key = f"top_up/{reference}"
    if await _entry_exists(tx, key):
        return False
    debt_paid = min(-balance.owed, amount_micros)
    entry = Entry(
        "top_up",
        key,
        topup=amount_micros - debt_paid,
        owed=debt_paid,
        outside=-amount_micros,
        reference=reference,
    )
    await add_entry(tx, entry)
    return True


async def grant(tx: AccountTransaction, amount_micros: int, key: str) -> bool:
    """Adds money that the operator gives. Returns False if this key was used before."""
    balance = await lock_balance(tx)
    if await _entry_exists(tx, f"grant/{key}"):
        return False
    debt_paid = min(-balance.owed, amount_micros)
    entry = Entry(
        "grant",
        f"grant/{key}",
        topup=amount_micros - debt_paid,
        owed=debt_paid,
        granted=-amount_micros,
    )
    await add_entry(tx, entry)
    return True


async def granted_micros(tx: AccountReader, key: str) -> int:
    """What the grant with this key added."""
    amount: int = await tx.fetchval(
        "SELECT -granted FROM entries WHERE account_id = $1 AND key = $2",
        tx.account_id,
        f"grant/{key}",
    )
    return amount


async def set_returned(
    tx: AccountTransaction, kind: Return, total_micros: int, reference: str
) -> int:
    """Makes the total of a payment's refunds, or of its disputes, equal to `total_micros`.

    Returns the amount that left the account. It is negative if money came back, because a refund
    failed or a dispute was won. The part that is already spent is owed.
    """
    balance = await lock_balance(tx)
    earlier = await tx.fetchrow(
        """
        SELECT coalesce(sum(outside), 0)::bigint AS total, count(*) AS entries FROM entries
        WHERE account_id = $1 AND reference = $2 AND kind IN ($3, $4)
        """,
        tx.account_id,
        reference,
        kind,
        REVERSALS[kind],
    )
    due_micros: int = total_micros - earlier["total"]
    if due_micros == 0:
        return 0
    if due_micros > 0:
        owed = -max(due_micros - balance.topup, 0)
    else:
        owed = min(-balance.owed, -due_micros)
    entry = Entry(
        kind if due_micros > 0 else REVERSALS[kind],
        f"{kind}/{reference}/{earlier['entries'] + 1}",
        topup=-due_micros - owed,
        owed=owed,
        outside=due_micros,
        reference=reference,
    )
    await add_entry(tx, entry)
    return due_micros


async def _entry_exists(tx: AccountReader, key: str) -> bool:
    return bool(
        await tx.fetchval(
            "SELECT true FROM entries WHERE account_id = $1 AND key = $2", tx.account_id, key
        )
    )
