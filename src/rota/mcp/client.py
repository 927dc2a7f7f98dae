"""Calls tools, but only those that a person accepted, and only with the accepted definition."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import orjson
import structlog
from prometheus_client import Counter, Histogram

from rota.mcp.errors import CallRejected, CredentialsRejected, InvalidResponse, ServerError
from rota.mcp.health import Health
from rota.mcp.model import ListedDefinition, Server, ServerTool
from rota.mcp.session import Address, Session, not_listed
from rota.mcp.sessions import Sessions
from rota.mcp.transport import SessionEnded
from rota.platform import ids
from rota.platform.crypto import SealBroken, Vault

log = structlog.get_logger()

CHECKS = Counter("rota_tool_server_checks_total", "Checks of tool servers.", ["outcome"])
for _outcome in ("ok", "unreachable", "auth_failed"):
    CHECKS.labels(_outcome)
CHECK_SECONDS = Histogram(
    "rota_tool_server_check_seconds",
    "Time in which tool servers respond to a check.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

# The maximum age of the list of tools when a person calls a tool. Before an agent's call, the
# list is fetched again, or shared with one that began a moment ago.
MAX_LIST_AGE_S = 5.0


class ToolRemoved(Exception):
    """The server no longer has this tool."""


class DefinitionChanged(Exception):
    """The definition on the server differs from the accepted one. Carries the current tool."""

    def __init__(self, tool: ServerTool) -> None:
        super().__init__(tool.name)
        self.tool = tool


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check of a server."""

    # The saved server. None if it has been disconnected.
    server: Server | None
    latency_ms: float
    failure: ServerError | None = None


class ToolClient:
    def __init__(self, sessions: Sessions, vault: Vault, health: Health) -> None:
        self._sessions = sessions
        self._vault = vault
        self._health = health

    def headers_of(self, server: Server) -> dict[str, str]:
        """The headers to send to the server. They contain secrets."""
        if server.sealed_headers is None:
            return {}
        try:
            raw = self._vault.open(server.sealed_headers, server.seal_context)
        except SealBroken:
            log.error("tool_server_headers_not_decrypted", server_id=str(server.id))
            raise CredentialsRejected(
                "The stored credentials cannot be decrypted. "
                f"Set them again with PATCH /api/mcp/{ids.to_wire('mcp', server.id)}.",
                sent=False,
            ) from None
        headers: dict[str, str] = orjson.loads(raw)
        return headers

    def _session(self, server: Server) -> AbstractAsyncContextManager[Session]:
        return self._sessions.use(
            server.account_id,
            server.session_key,
            lambda: Address(server.url, server.transport, self.headers_of(server)),
        )

    async def call(
        self,
        server: Server,
        tool: ServerTool,
        arguments: dict[str, Any],
        *,
        key: str | None = None,
        max_list_age_s: float | None = None,
        before_send: Callable[[], Awaitable[None]] | None = None,
    ) -> types.CallToolResult:
        """Calls a tool. `key` stays the same when the same call is repeated.

        `before_send` runs when everything else is done, and can still raise.
        """
        max_age_s = MAX_LIST_AGE_S if max_list_age_s is None else max_list_age_s
        try:
            try:
                return await self._call(server, tool, arguments, key, max_age_s, before_send)
            except SessionEnded:
                # The server did not run the call, so it is safe to repeat it in a new session.
                return await self._call(server, tool, arguments, key, max_age_s, before_send)
        except ServerError as error:
            try:
                await self._health.record_failure(server, error)
            except Exception:
                # The caller has to know whether the call was sent, not whether this was saved.
                log.warning("tool_server_status_not_saved", server_id=str(server.id), exc_info=True)
            raise

    async def _call(
        self,
        server: Server,
        tool: ServerTool,
        arguments: dict[str, Any],
        key: str | None,
        max_list_age_s: float,
        before_send: Callable[[], Awaitable[None]] | None,
    ) -> types.CallToolResult:
        async with self._session(server) as session:
            was_down = server.status in ("UNREACHABLE", "AUTH_FAILED")
            # A list from before the failure does not show that the server responds again.
            if was_down or time.monotonic() - session.listed_at > max_list_age_s:
                await _list_before_call(session)
            if was_down:
                await self._health.record_tools(server, session.listed)
            live = session.listed.get(tool.name)
            if live is None or live.hash != tool.accepted_hash:
                await self._health.record_tools(server, session.listed)
                if live is None:
                    raise ToolRemoved(tool.name)
                raise DefinitionChanged(
                    ServerTool(
                        name=tool.name,
                        accepted=tool.accepted,
                        accepted_hash=tool.accepted_hash,
                        live=live.definition,
                        live_hash=live.hash,
                    )
                )
            return await session.call(tool.name, arguments, key, before_send)

    async def refresh(self, server: Server) -> Check:
        """Pings the server, lists its tools and saves its status and its tools."""
        started = time.perf_counter()
        try:
            try:
                latency_ms, tools = await self._ping_and_list(server)
            except SessionEnded:
                latency_ms, tools = await self._ping_and_list(server)
            saved = await self._health.record_tools(server, tools, latency_ms)
            CHECKS.labels("ok").inc()
            CHECK_SECONDS.observe(latency_ms / 1000)
            return Check(saved, latency_ms)
        except (ServerError, CallRejected) as error:
            latency_ms = (time.perf_counter() - started) * 1000
            failure = error if isinstance(error, ServerError) else InvalidResponse(error.message)
            # A check runs no tool, so a timeout only means that the server does not respond.
            failure.sent = False
            CHECKS.labels(failure.status.lower()).inc()
            saved = await self._health.record_failure(server, failure)
            return Check(saved, latency_ms, failure)

    async def _ping_and_list(self, server: Server) -> tuple[float, dict[str, ListedDefinition]]:
        async with self._session(server) as session:
            started = time.perf_counter()
            await session.ping()
            latency_ms = (time.perf_counter() - started) * 1000
            await session.list()
            return latency_ms, session.listed


async def _list_before_call(session: Session) -> None:
    """Lists the tools. If that fails, the call was certainly not sent."""
    try:
        await session.list()
    except ServerError as error:
        error.sent = False
        raise
    except CallRejected as rejected:
        raise not_listed(rejected) from None
