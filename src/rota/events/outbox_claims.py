"""How a relay claims instructions of the outbox, and saves what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.events.outbox import Instruction
from rota.platform.db import WriteConnection

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


async def save(connection: WriteConnection, outcomes: Sequence[Outcome]) -> None:
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
