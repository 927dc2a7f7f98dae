"""The tools that an agent can use now, with their definitions.

Every model call needs the whole definitions of all tools, which rarely change. So a worker keeps
the latest ones, by their hashes, and the runs that use a tool share one definition of it.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rota.mcp.model import Definition, Server, ServerTool
from rota.mcp.offers import USABLE, like
from rota.mcp.queries import SERVER, TOOL_STATE, server_of, tool_of
from rota.platform.cache import SizedCache
from rota.platform.db import AccountReader

# Of the definitions that are kept, as JSON, and what each one has besides. Their objects need about
# ten times as much memory.
MAX_KEPT_BYTES = 4 * 1024 * 1024
ENTRY_BYTES = 200

Key = tuple[UUID, str]
# A definition that must not be changed, and its size as JSON.
Kept = tuple[Definition, int]


class UsableTools:
    def __init__(self) -> None:
        self._kept: SizedCache[Key, Kept] = SizedCache(MAX_KEPT_BYTES)

    async def find(
        self, tx: AccountReader, patterns: Sequence[str], max_bytes: int
    ) -> list[tuple[Server, ServerTool]]:
        """The tools that match a pattern and can be used now, on servers that respond.

        The definitions that would exceed `max_bytes` in total are None.
        """
        rows = await tx.fetch(
            f"SELECT {SERVER}, {TOOL_STATE} {USABLE}",
            tx.account_id,
            [like(pattern) for pattern in patterns],
        )
        definitions = await self._definitions(tx, rows, max_bytes)
        found = []
        for row in rows:
            definition, size = definitions.get(row["live_hash"], (None, max_bytes + 1))
            max_bytes -= size
            live = definition if max_bytes >= 0 else None
            found.append((server_of(row), tool_of({**row, "live": live, "accepted": None})))
        return found

    async def _definitions(
        self, tx: AccountReader, rows: Sequence[Any], max_bytes: int
    ) -> dict[str, Kept]:
        """Those of these tools, by their hashes. Without those that would exceed `max_bytes`."""
        definitions: dict[str, Kept] = {}
        missing: dict[str, tuple[UUID, str]] = {}
        for row in rows:
            live_hash = row["live_hash"]
            if (kept := self._kept.get((tx.account_id, live_hash))) is not None:
                definitions[live_hash] = kept
            else:
                missing[live_hash] = row["id"], row["tool_name"]
        if missing:
            for live_hash, definition, size in await _read(tx, list(missing.values()), max_bytes):
                definitions[live_hash] = kept = definition, size
                self._kept.put((tx.account_id, live_hash), kept, size + ENTRY_BYTES)
        return definitions


async def _read(
    tx: AccountReader, tools: Sequence[tuple[UUID, str]], max_bytes: int
) -> list[tuple[str, Definition, int]]:
    """The hashes, definitions and sizes of these tools, as far as they have at most `max_bytes`."""
    rows = await tx.fetch(
        """
        SELECT live_hash, CASE WHEN sum(size) OVER (ORDER BY number) <= $4 THEN live END AS live,
            size
        FROM (
            SELECT t.live_hash, t.live, octet_length(t.live::text) AS size, number
            FROM unnest($2::uuid[], $3::text[]) WITH ORDINALITY AS wanted (server_id, name, number)
            JOIN mcp_tools t ON t.account_id = $1
                AND t.server_id = wanted.server_id AND t.name = wanted.name
        ) tools
        """,
        tx.account_id,
        [server_id for server_id, _ in tools],
        [name for _, name in tools],
        max_bytes,
    )
    return [tuple(row.values()) for row in rows if row["live"] is not None]
