"""SQL for subscriptions."""

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
    """A subscription and its account."""

    account_id: UUID
    product: ProductKind
    state: State
    # When the sweep updates it, if it was found by that.
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """The account's signup trial of the add-on."""

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
    next_plan = state.next_plan
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
        next_plan.name if next_plan else None,
        next_plan.seats if next_plan else None,
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


async def due(
    connection: ReadConnection, now: datetime, limit: int, after: Row | None = None
) -> list[Row]:
    """The due subscriptions of every account, oldest first. Needs a relay's transaction."""
    rows = await connection.fetch(
        f"""
        SELECT account_id, product, due_at, {_COLUMNS} FROM subscriptions
        WHERE due_at <= $1
          AND ($3::timestamptz IS NULL OR (due_at, account_id, product) > ($3, $4, $5))
        ORDER BY due_at, account_id, product LIMIT $2
        """,  # noqa: S608
        now,
        limit,
        after and after.due_at,
        after and after.account_id,
        after and after.product,
    )
    return [Row(row["account_id"], row["product"], _state(row), row["due_at"]) for row in rows]


async def lock_account(tx: AccountTransaction) -> bool:
    """Locks the account's row, then its event journal. Returns whether the account exists."""
    found = await accounts.lock(tx)
    await journal.lock_account(tx)
    return found


async def trial(tx: AccountReader) -> Trial | None:
    period = await accounts.trial_period(tx)
    return Trial(*period) if period else None


async def live(connection: ReadConnection) -> list[Row]:
    """The live subscriptions of every account. Needs a relay's transaction."""
    rows = await connection.fetch(
        f"SELECT account_id, product, {_COLUMNS} FROM subscriptions WHERE status <> 'CANCELLED'"  # noqa: S608
    )
    return [Row(row["account_id"], row["product"], _state(row)) for row in rows]
