"""The tool servers whose check is due."""

from uuid import UUID

from rota.platform.db import WriteConnection


async def claim(
    connection: WriteConnection, limit: int, per_account: int, claim_s: float
) -> tuple[list[tuple[UUID, UUID]], bool]:
    """Claims due servers of all accounts, and says whether more are due.

    At most `per_account` of one account, so that its servers do not delay those of others. Claimed
    servers are due again after `claim_s`.
    """
    rows = await connection.fetch(
        """
        WITH oldest AS (
            SELECT account_id, id, check_due_at FROM mcp_servers WHERE check_due_at <= now()
            ORDER BY check_due_at LIMIT 20 * $1
        ), ranked AS (
            SELECT account_id, id, check_due_at,
                row_number() OVER (PARTITION BY account_id ORDER BY check_due_at, id) AS place
            FROM oldest
        ), due AS (
            SELECT s.account_id, s.id FROM mcp_servers s JOIN ranked r USING (account_id, id)
            WHERE r.place <= $2 AND s.check_due_at <= now()
            ORDER BY r.place, r.check_due_at LIMIT $1 FOR UPDATE OF s SKIP LOCKED
        )
        UPDATE mcp_servers s SET check_due_at = now() + make_interval(secs => $3)
        FROM due WHERE s.account_id = due.account_id AND s.id = due.id
        RETURNING s.account_id, s.id, (SELECT count(*) FROM oldest) AS found
        """,
        limit,
        per_account,
        claim_s,
    )
    more = bool(rows) and rows[0]["found"] > len(rows)
    return [(row["account_id"], row["id"]) for row in rows], more
