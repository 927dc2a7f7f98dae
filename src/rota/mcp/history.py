"""The history of a tool server's status, for people who look for the time of an outage."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rota.mcp.model import Status
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid

MAX_CHECKS = 500
# While the status stays the same, a check within this time after the last one adds nothing. So
# calls that fail in quick succession do not write rows, and do not push out older ones.
INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PastCheck:
    checked_at: datetime
    status: Status
    latency_ms: float | None
    error: str | None


async def add(
    tx: AccountTransaction,
    server_id: UUID,
    status: Status,
    *,
    error: str | None = None,
    latency_ms: float | None = None,
) -> None:
    """Adds the status of a locked server, and deletes what is too old."""
    added = await tx.fetchval(
        """
        INSERT INTO mcp_checks (account_id, server_id, id, checked_at, status, latency_ms, error)
        SELECT $1, $2, $3, clock_timestamp(), $4, $5, $6
        WHERE NOT EXISTS (
            SELECT FROM (
                SELECT status, checked_at FROM mcp_checks WHERE account_id = $1 AND server_id = $2
                ORDER BY id DESC LIMIT 1
            ) AS last
            WHERE status = $4 AND checked_at > clock_timestamp() - $7::interval
        )
        RETURNING true
        """,
        tx.account_id,
        server_id,
        new_uuid(),
        status,
        latency_ms,
        error,
        INTERVAL,
    )
    if added:
        await tx.execute(
            """
            DELETE FROM mcp_checks WHERE account_id = $1 AND server_id = $2 AND id <= (
                SELECT id FROM mcp_checks WHERE account_id = $1 AND server_id = $2
                ORDER BY id DESC LIMIT 1 OFFSET $3
            )
            """,
            tx.account_id,
            server_id,
            MAX_CHECKS,
        )


async def page(
    tx: AccountReader, server_id: UUID, limit: int, offset: int
) -> tuple[list[PastCheck], int]:
    """A page of checks, newest first, and their number. Needs a snapshot."""
    total: int = await tx.fetchval(
        "SELECT count(*) FROM mcp_checks WHERE account_id = $1 AND server_id = $2",
        tx.account_id,
        server_id,
    )
    rows = await tx.fetch(
        """
        SELECT checked_at, status, latency_ms, error FROM mcp_checks
        WHERE account_id = $1 AND server_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4
        """,
        tx.account_id,
        server_id,
        limit,
        offset,
    )
    return [PastCheck(**row) for row in rows], total
