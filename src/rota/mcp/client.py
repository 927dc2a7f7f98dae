"""Calling tools: only those that a person accepted, and only as they were accepted."""

import time
from typing import Any
from uuid import UUID

import mcp_types as types
import orjson
import structlog

from rota.mcp.errors import AuthRefused, BadServer, CallRefused, ServerTrouble
from rota.mcp.health import Health
from rota.mcp.model import Definition, Server, ServerTool, hash_of
from rota.mcp.sessions import Address, Sessions
from rota.mcp.transport import SessionEnded
from rota.platform.crypto import SealBroken, Vault

log = structlog.get_logger()

# How old a list of tools may be when a person calls one. An agent's call asks anew.
FRESH_S = 5.0


class ToolGone(Exception):
    """The server does not have this tool any more."""


class DefinitionChanged(Exception):
    """The server's tool is not the accepted one."""

    def __init__(self, tool: ServerTool) -> None:
        super().__init__(tool.name)
        self.tool = tool


class ToolClient:
    def __init__(self, sessions: Sessions, vault: Vault, watch: Health) -> None:
        self._sessions = sessions
        self._vault = vault
        self._watch = watch

    def address(self, server: Server) -> Address:
        headers: dict[str, str] = {}
        if server.sealed_headers is not None:
            try:
                raw = self._vault.open(server.sealed_headers, server.seal_context)
            except SealBroken:
                log.error("the headers of a tool server do not open", server_id=str(server.id))
                raise AuthRefused(
                    "Its credentials cannot be opened. Disconnect it, and connect it again.",
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
        fresh_s: float | None = None,
    ) -> types.CallToolResult:
        at_most_s = FRESH_S if fresh_s is None else fresh_s
        try:
            try:
                return await self._call(server, tool, arguments, at_most_s)
            except SessionEnded:
                # Nothing was carried out, so another session may try.
                return await self._call(server, tool, arguments, at_most_s)
        except ServerTrouble as trouble:
            await self._watch.note_trouble(server, trouble)
            raise

    async def _call(
        self, server: Server, tool: ServerTool, arguments: dict[str, Any], fresh_s: float
    ) -> types.CallToolResult:
        async with self._sessions.use(server.id, lambda: self.address(server)) as session:
            if time.monotonic() - session.listed_at > fresh_s:
                await session.list()
            if server.status in ("UNREACHABLE", "AUTH_FAILED"):
                await self._watch.note_listing(server.account_id, server.id, session.listed)
            live = session.listed.get(tool.name)
            if live is None or session.hashes[tool.name] != tool.accepted_hash:
                await self._watch.note_listing(server.account_id, server.id, session.listed)
                if live is None:
                    raise ToolGone(tool.name)
                now = ServerTool(tool.name, tool.accepted, tool.accepted_hash, live, hash_of(live))
                raise DefinitionChanged(now)
            return await session.call(tool.name, arguments)

    async def look(self, server: Server) -> tuple[Server | None, float]:
        """Asks the server whether it is well and what tools it has; writes down what it says.

        The time is that of the ping alone, in milliseconds.
        """
        began = time.perf_counter()
        try:
            try:
                took_ms, listed = await self._look(server)
            except SessionEnded:
                took_ms, listed = await self._look(server)
        except (ServerTrouble, CallRefused) as error:
            took_ms = (time.perf_counter() - began) * 1000
            trouble = error if isinstance(error, ServerTrouble) else BadServer(error.message)
            return await self._watch.note_trouble(server, trouble), took_ms
        return await self._watch.note_listing(server.account_id, server.id, listed), took_ms

    async def _look(self, server: Server) -> tuple[float, dict[str, Definition]]:
        async with self._sessions.use(server.id, lambda: self.address(server)) as session:
            began = time.perf_counter()
            await session.ping()
            took_ms = (time.perf_counter() - began) * 1000
            return took_ms, await session.list()

    def forget(self, server_id: UUID) -> None:
        self._sessions.drop(server_id)
