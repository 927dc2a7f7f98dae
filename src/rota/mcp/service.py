"""Connecting, listing, checking, using and disconnecting tool servers."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.mcp import queries, schemas
from rota.mcp.allowance import MAX_SERVERS, Allowance, HasPass, Holder
from rota.mcp.client import DefinitionChanged, ToolClient, ToolGone
from rota.mcp.errors import (
    CallRefused,
    Quarantined,
    ServerTrouble,
    ToolServerFailed,
    to_api,
)
from rota.mcp.health import Health, status_of, tell
from rota.mcp.model import Server, ServerTool, seal_context
from rota.mcp.results import shown
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
from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
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
        calling: ToolClient,
        watch: Health,
        *,
        allowance: Allowance,
        has_pass: HasPass,
    ) -> None:
        self._db = db
        self._vault = vault
        self._idempotency = idempotency
        self._egress = egress
        self._sessions = sessions
        self._calling = calling
        self._watch = watch
        self._allowance = allowance
        self._has_pass = has_pass
        # The tools of a server by name, by account and server.
        self._recent: ExpiringCache[tuple[UUID, UUID], dict[str, tuple[Server, ServerTool]]] = (
            ExpiringCache(max_items=MAX_CACHED_SERVERS, max_age_s=CACHE_S)
        )

    async def all(self, caller: Caller) -> list[Server]:
        async with self._db.read(caller.account_id) as tx:
            return await queries.all_servers(tx)

    async def connect(
        self, caller: Caller, body: ConnectServer, idempotency_key: str | None
    ) -> Outcome:
        """Really connects, with no transaction open meanwhile, and then saves what it found."""
        try:
            url = str(self._egress.check_url(body.url).copy_with(fragment=None))
        except EgressRefused as error:
            raise ValidationFailed.of(FieldError("url", str(error))) from None
        headers = _headers(body)
        async with self._db.read(caller.account_id) as tx:
            stored = await self._idempotency.stored(tx, idempotency_key, (OPERATION, body))
            if stored is not None:
                return stored
            await self._check_room(tx, caller, body.name, url)
        try:
            session = await self._sessions.try_out(Address(url, body.transport, headers))
        except ServerTrouble as trouble:
            problem = FieldError("url", f"The server could not be connected. {trouble.message}")
            raise ValidationFailed.of(problem) from None
        server_id = new_uuid()
        saved = False
        try:
            async with self._db.write(caller.account_id) as tx:
                answer = await self._idempotency.once(
                    tx,
                    idempotency_key,
                    (OPERATION, body),
                    201,
                    lambda: self._save(tx, caller, server_id, body, url, headers, session),
                )
                saved = not answer.replayed
        finally:
            if saved:
                self._sessions.keep(server_id, session)
            else:
                self._sessions.give_up(session)
        return answer

    async def _check_room(self, tx: AccountReader, caller: Caller, name: str, url: str) -> None:
        usage = await queries.usage(tx, name, url)
        if usage.name_taken:
            raise Conflict(f"There is a server called {name} already. Choose another name.")
        if usage.url_taken:
            raise Conflict("A server with this URL is connected already.")
        has_pass = await self._has_pass(tx)
        most = self._allowance(Holder(caller.account_kind, caller.tier, has_pass))
        if usage.server_count < most:
            return
        if most < MAX_SERVERS:
            raise Forbidden(
                f"Without the connect pass this account connects {most} tool server. "
                "Disconnect the one there is, or get the pass."
            )
        raise Conflict(f"An account connects at most {most} servers. Disconnect one first.")

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
        # Before the statement that counts, which would not see servers saved while it waits.
        await accounts.lock(tx)
        await self._check_room(tx, caller, body.name, url)
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
            tool_count=len(session.listed),
        )
        due_at = now + timedelta(seconds=self._watch.due_in_s)
        await queries.insert(tx, server, due_at)
        # Whoever connects a server sees its tools in the answer, and accepts them so.
        await queries.put_tools(tx, server_id, session.listed, accept=True)
        by = ids.to_wire("user", caller.user_id)
        await tell(tx, server, "mcp.connected", status=server.status, by=by)
        tools = await queries.tools_of(tx, server_id)
        return ConnectedResponse(
            server=schemas.ToolServer.of(server),
            tools=[schemas.Tool.of(server, tool) for tool in tools],
        )

    async def ping(self, caller: Caller, server_id: UUID | None) -> PingResponse:
        server = await self._find(caller, server_id)
        after, latency_ms = await self._calling.look(server)
        if after is None:
            raise _no_server()
        return PingResponse(
            ok=after.status in ("CONNECTED", "CHANGED"),
            status=after.status,
            latency_ms=round(latency_ms, 3),
            server=schemas.ToolServer.of(after),
        )

    async def tools(self, caller: Caller, server_id: UUID | None) -> list[schemas.Tool]:
        """What the server offers now, or what it offered last while it does not answer."""
        server = await self._find(caller, server_id)
        await self._calling.look(server)
        async with self._db.read(caller.account_id) as tx:
            found = await queries.tools_of(tx, server.id)
        return [schemas.Tool.of(server, tool) for tool in found if tool.live is not None]

    async def accept(
        self, caller: Caller, server_id: UUID | None, body: AcceptTools | None
    ) -> ConnectedResponse:
        """Makes what the server last said of its tools what counts."""
        server = await self._find(caller, server_id)
        account_id = caller.account_id
        async with self._db.write(account_id) as tx:
            locked = await queries.lock(tx, server.id)
            if locked is None:
                raise _no_server()
            tools = await queries.tools_of(tx, server.id)
            there = {tool.name for tool in tools if tool.live is not None}
            names = [t.name for t in tools if t.waits] if not body or body.tools is None else None
            if names is None:
                assert body is not None
                names = list(dict.fromkeys(body.tools or ()))
                if unknown := [name for name in names if name not in there]:
                    raise NotFound(f"The server has no tool {unknown[0]!r}.")
            await queries.accept(tx, server.id, names)
            tools = await queries.tools_of(tx, server.id)
            if locked.status in ("CONNECTED", "CHANGED"):
                status = status_of(locked, tools)
                await queries.set_state(tx, server.id, status, None, self._watch.due_in_s)
            by = ids.to_wire("user", caller.user_id)
            await tell(tx, locked, "mcp.changed", accepted=names[:50], by=by)
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
        began = time.perf_counter()
        try:
            result = await self._calling.call(server, tool, body.arguments)
        except DefinitionChanged as changed:
            self._forget(server)
            raise _quarantined(server, changed.tool) from None
        except ToolGone:
            self._forget(server)
            raise _no_tool(body.tool) from None
        except ServerTrouble as trouble:
            self._forget(server)
            raise to_api(trouble) from None
        except CallRefused as refused:
            raise ToolServerFailed(f"The tool server refused: {refused.message}") from None
        if server.status not in ("CONNECTED", "CHANGED"):
            # It has just come back.
            self._forget(server)
        latency_ms = (time.perf_counter() - began) * 1000
        return InvokedResponse(
            result=schemas.ToolResult(
                content=shown(result),
                structured_content=result.structured_content,
                is_error=bool(result.is_error),
            ),
            latency_ms=round(latency_ms, 3),
        )

    async def _find_tool(
        self, caller: Caller, server_id: UUID | None, name: str, *, looked: bool = False
    ) -> tuple[Server, ServerTool]:
        if server_id is None:
            raise _no_server()
        cached = self._recent.get((caller.account_id, server_id))
        if cached is not None and name in cached:
            return cached[name]
        async with self._db.read(caller.account_id) as tx:
            found = await queries.with_tool(tx, server_id, name)
        if found is None:
            raise _no_server()
        server, tool = found
        if tool is None or tool.live is None:
            if not looked:
                # It may be newer than our last look.
                await self._calling.look(server)
                return await self._find_tool(caller, server_id, name, looked=True)
            raise _no_tool(name)
        if not server.allows(name):
            raise Forbidden(f"The tool {name} is not among the server's allowedTools.")
        if not tool.usable:
            raise _quarantined(server, tool)
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
                raise _no_server()
            by = ids.to_wire("user", caller.user_id)
            await tell(tx, server, "mcp.disconnected", by=by)
        self._forget(server)
        self._calling.forget(server.id)

    async def _find(self, caller: Caller, server_id: UUID | None) -> Server:
        if server_id is None:
            raise _no_server()
        async with self._db.read(caller.account_id) as tx:
            server = await queries.find(tx, server_id)
        if server is None:
            raise _no_server()
        # Whoever asks for a server is about to look at it or to change it.
        self._forget(server)
        return server


def check_arguments(tool: ServerTool, arguments: dict[str, Any]) -> None:
    assert tool.accepted is not None
    if found := schema.problems(tool.accepted.get("inputSchema") or {}, arguments):
        raise ValidationFailed.of(*(FieldError("arguments", problem) for problem in found))


def _headers(body: ConnectServer) -> dict[str, str]:
    headers = dict(body.headers)
    if body.auth is not None:
        if any(name.lower() == "authorization" for name in headers):
            raise ValidationFailed.of(
                FieldError("auth", "give either auth or a header Authorization, not both")
            )
        headers["Authorization"] = f"Bearer {body.auth.token}"
    return headers


def _no_server() -> NotFound:
    return NotFound("There is no such tool server.")


def _no_tool(name: str) -> NotFound:
    return NotFound(f"The server has no tool {name[:128]!r}. GET its tools to see what it has.")


def _quarantined(server: Server, tool: ServerTool) -> Quarantined:
    return Quarantined(tool.name, ids.to_wire("mcp", server.id), tool.difference)
