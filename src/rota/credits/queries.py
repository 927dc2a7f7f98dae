"""SQL that reads balances, ledger entries, payments and usage."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from uuid import UUID

from rota.credits.ledger import Kind
from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection

GroupBy = Literal["day", "agent", "model"]

PAYMENT_KINDS = ("top_up", "refund", "refund_reversal", "dispute", "dispute_reversal")
# The time in an entry's ID and its `at` differ by less than this.
ID_MARGIN = timedelta(days=1)
# Every entry is between these days, and a margin can be added to them.
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9999, 12, 29)


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
    kind: Kind
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
class MovementFilter:
    """Which ledger entries to list. Days are in UTC, and both ends are included."""

    kind: Kind | None = None
    task_id: UUID | None = None
    first: date | None = None
    last: date | None = None


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
    disputed_micros: int = 0
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


_MOVEMENT = (
    "id, kind, at, allowance, topup, held_allowance + held_topup AS held, spent, owed, granted,"
    " outside, task_id, run, step, model, price_version, cost, estimated, reference"
)


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
        SELECT {_MOVEMENT} FROM entries WHERE account_id = $1 AND id = ANY (ARRAY(
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


async def filtered_movements(
    tx: AccountReader, filters: MovementFilter, limit: int, offset: int
) -> tuple[list[Movement], int]:
    """A page of the entries that match, newest first, and how many match. Needs a snapshot."""
    conditions, values = ["account_id = $1"], list[Any]([tx.account_id])

    def require(condition: str, value: Any) -> None:
        values.append(value)
        conditions.append(f"{condition} ${len(values)}")

    if filters.kind is not None:
        require("kind =", filters.kind)
    if filters.kind in PAYMENT_KINDS:
        # These entries are in a small index of their own.
        conditions.append("reference IS NOT NULL")
    if filters.task_id is not None:
        require("task_id =", filters.task_id)
    # The index is on the ID, which contains the time at which the entry was written.
    if filters.first is not None:
        require("at >=", start := _midnight(max(filters.first, FIRST_DAY)))
        require("id >=", ids.first_from(start - ID_MARGIN))
    if filters.last is not None:
        require("at <", end := _midnight(min(filters.last, LAST_DAY)) + timedelta(days=1))
        require("id <", ids.first_from(end + ID_MARGIN))
    where = " AND ".join(conditions)
    total: int = await tx.fetchval(f"SELECT count(*) FROM entries WHERE {where}", *values)  # noqa: S608
    rows = await tx.fetch(
        f"""
        SELECT {_MOVEMENT} FROM entries WHERE {where}
        ORDER BY id DESC LIMIT {limit:d} OFFSET {offset:d}
        """,  # noqa: S608
        *values,
    )
    return [Movement(**row) for row in rows], total


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


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
    """The account's top-ups, refunds and disputes, by the processor's ID of the payment."""
    rows = await tx.fetch(
        """
        SELECT reference, max(at) AS at,
               coalesce(-sum(outside) FILTER (WHERE kind = 'top_up'), 0)::bigint AS paid_micros,
               coalesce(sum(outside) FILTER (WHERE kind LIKE 'refund%'), 0)::bigint
                   AS refunded_micros,
               coalesce(sum(outside) FILTER (WHERE kind LIKE 'dispute%'), 0)::bigint
                   AS disputed_micros
        FROM entries WHERE account_id = $1 AND reference IS NOT NULL
        GROUP BY reference
        """,
        tx.account_id,
    )
    return {
        row["reference"]: RecordedPayment(
            row["paid_micros"], row["refunded_micros"], row["disputed_micros"], row["at"]
        )
        for row in rows
    }
