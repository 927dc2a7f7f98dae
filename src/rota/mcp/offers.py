"""The tools that an agent could use, for a quote."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.mcp.model import is_read_only
from rota.platform.db import AccountReader

# The tools of an account ($1) that match a pattern ($2) and can be used now. Models call a tool
# `server__tool`, and their providers accept no other names.
USABLE = r"""
    FROM mcp_servers s
    JOIN mcp_tools t ON t.account_id = s.account_id AND t.server_id = s.id
    WHERE s.account_id = $1 AND s.status IN ('CONNECTED', 'CHANGED')
        AND t.accepted_hash = t.live_hash
        AND (s.allowed_tools IS NULL OR t.name = ANY (s.allowed_tools))
        AND s.name || '/' || t.name LIKE ANY ($2::text[])
        AND s.name || '__' || t.name ~ '\A[A-Za-z0-9_-]{1,64}\Z'
    ORDER BY s.id, t.position, t.name
"""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    server: str
    name: str
    title: str | None
    read_only: bool

    @property
    def full_name(self) -> str:
        return f"{self.server}/{self.name}"


async def quoted_tools(tx: AccountReader, patterns: Sequence[str]) -> list[OfferedTool]:
    """The tools that match a pattern and can be used now, without their definitions."""
    rows = await tx.fetch(
        f"""
        SELECT s.name AS server, t.name, t.live -> 'annotations' AS annotations,
            coalesce(t.live ->> 'title', t.live -> 'annotations' ->> 'title') AS title
        {USABLE}
        """,
        tx.account_id,
        [like(pattern) for pattern in patterns],
    )
    return [
        OfferedTool(
            row["server"],
            row["name"],
            row["title"],
            read_only=is_read_only({"annotations": row["annotations"]}),
        )
        for row in rows
    ]


def like(pattern: str) -> str:
    """A pattern of an agent's file for LIKE."""
    escaped = pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return escaped.replace("*", "%")
