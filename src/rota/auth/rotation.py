"""Rotates the keys that sign session tokens. Only operator commands use this module."""

import secrets
from collections.abc import Sequence

from rota.auth import queries
from rota.auth.queries import SigningKeyRow
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
            _check_vault(await queries.signing_keys(connection), vault)
        await queries.retire_signing_keys(connection, overlap_s)
        await add_key(connection, vault, kid)
        await record(connection, "signing_key.rotated", {"kid": kid, "overlapS": overlap_s})
    return kid


async def ensure_key(database_url: str, vault: Vault) -> None:
    """Creates the first signing key of a new database."""
    async with owner_connection(database_url) as connection, connection.transaction():
        await connection.execute("LOCK TABLE signing_keys IN EXCLUSIVE MODE")
        found = await queries.signing_keys(connection)
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
