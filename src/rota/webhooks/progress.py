"""SQL of the workers that send: which webhooks they take, and what became of the deliveries.

A worker that takes a webhook keeps other workers away for a moment (`due_at`), and renews this
while it lives: a webhook of a worker that dies is due soon. `leased_until` names the claim, and
changes with every progress that is saved. It and the revision must still be those of the claim:
otherwise the worker stops.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from rota.platform.db import ReadConnection, WriteConnection
from rota.webhooks.model import HOLD_S, Delivery, Webhook
from rota.webhooks.queries import COLUMNS

# Of each webhook, this many deliveries are kept, for at most this long.
KEPT_DELIVERIES, KEPT_FOR = 1_000, timedelta(days=7)

_OF_WEBHOOK = ", ".join(f"w.{name}" for name in COLUMNS.split(", "))
_CLAIM = f"""
    WITH found AS (
        SELECT w.account_id, w.id, w.due_at, false AS failing
        FROM webhooks w JOIN account_heads h USING (account_id)
        WHERE w.account_id = ANY($1::uuid[]) AND w.enabled AND w.due_at IS NULL
          AND h.last_sequence > w.confirmed_sequence AND w.id <> ALL($9::uuid[])
        UNION ALL
        SELECT w.account_id, w.id, w.due_at, w.attempts > 0 FROM webhooks w
        WHERE w.due_at <= now() AND w.enabled AND w.id <> ALL($9::uuid[])
    ), ranked AS (
        SELECT found.*, coalesce(taken.count, 0) + row_number() OVER (
            PARTITION BY account_id ORDER BY failing, due_at NULLS FIRST) > $7 AS beyond
        FROM found LEFT JOIN unnest($5::uuid[], $6::bigint[]) AS taken (account_id, count)
            USING (account_id)
    ), fair AS (
        SELECT * FROM (SELECT ranked.*, row_number() OVER (
            PARTITION BY beyond ORDER BY failing, due_at NULLS FIRST) AS place FROM ranked) AS each
        WHERE NOT beyond OR place <= $8
    ), wanted AS (
        SELECT account_id, id FROM (SELECT fair.*, row_number() OVER (
            PARTITION BY failing ORDER BY beyond, due_at NULLS FIRST) AS nth FROM fair) AS each
        WHERE NOT failing OR nth <= $3
        ORDER BY beyond, failing, due_at NULLS FIRST LIMIT $2
    ), picked AS (
        SELECT w.account_id, w.id FROM webhooks w JOIN wanted USING (account_id, id)
        WHERE w.enabled AND (w.due_at IS NULL OR w.due_at <= now())
        FOR UPDATE OF w SKIP LOCKED
    )
    UPDATE webhooks w SET due_at = clock_timestamp() + make_interval(secs => {HOLD_S}),
        leased_until = now() + make_interval(secs => $4)
    FROM picked WHERE w.account_id = picked.account_id AND w.id = picked.id
    RETURNING w.account_id AS owner, {_OF_WEBHOOK}
