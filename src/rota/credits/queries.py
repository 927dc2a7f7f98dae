"""The SQL that shows balances, movements and usage. What moves money is beside it."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from rota.payments import customers
from rota.payments.port import Payer
from rota.platform.db import AccountReader, AccountTransaction

GroupBy = Literal["day", "agent", "model"]


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's money as it stands, in micro-dollars."""

    allowance: int
    topup: int
    held_allowance: int
    held_topup: int
    spent: int
    owed: int
    outside: int
    entries: int
    allow_overflow: bool
    allowance_total: int
    allowance_used: int
    period_ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Movement:
    """One entry of the ledger, in micro-dollars."""

    id: UUID
    kind: str
    at: datetime
    allowance: int
    topup: int
    held: int
    spent: int
    owed: int
    granted: int
    outside: int
    task_id: UUID | None
    run: int | None
    step: int | None
    model: str | None
    price_version: str | None
    cost: int | None
    reference: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    key: str
    calls: int
    input_tokens: int
    output_tokens: int
    spent: int


async def balance(tx: AccountReader) -> Balance:
    row = await tx.fetchrow(
        """
        SELECT allowance, topup, held_allowance, held_topup, spent, owed, outside, entries,
               allow_overflow, allowance_total, allowance_used, period_ends_at
        FROM balances WHERE account_id = $1
        """,
        tx.account_id,
    )
    return Balance(*row)


async def is_stale(tx: AccountReader, now: datetime) -> bool:
    """Whether the month is over, or the tier is another than the allowance was given for."""
    return bool(
        await tx.fetchval(
            """
            SELECT b.tier IS DISTINCT FROM a.tier OR b.seats IS DISTINCT FROM a.seats
                OR b.period_ends_at <= $2
            FROM balances b JOIN accounts a ON a.id = b.account_id WHERE b.account_id = $1
            """,
            tx.account_id,
            now,
        )
    )


async def set_overflow(tx: AccountTransaction, allowed: bool) -> None:
    await tx.execute(
        "UPDATE balances SET allow_overflow = $2 WHERE account_id = $1", tx.account_id, allowed
    )


async def payer(tx: AccountReader, user_id: UUID) -> Payer:
    """Who pays, as the processor knows it. In a transaction of the user's: it has the e-mail."""
    email = await tx.fetchval("SELECT email FROM users WHERE id = $1", user_id)
    return Payer(tx.account_id, await customers.find(tx), email)


async def movements(tx: AccountReader, limit: int, offset: int) -> tuple[list[Movement], int]:
    """A page, newest first, and how many there are. Wants a snapshot.

    Entries are skipped over in an index, from whichever end is nearer.
    """
    total: int = await tx.fetchval(
        "SELECT entries FROM balances WHERE account_id = $1", tx.account_id
    )
    limit = min(limit, total - offset)
    if limit <= 0:
        return [], total
    direction, skip = "DESC", offset
    if offset > total // 2:
        direction, skip = "ASC", total - offset - limit
    rows = await tx.fetch(
        f"""
        SELECT id, kind, at, allowance, topup, held_allowance + held_topup, spent, owed, granted,
               outside, task_id, run, step, model, price_version, cost, reference
        FROM entries WHERE account_id = $1 AND id = ANY (ARRAY(
            SELECT id FROM entries WHERE account_id = $1 ORDER BY id {direction}
            LIMIT $2 OFFSET $3
        ))
        ORDER BY id DESC
        """,  # noqa: S608
        tx.account_id,
        limit,
        skip,
    )
    return [Movement(*row) for row in rows], total


_GROUPS: dict[GroupBy, str] = {"day": "day::text", "agent": "agent", "model": "model"}


async def usage(tx: AccountReader, first: date, last: date, group_by: GroupBy) -> list[Usage]:
    """What was used from the first to the last day: days in order, others by what they cost."""
    order = "key" if group_by == "day" else "sum(spent) DESC, key"
    rows: list[Any] = await tx.fetch(
        f"""
        SELECT {_GROUPS[group_by]} AS key, sum(calls)::bigint, sum(input_tokens)::bigint,
               sum(output_tokens)::bigint, sum(spent)::bigint
        FROM usage_days WHERE account_id = $1 AND day BETWEEN $2 AND $3
        GROUP BY key ORDER BY {order}
        """,  # noqa: S608
        tx.account_id,
        first,
        last,
    )
    return [Usage(*row) for row in rows]
