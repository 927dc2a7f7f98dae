"""Rewraps every sealed value with the current service key, while the service keeps running.

A row is updated only if it still has the value that was read, so a value that the service seals
at the same time is kept. The rotation can be repeated: it skips values that are already current.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from rota.auth import tokens
from rota.mcp import model as mcp
from rota.notifications import model as notifications
from rota.platform import idempotency
from rota.platform.crypto import SealBroken, Vault
from rota.platform.db import Database, owner_connection, record
from rota.webhooks import model as webhooks

log = structlog.get_logger()

_FIRST_ID = "00000000-0000-0000-0000-000000000000"


class Counts(NamedTuple):
    """How many values were rewrapped, and how many could not be opened with any key."""

    rewrapped: int
    unreadable: int


@dataclass(frozen=True, slots=True)
class _SealedColumn:
    """A column of sealed values in an account's table. `select` aliases it as `sealed`."""

    name: str
    select: str
    update: str
    context: Callable[[Mapping[str, Any]], str]
    # The second part of the primary key, and a value before the first one.
    key: str
    first_key: str | bytes
    # Rows of a transaction.
    batch: int = 500


_TOOL_SERVERS = _SealedColumn(
    name="tool servers",
    select="""
        SELECT account_id, id, sealed_headers AS sealed FROM mcp_servers
        WHERE sealed_headers IS NOT NULL AND substring(sealed_headers FOR 9) <> $1
          AND (account_id, id) > ($2, $3)
        ORDER BY account_id, id LIMIT $4
    """,
    update="""
        UPDATE mcp_servers SET sealed_headers = $4
        WHERE account_id = $1 AND id = $2 AND sealed_headers = $3
    """,
    context=lambda row: mcp.seal_context(row["account_id"], row["id"]),
    key="id",
    first_key=_FIRST_ID,
)
_CHAT_URLS = _SealedColumn(
    name="chat webhooks",
    select="""
        SELECT account_id, user_id, sealed_chat_url AS sealed FROM notification_settings
        WHERE sealed_chat_url IS NOT NULL AND substring(sealed_chat_url FOR 9) <> $1
          AND (account_id, user_id) > ($2, $3)
        ORDER BY account_id, user_id LIMIT $4
    """,
    update="""
        UPDATE notification_settings SET sealed_chat_url = $4
        WHERE account_id = $1 AND user_id = $2 AND sealed_chat_url = $3
    """,
    context=lambda row: notifications.seal_context(row["account_id"], row["user_id"]),
    key="user_id",
    first_key=_FIRST_ID,
)
_STORED_RESPONSES = _SealedColumn(
    name="stored responses",
    select="""
        SELECT account_id, key, sealed_body AS sealed FROM idempotency_keys
        WHERE substring(sealed_body FOR 9) <> $1 AND (account_id, key) > ($2, $3)
        ORDER BY account_id, key LIMIT $4
    """,
    update="""
        UPDATE idempotency_keys SET sealed_body = $4
        WHERE account_id = $1 AND key = $2 AND sealed_body = $3
    """,
    context=lambda row: idempotency.seal_context(row["account_id"], row["key"]),
    key="key",
    first_key="",
    # Each can have several MiB.
    batch=20,
)
_WEBHOOK_SECRETS, _OLD_WEBHOOK_SECRETS = (
    _SealedColumn(
        name=name,
        select=f"""
            SELECT account_id, id, {column} AS sealed FROM webhooks
            WHERE {column} IS NOT NULL AND substring({column} FOR 9) <> $1
              AND (account_id, id) > ($2, $3)
            ORDER BY account_id, id LIMIT $4
        """,  # noqa: S608
        update=f"""
            UPDATE webhooks SET {column} = $4 WHERE account_id = $1 AND id = $2 AND {column} = $3
        """,  # noqa: S608
        context=lambda row: webhooks.seal_context(row["account_id"], row["id"]),
        key="id",
        first_key=_FIRST_ID,
    )
    for name, column in (
        ("webhook secrets", "sealed_secret"),
        ("old webhook secrets", "sealed_old_secret"),
    )
)
_OLDER_WEBHOOK_SECRETS = _SealedColumn(
    name="older webhook secrets",
    # A row can have several, so the value is a part of the position.
    select="""
        SELECT account_id, id, sealed FROM webhooks, unnest(sealed_older_secrets) AS sealed
        WHERE substring(sealed FOR 9) <> $1 AND (account_id, sealed) > ($2, $3)
        ORDER BY account_id, sealed LIMIT $4
    """,
    update="""
        UPDATE webhooks SET sealed_older_secrets = array_replace(sealed_older_secrets, $3, $4)
        WHERE account_id = $1 AND $2 = ANY(sealed_older_secrets)
    """,
    context=lambda row: webhooks.seal_context(row["account_id"], row["id"]),
    key="sealed",
    first_key=b"",
)


async def rotate_all(db: Database, owner_url: str, vault: Vault) -> dict[str, Counts]:
    """Rewraps all values. Returns the counts of each kind of value.

    The signing keys are first: they need another login, and without it nothing is rewrapped."""
    return {
        "signing keys": await _rotate_signing_keys(owner_url, vault),
        "tool servers": await _rotate(db, vault, _TOOL_SERVERS),
        "webhook secrets": await _rotate(db, vault, _WEBHOOK_SECRETS),
        "old webhook secrets": await _rotate(db, vault, _OLD_WEBHOOK_SECRETS),
        "older webhook secrets": await _rotate(db, vault, _OLDER_WEBHOOK_SECRETS),
        "chat webhooks": await _rotate(db, vault, _CHAT_URLS),
        "stored responses": await _rotate(db, vault, _STORED_RESPONSES),
    }


async def _rotate(db: Database, vault: Vault, column: _SealedColumn) -> Counts:
    after: tuple[Any, Any] = (_FIRST_ID, column.first_key)
    rewrapped = unreadable = 0
    while True:
        async with db.relay() as connection:
            rows = await connection.fetch(column.select, vault.current, *after, column.batch)
            updates = []
            for row in rows:
                try:
                    sealed = vault.rewrap(row["sealed"], column.context(row))
                except SealBroken as error:
                    unreadable += 1
                    log.warning("sealed_value_unreadable", error=str(error))
                    continue
                updates.append((row["account_id"], row[column.key], row["sealed"], sealed))
            await connection.executemany(column.update, updates)
            if updates:
                connection.record("secrets.rotated", {column.name: len(updates)})
        rewrapped += len(updates)
        if len(rows) < column.batch:
            return Counts(rewrapped, unreadable)
        after = rows[-1]["account_id"], rows[-1][column.key]


async def _rotate_signing_keys(owner_url: str, vault: Vault) -> Counts:
    """Only the owner of the database can write this table."""
    rewrapped = unreadable = 0
    async with owner_connection(owner_url) as connection, connection.transaction():
        for row in await connection.fetch("SELECT kid, sealed_private FROM signing_keys"):
            kid, sealed = row["kid"], row["sealed_private"]
            if vault.is_current(sealed):
                continue
            try:
                current = vault.rewrap(sealed, tokens.seal_context(kid))
            except SealBroken as error:
                unreadable += 1
                log.warning("sealed_value_unreadable", error=str(error))
                continue
            await connection.execute(
                "UPDATE signing_keys SET sealed_private = $3"
                " WHERE kid = $1 AND sealed_private = $2",
                kid,
                sealed,
                current,
            )
            rewrapped += 1
        if rewrapped:
            await record(connection, "secrets.rotated", {"signing keys": rewrapped})
    return Counts(rewrapped, unreadable)
