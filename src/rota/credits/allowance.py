"""What a plan gives each month, and what is left of it when the month is over."""

from collections.abc import Callable
from datetime import datetime, timedelta

from rota.credits.ledger import Entry, enter
from rota.platform import clock
from rota.platform.db import AccountTransaction

# What a tier with so many seats may spend each month, in micro-dollars.
AllowanceOf = Callable[[str, int | None], int]

_MICROSECOND = timedelta(microseconds=1)


# While nobody pays for a new month, how soon to look again.
LOOK_AGAIN = timedelta(hours=1)


async def refresh(
    tx: AccountTransaction,
    allowance_of: AllowanceOf,
    now: datetime,
) -> None:
    """Brings the allowance up to date with the plan and the month.

    Another plan starts a month of its own, since it is paid for anew. What the account took
    out of the old month, beyond the share of the days that passed, counts as used of the new
    one, since what was not used up of the old plan's price comes off the new one's. A month
    that is not paid for begins when it is, and a trial has no allowance. What is left of a
    month that is over is gone.
    """
    b = await tx.fetchrow(
        """
        SELECT b.tier, b.seats, b.period, b.period_anchor, b.period_ends_at, b.allowance_total,
               b.allowance, b.owed, a.tier AS tier_now, a.seats AS seats_now,
               s.unpaid_since IS NOT NULL AS unpaid,
               CASE WHEN s.status = 'TRIALING' THEN s.period_end END AS trial_ends_at
        FROM balances b
        JOIN accounts a ON a.id = b.account_id
        LEFT JOIN subscriptions s ON s.account_id = b.account_id AND s.product = 'plan'
                                 AND s.status <> 'CANCELLED'
        WHERE b.account_id = $1 FOR NO KEY UPDATE OF b
        """,
        tx.account_id,
    )
    same_plan = (b["tier"], b["seats"]) == (b["tier_now"], b["seats_now"])
    over = b["period_ends_at"] is not None and b["period_ends_at"] <= now
    if same_plan and not over:
        return
    if same_plan and b["unpaid"]:
        await tx.execute(
            "UPDATE balances SET period_ends_at = $2 WHERE account_id = $1",
            tx.account_id,
            now + LOOK_AGAIN,
        )
        return
    total = allowance_of(b["tier_now"], b["seats_now"]) if b["trial_ends_at"] is None else 0
    anchor, period = b["period_anchor"], b["period"] + 1
    used = 0
    if not over and anchor is not None:
        passed = _share(b["allowance_total"], anchor, now)
        used = min(total, max(0, b["allowance_total"] - b["allowance"] - passed))
    if not over or anchor is None:
        anchor = now
    if b["allowance"]:
        rest = b["allowance"]
        expiry = Entry("expiry", f"expiry/{period - 1}", allowance=-rest, granted=rest, at=now)
        await enter(tx, expiry)
    ends = _bounds(anchor, now)[1] if total else None
    if b["trial_ends_at"] is not None:
        ends = max(b["trial_ends_at"], now + LOOK_AGAIN)
    await tx.execute(
        """
        UPDATE balances SET tier = $2, seats = $3, period = $4, period_anchor = $5,
            period_ends_at = $6, allowance_total = $7, allowance_used = $8
        WHERE account_id = $1
        """,
        tx.account_id,
        b["tier_now"],
        b["seats_now"],
        period,
        anchor if total else None,
        ends,
        total,
        used,
    )
    if (due := total - used) > 0:
        paid = min(-b["owed"], due)
        entry = Entry(
            "allowance",
            f"allowance/{period}",
            allowance=due - paid,
            owed=paid,
            granted=-due,
            at=now,
        )
        await enter(tx, entry, used=paid)


def _bounds(anchor: datetime, now: datetime) -> tuple[datetime, datetime]:
    """When the month that is running began, and when it ends."""
    months = (now.year - anchor.year) * 12 + now.month - anchor.month
    if clock.months_after(anchor, months) > now:
        months -= 1
    return clock.months_after(anchor, months), clock.months_after(anchor, months + 1)


def _share(total: int, anchor: datetime, now: datetime) -> int:
    """What of a month's total the days that passed stand for."""
    start, end = _bounds(anchor, now)
    return total * ((now - start) // _MICROSECOND) // ((end - start) // _MICROSECOND)
