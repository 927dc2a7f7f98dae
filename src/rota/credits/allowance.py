"""What a plan gives each month, and what is left of it when the month is over."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from rota.credits.ledger import Entry, enter
from rota.platform import clock
from rota.platform.db import WriteConnection

# What a tier with so many seats may spend each month, in micro-dollars.
AllowanceOf = Callable[[str, int | None], int]


async def refresh(
    connection: WriteConnection,
    account_id: UUID,
    allowance_of: AllowanceOf,
    now: datetime,
) -> bool:
    """Brings the allowance up to date with the tier and the month. Whether anything was due.

    A higher allowance counts from now on in the month that is running. A lower one, or the
    first, starts a month of its own. What is left of a month that is over is gone.
    """
    b = await connection.fetchrow(
        """
        SELECT b.tier, b.seats, b.period, b.period_anchor, b.period_ends_at, b.allowance_total,
               b.allowance, b.owed, a.tier AS tier_now, a.seats AS seats_now
        FROM balances b JOIN accounts a ON a.id = b.account_id
        WHERE b.account_id = $1 FOR NO KEY UPDATE OF b
        """,
        account_id,
    )
    total = allowance_of(b["tier_now"], b["seats_now"])
    same_plan = (b["tier"], b["seats"]) == (b["tier_now"], b["seats_now"])
    over = b["period_ends_at"] is not None and b["period_ends_at"] <= now
    if same_plan and not over:
        return False
    period, anchor, ends = b["period"], b["period_anchor"], b["period_ends_at"]
    due = total - b["allowance_total"]
    if over or due < 0 or anchor is None:
        if b["allowance"]:
            await enter(
                connection,
                account_id,
                Entry(
                    *("expiry", f"expiry/{period}"),
                    allowance=-b["allowance"],
                    granted=b["allowance"],
                    at=now,
                ),
            )
        period, due = period + 1, total
        if not over or anchor is None:
            anchor = now
    ends = _period_end(anchor, now) if total else None
    await connection.execute(
        """
        UPDATE balances SET tier = $2, seats = $3, period = $4, period_anchor = $5,
            period_ends_at = $6, allowance_total = $7,
            allowance_used = CASE WHEN period = $4 THEN allowance_used ELSE 0 END
        WHERE account_id = $1
        """,
        *(account_id, b["tier_now"], b["seats_now"], period),
        *(anchor if total else None, ends, total),
    )
    if due > 0:
        paid = min(-b["owed"], due)
        entry = Entry(
            *("allowance", f"allowance/{period}/{total}"),
            allowance=due - paid,
            owed=paid,
            granted=-due,
            at=now,
        )
        await enter(connection, account_id, entry, used=paid)
    return True


def _period_end(anchor: datetime, now: datetime) -> datetime:
    months = (now.year - anchor.year) * 12 + now.month - anchor.month
    end = clock.months_after(anchor, months)
    return end if end > now else clock.months_after(anchor, months + 1)
