"""The outbox: instructions written in the transaction of a change and handled after its commit.

The relay in each worker handles them (`relay.py`). An instruction's lane is the part of its kind
before the first dot; each lane has its own relay. After a crash, instructions are handled again.
So a handler must tolerate being called twice, and being called after the handler of a later
instruction.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from prometheus_client import Gauge

from rota.platform.db import AccountTransaction, Database

DEAD = Gauge("rota_outbox_dead", "Dead letters: instructions that failed and are not retried.")
PARKED = Gauge("rota_outbox_parked", "Runs that wait because of their agent's maxConcurrent.")
OLDEST_SECONDS = Gauge(
    "rota_outbox_oldest_seconds",
    "How long the oldest due instruction of a lane has waited for a relay.",
    ["lane"],
)

# How often relays look for instructions that no message told them of.
POLL_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Instruction:
    account_id: UUID
    kind: str
    task_id: UUID | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Returned by a handler to keep the instruction: its next kind, and the delay until then.

    If the account has another instruction with the same key, that one is kept instead.
    """

    kind: str
    delay_s: float
    key: str | None = None


class Unavailable(Exception):
    """Raised by a handler whose peer is down. The instruction is not at fault and is kept."""


Handler = Callable[[Instruction], Awaitable[Reschedule | None]]


def lane_of(kind: str) -> str:
    return kind.partition(".")[0]


def note(tx: AccountTransaction, kind: str) -> None:
    """Wakes a relay after the commit of a transaction that writes such an instruction."""
    tx.wakes |= {lane_of(kind)}


async def put(tx: AccountTransaction, instruction: Instruction, delay_s: float | None = 0) -> None:
    """Without a delay (None), the instruction is parked until `release_parked`."""
    await tx.execute(
        """
        INSERT INTO outbox (account_id, kind, task_id, payload, ready, due_at)
        VALUES ($1, $2, $3, $4, coalesce($5::float = 0, false),
                coalesce(now() + make_interval(secs => $5), 'infinity'))
        """,
        instruction.account_id,
        instruction.kind,
        instruction.task_id,
        instruction.payload,
        delay_s,
    )
    # Polling finds the others in time. A relay that it wakes sleeps until the instruction is due.
    if delay_s is not None and delay_s < POLL_EVERY_S:
        note(tx, instruction.kind)


async def release_parked(tx: AccountTransaction, task_ids: Sequence[UUID]) -> None:
    """Makes the parked instructions of these tasks due."""
    rows = await tx.fetch("SELECT release_parked($1) AS kind", task_ids)
    for row in rows:
        note(tx, row["kind"])


async def drop(tx: AccountTransaction, task_id: UUID, kinds: Sequence[str]) -> None:
    """Deletes the task's instructions of these kinds, also those that a relay is handling."""
    # A function, because a plan for an empty table would read all of a long queue.
    await tx.execute("SELECT drop_instructions($1, $2)", task_id, kinds)


async def accounts_with_queued_runs(db: Database) -> list[UUID]:
    # The kind is a literal, because only a literal lets PostgreSQL use the index of queued runs.
    async with db.relay(by_index=True) as connection:
        rows = await connection.fetch(
            "SELECT DISTINCT account_id FROM outbox WHERE kind = 'run.queued'"
        )
    return [row["account_id"] for row in rows]


async def wake_queued_runs(db: Database, account_id: UUID, limit: int) -> int:
    """Makes the instructions about queued runs due, oldest task first. Returns how many."""
    async with db.relay(by_index=True) as connection:
        rows = await connection.fetch(
            """
            UPDATE outbox SET ready = true, due_at = now() WHERE id = ANY(ARRAY(
                SELECT id FROM outbox
                WHERE account_id = $1 AND kind = 'run.queued' AND NOT ready AND attempts = 0
                ORDER BY account_id, task_id LIMIT $2 FOR UPDATE SKIP LOCKED
            )) RETURNING id
            """,
            account_id,
            limit,
        )
    return len(rows)


@dataclass(frozen=True, slots=True)
class Entry:
    """An instruction as an operator sees it."""

    id: int
    account_id: UUID
    kind: str
    task_id: UUID | None
    attempts: int
    # None: not until something releases it.
    due_at: datetime | None
    dead_at: datetime | None
    error: str | None


async def entries(db: Database, *, dead: bool, limit: int) -> list[Entry]:
    """The oldest instructions of all accounts, or the oldest dead letters."""
    async with db.relay() as connection:
        rows = await connection.fetch(
            """
            SELECT id, account_id, kind, task_id, attempts, nullif(due_at, 'infinity') AS due_at,
                   dead_at, error
            FROM outbox WHERE dead_at IS NOT NULL OR NOT $1 ORDER BY id LIMIT $2
            """,
            dead,
            limit,
        )
    return [Entry(**row) for row in rows]


async def revive(db: Database, instruction_id: int | None) -> int:
    """Lets relays try one dead letter again, or all of them. Returns how many."""
    async with db.relay() as connection:
        rows = await connection.fetch(
            """
            UPDATE outbox SET ready = true, due_at = now(), attempts = 0, dead_at = NULL
            WHERE dead_at IS NOT NULL AND ($1::bigint IS NULL OR id = $1) RETURNING id
            """,
            instruction_id,
        )
        if rows:
            connection.record("outbox.retried", {"instructions": [row["id"] for row in rows]})
    return len(rows)


async def count_waiting(db: Database, lanes: Sequence[str]) -> None:
    """Sets the gauges of dead letters, parked instructions, and those that wait in these lanes."""
    async with db.relay() as connection:
        dead = await connection.fetchval("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL")
        parked = await connection.fetchval(
            "SELECT count(DISTINCT task_id) FROM outbox WHERE lane = 'run' AND NOT ready "
            "AND due_at = 'infinity' AND dead_at IS NULL"
        )
        rows = await connection.fetch(
            "SELECT lane, extract(epoch FROM now() - min(due_at))::float AS age_s FROM outbox "
            "WHERE ready AND due_at <= now() GROUP BY lane"
        )
    DEAD.set(dead)
    PARKED.set(parked)
    ages = {row["lane"]: row["age_s"] for row in rows}
    for lane in lanes:
        OLDEST_SECONDS.labels(lane).set(ages.get(lane, 0))
