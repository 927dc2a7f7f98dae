"""SQL that reads balances, ledger entries, payments and usage."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

from rota.credits.model import Kind
from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection

GroupBy = Literal["day", "agent", "model", "day,agent", "day,model"]

KINDS: tuple[Kind, ...] = get_args(Kind)
PAYMENT_KINDS = frozenset({"top_up", "refund", "refund_reversal", "dispute", "dispute_reversal"})
# The most agents or models of a chart by day. The others are summed, so that a response stays
# small however many there are.
MAX_GROUPS = 10
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
    # The anchor is None while the next month is not paid: then the end is only the next check.
    period_anchor: datetime | None
    period_ends_at: datetime | None
    # None if the account wants no event about a low balance.
    alert_below: int | None

    @property
    def resets_at(self) -> datetime | None:
        """When the next allowance starts, if that is known."""
        known = self.allowance_total and self.period_anchor is not None
        return self.period_ends_at if known else None


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
    # The allowance and the top-up right after the entry.
    available_after: int
    # The name and the agent of the task.
    task_name: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class MovementFilter:
    """Which ledger entries to list. Days are in UTC, and both ends are included."""

    kinds: tuple[Kind, ...] = ()
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
    # The agent or the model, if `key` is the day.
    group: str | None = None


@dataclass(frozen=True, slots=True)
class OpenHold:
    """The hold of a run that has not ended, in micro-dollars."""

    task_id: UUID
    held: int
    used: int
    created_at: datetime


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
               allow_overflow, allowance_total, allowance_used, period_anchor,
               period_ends_at, alert_below
        FROM balances WHERE account_id = $1
        """,
        tx.account_id,
    )
    return Balance(**row)


async def is_stale(tx: AccountReader, now: datetime) -> bool:
    """Whether the month is over, or the plan has changed since the allowance was granted.

    In earlier versions, a month without an allowance had no end.
    """
    return bool(
        await tx.fetchval(
            """
            SELECT b.tier IS DISTINCT FROM a.tier OR b.seats IS DISTINCT FROM a.seats
                OR coalesce(b.period_ends_at <= $2, true)
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


# The balance after an entry is stored with it. It is computed for the entries that processes of an
# older version write while an upgrade is under way: backwards from the next entry that has it, or
# from the balance.
_MOVEMENT = """
    id, kind, at, allowance, topup, held_allowance + held_topup AS held, spent, owed, granted,
    outside, task_id, run, step, model, price_version, cost, estimated, reference,
    coalesce(available_after, (
        SELECT coalesce(n.available_after - n.allowance - n.topup, b.allowance + b.topup)
            - coalesce((SELECT sum(m.allowance + m.topup) FROM entries m
                        WHERE m.account_id = $1 AND m.id > entries.id
                          AND (n.id IS NULL OR m.id < n.id)), 0)
        FROM balances b LEFT JOIN LATERAL (
            SELECT id, allowance, topup, available_after FROM entries n
            WHERE n.account_id = $1 AND n.id > entries.id AND n.available_after IS NOT NULL
            ORDER BY n.id LIMIT 1
        ) n ON true
        WHERE b.account_id = $1
    ))::bigint AS available_after
"""


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

    if filters.kinds:
        values.append(filters.kinds)
        conditions.append(f"kind = ANY (${len(values)})")
    if filters.kinds and PAYMENT_KINDS.issuperset(filters.kinds):
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


async def usage(tx: AccountReader, first: date, last: date, group_by: GroupBy) -> list[Usage]:
    """Usage from the first to the last day. Days are in order, other groups by cost.

    Of a day's agents or models, only those that cost the most in the whole time are listed. The
    group of all others is None.
    """
    by_day, _, part = group_by.rpartition(",")
    key, group, order = part, "NULL", "sum(spent) DESC, key"
    if part == "day":
        key, order = "day::text", "key"
    elif by_day:
        key, order = "day::text", 'key, sum(spent) DESC, "group"'
        group = f"""
            CASE WHEN {part} IN (
                SELECT {part} FROM usage_days WHERE account_id = $1 AND day BETWEEN $2 AND $3
                GROUP BY {part} ORDER BY sum(spent) DESC, {part} LIMIT {MAX_GROUPS}
            ) THEN {part} END
        """  # noqa: S608
    rows = await tx.fetch(
        f"""
        SELECT {key} AS key, {group} AS "group", sum(calls)::bigint AS calls,
               sum(input_tokens)::bigint AS input_tokens,
               sum(output_tokens)::bigint AS output_tokens, sum(spent)::bigint AS spent
        FROM usage_days WHERE account_id = $1 AND day BETWEEN $2 AND $3
        GROUP BY 1, 2 ORDER BY {order}
        """,  # noqa: S608
        tx.account_id,
        first,
        last,
    )
    return [Usage(**row) for row in rows]


async def open_holds(tx: AccountReader, limit: int, offset: int) -> tuple[list[OpenHold], int, int]:
    """A page of open holds, the largest first, their number and the sum of what they hold."""
    rows = await tx.fetch(
        """
        WITH found AS MATERIALIZED (
            SELECT task_id, allowance + topup AS held, charged AS used, created_at
            FROM holds WHERE account_id = $1 AND open
        )
        SELECT totals.*, page.* FROM (
            SELECT count(*) AS number, coalesce(sum(held), 0)::bigint AS total FROM found
        ) AS totals
        LEFT JOIN (
            SELECT * FROM found ORDER BY held DESC, task_id LIMIT $2 OFFSET $3
        ) AS page ON true
        ORDER BY held DESC, task_id
        """,
        tx.account_id,
        limit,
        offset,
    )
    found = [
        OpenHold(row["task_id"], row["held"], row["used"], row["created_at"])
        for row in rows
        if row["task_id"] is not None
    ]
    return found, rows[0]["number"], rows[0]["total"]


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
