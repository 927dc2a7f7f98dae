"""The SQL of notifications: the preferences of users, and the queues of messages to them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rota.events.notices import Notice
from rota.notifications.model import Channel, Item, Kind, Preferences, Queue, QueueId
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection
from rota.platform.transactions import execute_count

_NAMES = tuple(field.name for field in fields(Preferences))
_COLUMNS = ", ".join(_NAMES)


def _preferences(row: Any) -> Preferences:
    columns = {name: row[name] for name in _NAMES}
    lists = {name: tuple(columns[name]) for name in ("mail_kinds", "chat_kinds")}
    return Preferences(**columns | lists)


async def preferences(tx: AccountReader, user_id: UUID) -> Preferences | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM notification_settings WHERE account_id = $1 AND user_id = $2",  # noqa: S608
        tx.account_id,
        user_id,
    )
    return _preferences(row) if row else None


async def preferences_for_change(tx: AccountTransaction, user_id: UUID) -> Preferences | None:
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM notification_settings
        WHERE account_id = $1 AND user_id = $2 FOR UPDATE
        """,  # noqa: S608
        tx.account_id,
        user_id,
    )
    return _preferences(row) if row else None


async def save(tx: AccountTransaction, user_id: UUID, preferences: Preferences) -> None:
    values = ", ".join(f"${number}" for number in range(3, 3 + len(_NAMES)))
    changes = ", ".join(f"{name} = excluded.{name}" for name in _NAMES)
    await tx.execute(
        f"""
        INSERT INTO notification_settings (account_id, user_id, {_COLUMNS}, updated_at)
        VALUES ($1, $2, {values}, now())
        ON CONFLICT (account_id, user_id) DO UPDATE SET {changes}, updated_at = now()
        """,  # noqa: S608
        tx.account_id,
        user_id,
        *map(_stored, astuple(preferences)),
    )


