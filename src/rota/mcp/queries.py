"""SQL for tool servers and their tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.mcp.model import (
    Acceptance,
    AcceptedDefinition,
    ListedDefinition,
    Server,
    ServerTool,
    Status,
)
from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction

# All fields except those that are not columns.
_SERVER_FIELDS = tuple(
    each.name for each in fields(Server) if each.name not in ("tool_count", "missing_tools")
)
SERVER = ", ".join(f"s.{field}" for field in _SERVER_FIELDS)
_LIVE_TOOLS = (
    "FROM mcp_tools t WHERE t.account_id = s.account_id AND t.server_id = s.id"
    " AND t.live_hash IS NOT NULL"
)
_COUNTS = (
    f"(SELECT count(*) {_LIVE_TOOLS}) AS tool_count,"  # noqa: S608
    " ARRAY(SELECT a.name FROM unnest(s.allowed_tools) WITH ORDINALITY AS a (name, position)"
    f" WHERE a.name NOT IN (SELECT t.name {_LIVE_TOOLS}) ORDER BY a.position) AS missing_tools"
)
# `tool_name`, because a joined row also has the server's name.
TOOL_STATE = (
    "t.name AS tool_name, t.accepted_hash, t.live_hash,"
    " t.accepted_by, t.accepted_with, t.accepted_at"
)
# Most tools have one definition, so it is read once.
_TOOL = (
    f"{TOOL_STATE}, t.live,"
    " CASE WHEN t.accepted_hash IS DISTINCT FROM t.live_hash THEN t.accepted END AS accepted"
)
_NO_DEFINITIONS = "NULL AS live, NULL AS accepted"


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of servers in an account, and whether one has a given name or URL."""

    server_count: int
    name_taken: bool
    url_taken: bool


def server_of(row: Any) -> Server:
    """The server of a row that also has the columns of a tool. It has no counts."""
    return Server(**{field: row[field] for field in _SERVER_FIELDS})


def tool_of(row: Any) -> ServerTool:
    same = row["accepted_hash"] is not None and row["accepted_hash"] == row["live_hash"]
    return ServerTool(
        name=row["tool_name"],
        accepted=row["live"] if same else row["accepted"],
        accepted_hash=row["accepted_hash"],
        live=row["live"],
        live_hash=row["live_hash"],
        acceptance=_acceptance(row),
    )


def _acceptance(row: Any) -> Acceptance | None:
    if row["accepted_by"] is None:
        return None
    credential = row["accepted_with"]
    key = credential["keyId"]
    return Acceptance(
        user_id=row["accepted_by"],
        name=credential["name"],
        key_id=ids.from_wire("key", key) if key else None,
        at=row["accepted_at"],
    )


def _credential(acceptance: Acceptance) -> dict[str, Any]:
    key = acceptance.key_id
    return {
        "name": acceptance.name,
        "via": "key" if key else "session",
        "keyId": ids.to_wire("key", key) if key else None,
    }


async def all_servers(tx: AccountReader) -> list[Server]:
    rows = await tx.fetch(
        f"SELECT {SERVER}, {_COUNTS} FROM mcp_servers s WHERE s.account_id = $1 ORDER BY s.id",  # noqa: S608
        tx.account_id,
    )
    return [Server(**row) for row in rows]


async def find(tx: AccountReader, server_id: UUID) -> Server | None:
    row = await tx.fetchrow(
        f"SELECT {SERVER}, {_COUNTS} FROM mcp_servers s WHERE s.account_id = $1 AND s.id = $2",  # noqa: S608
        tx.account_id,
        server_id,
    )
    return Server(**row) if row else None


async def lock(tx: AccountTransaction, server_id: UUID) -> Server | None:
    """Finds the server and locks it until the transaction ends."""
    row = await tx.fetchrow(
        f"""
        SELECT {SERVER}, {_COUNTS} FROM mcp_servers s
        WHERE s.account_id = $1 AND s.id = $2 FOR UPDATE
        """,  # noqa: S608
        tx.account_id,
        server_id,
    )
    return Server(**row) if row else None