"""  # noqa: S608
_DELIVERY_NAMES = tuple(each.name for each in fields(Delivery))
_INSERT_DELIVERIES = f"""
    INSERT INTO webhook_deliveries (account_id, webhook_id, {", ".join(_DELIVERY_NAMES)})
    SELECT $1, $2, new.*
    FROM unnest($3::uuid[], $4::uuid[], $5::bigint[], $6::text[], $7::integer[], $8::text[],
        $9::timestamptz[], $10::integer[], $11::boolean[], $12::integer[], $13::text[],
        $14::text[], $15::text[]) AS new
    WHERE EXISTS (SELECT FROM webhooks WHERE account_id = $1 AND id = $2)
    ON CONFLICT DO NOTHING
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Claim:
    """A webhook that this worker sends for."""

    account_id: UUID
    webhook: Webhook
    # In monotonic time. The worker has the webhook for `HOLD_S` from then.
    taken_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a webhook has come."""

    confirmed: int
    previous: int


async def claim(
    connection: WriteConnection,
    accounts: Collection[UUID],
    *,
    limit: int,
    failing: int,
    lease_s: float,
    taken: Mapping[UUID, int],
    own: int,
    shared: int,
    sending: Collection[UUID] = (),
) -> list[Claim]:
    """Takes webhooks of these accounts that have new events, and all that are due, but none that
    this worker is `sending` for. At most `failing` of them have failed before, so that those leave
    room for others. An account gets up to `own`, less what is `taken` for it. `shared` more are for
    any accounts."""
    counted = list(taken), list(taken.values())
    taken_at = time.monotonic()
    rows = await connection.fetch(
        _CLAIM, list(accounts), limit, failing, lease_s, *counted, own, shared, list(sending)
    )
    return [Claim(values.pop("owner"), Webhook(**values), taken_at) for values in map(dict, rows)]


async def next_due_s(connection: ReadConnection) -> float | None:
    """How long until the next webhook is due. None: only after an event."""
    found: float | None = await connection.fetchval(
        "SELECT extract(epoch FROM min(due_at) - now())::float FROM webhooks "
        "WHERE due_at IS NOT NULL"
    )
    return found


async def with_webhooks(connection: ReadConnection) -> tuple[set[UUID], set[UUID]]:
    """The accounts that have an enabled webhook, and those with one that is behind although nobody
    sends for it."""
    rows = await connection.fetch(
        """
        SELECT w.account_id,
               bool_or(w.due_at IS NULL AND h.last_sequence > w.confirmed_sequence) AS behind
        FROM webhooks w JOIN account_heads h USING (account_id) WHERE w.enabled
        GROUP BY w.account_id
        """
    )
    return {row["account_id"] for row in rows}, {row["account_id"] for row in rows if row["behind"]}


async def count(connection: ReadConnection) -> tuple[int, int, float]:
    """Webhooks that deliveries have disabled, those that fail now, and for how long the oldest
    event waits."""
    row = await connection.fetchrow(
        """
        SELECT count(*) FILTER (WHERE disabled_reason IN ('failing', 'gone')) AS disabled,
               count(*) FILTER (WHERE enabled AND failing_since IS NOT NULL) AS failing,
               coalesce(extract(epoch FROM now() - min(behind_since) FILTER (WHERE enabled)), 0)
                   ::float AS oldest_s
        FROM webhooks
        """
    )
    return row["disabled"], row["failing"], max(0.0, row["oldest_s"])


async def renew(connection: WriteConnection, claims: Sequence[Claim]) -> set[UUID]:
    """Keeps other workers away from webhooks. Returns those that this worker still has, without
    those that a transaction is changing now."""
    rows = await connection.fetch(
        """
        WITH held AS (
            SELECT w.account_id, w.id FROM webhooks w
            JOIN unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS mine (account_id, id, until)
                ON w.account_id = mine.account_id AND w.id = mine.id
            WHERE w.leased_until = mine.until AND w.enabled
            FOR UPDATE OF w SKIP LOCKED
        )
        UPDATE webhooks w SET due_at = now() + make_interval(secs => $4)
        FROM held WHERE w.account_id = held.account_id AND w.id = held.id RETURNING w.id
        """,
        [claim.account_id for claim in claims],
        [claim.webhook.id for claim in claims],
        [claim.webhook.leased_until for claim in claims],
        HOLD_S,
    )
    return {row["id"] for row in rows}


async def save(
    connection: WriteConnection,
    claim: Claim,
    position: Position,
    deliveries: Sequence[Delivery],
    *,
    lease_s: float | None,
    again: bool = False,
) -> Webhook | None:
    """Saves confirmed deliveries and keeps the lease. Without `lease_s`, gives the webhook back:
    until the next event or, with `again`, for any worker at once.

    Returns the webhook as it is then. None: it was changed, or another worker has it.
    """
    webhook = claim.webhook
    await _add(connection, claim, deliveries)
    # A worker that stops may not have saved a failure.
    confirmed_at = max((each.sent_at for each in deliveries if each.delivered), default=None)
    # Nothing is left to send, so nothing fails, also if the events that failed are not wanted now.
    succeeds = confirmed_at is not None or (lease_s is None and not again)
    # Read in `tests/audit`: an update that begins this way does not count as a change.
    row = await connection.fetchrow(
        f"""
        UPDATE webhooks SET due_at = CASE WHEN $5::float IS NOT NULL
                THEN now() + make_interval(secs => {HOLD_S}) WHEN $6 THEN now() END,
            leased_until = now() + make_interval(secs => $5),
            confirmed_sequence = $7, previous_sequence = $8,
            delivered_at = coalesce($9::timestamptz, delivered_at),
            attempts = CASE WHEN $10 THEN 0 ELSE attempts END,
            failing_since = CASE WHEN NOT $10 THEN failing_since END,
            behind_since = CASE WHEN NOT $10 THEN behind_since END,
            last_error = CASE WHEN NOT $10 THEN last_error END
        WHERE account_id = $1 AND id = $2 AND leased_until = $3 AND revision = $4
        RETURNING {COLUMNS}
        """,  # noqa: S608
        claim.account_id,
        webhook.id,
        webhook.leased_until,
        webhook.revision,
        lease_s,
        again,
        position.confirmed,
        position.previous,
        confirmed_at,
        succeeds,
    )
    return Webhook(**row) if row else None


async def save_failure(
    connection: WriteConnection,
    claim: Claim,
    position: Position,
    deliveries: Sequence[Delivery],
    *,
    happened_at: datetime,
    failing_since: datetime,
    attempts: int,
    delay_s: float,
) -> bool:
    """Gives the webhook back until the next attempt. The last delivery is the one that failed.
    False: it was changed, or the worker does not have it any more."""
    await _add(connection, claim, deliveries)
    saved = await connection.fetchval(
        """
        UPDATE webhooks SET due_at = now() + make_interval(secs => $5), leased_until = NULL,
            confirmed_sequence = $6, previous_sequence = $7, attempts = $8, failing_since = $9,
            behind_since = $10, last_error = $11, delivered_at = coalesce($12, delivered_at)
        WHERE account_id = $1 AND id = $2 AND leased_until = $3 AND revision = $4 RETURNING true
        """,
        claim.account_id,
        claim.webhook.id,
        claim.webhook.leased_until,
        claim.webhook.revision,
        delay_s,
        position.confirmed,
        position.previous,
        attempts,
        failing_since,
        happened_at,
        deliveries[-1].error,
        deliveries[-2].sent_at if len(deliveries) > 1 else None,
    )
    return bool(saved)


async def give_back(
    connection: WriteConnection, claim: Claim, deliveries: Sequence[Delivery], delay_s: float = 0
) -> None:
    """Lets any worker take the webhook after a delay. The position stays as it is."""
    await _add(connection, claim, deliveries)
    await connection.execute(
        """
        UPDATE webhooks SET due_at = CASE WHEN enabled THEN now() + make_interval(secs => $4) END,
            leased_until = NULL
        WHERE account_id = $1 AND id = $2 AND leased_until = $3
        """,
        claim.account_id,
        claim.webhook.id,
        claim.webhook.leased_until,
        delay_s,
    )


async def _add(connection: WriteConnection, claim: Claim, new: Sequence[Delivery]) -> None:
    """Adds to the history, and deletes a few of the oldest if it is long enough. Deliveries can be
    there already, if the response to a commit was lost."""
    if not new:
        return
    values = attrgetter(*_DELIVERY_NAMES)
    columns: list[Any] = [list(column) for column in zip(*map(values, new), strict=True)]
    await connection.execute(_INSERT_DELIVERIES, claim.account_id, claim.webhook.id, *columns)
    await connection.execute(
        f"""
        DELETE FROM webhook_deliveries
        WHERE account_id = $1 AND webhook_id = $2 AND id = ANY(ARRAY(
            SELECT id FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2
            ORDER BY id DESC OFFSET {KEPT_DELIVERIES} LIMIT $3))
        """,  # noqa: S608
        claim.account_id,
        claim.webhook.id,
        2 * len(new),
    )


async def delete_old(connection: WriteConnection, limit: int) -> int:
    """Deletes deliveries of all accounts that are too old, some at a time. Returns how many."""
    rows = await connection.fetch(
        """
        DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
            SELECT account_id, webhook_id, id FROM webhook_deliveries
            WHERE sent_at < now() - $1::interval LIMIT $2)
        RETURNING id
        """,
        KEPT_FOR,
        limit,
    )
    return len(rows)


async def add_test(connection: WriteConnection, claim: Claim, delivery: Delivery) -> None:
    """Adds a delivery that a client asked for."""
    await _add(connection, claim, [delivery])
