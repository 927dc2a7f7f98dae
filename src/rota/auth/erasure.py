"""Ends every session and API key of an account that is erased."""

from datetime import datetime
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.transactions import execute_count


async def signed_in_at(tx: AccountReader, session_id: UUID) -> datetime | None:
    """When the transaction's user started the session. A refresh does not change it."""
    found: datetime | None = await tx.fetchval(
        """
        SELECT created_at FROM sessions WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL
        """,
        tx.user_id,
        session_id,
    )
    return found


async def revoke_sessions(tx: AccountTransaction) -> list[UUID]:
    """Ends all sessions of the transaction's user. Their IDs."""
    rows = await tx.fetch(
        """
        UPDATE sessions SET revoked_at = now() WHERE user_id = $1 AND revoked_at IS NULL
        RETURNING id
        """,
        tx.user_id,
    )
    return [row["id"] for row in rows]


async def delete_keys(tx: AccountTransaction) -> list[bytes]:
    """Deletes all API keys of the account. The hashes of their secrets."""
    rows = await tx.fetch(
        """
        WITH key AS (DELETE FROM api_keys WHERE account_id = $1 RETURNING secret_hash)
        DELETE FROM api_key_hashes USING key WHERE api_key_hashes.secret_hash = key.secret_hash
        RETURNING key.secret_hash
        """,
        tx.account_id,
    )
    return [row["secret_hash"] for row in rows]


async def delete_sessions(tx: AccountTransaction) -> int:
    """Deletes the rows of the user's sessions. Only background work can."""
    return await execute_count(tx, "DELETE FROM sessions WHERE user_id = $1", tx.user_id)
