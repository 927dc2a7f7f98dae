"""SQL of webhooks: what clients read and change. A transaction that locks a webhook and the account
locks the account first."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from rota.events.access import EventVisibility
from rota.platform.db import AccountReader, AccountTransaction
from rota.webhooks.model import HOLD_S, TEST_TYPE, Delivery, DisabledReason, Webhook

_NAMES = tuple(field.name for field in fields(Webhook))
COLUMNS = ", ".join(_NAMES)
_values = attrgetter(*_NAMES)
_INSERT = f"""
    INSERT INTO webhooks (account_id, {COLUMNS})
    VALUES ($1, {", ".join(f"${number}" for number in range(2, 2 + len(_NAMES)))})
"""  # noqa: S608
_DELIVERY_COLUMNS = ", ".join(field.name for field in fields(Delivery))

# A worker that is sending notices the new revision, stops, and makes the row due. Otherwise the row
# is due at once.
_CHANGED = """
    revision = revision + 1, updated_at = now(),
    due_at = CASE WHEN NOT enabled THEN NULL
                  WHEN leased_until > now() THEN due_at ELSE now() END
"""
_UNCLAIMED = "disabled_reason IN ('member_removed', 'key_ended')"
# Nothing fails any more.
_SUCCEEDS = "attempts = 0, failing_since = NULL, behind_since = NULL, last_error = NULL"


async def count(tx: AccountReader) -> int:
    found: int = await tx.fetchval(
        "SELECT count(*) FROM webhooks WHERE account_id = $1", tx.account_id
    )
    return found


async def all_of(tx: AccountReader) -> list[Webhook]:
    """Newest first."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM webhooks WHERE account_id = $1 ORDER BY id DESC",  # noqa: S608
        tx.account_id,
    )
    return [Webhook(**row) for row in rows]


async def find(tx: AccountReader, webhook_id: UUID, *, for_change: bool = False) -> Webhook | None:
    lock = "FOR UPDATE" if for_change else ""
    row = await tx.fetchrow(
        f"SELECT {COLUMNS} FROM webhooks WHERE account_id = $1 AND id = $2 {lock}",  # noqa: S608
        tx.account_id,
        webhook_id,
    )
    return Webhook(**row) if row else None


async def revisions(tx: AccountReader) -> dict[UUID, tuple[int, UUID | None]]:
    """The revision of each enabled webhook, and the API key that chose its URL."""
    rows = await tx.fetch(
        "SELECT id, revision, saved_with FROM webhooks WHERE account_id = $1 AND enabled",
        tx.account_id,
    )
    return {row["id"]: (row["revision"], row["saved_with"]) for row in rows}


async def insert(tx: AccountTransaction, webhook: Webhook) -> None:
    await tx.execute(_INSERT, tx.account_id, *_values(webhook))


async def change(tx: AccountTransaction, webhook: Webhook) -> Webhook:
    """Saves what a client can change. Failures of another URL do not count for the new one."""
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET url = $3, description = $4, events = $5, families = $6, saved_by = $7,
            saved_with = $8,
            attempts = CASE WHEN url = $3 THEN attempts ELSE 0 END,
            failing_since = CASE WHEN url = $3 THEN failing_since END,
            behind_since = CASE WHEN url = $3 THEN behind_since END,
            last_error = CASE WHEN url = $3 THEN last_error END,
            {_CHANGED}
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook.id,
        webhook.url,
        webhook.description,
        webhook.events,
        webhook.families,
        webhook.saved_by,
        webhook.saved_with,
    )
    return Webhook(**row)


async def enable(
    tx: AccountTransaction, webhook_id: UUID, by: UUID, key_id: UUID | None, *, unclaimed: bool
) -> Webhook:
    """If nobody is responsible for the URL any more, it is the user and the key that enable it.
    `unclaimed`: this has become so while the webhook was disabled."""
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL,
            saved_by = CASE WHEN $5 OR {_UNCLAIMED} THEN $3 ELSE saved_by END,
            saved_with = CASE WHEN $5 OR {_UNCLAIMED} THEN $4 ELSE saved_with END,
            {_SUCCEEDS}, revision = revision + 1, updated_at = now(),
            due_at = now() + make_interval(
                secs => CASE WHEN leased_until > now() THEN {HOLD_S} ELSE 0 END)
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook_id,
        by,
        key_id,
        unclaimed,
    )
    return Webhook(**row)


async def retry(tx: AccountTransaction, webhook_id: UUID) -> Webhook:
    """Tries a failed delivery again at once. A worker that is trying continues."""
    # Read in `tests/audit`: an update that begins this way does not count as a change.
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET due_at = CASE WHEN leased_until > now() THEN due_at ELSE now() END
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook_id,
    )
    return Webhook(**row)