def _stored(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


async def note_test(tx: AccountTransaction, user_id: UUID, at: datetime) -> None:
    """Changes nothing else: without a row, another transaction may just be saving the first one."""
    await tx.execute(
        """
        INSERT INTO notification_settings
            (account_id, user_id, content, mail_kinds, chat_kinds, last_test_at, updated_at)
        VALUES ($1, $2, $4, '{}', '{}', $3, now())
        ON CONFLICT (account_id, user_id) DO UPDATE SET last_test_at = excluded.last_test_at
        """,
        tx.account_id,
        user_id,
        at,
        Preferences().content,
    )


async def forget(tx: AccountTransaction, user_id: UUID) -> None:
    """Removes everything of a user who leaves the account."""
    # The settings are locked before the queues, as by a request that changes them.
    await tx.execute(
        "DELETE FROM notification_settings WHERE account_id = $1 AND user_id = $2",
        tx.account_id,
        user_id,
    )
    await _lock_all(tx, user_id)
    await tx.execute(
        "DELETE FROM notification_queues WHERE account_id = $1 AND user_id = $2",
        tx.account_id,
        user_id,
    )


async def _lock_all(tx: AccountTransaction, user_id: UUID) -> None:
    """Locks the queues of a user in the order in which notices are added to them."""
    await tx.execute(
        """
        SELECT FROM notification_queues WHERE account_id = $1 AND user_id = $2
        ORDER BY kind, channel FOR UPDATE
        """,
        tx.account_id,
        user_id,
    )


Subscriber = tuple[UUID, Preferences]


async def subscribers(tx: AccountReader) -> list[Subscriber]:
    """Everyone in the account who wants to be notified about something."""
    rows = await tx.fetch(
        f"SELECT user_id, {_COLUMNS} FROM notification_settings WHERE account_id = $1",  # noqa: S608
        tx.account_id,
    )
    return [(row["user_id"], _preferences(row)) for row in rows]


async def lock_adding(tx: AccountTransaction) -> None:
    """Only one worker at a time adds notices of an account: two that add different notices would
    lock the same queues in different orders."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtext('notices'), hashtext($1::text))", str(tx.account_id)
    )


async def add(
    tx: AccountTransaction,
    notice: Notice,
    recipients: Sequence[tuple[UUID, Channel]],
    digest: timedelta,
) -> None:
    """Adds a notice to the queues of these users. A queue that has just sent something waits until
    its next digest."""
    if not recipients:
        return
    # In the order of `_lock_all`, so that two transactions cannot wait for each other.
    ordered = sorted(recipients)
    users = [user_id for user_id, _ in ordered]
    channels = [channel for _, channel in ordered]
    await tx.execute(
        """
        INSERT INTO notification_queues AS q (account_id, user_id, kind, channel, due_at)
        SELECT $1, r.user_id, $2, r.channel, now()
        FROM unnest($3::uuid[], $4::text[]) AS r (user_id, channel)
        ON CONFLICT (account_id, user_id, kind, channel) DO UPDATE
        SET due_at = coalesce(q.due_at, greatest(now(), q.last_sent_at + $5, q.failed_at + $5))
        """,
        tx.account_id,
        notice.kind,
        users,
        channels,
        digest,
    )
    await tx.execute(
        """
        INSERT INTO notification_items AS i
            (account_id, user_id, kind, channel, subject, notice_id, created_at)
        SELECT $1, r.user_id, $2, r.channel, $5, $6, now()
        FROM unnest($3::uuid[], $4::text[]) AS r (user_id, channel)
        ON CONFLICT (account_id, user_id, kind, channel, subject)
            DO UPDATE SET notice_id = greatest(i.notice_id, excluded.notice_id),
                created_at = excluded.created_at
        """,
        tx.account_id,
        notice.kind,
        users,
        channels,
        notice.subject,
        notice.id,
    )


@dataclass(frozen=True, slots=True)
class DueQueue:
    id: QueueId
    # Whether an attempt has failed, or its worker died.
    failing: bool


@dataclass(frozen=True, slots=True)
class Due:
    """The queues to handle now, and how long until the next one is due."""

    queues: list[DueQueue]
    next_in_s: float | None
    oldest_s: float
    # For how long the queue that fails longest has failed.
    failing_s: float


async def due(connection: ReadConnection, limit: int) -> Due:
    """At most `limit` of each channel that have failed, and as many others, which come first.
    Accounts take turns."""
    rows = await connection.fetch(
        """
        SELECT account_id, user_id, kind, channel, failing FROM (
            SELECT *, row_number() OVER (
                PARTITION BY channel, failing ORDER BY turn, due_at) AS place
            FROM (
                SELECT *, attempts > 0 AS failing,
                    row_number() OVER (
                        PARTITION BY channel, account_id, attempts > 0 ORDER BY due_at) AS turn
                FROM notification_queues WHERE due_at <= now()
            ) AS found
        ) AS ordered
        WHERE place <= $1 ORDER BY failing, place
        """,
        limit,
    )
    waiting = await connection.fetchrow(
        """
        SELECT extract(epoch FROM min(due_at) FILTER (WHERE due_at > now()) - now())::float AS next,
               extract(epoch FROM now() - min(due_at))::float AS oldest,
               extract(epoch FROM now() - min(first_failed_at))::float AS failing
        FROM notification_queues WHERE due_at IS NOT NULL
        """
    )
    assert waiting is not None
    queues = [
        DueQueue(
            QueueId(row["account_id"], row["user_id"], row["kind"], row["channel"]), row["failing"]
        )
        for row in rows
    ]
    oldest_s, failing_s = (max(0.0, waiting[name] or 0.0) for name in ("oldest", "failing"))
    return Due(queues, waiting["next"], oldest_s, failing_s)


@dataclass(frozen=True, slots=True)
class Claim:
    """A queue that this worker handles until `until`, which is its due_at in the database."""

    id: QueueId
    until: datetime
    attempts: int
    first_failed_at: datetime | None


def _key(queue: QueueId) -> tuple[object, ...]:
    return queue.account_id, queue.user_id, queue.kind, queue.channel


# Later attempts come as slowly as this one.
_SLOWEST = 20
_OF_QUEUE = "account_id = $1 AND user_id = $2 AND kind = $3 AND channel = $4"


async def claim(
    tx: AccountTransaction, queue: QueueId, lease: timedelta, longest: timedelta
) -> Claim | None:
    """Takes a due queue, unless another worker was faster. The lease grows with each attempt, so
    workers that die while they send repeat a message ever more slowly."""
    row = await tx.fetchrow(
        f"""
        UPDATE notification_queues SET attempts = attempts + 1,
            due_at = now()
                + least($5::interval * power(2, least(attempts, {_SLOWEST})), $6::interval)
        WHERE {_OF_QUEUE} AND due_at <= now()
        RETURNING due_at, attempts, first_failed_at
        """,  # noqa: S608
        *_key(queue),
        lease,
        longest,
    )
    return Claim(queue, row["due_at"], row["attempts"], row["first_failed_at"]) if row else None


async def lock(tx: AccountTransaction, queue: QueueId) -> None:
    """Before `rest`, which would not see an item that is added while it waits for the queue. And
    before `remove_items`: notices, too, lock the queue first."""
    await tx.execute(
        f"SELECT FROM notification_queues WHERE {_OF_QUEUE} FOR UPDATE",
        *_key(queue),
    )


async def items(tx: AccountReader, queue: QueueId, limit: int) -> list[Item]:
    rows = await tx.fetch(
        f"""
        SELECT subject, notice_id, created_at FROM notification_items WHERE {_OF_QUEUE}
        ORDER BY created_at, notice_id LIMIT $5
        """,  # noqa: S608
        *_key(queue),
        limit,
    )
    return [Item(**row) for row in rows]


async def remove_items(tx: AccountTransaction, queue: QueueId, done: Sequence[Item]) -> None:
    """Removes items, except those about which something new has happened since."""
    await tx.execute(
        f"""
        DELETE FROM notification_items i USING unnest($5::uuid[], $6::bigint[]) AS d (subject, id)
        WHERE {_OF_QUEUE} AND i.subject = d.subject AND i.notice_id <= d.id
        """,  # noqa: S608
        *_key(queue),
        [item.subject for item in done],
        [item.notice_id for item in done],
    )


async def remove_all_items(tx: AccountTransaction, queue: QueueId) -> None:
    await tx.execute(
        f"DELETE FROM notification_items WHERE {_OF_QUEUE}",  # noqa: S608
        *_key(queue),
    )


async def remove_old_items(tx: AccountTransaction, queue: QueueId, older_than: timedelta) -> int:
    """Removes items about which nothing new has happened for so long. Returns how many."""
    return await execute_count(
        tx,
        f"DELETE FROM notification_items WHERE {_OF_QUEUE} AND created_at <= now() - $5::interval",  # noqa: S608
        *_key(queue),
        older_than,
    )


async def rest(
    tx: AccountTransaction, claim: Claim, next_in: timedelta, *, sent: bool, error: str | None
) -> None:
    """Ends a claim: the message was sent, there was nothing to send, or it was given up. What has
    arrived since waits for `next_in`. The queue must be locked."""
    await tx.execute(
        f"""
        UPDATE notification_queues SET attempts = 0, first_failed_at = NULL,
            last_sent_at = CASE WHEN $7 THEN now() ELSE last_sent_at END,
            failed_at = CASE WHEN $8::text IS NOT NULL THEN now() WHEN $7 THEN NULL
                             ELSE failed_at END,
            error = CASE WHEN $8 IS NOT NULL THEN $8 WHEN $7 THEN NULL ELSE error END,
            due_at = CASE WHEN EXISTS (SELECT FROM notification_items WHERE {_OF_QUEUE})
                          THEN now() + $6::interval END
        WHERE {_OF_QUEUE} AND due_at = $5
        """,  # noqa: S608
        *_key(claim.id),
        claim.until,
        next_in,
        sent,
        error,
    )


async def retry(
    tx: AccountTransaction, claim: Claim, delay: timedelta, error: str, *, gave_up: bool
) -> None:
    """An attempt that has ended is not one during which a worker died, so they do not add up for
    ever. When old items were given up, the others have failed since the oldest of them came."""
    await tx.execute(
        f"""
        UPDATE notification_queues SET due_at = now() + $6::interval, error = $7,
            attempts = least(attempts, {_SLOWEST}),
            failed_at = CASE WHEN $8 THEN now() ELSE failed_at END,
            first_failed_at = CASE WHEN first_failed_at IS NULL THEN now()
                WHEN NOT $8 THEN first_failed_at
                ELSE greatest(first_failed_at,
                    (SELECT min(created_at) FROM notification_items WHERE {_OF_QUEUE})) END
        WHERE {_OF_QUEUE} AND due_at = $5
        """,  # noqa: S608
        *_key(claim.id),
        claim.until,
        delay,
        error,
        gave_up,
    )


async def queues(tx: AccountReader, user_id: UUID) -> list[Queue]:
    """The queues of a user in the account."""
    rows = await tx.fetch(
        """
        SELECT kind, channel, due_at, attempts, first_failed_at, last_sent_at, failed_at, error,
               (SELECT count(*) FROM notification_items i
                WHERE i.account_id = q.account_id AND i.user_id = q.user_id AND i.kind = q.kind
                  AND i.channel = q.channel) AS waiting
        FROM notification_queues q WHERE account_id = $1 AND user_id = $2
        ORDER BY channel, kind
        """,
        tx.account_id,
        user_id,
    )
    return [Queue(**row) for row in rows]


async def drop_queues(
    tx: AccountTransaction, user_id: UUID, channel: Channel, kinds: Sequence[Kind]
) -> None:
    """Removes what waits in a channel, except for these kinds."""
    await _lock_all(tx, user_id)
    await tx.execute(
        """
        DELETE FROM notification_queues
        WHERE account_id = $1 AND user_id = $2 AND channel = $3 AND kind <> ALL($4::text[])
        """,
        tx.account_id,
        user_id,
        channel,
        list(kinds),
    )
