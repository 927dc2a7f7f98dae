"""SQL for the addresses that issuers have verified, which are stored with the sessions."""

from uuid import UUID

from rota.platform.db import ReadConnection


async def of_session(connection: ReadConnection, user_id: UUID, session_id: UUID) -> str | None:
    """The address that the issuer had verified when the session began."""
    found: str | None = await connection.fetchval(
        "SELECT verified_email FROM sessions WHERE user_id = $1 AND id = $2", user_id, session_id
    )
    return found


async def of_user(connection: ReadConnection, user_id: UUID) -> list[str]:
    """All addresses that issuers have verified for the user. Needs a transaction of that user."""
    rows = await connection.fetch(
        """
        SELECT DISTINCT verified_email FROM sessions
        WHERE user_id = $1 AND verified_email IS NOT NULL
        """,
        user_id,
    )
    return [row["verified_email"] for row in rows]
