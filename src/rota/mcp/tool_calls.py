"""Calls of tools by people and programs, through the API."""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.events import journal
from rota.mcp import queries, schemas
from rota.mcp.client import DefinitionChanged, ToolClient, ToolRemoved
from rota.mcp.errors import (
    CallRejected,
    DirectCallRefused,
    ServerError,
    ServerNotFound,
    ToolNotAccepted,
    ToolNotAllowed,
    ToolNotFound,
    ToolServerFailed,
    api_error,
    call_rejected,
    tool_lookup_failed,
)
from rota.mcp.model import Server, ServerTool, is_read_only
from rota.mcp.request_schemas import InvokeTool
from rota.mcp.results import content_blocks
from rota.mcp.schemas import InvokedResponse
from rota.platform import ids
from rota.platform.cache import ExpiringCache
from rota.platform.canonical import canonical_json, digest
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import ApiError, FieldError, ValidationFailed
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.schema import SchemaChecks

# Calls come in bursts, and the lookup takes a third of a call. Another process can change a
# server meanwhile, so an entry lives as briefly as a cached API key.
CACHE_S = 1.0
MAX_CACHED_SERVERS = 10_000


class ToolCalls:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        tool_client: ToolClient,
        schema_checks: SchemaChecks,
        *,
        max_call_s: float,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._tool_client = tool_client
        self._schema_checks = schema_checks
        # How long a call can take in all.
        self._max_call_s = max_call_s
        # Tools by name, for each account and server.
        self._recent: ExpiringCache[tuple[UUID, UUID], dict[str, tuple[Server, ServerTool]]] = (
            ExpiringCache(max_items=MAX_CACHED_SERVERS, max_age_s=CACHE_S)
        )

    async def invoke(
        self, caller: Caller, server_id: UUID | None, body: InvokeTool, idempotency_key: str | None
    ) -> Outcome:
        """Calls a tool. With a key, a repeated request never calls it again."""
        if idempotency_key is None or server_id is None:
            return Outcome.success(200, await self._invoke(caller, server_id, body))
        path = f"/api/mcp/{ids.to_wire('mcp', server_id)}/invoke"
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.write(account_id, user_id, right=caller.right) as tx:
            stored = await self._idempotency.claim(
                tx, idempotency_key, (f"POST {path}", body), self._max_call_s
            )
        if stored is not None:
            return stored
        sent = False

        async def before_send() -> None:
            nonlocal sent
            sent = True

        try:
            response = await self._invoke(caller, server_id, body, before_send)
            outcome = Outcome.success(200, response)
        except Exception as error:
            if not (sent and _may_be_made(error)):
                # The tool was not called, so the same request can be sent again.
                async with self._db.write(account_id, user_id, check_member=False) as tx:
                    await self._idempotency.release(tx, idempotency_key)
                raise
            if not isinstance(error, ApiError):
                raise
            outcome = Outcome.failure(error, path)
        # The call was made, so its outcome is stored even if the user has left the company.
        async with self._db.write(account_id, user_id, check_member=False) as tx:
            await self._idempotency.complete(tx, idempotency_key, outcome)
        return outcome

    async def _invoke(
        self,
        caller: Caller,
        server_id: UUID | None,
        body: InvokeTool,
        before_send: Callable[[], Awaitable[None]] | None = None,
    ) -> InvokedResponse:
        server, tool = await self._find_tool(caller, server_id, body.tool)
        await self._check_arguments(caller, tool, body.arguments)
        await self._record(caller, server, tool, body)
        started = time.perf_counter()
        try:
            result = await self._tool_client.call(
                server, tool, body.arguments, before_send=before_send
            )
        except DefinitionChanged as changed:
            self.forget(server)
            raise ToolNotAccepted(server, changed.tool) from None
        except ToolRemoved:
            self.forget(server)
            raise ToolNotFound(body.tool) from None
        except ServerError as error:
            self.forget(server)
            raise api_error(error) from None
        except CallRejected as error:
            raise call_rejected(error, tool.accepted or {}) from None
        if server.status not in ("CONNECTED", "CHANGED"):
            # The server was down, so its cached status is out of date.
            self.forget(server)
        latency_ms = (time.perf_counter() - started) * 1000
        return InvokedResponse(
            result=schemas.ToolResult(
                content=content_blocks(result),
                structured_content=result.structured_content,
                is_error=bool(result.is_error),
            ),
            latency_ms=round(latency_ms, 3),
        )

    async def _record(
        self, caller: Caller, server: Server, tool: ServerTool, body: InvokeTool
    ) -> None:
        """Before the call: one that cannot be recorded is not made.

        Nor is one of a user who has left the company or lost the right since the request began. Its
        body may have arrived slowly, and the server may have been asked for its tools.
        """
        details = {"tool": body.tool, "arguments": digest(canonical_json(body.arguments))}
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            if caller.account_kind == "company" and not is_read_only(tool.accepted or {}):
                await _check_policy(tx, tool)
            tx.record("tool.invoked", details, ids.to_wire("mcp", server.id))

    async def _check_arguments(
        self, caller: Caller, tool: ServerTool, arguments: dict[str, Any]
    ) -> None:
        assert tool.accepted is not None
        schema = tool.accepted.get("inputSchema") or {}
        verdict = await self._schema_checks.check(caller.account_id, schema, arguments)
        if verdict.problems:
            raise ValidationFailed.of(*[FieldError("arguments", each) for each in verdict.problems])

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
                check = await self._tool_client.refresh(server)
                if check.failure is not None:
                    raise tool_lookup_failed(name, check.failure)
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

    def forget(self, server: Server) -> None:
        """Reads the server again before the next call. To be used whenever it may have changed."""
        self._recent.drop((server.account_id, server.id))


def _may_be_made(error: Exception) -> bool:
    """Whether the tool may have been called, if a call was about to be sent before the error.

    A server that has lost its session does not run the call, which is then repeated in a new one.
    If that finds a changed tool or that the account is busy, no call is made at all.
    """
    if isinstance(error, ToolServerFailed):
        return error.sent
    return not isinstance(error, ApiError)


async def _check_policy(tx: AccountTransaction, tool: ServerTool) -> None:
    """Refuses a call that writes if the account requires a second person: it has none."""
    # Until the call is recorded, the policy stays as it is.
    await journal.lock_account(tx)
    if (await accounts.policy(tx)).second_person:
        raise DirectCallRefused(tool.name)
