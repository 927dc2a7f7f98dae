"""Rotates the keys that sign session tokens. Only operator commands use this module."""

import secrets

from rota.auth import queries
from rota.auth.tokens import LIFETIME_S, add_key
from rota.platform.crypto import Vault
from rota.platform.db import owner_connection
from rota.platform.settings import DAY_S, Settings


async def rotate(database_url: str, vault: Vault, *, overlap_s: int) -> str:
    """Adds a new signing key. Tokens of older keys stay valid for `overlap_s` seconds."""
    kid = secrets.token_hex(6)
    async with owner_connection(database_url) as connection, connection.transaction():
        await queries.retire_signing_keys(connection, overlap_s)
        await add_key(connection, vault, kid)
    return kid


async def ensure_key(database_url: str, vault: Vault) -> None:
    """Creates the first signing key of a new database."""
    async with owner_connection(database_url) as connection, connection.transaction():
        await connection.execute("LOCK TABLE signing_keys IN EXCLUSIVE MODE")
        if not await queries.signing_keys(connection):
            await add_key(connection, vault, secrets.token_hex(6))


def default_overlap_s(settings: Settings) -> int:
    """How long an expired token can still be refreshed. Its key has to last as long."""
    return LIFETIME_S + settings.session_idle_days * DAY_S
