"""Rotating the keys that sign session tokens: an operator's command, never a request."""

import secrets

from rota.auth import queries
from rota.auth.tokens import LIFETIME_S, add_key
from rota.platform.crypto import Vault
from rota.platform.db import owner_connection
from rota.platform.settings import DAY_S, Settings


async def rotate(database_url: str, vault: Vault, *, overlap_s: int) -> str:
    """Adds a key that signs from now on; older ones verify for `overlap_s` more."""
    kid = secrets.token_hex(6)
    async with owner_connection(database_url) as connection, connection.transaction():
        await queries.retire_signing_keys(connection, overlap_s)
        await add_key(connection, vault, kid)
    return kid


async def ensure_key(database_url: str, vault: Vault) -> None:
    """Makes the first key of a new database."""
    async with owner_connection(database_url) as connection, connection.transaction():
        await connection.execute("LOCK TABLE signing_keys IN EXCLUSIVE MODE")
        if not await queries.signing_keys(connection):
            await add_key(connection, vault, secrets.token_hex(6))


def default_overlap_s(settings: Settings) -> int:
    """An old token can be refreshed for as long as its session lives; its key must last as long."""
    return LIFETIME_S + settings.session_idle_days * DAY_S
