"""Connects, changes, lists, checks and disconnects tool servers."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import orjson

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.mcp import history, queries, schemas
from rota.mcp.addresses import AUTHORIZATION, changed_address, changed_fields, new_address
from rota.mcp.client import Check, ToolClient
from rota.mcp.definitions import save as save_definitions
from rota.mcp.errors import (
    ConnectPassRequired,
    CredentialsRejected,
    DefinitionNotShown,
    DefinitionsTooLarge,
    ServerChanged,
    ServerError,
    ServerNameTaken,
    ServerNotFound,
    ServerUrlTaken,
    ToolNotFound,
    ToolsTooLarge,
    TooManyServers,
)
from rota.mcp.health import MAX_EVENT_TOOLS, Health, append_event
from rota.mcp.history import PastCheck
from rota.mcp.model import Acceptance, Server, ServerTool, seal_context
from rota.mcp.request_schemas import AcceptTools, ConnectServer, UpdateServer
from rota.mcp.schemas import PingResponse, ServerToolsResponse
from rota.mcp.server_limit import MAX_SERVERS, HasPass, Holder, ServerLimit
from rota.mcp.session import Address, Session
from rota.mcp.sessions import Sessions
from rota.mcp.tool_calls import ToolCalls
from rota.platform import clock, ids
from rota.platform.crypto import Vault
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.egress import Egress
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.ids import new_uuid

OPERATION = "POST /api/mcp"


class Servers:
    def __init__(
        self,
        db: Database,
        vault: Vault,
        idempotency: Idempotency,
        egress: Egress,
        sessions: Sessions,
        tool_client: ToolClient,
        tool_calls: ToolCalls,
        health: Health,
        *,
        server_limit: ServerLimit,
        has_pass: HasPass,
    ) -> None:
        self._db = db
        self._vault = vault
        self._idempotency = idempotency
        self._egress = egress
        self._sessions = sessions
        self._tool_client = tool_client
        self._tool_calls = tool_calls
        self._health = health
        self._server_limit = server_limit
        self._has_pass = has_pass

    async def all(self, caller: Caller) -> list[Server]:
        async with self._db.read(caller.account_id) as tx:
            return await queries.all_servers(tx)

    async def get(self, caller: Caller, server_id: UUID | None) -> Server:
        return await self._find(caller, server_id)

    async def checks(
        self, caller: Caller, server_id: UUID | None, limit: int, offset: int
    ) -> tuple[list[PastCheck], int]:
        """A page of the server's past checks, newest first, and their number."""
        async with self._db.snapshot(caller.account_id) as tx:
            if server_id is None or await queries.find(tx, server_id) is None:
                raise ServerNotFound
            return await history.page(tx, server_id, limit, offset)

    async def connect(
        self, caller: Caller, body: ConnectServer, idempotency_key: str | None
    ) -> Outcome:
        """Connects outside of any transaction, then saves the server and its tools."""
        address = new_address(self._egress, body)
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            stored = await self._idempotency.stored(tx, idempotency_key, (OPERATION, body))
            if stored is not None:
                return stored
            await self._check_limit(tx, caller, body.name, address.url)
        session = await self._open(caller, address)
        server_id = new_uuid()
        saved = False
        try:
            async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
                outcome = await self._idempotency.once(
                    tx,
                    idempotency_key,
                    (OPERATION, body),
                    201,
                    lambda: self._save(tx, caller, server_id, body, address, session),
                )
                saved = not outcome.replayed
        except DefinitionsTooLarge:
            raise ToolsTooLarge from None
        finally:
            if saved:
                self._sessions.add(caller.account_id, (server_id, 1), session)
            else:
                self._sessions.close_in_background(session)
        return outcome

    async def _open(self, caller: Caller, address: Address) -> Session:
        try:
            return await self._sessions.open(caller.account_id, address)
        except ServerError as error:
            problem = FieldError("url", f"Could not connect to the server. {error.message}")
            raise ValidationFailed.of(problem) from None

    async def _check_limit(self, tx: AccountReader, caller: Caller, name: str, url: str) -> None:
        usage = await _check_unique(tx, name, url)
        has_pass = await self._has_pass(tx)
        limit = self._server_limit(Holder(caller.tier, has_pass))
        if usage.server_count >= limit:
            if limit == MAX_SERVERS:
                raise TooManyServers(limit)
            raise ConnectPassRequired(limit, caller.account_kind)

    async def _save(
        self,
        tx: AccountTransaction,
        caller: Caller,
        server_id: UUID,
        body: ConnectServer,
        address: Address,
        session: Session,
    ) -> ServerToolsResponse:
        account_id = caller.account_id
        # Lock before counting. Otherwise two requests could both count before either one saves.
        await accounts.lock(tx)
        await self._check_limit(tx, caller, body.name, address.url)
        now = clock.now()
        server = Server(
            account_id=account_id,
            id=server_id,
            name=body.name,
            url=address.url,
            transport=address.transport,
            status="CONNECTED",
            allowed_tools=body.allowed_tools,
            sealed_headers=self._sealed(address, account_id, server_id),
            last_error=None,
            last_checked_at=now,
            created_at=now,
            updated_at=now,
            shaped_by=[caller.user_id],
        )
        check_due_at = now + timedelta(seconds=self._health.next_check_in_s)
        await queries.insert(tx, server, check_due_at)
        await history.add(tx, server_id, server.status)
        # The response shows the tools, so connecting a server accepts them.
        acceptance = await _acceptance(tx, caller, now)
        await save_definitions(tx, server_id, [], session.listed, acceptance=acceptance)
        by = ids.to_wire("user", caller.user_id)
        await append_event(tx, server, "mcp.connected", status=server.status, by=by)
        saved = await queries.find(tx, server_id)
        assert saved is not None
        tools = await queries.tools_of(tx, server_id)
        return ServerToolsResponse(
            server=schemas.ToolServer.of(saved),
            tools=[schemas.Tool.of(saved, tool) for tool in tools],
        )

    def _sealed(self, address: Address, account_id: UUID, server_id: UUID) -> bytes | None:
        if not address.headers:
            return None
        context = seal_context(account_id, server_id)
        return self._vault.seal(orjson.dumps(address.headers), context)

    async def update(
        self, caller: Caller, server_id: UUID | None, body: UpdateServer
    ) -> ServerToolsResponse:
        """Saves the changes. Connects first if they concern the connection."""
        server = await self._find(caller, server_id)
        before = self._address(server, body)
        address = changed_address(self._egress, before, body)
        fields = changed_fields(before, address)
        async with self._db.read(caller.account_id) as tx:
            await _check_unique(tx, body.name or server.name, address.url, server.id)
        session = await self._open(caller, address) if fields else None
        saved = None
        try:
            async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
                after, tools = await self._save_changes(
                    tx, caller, server, body, address, fields, session
                )
            saved = after
        except DefinitionsTooLarge:
            raise ToolsTooLarge from None
        finally:
            if session is not None and saved is not None:
                self._sessions.add(caller.account_id, saved.session_key, session)
            elif session is not None:
                self._sessions.close_in_background(session)
        self._tool_calls.forget(after)
        return ServerToolsResponse.of(after, tools)

    def _address(self, server: Server, body: UpdateServer) -> Address:
        """The current address. Its headers are decrypted only if the request needs them."""
        headers: dict[str, str] = {}
        if body.url or body.transport or {"headers", "auth"} & body.model_fields_set:
            try:
                headers = self._tool_client.headers_of(server)
            except CredentialsRejected as error:
                if not {"headers", "auth"} <= body.model_fields_set:
                    message = "The stored credentials cannot be decrypted. Send auth and headers."
                    raise ValidationFailed.of(FieldError("auth", message)) from error
                # Differs from whatever the request sends, so it is replaced.
                headers = {AUTHORIZATION: ""}
        return Address(server.url, server.transport, headers)

    async def _save_changes(
        self,
        tx: AccountTransaction,
        caller: Caller,
        server: Server,
        body: UpdateServer,
        address: Address,
        fields: list[str],
        session: Session | None,
    ) -> tuple[Server, list[ServerTool]]:
        # Lock before the check. Otherwise two requests could both check before either one saves.
        await accounts.lock(tx)
        locked = await queries.lock(tx, server.id)
        if locked is None:
            raise ServerNotFound
        if session is not None and locked.revision != server.revision:
            raise ServerChanged
        updated = locked
        if body.name is not None:
            updated = replace(updated, name=body.name)
        if "allowed_tools" in body.model_fields_set:
            updated = replace(updated, allowed_tools=body.allowed_tools)
        if session is not None:
            updated = replace(
                updated,
                url=address.url,
                transport=address.transport,
                sealed_headers=self._sealed(address, server.account_id, server.id),
                revision=locked.revision + 1,
            )
        await _check_unique(tx, updated.name, updated.url, server.id)
        if updated.name != locked.name:
            fields = ["name", *fields]
        if fields and caller.user_id not in locked.shaped_by:
            # Calls go somewhere else now, or agents find another server by this name.
            updated = replace(updated, shaped_by=[*locked.shaped_by, caller.user_id])
        if updated.allowed_tools != locked.allowed_tools:
            fields = [*fields, "allowedTools"]
        if fields:
            await queries.update(tx, updated)
            by = ids.to_wire("user", caller.user_id)
            await append_event(
                tx, updated, "mcp.changed", fields=fields, revision=updated.revision, by=by
            )
            # The definitions of a changed connection are saved, but not accepted.
            if session is not None:
                updated = await self._health.save_tools(tx, updated, session.listed)
            else:
                updated = await self._health.update_status(tx, updated)
        return updated, await queries.tools_of(tx, server.id)

    async def ping(self, caller: Caller, server_id: UUID | None) -> PingResponse:
        server = await self._find(caller, server_id)
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            tx.record("mcp.pinged", {}, ids.to_wire("mcp", server.id))
        check = await self._refresh(server)
        after = check.server
        if after is None:
            raise ServerNotFound
        return PingResponse(
            ok=after.status in ("CONNECTED", "CHANGED"),
            status=after.status,
            latency_ms=round(check.latency_ms, 3),
            server=schemas.ToolServer.of(after),
        )

    async def tools(self, caller: Caller, server_id: UUID | None) -> list[schemas.Tool]:
        """The server's current tools, or the last known ones if it does not respond."""
        server = await self._find(caller, server_id)
        await self._refresh(server)
        async with self._db.read(caller.account_id) as tx:
            found = await queries.tools_of(tx, server.id)
        return [schemas.Tool.of(server, tool) for tool in found if tool.live is not None]

    async def _refresh(self, server: Server) -> Check:
        check = await self._tool_client.refresh(server)
        if isinstance(check.failure, DefinitionsTooLarge):
            raise ToolsTooLarge
        return check

    async def accept(
        self, caller: Caller, server_id: UUID | None, body: AcceptTools
    ) -> ServerToolsResponse:
        """Accepts the named tools, if their definitions are still the ones that were shown."""
        server = await self._find(caller, server_id)
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
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
            await queries.accept(tx, server.id, names, await _acceptance(tx, caller, clock.now()))
            if names:
                by = ids.to_wire("user", caller.user_id)
                accepted = names[:MAX_EVENT_TOOLS]
                await append_event(tx, locked, "mcp.changed", accepted=accepted, by=by)
            after = await self._health.update_status(tx, locked)
            tools = await queries.tools_of(tx, server.id)
        return ServerToolsResponse.of(after, tools)

    async def delete(self, caller: Caller, server_id: UUID | None) -> None:
        server = await self._find(caller, server_id)
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            if await queries.delete(tx, server.id) is None:
                raise ServerNotFound
            by = ids.to_wire("user", caller.user_id)
            await append_event(tx, server, "mcp.disconnected", by=by)
        self._tool_calls.forget(server)
        self._sessions.remove(server.id)

    async def _find(self, caller: Caller, server_id: UUID | None) -> Server:
        if server_id is None:
            raise ServerNotFound
        async with self._db.read(caller.account_id) as tx:
            server = await queries.find(tx, server_id)
        if server is None:
            raise ServerNotFound
        # Most callers of this method check or change the server.
        self._tool_calls.forget(server)
        return server


async def _check_unique(
    tx: AccountReader, name: str, url: str, server_id: UUID | None = None
) -> queries.Usage:
    """Refuses a name or a URL that another server of the account has."""
    usage = await queries.usage(tx, name, url, without=server_id)
    if usage.name_taken:
        raise ServerNameTaken(name)
    if usage.url_taken:
        raise ServerUrlTaken(url)
    return usage


async def _acceptance(tx: AccountReader, caller: Caller, now: datetime) -> Acceptance:
    name = await accounts.own_name(tx)
    return Acceptance(caller.user_id, name, caller.key_id, now)