async def find_with_tool(
    tx: AccountReader, server_id: UUID, tool: str
) -> tuple[Server, ServerTool | None] | None:
    row = await tx.fetchrow(
        f"""
        SELECT {SERVER}, {_TOOL} FROM mcp_servers s
        LEFT JOIN mcp_tools t
            ON t.account_id = s.account_id AND t.server_id = s.id AND t.name = $3
        WHERE s.account_id = $1 AND s.id = $2
        """,  # noqa: S608
        tx.account_id,
        server_id,
        tool,
    )
    if row is None:
        return None
    return server_of(row), tool_of(row) if row["tool_name"] is not None else None


async def tools_of(tx: AccountReader, server_id: UUID) -> list[ServerTool]:
    rows = await tx.fetch(
        f"""
        SELECT {_TOOL} FROM mcp_tools t WHERE t.account_id = $1 AND t.server_id = $2
        ORDER BY t.position, t.name
        """,  # noqa: S608
        tx.account_id,
        server_id,
    )
    return [tool_of(row) for row in rows]


async def tool_states(tx: AccountReader, server_id: UUID) -> list[ServerTool]:
    """The tools with the hashes of their definitions, but without the definitions."""
    rows = await tx.fetch(
        f"""
        SELECT {TOOL_STATE}, {_NO_DEFINITIONS} FROM mcp_tools t
        WHERE t.account_id = $1 AND t.server_id = $2 ORDER BY t.position, t.name
        """,  # noqa: S608
        tx.account_id,
        server_id,
    )
    return [tool_of(row) for row in rows]


async def definition_bytes(tx: AccountReader) -> int:
    """The size of all definitions that the account stores."""
    size: int = await tx.fetchval(
        """
        SELECT coalesce(sum(octet_length(live::text)), 0)
            + coalesce(sum(octet_length(accepted::text))
                FILTER (WHERE accepted_hash IS DISTINCT FROM live_hash), 0)
        FROM mcp_tools WHERE account_id = $1
        """,
        tx.account_id,
    )
    return int(size)


async def accepted_definitions(
    tx: AccountReader, tools: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str], AcceptedDefinition]:
    """The accepted definitions of these tools, by server and name."""
    rows = await tx.fetch(
        """
        SELECT server_id, t.name, accepted_hash, accepted_by, accepted_with, accepted_at, shaped_by
        FROM mcp_tools t JOIN unnest($2::uuid[], $3::text[]) AS wanted (server_id, name)
            USING (server_id, name)
        JOIN mcp_servers s ON s.account_id = $1 AND s.id = server_id
        WHERE t.account_id = $1 AND accepted_hash IS NOT NULL
        """,
        tx.account_id,
        [server_id for server_id, _ in tools],
        [name for _, name in tools],
    )
    return {
        (row["server_id"], row["name"]): AcceptedDefinition(
            row["accepted_hash"], _acceptance(row), row["shaped_by"]
        )
        for row in rows
    }


