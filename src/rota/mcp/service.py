"""Connects, lists, checks, calls and disconnects tool servers."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.mcp import queries, schemas
from rota.mcp.allowance import MAX_SERVERS, Allowance, HasPass, Holder
from rota.mcp.client import DefinitionChanged, ToolClient, ToolRemoved
from rota.mcp.errors import (
    CallRejected,
    ConnectPassRequired,
    DefinitionNotShown,
    ServerError,
    ServerNameTaken,
    ServerNotFound,
    ServerUrlTaken,
    ToolNotAccepted,
    ToolNotAllowed,
    ToolNotFound,
    TooManyServers,
    api_error,
)
from rota.mcp.health import MAX_EVENT_TOOLS, Health, append_event, status_of
from rota.mcp.model import Acceptance, Server, ServerTool, seal_context
from rota.mcp.results import content_blocks
from rota.mcp.schemas import (
    AcceptTools,
    ConnectedResponse,
    ConnectServer,
    InvokedResponse,
    InvokeTool,
    PingResponse,
)
from rota.mcp.sessions import Address, Session, Sessions
from rota.platform import clock, ids, schema
from rota.platform.cache import ExpiringCache
from rota.platform.crypto import Vault
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.egress import Egress, EgressRefused
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.ids import new_uuid

OPERATION = "POST /api/mcp"
# Calls come in bursts, and the lookup takes a third of a call. Another process can change a
# server meanwhile, so an entry lives as briefly as a cached API key.
CACHE_S = 1.0
MAX_CACHED_SERVERS = 10_000


class Servers:
    def __init__(
        self,
        db: Database,
        vault: Vault,
        idempotency: Idempotency,
        egress: Egress,
        sessions: Sessions,
        tool_client: ToolClient,
        health: Health,
        *,
        allowance: Allowance,
        has_pass: HasPass,
    ) -> None:
        self._db = db
        self._vault = vault
        self._idempotency = idempotency
        self._egress = egress
        self._sessions = sessions
        self._tool_client = tool_client
        self._health = health
        self._allowance = allowance
        self._has_pass = has_pass
        # Tools by name, for each account and server.
        self._recent: ExpiringCache[tuple[UUID, UUID], dict[str, tuple[Server, ServerTool]]] = (
            ExpiringCache(max_items=MAX_CACHED_SERVERS, max_age_s=CACHE_S)
        )

    async def all(self, caller: Caller) -> list[Server]:
        async with self._db.read(caller.account_id) as tx:
            return await queries.all_servers(tx)

    async def connect(
        self, caller: Caller, body: ConnectServer, idempotency_key: str | None
    ) -> Outcome:
        """Connects outside of any transaction, then saves the server and its tools."""
        try:
            url = str(self._egress.check_url(body.url).copy_with(fragment=None))
        except EgressRefused as error:
            raise ValidationFailed.of(FieldError("url", str(error))) from None
        headers = _headers(body)
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            stored = await self._idempotency.stored(tx, idempotency_key, (OPERATION, body))
            if stored is not None:
                return stored
            await self._check_allowance(tx, caller, body.name, url)
        try:
            session = await self._sessions.open(Address(url, body.transport, headers))
        except ServerError as error:
            problem = FieldError("url", f"Could not connect to the server. {error.message}")
            raise ValidationFailed.of(problem) from None
        server_id = new_uuid()
        saved = False
        try:
            async with self._db.write(caller.account_id, caller.user_id) as tx:
                outcome = await self._idempotency.once(
                    tx,
                    idempotency_key,
                    (OPERATION, body),
                    201,
                    lambda: self._save(tx, caller, server_id, body, url, headers, session),
                )
                saved = not outcome.replayed
        finally:
            if saved:
                self._sessions.add(server_id, session)
            else:
                self._sessions.close_in_background(session)
        return outcome

    async def _check_allowance(
        self, tx: AccountReader, caller: Caller, name: str, url: str
    ) -> None:
        usage = await queries.usage(tx, name, url)
        if usage.name_taken:
            raise ServerNameTaken(name)
        if usage.url_taken:
            raise ServerUrlTaken(url)
        has_pass = await self._has_pass(tx)
        limit = self._allowance(Holder(caller.account_kind, caller.tier, has_pass))
        if usage.server_count >= limit:
            raise TooManyServers(limit) if limit == MAX_SERVERS else ConnectPassRequired(limit)

    async def _save(
        self,
        tx: AccountTransaction,
        caller: Caller,
        server_id: UUID,
        body: ConnectServer,
        url: str,
        headers: dict[str, str],
        session: Session,
    ) -> ConnectedResponse:
        account_id = caller.account_id
        # Lock before counting. Otherwise two requests could both count before either one saves.
        await accounts.lock(tx)
        await self._check_allowance(tx, caller, body.name, url)
        now = clock.now()
        context = seal_context(account_id, server_id)
        server = Server(
            account_id=account_id,
            id=server_id,
            name=body.name,
            url=url,
            transport=body.transport,
            status="CONNECTED",
            allowed_tools=body.allowed_tools,
            sealed_headers=self._vault.seal(orjson.dumps(headers), context) if headers else None,
            last_error=None,
            last_checked_at=now,
            created_at=now,
            updated_at=now,
            tool_count=len(session.tools),
        )
        check_due_at = now + timedelta(seconds=self._health.next_check_in_s)
        await queries.insert(tx, server, check_due_at)
        # The response shows the tools, so connecting a server accepts them.
        acceptance = await _acceptance(tx, caller)
        await queries.save_tools(tx, server_id, session.tools, acceptance=acceptance)
        by = ids.to_wire("user", caller.user_id)
        await append_event(tx, server, "mcp.connected", status=server.status, by=by)
        tools = await queries.tools_of(tx, server_id)
        return ConnectedResponse(
            server=schemas.ToolServer.of(server),
            tools=[schemas.Tool.of(server, tool) for tool in tools],
        )

    async def ping(self, caller: Caller, server_id: UUID | None) -> PingResponse:
        server = await self._find(caller, server_id)
        after, latency_ms = await self._tool_client.refresh(server)
        if after is None:
            raise ServerNotFound
        return PingResponse(
            ok=after.status in ("CONNECTED", "CHANGED"),
            status=after.status,
            latency_ms=round(latency_ms, 3),
            server=schemas.ToolServer.of(after),
        )

    async def tools(self, caller: Caller, server_id: UUID | None) -> list[schemas.Tool]:
        """The server's current tools, or the last known ones if it does not respond."""
        server = await self._find(caller, server_id)
        await self._tool_client.refresh(server)
        async with self._db.read(caller.account_id) as tx:
            found = await queries.tools_of(tx, server.id)
        return [schemas.Tool.of(server, tool) for tool in found if tool.live is not None]

    async def accept(
        self, caller: Caller, server_id: UUID | None, body: AcceptTools
    ) -> ConnectedResponse:
        """Accepts the named tools, if their definitions are still the ones that were shown."""
        server = await self._find(caller, server_id)
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            locked = await queries.lock(tx, server.id)
            if locked is None:
                raise ServerNotFound
            live = {t.name: t for t in await queries.tools_of(tx, server.id) if t.live is not None}
            if unknown := [shown.name for shown in body.tools if shown.name not in live]:
                raise ToolNotFound(unknown[0])
            other = {s.name: live[s.name] for s in body.tools if s.hash != live[s.name].live_hash}
            if other:
                raise DefinitionNotShown(
                    [
                        schemas.Tool.of(locked, tool).model_dump(mode="json", by_alias=True)
                        for tool in other.values()
                    ]
                )
            # An acceptance stays with the person who gave it first.
            named = dict.fromkeys(shown.name for shown in body.tools)
            names = [name for name in named if live[name].needs_acceptance]
            await queries.accept(tx, server.id, names, await _acceptance(tx, caller))
            tools = await queries.tools_of(tx, server.id)
            if locked.status in ("CONNECTED", "CHANGED"):
                status = status_of(locked, tools)
                await queries.set_status(tx, server.id, status, None, self._health.next_check_in_s)
            if names:
                by = ids.to_wire("user", caller.user_id)
                accepted = names[:MAX_EVENT_TOOLS]
                await append_event(tx, locked, "mcp.changed", accepted=accepted, by=by)
            after = await queries.find(tx, server.id)
            assert after is not None
        return ConnectedResponse(
            server=schemas.ToolServer.of(after),
            tools=[schemas.Tool.of(after, tool) for tool in tools if tool.live is not None],
        )

    async def invoke(
        self, caller: Caller, server_id: UUID | None, body: InvokeTool
    ) -> InvokedResponse:
        server, tool = await self._find_tool(caller, server_id, body.tool)
        check_arguments(tool, body.arguments)
        started = time.perf_counter()
        try:
            result = await self._tool_client.call(server, tool, body.arguments)
        except DefinitionChanged as changed:
            self._forget(server)
            raise ToolNotAccepted(server, changed.tool) from None
        except ToolRemoved:
            self._forget(server)
            raise ToolNotFound(body.tool) from None
        except ServerError as error:
            self._forget(server)
            raise api_error(error) from None
        except CallRejected as error:
            raise api_error(error) from None
        if server.status not in ("CONNECTED", "CHANGED"):
            # The server was down, so its cached status is out of date.
            self._forget(server)
        latency_ms = (time.perf_counter() - started) * 1000
        return InvokedResponse(
            result=schemas.ToolResult(
                content=content_blocks(result),
                structured_content=result.structured_content,
                is_error=bool(result.is_error),
            ),
            latency_ms=round(latency_ms, 3),
        )

    async def _find_tool(
        self, caller: Caller, server_id: UUID | None, name: str, *, refreshed: bool = False
    ) -> tuple[Server, ServerTool]:
        if server_id is None:
            raise ServerNotFound
        cached = self._recent.get((caller.account_id, server_id))
        if cached is not None and name in cached:
            return cached[name]
        async with self._db.read(caller.account_id) as tx:
            found = await queries.find_with_tool(tx, server_id, name)
        if found is None:
            raise ServerNotFound
        server, tool = found
        if tool is None or tool.live is None:
            if not refreshed:
                # The server may have added the tool since the last check.
                await self._tool_client.refresh(server)
                return await self._find_tool(caller, server_id, name, refreshed=True)
            raise ToolNotFound(name)
        if not server.allows(name):
            raise ToolNotAllowed(server, name)
        if not tool.usable:
            raise ToolNotAccepted(server, tool)
        self._remember(server, tool)
        return server, tool

    def _remember(self, server: Server, tool: ServerTool) -> None:
        key = (server.account_id, server.id)
        tools = self._recent.get(key)
        if tools is None:
            self._recent.put(key, {tool.name: (server, tool)})
        else:
            # The entry keeps its age.
            tools[tool.name] = (server, tool)

    def _forget(self, server: Server) -> None:
        self._recent.drop((server.account_id, server.id))

    async def delete(self, caller: Caller, server_id: UUID | None) -> None:
        server = await self._find(caller, server_id)
        async with self._db.write(caller.account_id) as tx:
            if await queries.delete(tx, server.id) is None:
                raise ServerNotFound
            by = ids.to_wire("user", caller.user_id)
            await append_event(tx, server, "mcp.disconnected", by=by)
        self._forget(server)
        self._tool_client.close_session(server.id)

    async def _find(self, caller: Caller, server_id: UUID | None) -> Server:
        if server_id is None:
            raise ServerNotFound
        async with self._db.read(caller.account_id) as tx:
            server = await queries.find(tx, server_id)
        if server is None:
            raise ServerNotFound
        # Every caller of this method checks or changes the server.
        self._forget(server)
        return server


async def _acceptance(tx: AccountReader, caller: Caller) -> Acceptance:
    name = await accounts.name(tx, caller.user_id)
    return Acceptance(caller.user_id, name, caller.key_id, clock.now())


def check_arguments(tool: ServerTool, arguments: dict[str, Any]) -> None:
    assert tool.accepted is not None
    if found := schema.problems(tool.accepted.get("inputSchema") or {}, arguments):
        raise ValidationFailed.of(*[FieldError("arguments", problem) for problem in found])


def _headers(body: ConnectServer) -> dict[str, str]:
    headers = dict(body.headers)
    if body.auth is not None:
        if any(name.lower() == "authorization" for name in headers):
            raise ValidationFailed.of(
                FieldError("auth", "set either auth or an Authorization header, not both")
            )
        headers["Authorization"] = f"Bearer {body.auth.token}"
    return headers
