"""The SQL of turns of retention, of erasures and of the lease of the worker that does both."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from rota.accounts.model import Kind
from rota.platform.db import AccountReader, AccountTransaction, Database, WriteConnection
from rota.platform.transactions import execute_count

Stage = Literal[
    "companies", "holds", "plans", "tasks", "tables", "person", "audit", "confirm", "ending"
]


@dataclass(frozen=True, slots=True)
class Erasure:
    account_id: UUID
    kind: Kind
    requested_at: datetime
    requested_by: UUID | None
    stage: Stage
    rows_erased: int
    attempts: int
    error: str | None
    finished_at: datetime | None


_ERASURE = (
    "account_id, kind, requested_at, requested_by, stage, rows_erased, attempts, error, finished_at"
)


async def hold_lease(db: Database, name: str, holder: UUID, seconds: float) -> bool:
    """Whether this worker has the lease now. It renews the lease if it has it already."""
    async with db.relay() as connection:
        held = await connection.fetchval(
            """
            INSERT INTO sweeps AS s (name, holder, held_until)
            VALUES ($1, $2, now() + make_interval(secs => $3))
            ON CONFLICT (name) DO UPDATE SET holder = $2, held_until = excluded.held_until
            WHERE s.holder = $2 OR s.held_until < now()
            RETURNING true
            """,
            name,
            holder,
            seconds,
        )
    return bool(held)


async def give_back_lease(db: Database, name: str, holder: UUID) -> None:
    async with db.relay() as connection:
        await connection.execute(
            "UPDATE sweeps SET held_until = now() WHERE name = $1 AND holder = $2", name, holder
        )


async def due_accounts(connection: WriteConnection, limit: int) -> list[tuple[UUID, float]]:
    """The accounts whose turn is overdue, with the seconds since then. The oldest first."""
    rows = await connection.fetch(
        """
        SELECT account_id, extract(epoch FROM now() - due_at)::float AS late_s
        FROM retention_turns WHERE due_at <= now() ORDER BY due_at LIMIT $1
        """,
        limit,
    )
    return [(row["account_id"], row["late_s"]) for row in rows]


async def steps_before(tx: AccountReader) -> UUID:
    """The steps of tasks before this one are deleted."""
    found: UUID | None = await tx.fetchval(
        "SELECT steps_before FROM retention_turns WHERE account_id = $1", tx.account_id
    )
    return found or UUID(int=0)


async def set_steps_before(tx: AccountTransaction, task_id: UUID) -> None:
    await tx.execute(
        "UPDATE retention_turns SET steps_before = $2 WHERE account_id = $1",
        tx.account_id,
        task_id,
    )


async def end_turns(
    connection: WriteConnection, account_ids: Collection[UUID], again_in_s: float
) -> None:
    if not account_ids:
        return
    await connection.execute(
        """
        UPDATE retention_turns SET due_at = now() + make_interval(secs => $2)
        WHERE account_id = ANY($1::uuid[])
        """,
        list(account_ids),
        again_in_s,
    )


async def make_due_now(tx: AccountTransaction) -> None:
    """The policy of the account has changed, so it has its turn at the next look."""
    await tx.execute(
        """
        UPDATE retention_turns SET due_at = least(due_at, now()), steps_before = NULL
        WHERE account_id = $1
        """,
        tx.account_id,
    )


async def begin_erasure(
    tx: AccountTransaction, kind: Kind, requested_by: UUID | None, now: datetime
) -> None:
    await tx.execute(
        """
        INSERT INTO erasures (account_id, kind, requested_at, requested_by, stage, due_at)
        VALUES ($1, $2, $3, $4, 'companies', $3)
        """,
        tx.account_id,
        kind,
        now,
        requested_by,
    )


async def find_erasure(tx: AccountReader) -> Erasure | None:
    row = await tx.fetchrow(
        f"SELECT {_ERASURE} FROM erasures WHERE account_id = $1",  # noqa: S608
        tx.account_id,
    )
    return Erasure(**row) if row else None


async def claim_erasure(db: Database, lease_s: float) -> Erasure | None:
    """An erasure that a worker must continue. No other worker takes it for a while."""
    async with db.relay() as connection:
        row = await connection.fetchrow(
            f"""
            UPDATE erasures SET due_at = now() + make_interval(secs => $1)
            WHERE account_id = (SELECT account_id FROM erasures WHERE due_at <= now()
                                ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING {_ERASURE}
            """,  # noqa: S608
            lease_s,
        )
    return Erasure(**row) if row else None


async def count_erasures(connection: WriteConnection) -> tuple[int, float | None]:
    """How many are running, and in how many seconds the next one is due."""
    row = await connection.fetchrow(
        """
        SELECT count(*) AS running, extract(epoch FROM min(due_at) - now())::float AS due_in
        FROM erasures WHERE due_at IS NOT NULL
        """
    )
    return row["running"], row["due_in"]


async def progress(tx: AccountTransaction, stage: Stage, rows: int, *, due_in_s: float) -> None:
    """Saves what is done. An attempt that got this far has not failed."""
    await tx.execute(
        """
        UPDATE erasures SET stage = $2, rows_erased = rows_erased + $3, attempts = 0, error = NULL,
            due_at = now() + make_interval(secs => $4)
        WHERE account_id = $1 AND finished_at IS NULL
        """,
        tx.account_id,
        stage,
        rows,
        due_in_s,
    )


async def fail(tx: AccountTransaction, error: str, due_in_s: float) -> None:
    await tx.execute(
        """
        UPDATE erasures SET attempts = attempts + 1, error = $2,
            due_at = now() + make_interval(secs => $3)
        WHERE account_id = $1 AND finished_at IS NULL
        """,
        tx.account_id,
        error,
        due_in_s,
    )


async def finish(tx: AccountTransaction) -> None:
    await tx.execute(
        """
        UPDATE erasures SET finished_at = now(), due_at = NULL, error = NULL, attempts = 0
        WHERE account_id = $1 AND finished_at IS NULL
        """,
        tx.account_id,
    )


async def delete_all(tx: AccountTransaction, table: str) -> None:
    """Deletes the account's rows in a table of `tables.ERASED_AT_ONCE`."""
    await tx.execute(f"DELETE FROM {table} WHERE account_id = $1", tx.account_id)  # noqa: S608


async def delete_rows(tx: AccountTransaction, table: str, owner: str, limit: int) -> int:
    """Deletes some of the account's rows in a table of `tables.ERASED`. Returns how many."""
    return await execute_count(
        tx,
        f"""
        DELETE FROM {table} WHERE {owner} = $1 AND ctid = ANY (ARRAY(
            SELECT ctid FROM {table} WHERE {owner} = $1 LIMIT $2))
        """,  # noqa: S608
        tx.account_id,
        limit,
    )
