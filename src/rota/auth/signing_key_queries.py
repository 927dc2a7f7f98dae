"""SQL for the keys that sign session tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rota.platform.db import ReadConnection, WriteConnection


@dataclass(frozen=True, slots=True)
class SigningKeyRow:
    kid: str
    sealed_private: bytes
    created_at: datetime


async def current(connection: ReadConnection) -> list[SigningKeyRow]:
    """The signing keys that are not retired, the newest first."""
    rows = await connection.fetch(
        """
        SELECT kid, sealed_private, created_at FROM signing_keys
        WHERE retires_at IS NULL OR retires_at > now()
        ORDER BY created_at DESC, kid
        """
    )
    return [SigningKeyRow(**row) for row in rows]


async def insert(
    connection: WriteConnection, kid: str, public_jwk: dict[str, Any], sealed: bytes
) -> None:
    await connection.execute(
        "INSERT INTO signing_keys (kid, public_jwk, sealed_private) VALUES ($1, $2, $3)",
        kid,
        public_jwk,
        sealed,
    )


async def retire(connection: WriteConnection, after_s: int) -> None:
    """Makes every key retire after `after_s` seconds, unless it retires sooner."""
    await connection.execute(
        """
        UPDATE signing_keys SET retires_at = now() + make_interval(secs => $1)
        WHERE retires_at IS NULL OR retires_at > now() + make_interval(secs => $1)
        """,
        after_s,
    )
