"""Rotates the keys that sign session tokens. Only operator commands use this module."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from rota.auth import signing_key_queries
from rota.auth.signing_key_queries import SigningKeyRow
from rota.auth.tokens import LIFETIME_S, add_key, seal_context
from rota.platform.crypto import Vault
from rota.platform.db import owner_connection, record
from rota.platform.settings import DAY_S, Settings


async def rotate(database_url: str, vault: Vault, *, overlap_s: int) -> str:
    """Adds a new signing key. Tokens of older keys stay valid for `overlap_s` seconds."""
    kid = secrets.token_hex(6)
    async with owner_connection(database_url) as connection, connection.transaction():
        if overlap_s:
            # Running processes could not read a key that another secret key has sealed.
            _check_vault(await signing_key_queries.current(connection), vault)
        await signing_key_queries.retire(connection, overlap_s)
        await add_key(connection, vault, kid)
        await record(connection, "signing_key.rotated", {"kid": kid, "overlapS": overlap_s})
    return kid


async def retire_others(
    database_url: str, vault: Vault, kept: Sequence[str], before: datetime
) -> list[str]:
    """Retires the signing keys from before a time that are not among these. For a restore: they
    were retired later, perhaps because one had leaked. Their names."""
    async with owner_connection(database_url) as connection, connection.transaction():
        rows = await connection.fetch(
            """
            UPDATE signing_keys SET retires_at = now()
            WHERE kid <> ALL($1) AND created_at < $2 AND (retires_at IS NULL OR retires_at > now())
            RETURNING kid
            """,
            list(kept),
            before,
        )
        retired = [row["kid"] for row in rows]
        if retired and not await signing_key_queries.current(connection):
            await add_key(connection, vault, secrets.token_hex(6))
        if retired:
            await record(connection, "signing_key.retired", {"kids": retired})
    return retired


async def ensure_key(database_url: str, vault: Vault) -> None:
    """Creates the first signing key of a new database."""
    async with owner_connection(database_url) as connection, connection.transaction():
        await connection.execute("LOCK TABLE signing_keys IN EXCLUSIVE MODE")
        found = await signing_key_queries.current(connection)
        _check_vault(found, vault)
        if not found:
            kid = secrets.token_hex(6)
            await add_key(connection, vault, kid)
            await record(connection, "signing_key.created", {"kid": kid})


def _check_vault(keys: Sequence[SigningKeyRow], vault: Vault) -> None:
    """Fails with SealBroken if this is not the secret key of the running service."""
    for key in keys:
        vault.open(key.sealed_private, seal_context(key.kid))


def default_overlap_s(settings: Settings) -> int:
    """How long an expired token can still be refreshed. Its key has to last as long."""
    return LIFETIME_S + settings.session_idle_days * DAY_S