async def disable(tx: AccountTransaction, webhook_id: UUID, reason: DisabledReason) -> Webhook:
    """A worker that is sending keeps the lease until it notices, so that no other one sends."""
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET enabled = false, disabled_reason = $3, disabled_at = now(),
            revision = revision + 1, due_at = NULL, updated_at = now()
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook_id,
        reason,
    )
    return Webhook(**row)


async def disable_of(tx: AccountTransaction, user_id: UUID) -> list[UUID]:
    """Disables the webhooks that a user saved last. Their IDs."""
    rows = await tx.fetch(
        """
        UPDATE webhooks SET enabled = false, disabled_reason = 'member_removed',
            disabled_at = now(), revision = revision + 1, due_at = NULL, updated_at = now()
        WHERE account_id = $1 AND saved_by = $2 AND enabled RETURNING id
        """,
        tx.account_id,
        user_id,
    )
    return [row["id"] for row in rows]


async def move(tx: AccountTransaction, webhook_id: UUID, confirmed: int) -> Webhook:
    """Continues after another event, earlier or later. A disabled webhook stays disabled."""
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET confirmed_sequence = $3, previous_sequence = $3, {_SUCCEEDS},
            skipped_from = NULL, skipped_to = NULL, {_CHANGED}
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook_id,
        confirmed,
    )
    return Webhook(**row)


async def skip(tx: AccountTransaction, claimed: Webhook, first: int, last: int) -> bool:
    """Moves on after events that are no longer stored. False: another worker has the webhook."""
    moved = await tx.fetchval(
        f"""
        UPDATE webhooks SET confirmed_sequence = $5, previous_sequence = $5, {_SUCCEEDS},
            skipped_from = coalesce(skipped_from, $4), skipped_to = $5
        WHERE account_id = $1 AND id = $2 AND leased_until = $3 AND revision = $6 RETURNING true
        """,  # noqa: S608
        tx.account_id,
        claimed.id,
        claimed.leased_until,
        first,
        last,
        claimed.revision,
    )
    return bool(moved)


async def set_secret(
    tx: AccountTransaction,
    webhook_id: UUID,
    sealed: bytes,
    old: Sequence[tuple[bytes, datetime]],
) -> Webhook:
    """Each of the `old` secrets also signs until its time, the newest first. Others are
    forgotten."""
    newest, until = old[0] if old else (None, None)
    row = await tx.fetchrow(
        f"""
        UPDATE webhooks SET sealed_secret = $3, sealed_old_secret = $4, old_secret_until = $5,
            sealed_older_secrets = $6, older_secrets_until = $7,
            revision = revision + 1, updated_at = now()
        WHERE account_id = $1 AND id = $2 RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        webhook_id,
        sealed,
        newest,
        until,
        [each for each, _ in old[1:]],
        [end for _, end in old[1:]],
    )
    return Webhook(**row)


async def delete(tx: AccountTransaction, webhook_id: UUID) -> bool:
    """Deletes the webhook and its deliveries."""
    deleted = await tx.fetchval(
        "DELETE FROM webhooks WHERE account_id = $1 AND id = $2 RETURNING true",
        tx.account_id,
        webhook_id,
    )
    return bool(deleted)


async def deliveries(
    tx: AccountReader,
    webhook_id: UUID,
    visibility: EventVisibility,
    delivered: bool | None,
    limit: int,
    offset: int,
) -> tuple[list[Delivery], int]:
    """Those of events that the caller sees, newest first, and how many there are."""
    families = (
        None if visibility.families is None else [*visibility.families, TEST_TYPE.partition(".")[0]]
    )
    arguments = (tx.account_id, webhook_id, delivered, families, list(visibility.hidden))
    matching = """
        FROM webhook_deliveries
        WHERE account_id = $1 AND webhook_id = $2 AND ($3::boolean IS NULL OR delivered = $3)
          AND ($4::text[] IS NULL OR split_part(type, '.', 1) = ANY($4))
          AND split_part(type, '.', 1) <> ALL($5::text[])
    """
    rows = await tx.fetch(
        f"SELECT {_DELIVERY_COLUMNS} {matching} ORDER BY id DESC LIMIT $6 OFFSET $7",
        *arguments,
        limit,
        offset,
    )
    # Only the newest thousand are kept, so that they can be counted.
    total = await tx.fetchval(f"SELECT count(*) {matching}", *arguments)
    return [Delivery(**row) for row in rows], total
