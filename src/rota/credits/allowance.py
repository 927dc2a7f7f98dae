"""The monthly allowance: when a month starts, what it gives, and what expires at its end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from rota.credits import alerts, queries
from rota.credits.ledger import add_entry
from rota.credits.model import Entry
from rota.events import journal
from rota.platform import clock
from rota.platform.db import AccountReader, AccountTransaction, Database

# How soon an unpaid month is checked again.
RECHECK_AFTER = timedelta(minutes=5)

LONGEST_MONTH = timedelta(days=31)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MonthlyAllowance:
    """What an account's plan gives for one month."""

    amount_micros: int
    # False while the payment for the month is outstanding.
    paid: bool = True
    # Set during a trial. A trial has no allowance.
    trial_ends_at: datetime | None = None
    # The period that was paid for. The month is this period, so a payment gives one month.
    period: tuple[datetime, datetime] | None = None


class AllowanceOf(Protocol):
    """Returns the allowance of the account for a tier and a number of seats."""

    async def __call__(
        self, tx: AccountReader, tier: str, seats: int | None
    ) -> MonthlyAllowance: ...


async def refresh(
    tx: AccountTransaction,
    allowance_of: AllowanceOf,
    now: datetime,
    *,
    is_new_plan: bool = False,
    is_paid_now: bool = False,
) -> None:
    """Brings the balance up to date with the account's plan and the current month.

    A new plan starts a new month. If the account used more of the old month than the share of its
    days that passed, the difference counts as used in the new month, because the unused part of
    the old price is credited toward the new one. What runs hold of the old month becomes a part of
    the new one. An unpaid month starts when it is paid, and until then the old one goes on. The
    rest of a month that is over expires. The account must be locked.

    `is_new_plan`: the plan was bought anew, also if it is the same one.
    `is_paid_now`: the payment that a month waits for has come, also the first one after a trial.
    """
    balance = await tx.fetchrow(
        """
        SELECT b.tier, b.seats, b.period, b.period_anchor, b.period_ends_at, b.allowance_total,
               b.allowance, b.allowance_used, b.owed, a.tier AS tier_now, a.seats AS seats_now
        FROM balances b JOIN accounts a ON a.id = b.account_id
        WHERE b.account_id = $1 FOR NO KEY UPDATE OF b
        """,
        tx.account_id,
    )
    same_plan = (balance["tier"], balance["seats"]) == (balance["tier_now"], balance["seats_now"])
    anchor, ends_at = balance["period_anchor"], balance["period_ends_at"]
    # Without an anchor, the month is over, and the payment for the next one is awaited.
    awaited = anchor is None and (balance["allowance_total"] > 0 or is_paid_now)
    over = awaited or ends_at is None or ends_at <= now
    if same_plan and not over and not is_new_plan:
        return
    monthly = await allowance_of(tx, balance["tier_now"], balance["seats_now"])
    if not monthly.paid:
        await tx.execute(
            """
            UPDATE balances SET tier = $2, seats = $3, period_anchor = NULL, period_ends_at = $4
            WHERE account_id = $1
            """,
            tx.account_id,
            balance["tier_now"],
            balance["seats_now"],
            now + RECHECK_AFTER,
        )
        return
    await _start_month(tx, balance, monthly, now, over=over)


async def bring_up_to_date(db: Database, account_id: UUID, allowance_of: AllowanceOf) -> None:
    """Starts a new month if one is due. Otherwise it only reads."""
    now = clock.now()
    async with db.read(account_id) as tx:
        if not await queries.is_stale(tx, now):
            return
    async with db.write(account_id) as tx:
        # A lock on the account comes before a lock on its balance.
        await journal.lock_account(tx)
        await refresh(tx, allowance_of, now)


async def _start_month(
    tx: AccountTransaction,
    balance: Any,
    monthly: MonthlyAllowance,
    now: datetime,
    *,
    over: bool,
) -> None:
    """Expires the rest of the old month and grants the new one."""
    total = monthly.amount_micros
    anchor, period = balance["period_anchor"], balance["period"] + 1
    used = held = 0
    if not over and anchor is not None:
        passed = _elapsed_share(balance["allowance_total"], anchor, balance["period_ends_at"], now)
        used = max(0, balance["allowance_used"] - passed)
        held = balance["allowance_total"] - balance["allowance"] - balance["allowance_used"]
        if used + held <= total:
            await _move_holds(tx, period - 1, period)
        else:
            # A smaller allowance that cannot contain the holds. They keep their month.
            taken = balance["allowance_total"] - balance["allowance"]
            used, held = min(total, max(0, taken - passed)), 0
    if not over or anchor is None:
        anchor = now
    if rest := balance["allowance"]:
        expiry = Entry("expiry", f"expiry/{period - 1}", allowance=-rest, granted=rest, at=now)
        await add_entry(tx, expiry)
    # A month without an allowance ends too, because the operator can set one.
    ends_at = _month_bounds(anchor, now)[1]
    if total and monthly.period is not None:
        anchor, ends_at = monthly.period
    if monthly.trial_ends_at is not None:
        ends_at = max(monthly.trial_ends_at, now + RECHECK_AFTER)
    await tx.execute(
        """
        UPDATE balances SET tier = $2, seats = $3, period = $4, period_anchor = $5,
            period_ends_at = $6, allowance_total = $7, allowance_used = $8
        WHERE account_id = $1
        """,
        tx.account_id,
        balance["tier_now"],
        balance["seats_now"],
        period,
        anchor if total else None,
        ends_at,
        total,
        used,
    )
    if (due := total - used - held) > 0:
        debt_paid = min(-balance["owed"], due)
        entry = Entry(
            "allowance",
            f"allowance/{period}",
            allowance=due - debt_paid,
            owed=debt_paid,
            granted=-due,
            at=now,
        )
        await add_entry(tx, entry, used_micros=debt_paid)
    tx.record("credits.month_started", {"period": period, "allowanceMicros": total})
    # Only now, because the old month's expiry alone does not say how much is available.
    await alerts.report(tx)


async def _move_holds(tx: AccountTransaction, period: int, following: int) -> None:
    """Makes the open holds of a month part of the following one, so that what they release is
    available in it."""
    await tx.execute(
        "UPDATE holds SET period = $3 WHERE account_id = $1 AND period = $2 AND open",
        tx.account_id,
        period,
        following,
    )


def _month_bounds(anchor: datetime, now: datetime) -> tuple[datetime, datetime]:
    """The start and the end of the current month."""
    months = (now.year - anchor.year) * 12 + now.month - anchor.month
    if clock.months_after(anchor, months) > now:
        months -= 1
    return clock.months_after(anchor, months), clock.months_after(anchor, months + 1)


def _elapsed_share(total_micros: int, anchor: datetime, ends_at: datetime, now: datetime) -> int:
    """The part of a month's total that corresponds to the time that has passed."""
    start, end = anchor, ends_at
    if end - start > LONGEST_MONTH:
        # Without a subscription, the anchor is the start of the first month.
        start, end = _month_bounds(anchor, now)
    return total_micros * ((now - start) // _MICROSECOND) // ((end - start) // _MICROSECOND)
