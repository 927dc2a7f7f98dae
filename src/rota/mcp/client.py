"""Calls tools, but only those that a person accepted, and only with the accepted definition."""

import time
from typing import Any
from uuid import UUID

import mcp_types as types
import orjson
import structlog

from rota.mcp.errors import CallRejected, CredentialsRejected, InvalidResponse, ServerError
from rota.mcp.health import Health
from rota.mcp.model import Definition, Server, ServerTool, definition_hash
from rota.mcp.sessions import Address, Sessions
from rota.mcp.transport import SessionEnded
from rota.platform.crypto import SealBroken, Vault

log = structlog.get_logger()

# The maximum age of the list of tools when a person calls a tool. Before an agent's call, the
# list is always fetched again.
MAX_LIST_AGE_S = 5.0


class ToolRemoved(Exception):
    """The server no longer has this tool."""


class DefinitionChanged(Exception):
    """The definition on the server differs from the accepted one. Carries the current tool."""

    def __init__(self, tool: ServerTool) -> None:
        super().__init__(tool.name)
        self.tool = tool


class ToolClient:
    def __init__(self, sessions: Sessions, vault: Vault, health: Health) -> None:
        self._sessions = sessions
        self._vault = vault
        self._health = health

    def _address(self, server: Server) -> Address:
        headers: dict[str, str] = {}
        if server.sealed_headers is not None:
            try:
                raw = self._vault.open(server.sealed_headers, server.seal_context)
            except SealBroken:
                log.error("tool_server_headers_not_decrypted", server_id=str(server.id))
                raise CredentialsRejected(
                    "The stored credentials cannot be decrypted. "
                    "Disconnect the server, then connect it again.",
                    sent=False,
                ) from None
            headers = orjson.loads(raw)
        return Address(server.url, server.transport, headers)

    async def call(
        self,
        server: Server,
        tool: ServerTool,
        arguments: dict[str, Any],
        *,
        key: str | None = None,
        max_list_age_s: float | None = None,
    ) -> types.CallToolResult:
        """Calls a tool. `key` stays the same when the same call is repeated."""
        max_age_s = MAX_LIST_AGE_S if max_list_age_s is None else max_list_age_s
        try:
            try:
                return await self._call(server, tool, arguments, key, max_age_s)
            except SessionEnded:
                # The server did not run the call, so it is safe to repeat it in a new session.
                return await self._call(server, tool, arguments, key, max_age_s)
        except ServerError as error:
            await self._health.record_failure(server, error)
            raise

    async def _call(
        self,
        server: Server,
        tool: ServerTool,
        arguments: dict[str, Any],
        key: str | None,
        max_list_age_s: float,
    ) -> types.CallToolResult:
        async with self._sessions.use(server.id, lambda: self._address(server)) as session:
            if time.monotonic() - session.listed_at > max_list_age_s:
                await session.list()
            if server.status in ("UNREACHABLE", "AUTH_FAILED"):
                await self._health.record_tools(server.account_id, server.id, session.tools)
            live = session.tools.get(tool.name)
            if live is None or session.hashes[tool.name] != tool.accepted_hash:
                await self._health.record_tools(server.account_id, server.id, session.tools)
                if live is None:
                    raise ToolRemoved(tool.name)
                raise DefinitionChanged(
                    ServerTool(
                        name=tool.name,
                        accepted=tool.accepted,
                        accepted_hash=tool.accepted_hash,
                        live=live,
                        live_hash=definition_hash(live),
                    )
                )
            return await session.call(tool.name, arguments, key)

    async def refresh(self, server: Server) -> tuple[Server | None, float]:
        """Pings the server, lists its tools and saves its status and its tools.

        Returns the saved server (None if it has been disconnected) and the time of the
        ping in milliseconds.
        """
        started = time.perf_counter()
        try:
            try:
                latency_ms, tools = await self._ping_and_list(server)
            except SessionEnded:
                latency_ms, tools = await self._ping_and_list(server)
        except (ServerError, CallRejected) as error:
            latency_ms = (time.perf_counter() - started) * 1000
            failure = error if isinstance(error, ServerError) else InvalidResponse(error.message)
            return await self._health.record_failure(server, failure), latency_ms
        return await self._health.record_tools(server.account_id, server.id, tools), latency_ms

    async def _ping_and_list(self, server: Server) -> tuple[float, dict[str, Definition]]:
        async with self._sessions.use(server.id, lambda: self._address(server)) as session:
            started = time.perf_counter()
            await session.ping()
            latency_ms = (time.perf_counter() - started) * 1000
            return latency_ms, await session.list()

    def close_session(self, server_id: UUID) -> None:
        self._sessions.remove(server_id)
