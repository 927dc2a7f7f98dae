"""Reports that the available money is low or used up."""

from rota.credits.money import MICROS_PER_CENT, available_cents
from rota.events import journal, notices
from rota.platform.db import AccountReader, AccountTransaction

# Whether a changed balance `t` crossed the amount since the last report, in either direction.
CROSSED = "coalesce((t.allowance + t.topup < t.alert_below) <> t.told_low, false)"


async def report(tx: AccountTransaction) -> None:
    """Appends `credits.low` if the balance fell below the amount. The account must be locked.

    A balance that rose again is remembered, so that the next fall is reported.
    """
    row = await tx.fetchrow(
        f"""
        UPDATE balances t SET told_low = NOT told_low WHERE account_id = $1 AND {CROSSED}
        RETURNING told_low, allowance + topup AS available, alert_below
        """,  # noqa: S608
        tx.account_id,
    )
    if row is not None and row["told_low"]:
        data = {
            "availableCents": available_cents(row["available"]),
            "alertBelowCents": available_cents(row["alert_below"]),
        }
        await journal.append(tx, "credits.low", data)
        await notices.put(tx, "balance_low", tx.account_id)


async def report_depleted(tx: AccountTransaction) -> None:
    """Appends `credits.depleted` if nothing is left, also not in holds. The account must be locked.

    It is appended once, and again only after new money has come in.
    """
    depleted = await tx.fetchval(
        """
        UPDATE balances SET told_depleted = true
        WHERE account_id = $1 AND NOT told_depleted
          AND allowance + topup + held_allowance + held_topup < $2
        RETURNING true
        """,
        tx.account_id,
        MICROS_PER_CENT,
    )
    if depleted:
        await journal.append(tx, "credits.depleted", {})
        await notices.put(tx, "balance_low", tx.account_id)


async def low_cents(tx: AccountReader) -> int | None:
    """The available money, if the account was told that it is low and it still is. None: it is not
    low."""
    micros: int | None = await tx.fetchval(
        """
        SELECT allowance + topup FROM balances
        WHERE account_id = $1 AND (told_low OR told_depleted)
        """,
        tx.account_id,
    )
    return None if micros is None else available_cents(micros)


async def set_amount(tx: AccountTransaction, below_micros: int | None) -> None:
    """Sets the amount, or turns the report off. A balance that is already below is not reported."""
    await tx.execute(
        """
        UPDATE balances SET alert_below = $2::bigint,
            told_low = coalesce(allowance + topup < $2, false)
        WHERE account_id = $1
        """,
        tx.account_id,
        below_micros,
    )
