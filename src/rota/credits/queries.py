"""SQL that reads balances, ledger entries, payments and usage."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal
from uuid import UUID

from rota.accounts import queries as accounts
from rota.payments import customers
from rota.payments.port import Payer
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection

GroupBy = Literal["day", "agent", "model"]


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's money, in micro-dollars."""

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
    """A ledger entry, in micro-dollars."""

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
    estimated: bool
    reference: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls of one day, agent or model. `spent` is in micro-dollars."""

    key: str
    calls: int
    input_tokens: int
    output_tokens: int
    spent: int


@dataclass(frozen=True, slots=True)
class RecordedPayment:
    """A payment as the ledger has it."""

    paid_micros: int = 0
    refunded_micros: int = 0
    at: datetime | None = None


async def balance(tx: AccountReader) -> Balance:
    row = await tx.fetchrow(
        """
        SELECT allowance, topup, held_allowance, held_topup, spent, owed, outside, entries,
               allow_overflow, allowance_total, allowance_used, period_ends_at
        FROM balances WHERE account_id = $1
        """,
        tx.account_id,
    )
    return Balance(**row)


async def is_stale(tx: AccountReader, now: datetime) -> bool:
    """Whether the month is over, or the plan has changed since the allowance was granted."""
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
    """The account as the payment processor knows it. The transaction must be the user's."""
    email = await accounts.email(tx, user_id)
    return Payer(tx.account_id, await customers.find(tx), email)


async def movements(tx: AccountReader, limit: int, offset: int) -> tuple[list[Movement], int]:
    """A page of entries, newest first, and the total. Needs a snapshot.

    The offset is skipped in the index, from the nearer end.
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
        SELECT id, kind, at, allowance, topup, held_allowance + held_topup AS held, spent, owed,
               granted, outside, task_id, run, step, model, price_version, cost, estimated,
               reference
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
    return [Movement(**row) for row in rows], total


_GROUPS: dict[GroupBy, str] = {"day": "day::text", "agent": "agent", "model": "model"}


async def usage(tx: AccountReader, first: date, last: date, group_by: GroupBy) -> list[Usage]:
    """Usage from the first to the last day. Days are in order, other groups by cost."""
    order = "key" if group_by == "day" else "sum(spent) DESC, key"
    rows = await tx.fetch(
        f"""
        SELECT {_GROUPS[group_by]} AS key, sum(calls)::bigint AS calls,
               sum(input_tokens)::bigint AS input_tokens,
               sum(output_tokens)::bigint AS output_tokens, sum(spent)::bigint AS spent
        FROM usage_days WHERE account_id = $1 AND day BETWEEN $2 AND $3
        GROUP BY key ORDER BY {order}
        """,  # noqa: S608
        tx.account_id,
        first,
        last,
    )
    return [Usage(**row) for row in rows]


async def accounts_with_entries(connection: ReadConnection) -> list[UUID]:
    """Every account whose money has ever moved. Needs a relay's transaction."""
    rows = await connection.fetch("SELECT account_id FROM balances WHERE entries > 0")
    return [row["account_id"] for row in rows]


async def recorded_payments(tx: AccountReader) -> dict[str, RecordedPayment]:
    """The account's top-ups and refunds, by the processor's ID of the payment."""
    rows = await tx.fetch(
        """
        SELECT reference, max(at) AS at,
               coalesce(-sum(outside) FILTER (WHERE kind = 'top_up'), 0)::bigint AS paid_micros,
               coalesce(sum(outside) FILTER (WHERE kind = 'refund'), 0)::bigint AS refunded_micros
        FROM entries
        WHERE account_id = $1 AND kind IN ('top_up', 'refund') AND reference IS NOT NULL
        GROUP BY reference
        """,
        tx.account_id,
    )
    return {
        row["reference"]: RecordedPayment(row["paid_micros"], row["refunded_micros"], row["at"])
        for row in rows
    }
