"""Makes the tools of an account's tool servers available to its agents."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rota.agents.model import AgentVersion
from rota.mcp import queries
from rota.mcp.client import DefinitionChanged, ToolClient, ToolGone
from rota.mcp.errors import CallRefused, ServerTrouble
from rota.mcp.model import Server, ServerTool, in_words, reads_only
from rota.mcp.results import kept
from rota.platform import ids
from rota.platform.db import Database
from rota.runs.tools import Tool, ToolChanged, ToolResult, ToolUnavailable

# Names that model providers accept for tools.
_MODEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class McpTools:
    """A `ToolSource`. Offers tools that are accepted, allowed and named in the agent's file."""

    def __init__(self, db: Database, calling: ToolClient) -> None:
        self._db = db
        self._calling = calling

    async def tools(self, account_id: UUID, agent: AgentVersion) -> Sequence[Tool]:
        if not agent.tools:
            return []
        async with self._db.read(account_id) as tx:
            found = await queries.tools_of_all(tx)
        offered = [
            _tool(server, tool)
            for server, tool in found
            if server.allows(tool.name) and agent.may_use(f"{server.name}/{tool.name}")
        ]
        return [tool for tool in offered if _MODEL_NAME.fullmatch(tool.model_name)]

    async def call(
        self, account_id: UUID, tool: Tool, arguments: dict[str, Any], key: str
    ) -> ToolResult:
        async with self._db.read(account_id) as tx:
            found = await queries.tools_of_all(tx)
        for server, known in found:
            if (server.name, known.name) == (tool.server, tool.name) and server.allows(known.name):
                return await self._call(server, known, arguments)
        return ToolResult("The tool no longer exists.", is_error=True)

    async def _call(
        self, server: Server, tool: ServerTool, arguments: dict[str, Any]
    ) -> ToolResult:
        if not tool.usable:
            raise ToolChanged(_tool(server, tool))
        try:
            result = await self._calling.call(server, tool, arguments, fresh_s=0)
        except DefinitionChanged as changed:
            raise ToolChanged(_tool(server, changed.tool)) from None
        except ToolGone:
            return ToolResult("The tool server no longer has this tool.", is_error=True)
        except CallRefused as refused:
            return ToolResult(f"The tool server refused the call: {refused.message}", is_error=True)
        except ServerTrouble as trouble:
            if trouble.sent:
                raise
            raise ToolUnavailable(trouble.message) from None
        return ToolResult(kept(result), is_error=bool(result.is_error))


def _tool(server: Server, tool: ServerTool) -> Tool:
    """The tool as it was accepted. If it has changed: as the next review shows it."""
    definition = (tool.accepted if tool.usable else tool.live) or {}
    return Tool(
        name=tool.name,
        server=server.name,
        description=definition.get("description") or definition.get("title") or "",
        arguments_schema=definition.get("inputSchema") or {"type": "object"},
        read_only=reads_only(definition),
        offered=tool.usable and server.status in ("CONNECTED", "CHANGED"),
        changed=None if tool.usable else _why(server, tool),
    )


def _why(server: Server, tool: ServerTool) -> str:
    return (
        f"The definition of {server.name}/{tool.name} differs from the accepted one: "
        f"{in_words(tool.difference)}. To make the call, accept the tool with POST "
        f"/api/mcp/{ids.to_wire('mcp', server.id)}/accept and approve. To continue without it, "
        "reject."
    )