async def revisions(tx: AccountReader, server_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The revisions of those of these servers that exist."""
    rows = await tx.fetch(
        "SELECT id, revision FROM mcp_servers WHERE account_id = $1 AND id = ANY($2)",
        tx.account_id,
        list(server_ids),
    )
    return {row["id"]: row["revision"] for row in rows}


async def usage(tx: AccountReader, name: str, url: str, *, without: UUID | None = None) -> Usage:
    """The servers of the account, without the one that is about to change."""
    row = await tx.fetchrow(
        """
        SELECT count(*) AS server_count,
            coalesce(bool_or(name = $2), false) AS name_taken,
            coalesce(bool_or(url = $3), false) AS url_taken
        FROM mcp_servers WHERE account_id = $1 AND id IS DISTINCT FROM $4
        """,
        tx.account_id,
        name,
        url,
        without,
    )
    return Usage(**row)


async def insert(tx: AccountTransaction, server: Server, check_due_at: datetime) -> None:
    await tx.execute(
        """
        INSERT INTO mcp_servers (account_id, id, name, url, transport, status, allowed_tools,
            sealed_headers, last_checked_at, check_due_at, created_at, updated_at, shaped_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        """,
        server.account_id,
        server.id,
        server.name,
        server.url,
        server.transport,
        server.status,
        server.allowed_tools,
        server.sealed_headers,
        server.last_checked_at,
        check_due_at,
        server.created_at,
        server.updated_at,
        list(server.shaped_by),
    )


async def update(tx: AccountTransaction, server: Server) -> None:
    """Saves what a request can change."""
    await tx.execute(
        """
        UPDATE mcp_servers SET name = $3, url = $4, transport = $5, allowed_tools = $6,
            sealed_headers = $7, revision = $8, shaped_by = $9, updated_at = clock_timestamp()
        WHERE account_id = $1 AND id = $2
        """,
        tx.account_id,
        server.id,
        server.name,
        server.url,
        server.transport,
        server.allowed_tools,
        server.sealed_headers,
        server.revision,
        list(server.shaped_by),
    )


async def delete(tx: AccountTransaction, server_id: UUID) -> str | None:
    """Deletes the server and returns its name, or None if it does not exist."""
    name: str | None = await tx.fetchval(
        "DELETE FROM mcp_servers WHERE account_id = $1 AND id = $2 RETURNING name",
        tx.account_id,
        server_id,
    )
    return name


async def set_status(
    tx: AccountTransaction,
    server_id: UUID,
    status: Status,
    error: str | None,
    next_check_in_s: float,
) -> None:
    await tx.execute(
        """
        UPDATE mcp_servers SET
            updated_at = CASE WHEN (status, last_error) IS DISTINCT FROM ($3, $4)
                              THEN clock_timestamp() ELSE updated_at END,
            status = $3, last_error = $4, last_checked_at = clock_timestamp(),
            check_due_at = clock_timestamp() + make_interval(secs => $5)
        WHERE account_id = $1 AND id = $2
        """,
        tx.account_id,
        server_id,
        status,
        error,
        next_check_in_s,
    )


async def check_soon(tx: AccountTransaction, server_id: UUID) -> None:
    await tx.execute(
        """
        UPDATE mcp_servers SET check_due_at = least(check_due_at, clock_timestamp())
        WHERE account_id = $1 AND id = $2
        """,
        tx.account_id,
        server_id,
    )


async def save_tools(
    tx: AccountTransaction,
    server_id: UUID,
    listed: Mapping[str, ListedDefinition],
    *,
    acceptance: Acceptance | None = None,
) -> None:
    """Saves the definitions that the server has now. An acceptance accepts those that are new."""
    await tx.execute(
        """
        DELETE FROM mcp_tools WHERE account_id = $1 AND server_id = $2
            AND accepted_hash IS NULL AND name <> ALL ($3)
        """,
        tx.account_id,
        server_id,
        list(listed),
    )
    await tx.execute(
        """
        UPDATE mcp_tools SET live = NULL, live_hash = NULL
        WHERE account_id = $1 AND server_id = $2 AND name <> ALL ($3) AND live_hash IS NOT NULL
        """,
        tx.account_id,
        server_id,
        list(listed),
    )
    await tx.execute(
        """
        INSERT INTO mcp_tools (account_id, server_id, name, position, live, live_hash,
            accepted, accepted_hash, accepted_by, accepted_with, accepted_at)
        SELECT $1, $2, d.name, d.position, d.definition::json, d.hash,
            CASE WHEN $6::uuid IS NOT NULL THEN d.definition::json END,
            CASE WHEN $6::uuid IS NOT NULL THEN d.hash END, $6, $7, $8
        FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY
            AS d (name, definition, hash, position)
        ON CONFLICT (account_id, server_id, name) DO UPDATE
            SET live = excluded.live, live_hash = excluded.live_hash, position = excluded.position
            WHERE mcp_tools.live_hash IS DISTINCT FROM excluded.live_hash
               OR mcp_tools.position <> excluded.position
        """,
        tx.account_id,
        server_id,
        list(listed),
        [each.json.decode() for each in listed.values()],
        [each.hash for each in listed.values()],
        acceptance.user_id if acceptance else None,
        _credential(acceptance) if acceptance else None,
        acceptance.at if acceptance else None,
    )


async def accept(
    tx: AccountTransaction, server_id: UUID, names: list[str], acceptance: Acceptance
) -> None:
    """Accepts the last definitions that the server sent of these tools."""
    await tx.execute(
        """
        UPDATE mcp_tools SET accepted = live, accepted_hash = live_hash,
            accepted_by = $4, accepted_with = $5, accepted_at = $6
        WHERE account_id = $1 AND server_id = $2 AND name = ANY ($3) AND live_hash IS NOT NULL
        """,
        tx.account_id,
        server_id,
        names,
        acceptance.user_id,
        _credential(acceptance),
        acceptance.at,
    )
