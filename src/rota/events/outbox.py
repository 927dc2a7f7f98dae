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

from rota.platform.db import AccountTransaction, Database, WriteConnection

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


# The next accounts that have due instructions share the batch. Accounts are found by skipping
# through the index, so the length of an account's queue does not matter.
CLAIM = """
    WITH RECURSIVE turns AS (
        (
            SELECT account_id, 1 AS number FROM outbox
            WHERE lane = $1 AND ready AND due_at <= now() AND kind = ANY($2) AND account_id > $3
            ORDER BY lane, account_id LIMIT 1
        )
        UNION ALL
        SELECT following.account_id, turns.number + 1
        FROM turns, LATERAL (
            SELECT o.account_id FROM outbox o
            WHERE o.lane = $1 AND o.ready AND o.due_at <= now() AND o.kind = ANY($2)
              AND o.account_id > turns.account_id
            ORDER BY o.lane, o.account_id LIMIT 1
        ) AS following
        WHERE turns.number < $4
    ), picked AS MATERIALIZED (
        SELECT share.id, share.due_at FROM turns, LATERAL (
            SELECT o.id, o.due_at FROM outbox o
            WHERE o.lane = $1 AND o.ready AND o.due_at <= now() AND o.kind = ANY($2)
              AND o.account_id = turns.account_id
            ORDER BY o.lane, o.account_id, o.due_at, o.id
            LIMIT (SELECT $4 / greatest(count(*), 1) FROM turns)
            FOR UPDATE SKIP LOCKED
        ) AS share
    ), claimed AS (
        UPDATE outbox SET ready = false, attempts = attempts + 1,
            due_at = now() + make_interval(secs => $5)
        WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING *
    )
    SELECT claimed.id, claimed.account_id, claimed.kind, claimed.task_id, claimed.payload,
        claimed.attempts, claimed.due_at, later.due_in, found.accounts,
        (SELECT extract(epoch FROM now() - picked.due_at)::float FROM picked
         WHERE picked.id = claimed.id) AS waited_s
    FROM (
        SELECT extract(epoch FROM min(due_at) - now())::float AS due_in FROM outbox
        WHERE lane = $1 AND NOT ready AND due_at < 'infinity'
    ) AS later
    CROSS JOIN (SELECT count(*)::integer AS accounts FROM turns) AS found
    LEFT JOIN claimed ON true
    """


@dataclass(frozen=True, slots=True)
class Claim:
    """An instruction that this relay handles until `until`. Its row has that time as its due_at."""

    id: int
    until: datetime
    attempts: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Saved:
    """What becomes of a claimed instruction that is kept. Without a delay it is a dead letter."""

    kind: str
    delay_s: float | None
    key: str | None = None
    attempts: int = 0
    error: str | None = None


Outcome = tuple[Claim, Saved | None]


async def make_ready(connection: WriteConnection, lane: str) -> None:
    """Makes instructions ready that have become due, or whose relay has died."""
    await connection.execute(
        """
        UPDATE outbox SET ready = true WHERE id = ANY(ARRAY(
            SELECT id FROM outbox WHERE lane = $1 AND NOT ready AND due_at <= now()
            ORDER BY lane, due_at LIMIT 500 FOR UPDATE SKIP LOCKED
        ))
        """,
        lane,
    )


def claim_of(row: Any) -> Claim:
    instruction = Instruction(row["account_id"], row["kind"], row["task_id"], row["payload"])
    return Claim(row["id"], row["due_at"], row["attempts"], instruction)


def _once_per_key(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Keeps only the first of the instructions that would have the same key."""
    seen: set[tuple[UUID, str]] = set()
    kept: list[Outcome] = []
    for claim, saved in outcomes:
        if saved is not None and saved.key is not None:
            key = (claim.instruction.account_id, saved.key)
            kept.append((claim, None if key in seen else saved))
            seen.add(key)
        else:
            kept.append((claim, saved))
    return kept


async def save_outcomes(connection: WriteConnection, outcomes: Sequence[Outcome]) -> None:
    """Deletes or reschedules instructions whose lease is still that of the claim."""
    outcomes = _once_per_key(outcomes)
    # It skips instructions that are being deleted, so it never waits for a lock.
    rows = await connection.fetch(
        """
        SELECT id FROM outbox WHERE id = ANY($1)
            AND due_at = ($2::timestamptz[])[array_position($1::bigint[], id)]
        FOR UPDATE SKIP LOCKED
        """,
        [claim.id for claim, _ in outcomes],
        [claim.until for claim, _ in outcomes],
    )
    ours = {row["id"] for row in rows}
    kept = [(claim.id, saved) for claim, saved in outcomes if saved and claim.id in ours]
    done = [claim.id for claim, saved in outcomes if not saved and claim.id in ours]
    if done:
        # First, since one of them can have the key that another takes over.
        await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", done)
    if keyed := [(row_id, saved.key) for row_id, saved in kept if saved.key]:
        await connection.execute(
            """
            DELETE FROM outbox o WHERE o.id = ANY($1) AND EXISTS (
                SELECT FROM outbox other WHERE other.account_id = o.account_id
                AND other.key = ($2::text[])[array_position($1::bigint[], o.id)]
                AND other.id <> o.id
            )
            """,
            [row_id for row_id, _ in keyed],
            [key for _, key in keyed],
        )
    if kept:
        await connection.execute(
            """
            UPDATE outbox SET kind = r.kind, key = coalesce(r.key, outbox.key),
                attempts = r.attempts, error = r.error,
                dead_at = CASE WHEN r.delay_s IS NULL THEN now() END,
                due_at = coalesce(now() + make_interval(secs => r.delay_s), 'infinity')
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[],
                $6::float[]) AS r (id, kind, key, attempts, error, delay_s)
            WHERE outbox.id = r.id AND outbox.id = ANY($1)
            """,
            [row_id for row_id, _ in kept],
            [saved.kind for _, saved in kept],
            [saved.key for _, saved in kept],
            [saved.attempts for _, saved in kept],
            [saved.error for _, saved in kept],
            [saved.delay_s for _, saved in kept],
        )


async def give_back(connection: WriteConnection, claims: Sequence[Claim]) -> None:
    """Makes claimed instructions due again, as if they had not been claimed."""
    await connection.execute(
        """
        UPDATE outbox SET ready = true, due_at = now(), attempts = attempts - 1
        WHERE id = ANY($1) AND due_at = ($2::timestamptz[])[array_position($1::bigint[], id)]
        """,
        [claim.id for claim in claims],
        [claim.until for claim in claims],
    )


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
