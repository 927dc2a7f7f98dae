"""Offers the tools of an account's tool servers to its agents."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from rota.agents.model import AgentVersion
from rota.mcp import queries
from rota.mcp.client import DefinitionChanged, ToolClient, ToolRemoved
from rota.mcp.errors import CallRejected, CredentialsRejected, ServerError
from rota.mcp.model import Server, ServerTool, describe_difference, is_read_only
from rota.mcp.results import timeline_result
from rota.mcp.usable_tools import UsableTools
from rota.platform import ids
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import RateLimited
from rota.runs.bounds import MAX_TOOLS_KIB, ToolsTooLarge
from rota.runs.tools import (
    AccountBusy,
    OutcomeUnknown,
    Tool,
    ToolChanged,
    ToolResult,
    ToolUnavailable,
)


async def offered_tools(
    db: Database, account_id: UUID, agent: AgentVersion, usable: UsableTools
) -> list[Tool]:
    """The tools of connected servers that this agent can use, as stored. No server is asked."""
    if not agent.tools:
        return []
    # Else a tool could change between two statements.
    async with db.snapshot(account_id) as tx:
        found = await usable.find(tx, agent.tools, MAX_TOOLS_KIB * 1024)
    if any(tool.accepted is None for _, tool in found):
        raise ToolsTooLarge
    return [_tool(server, tool) for server, tool in found]


class McpTools:
    """The `ToolSource` for tool servers.

    It offers the tools that a person accepted, `allowedTools` includes and the agent's file names.
    """

    def __init__(self, db: Database, tool_client: ToolClient) -> None:
        self._db = db
        self._tool_client = tool_client
        self._usable = UsableTools()

    async def tools(self, account_id: UUID, agent: AgentVersion) -> Sequence[Tool]:
        return await offered_tools(self._db, account_id, agent, self._usable)

    async def current(
        self, tx: AccountTransaction, agent: AgentVersion, server_id: str, name: str
    ) -> Tool | None:
        row_id = ids.from_wire("mcp", server_id)
        found = await queries.find_with_tool(tx, row_id, name) if row_id else None
        if found is None:
            return None
        server, tool = found
        if tool is None or tool.live_hash is None or tool.accepted_hash is None:
            return None
        if not server.allows(name) or not agent.may_use(f"{server.name}/{name}"):
            return None
        return _tool(server, tool)

    async def call(
        self,
        account_id: UUID,
        tool: Tool,
        arguments: dict[str, Any],
        key: str,
        before_send: Callable[[], Awaitable[None]],
    ) -> ToolResult:
        server, known = tool.target
        try:
            result = await self._tool_client.call(
                server, known, arguments, key=key, max_list_age_s=0, before_send=before_send
            )
        except DefinitionChanged as changed:
            raise ToolChanged(_tool(server, changed.tool)) from None
        except ToolRemoved:
            return ToolResult("The server no longer has this tool.", is_error=True)
        except CallRejected as rejected:
            if not tool.read_only and rejected.may_have_run(known.accepted or {}):
                raise OutcomeUnknown(rejected.message) from None
            return ToolResult(f"The server rejected the call: {rejected.message}", is_error=True)
        except ServerError as error:
            if error.sent:
                raise
            if isinstance(error, CredentialsRejected) and error.of_call:
                # The server listed its tools with the same credentials, so another attempt would
                # fail too.
                return ToolResult(f"The server refused the call: {error.message}", is_error=True)
            raise ToolUnavailable(error.message) from None
        except RateLimited as error:
            raise AccountBusy(error) from None
        return ToolResult(timeline_result(result), is_error=bool(result.is_error))


def _tool(server: Server, tool: ServerTool) -> Tool:
    """The tool with its accepted definition, or with the current one if it needs acceptance."""
    definition = (tool.accepted if tool.usable else tool.live) or {}
    annotations = definition.get("annotations")
    return Tool(
        name=tool.name,
        server=server.name,
        description=definition.get("description") or definition.get("title") or "",
        arguments_schema=definition.get("inputSchema") or {"type": "object"},
        read_only=is_read_only(definition),
        title=definition.get("title") or (annotations or {}).get("title"),
        annotations=annotations,
        server_definition_hash=tool.accepted_hash if tool.usable else tool.live_hash,
        offered=tool.usable and server.status in ("CONNECTED", "CHANGED"),
        changed=None if tool.usable else _change_reason(server, tool),
        server_revision=(ids.to_wire("mcp", server.id), server.revision),
        server_url=server.url,
        target=(server, tool),
    )


def _change_reason(server: Server, tool: ServerTool) -> str:
    return (
        f"The definition of {server.name}/{tool.name} differs from the accepted one: "
        f"{describe_difference(tool.difference)}. To make the call, accept the definition with the "
        f"hash {tool.live_hash} with POST /api/mcp/{ids.to_wire('mcp', server.id)}/accept and "
        "approve. To continue without the call, reject."
    )
