"""The SQL of subscriptions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.accounts import queries as accounts
from rota.events import journal
from rota.payments.port import CONNECT_PASS
from rota.plans.states import Plan, State
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection

ProductKind = Literal["plan", "connect_pass"]
PLAN: Literal["plan"] = "plan"
PASS: Literal["connect_pass"] = "connect_pass"

_COLUMNS = (
    "processor_id, status, tier, seats, entitled, period_start, period_end, cancel_at_period_end,"
    " downgrade_target, downgrade_seats, unpaid_since, trial_end, replaced"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A subscription and whose it is."""

    account_id: UUID
    product: ProductKind
    state: State


@dataclass(frozen=True, slots=True)
class Trial:
    """The trial of the add-on that an account began with."""

    started_at: datetime
    ends_at: datetime


def _state(row: Any) -> State:
    target = row["downgrade_target"]
    return State(
        processor_id=row["processor_id"],
        status=row["status"],
        plan=Plan(row["tier"] or CONNECT_PASS, row["seats"]),
        period_start=row["period_start"],
        period_end=row["period_end"],
        cancel_at_period_end=row["cancel_at_period_end"],
        next_plan=Plan(target, row["downgrade_seats"]) if target else None,
        unpaid_since=row["unpaid_since"],
        trial_end=row["trial_end"],
        replaced=tuple(row["replaced"]),
        entitled=row["entitled"],
    )


async def find(tx: AccountReader, product: ProductKind) -> State | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM subscriptions WHERE account_id = $1 AND product = $2",  # noqa: S608
        tx.account_id,
        product,
    )
    return _state(row) if row else None


async def put(
    tx: AccountTransaction,
    product: ProductKind,
    state: State,
    due_at: datetime | None,
    now: datetime,
) -> None:
    following = state.next_plan
    await tx.execute(
        f"""
        INSERT INTO subscriptions (account_id, product, due_at, updated_at, {_COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
        ON CONFLICT (account_id, product) DO UPDATE SET
            (due_at, updated_at, {_COLUMNS}) = ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
             $14, $15, $16, $17)
        """,  # noqa: S608
        tx.account_id,
        product,
        due_at,
        now,
        state.processor_id,
        state.status,
        state.plan.name if product == PLAN else None,
        state.plan.seats,
        state.entitled,
        state.period_start,
        state.period_end,
        state.cancel_at_period_end,
        *((following.name, following.seats) if following else (None, None)),
        state.unpaid_since,
        state.trial_end,
        list(state.replaced),
    )


async def is_due(tx: AccountReader, product: ProductKind, now: datetime) -> bool:
    return bool(
        await tx.fetchval(
            """
            SELECT true FROM subscriptions WHERE account_id = $1 AND product = $2 AND due_at <= $3
            """,
            tx.account_id,
            product,
            now,
        )
    )


async def due(connection: ReadConnection, now: datetime, limit: int) -> list[Row]:
    """Of every account, for a relay's transaction: those that are due the longest."""
    rows = await connection.fetch(
        f"""
        SELECT account_id, product, {_COLUMNS} FROM subscriptions
        WHERE due_at <= $1 ORDER BY due_at LIMIT $2
        """,  # noqa: S608
        now,
        limit,
    )
    return [Row(row["account_id"], row["product"], _state(row)) for row in rows]


async def lock_subscriptions(tx: AccountTransaction) -> None:
    """Others who ask the processor about this account's subscriptions wait for us.

    No row is locked meanwhile: the account goes on working however long the processor takes.
    """
    number = int.from_bytes(tx.account_id.bytes[8:], "big", signed=True)
    await tx.execute("SELECT pg_advisory_xact_lock($1)", number)


async def lock_account(tx: AccountTransaction) -> bool:
    """Whether there is such an account. Its row comes before its head, as everywhere."""
    found = await accounts.lock(tx)
    await journal.lock_account(tx)
    return found


async def set_tier(tx: AccountTransaction, tier: str, seats: int | None) -> None:
    await tx.execute(
        "UPDATE accounts SET tier = $2, seats = $3 WHERE id = $1", tx.account_id, tier, seats
    )


async def tiers(tx: AccountReader, user_id: UUID) -> tuple[str | None, str | None]:
    """The account's tier, and that of the user's personal account."""
    row = await tx.fetchrow(
        """
        SELECT (SELECT tier FROM accounts WHERE id = $1), (SELECT tier FROM accounts WHERE id = $2)
        """,
        tx.account_id,
        user_id,
    )
    return row[0], row[1]


async def trial(tx: AccountReader) -> Trial | None:
    row = await tx.fetchrow(
        """
        SELECT created_at, trial_ends_at FROM accounts WHERE id = $1 AND trial_ends_at IS NOT NULL
        """,
        tx.account_id,
    )
    return Trial(*row) if row else None


# For comparing books. Both go through every account, in a relay's transaction.


async def live(connection: ReadConnection) -> list[Row]:
    rows = await connection.fetch(
        f"SELECT account_id, product, {_COLUMNS} FROM subscriptions WHERE status <> 'CANCELLED'"  # noqa: S608
    )
    return [Row(row["account_id"], row["product"], _state(row)) for row in rows]


async def accounts_with_money(connection: ReadConnection) -> list[UUID]:
    rows = await connection.fetch("SELECT account_id FROM balances WHERE entries > 0")
    return [row[0] for row in rows]


@dataclass(frozen=True, slots=True)
class Booked:
    """What our books say of one payment, in micro-dollars."""

    paid: int = 0
    refunded: int = 0
    at: datetime | None = None


async def booked(tx: AccountReader) -> dict[str, Booked]:
    """Everything that was entered as paid or given back, by the processor's name of it."""
    rows = await tx.fetch(
        """
        SELECT reference, coalesce(-sum(outside) FILTER (WHERE kind = 'top_up'), 0)::bigint,
               coalesce(sum(outside) FILTER (WHERE kind = 'refund'), 0)::bigint, max(at)
        FROM entries
        WHERE account_id = $1 AND kind IN ('top_up', 'refund') AND reference IS NOT NULL
        GROUP BY reference
        """,
        tx.account_id,
    )
    return {row[0]: Booked(*row[1:]) for row in rows}
