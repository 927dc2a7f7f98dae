"""Exchanging the service key: everything sealed is wrapped anew, while the service works on.

A row is written only if it still holds what was read, so a value that somebody
seals meanwhile stays. Running it again is safe, and does what is left.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog

from rota.auth import tokens
from rota.mcp.model import seal_context
from rota.platform import idempotency
from rota.platform.crypto import SealBroken, Vault
from rota.platform.db import Database, WriteConnection, owner_connection

log = structlog.get_logger()

BATCH = 500

_SERVERS = """
    SELECT account_id, id, sealed_headers FROM mcp_servers
    WHERE sealed_headers IS NOT NULL AND substring(sealed_headers FOR 9) <> $1
      AND (account_id, id) > ($2, $3)
    ORDER BY account_id, id LIMIT $4
"""
_ANSWERS = """
    SELECT account_id, key, sealed_body FROM idempotency_keys
    WHERE substring(sealed_body FOR 9) <> $1 AND (account_id, key) > ($2, $3)
    ORDER BY account_id, key LIMIT $4
"""
_NOBODY = "00000000-0000-0000-0000-000000000000"

Open = Callable[[], AbstractAsyncContextManager[WriteConnection]]


async def rotate_all(db: Database, owner_url: str, vault: Vault) -> dict[str, tuple[int, int]]:
    """How many values of each kind were wrapped anew, and how many open with no key."""
    return {
        "tool servers": await _rotate(
            db.relay,
            vault,
            _SERVERS,
            "UPDATE mcp_servers SET sealed_headers = $4"
            " WHERE account_id = $1 AND id = $2 AND sealed_headers = $3",
            lambda row: seal_context(row[0], row[1]),
            (_NOBODY, _NOBODY),
        ),
        "kept answers": await _rotate(
            db.relay,
            vault,
            _ANSWERS,
            "UPDATE idempotency_keys SET sealed_body = $4"
            " WHERE account_id = $1 AND key = $2 AND sealed_body = $3",
            lambda row: idempotency.seal_context(row[0], row[1]),
            (_NOBODY, ""),
        ),
        "signing keys": await _rotate_signing_keys(owner_url, vault),
    }


async def _rotate(
    open_transaction: Open,
    vault: Vault,
    select: str,
    update: str,
    context_of: Callable[[Any], str],
    first: tuple[str, str],
) -> tuple[int, int]:
    after: tuple[Any, Any] = first
    wrapped = broken = 0
    while True:
        async with open_transaction() as connection:
            rows = await connection.fetch(select, vault.current, *after, BATCH)
            anew = []
            for row in rows:
                try:
                    anew.append((*row, vault.rewrap(row[2], context_of(row))))
                except SealBroken as error:
                    broken += 1
                    log.warning("a sealed value opens with no key", reason=str(error))
            await connection.executemany(update, anew)
        wrapped += len(anew)
        if len(rows) < BATCH:
            return wrapped, broken
        after = rows[-1][0], rows[-1][1]


async def _rotate_signing_keys(owner_url: str, vault: Vault) -> tuple[int, int]:
    """Only the owner of the database writes these."""
    wrapped = broken = 0
    async with owner_connection(owner_url) as connection:
        for kid, sealed in await connection.fetch("SELECT kid, sealed_private FROM signing_keys"):
            if vault.is_current(sealed):
                continue
            try:
                rewrapped = vault.rewrap(sealed, tokens.seal_context(kid))
            except SealBroken:
                broken += 1
                continue
            await connection.execute(
                "UPDATE signing_keys SET sealed_private = $3"
                " WHERE kid = $1 AND sealed_private = $2",
                kid,
                sealed,
                rewrapped,
            )
            wrapped += 1
    return wrapped, broken
