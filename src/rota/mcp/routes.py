"""Endpoints: tool servers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.auth.schemas import DeletedResponse
from rota.mcp import schemas
from rota.mcp.request_schemas import AcceptTools, ConnectServer, InvokeTool, UpdateServer
from rota.mcp.schemas import (
    ChecksResponse,
    InvokedResponse,
    PingResponse,
    ServerResponse,
    ServersResponse,
    ServerToolsResponse,
    ToolsResponse,
)
from rota.mcp.service import Servers
from rota.mcp.tool_calls import ToolCalls
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, path_id
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("mcp:read"))]
Writer = Annotated[Caller, Depends(allowed("mcp:write", right="servers"))]
Invoker = Annotated[Caller, Depends(allowed("mcp:invoke", right="approve"))]
ServerId = Annotated[Text, path_id("server", examples.SERVER_ID)]


def mcp_routes(servers: Servers, tool_calls: ToolCalls) -> APIRouter:
    router = secured_router("Tool servers")

    @router.get("/api/mcp", summary="List tool servers")
    async def list_servers(caller: Reader) -> ServersResponse:
        """Returns every tool server that the account has connected."""
        found = await servers.all(caller)
        return ServersResponse(
            servers=[schemas.ToolServer.of(each) for each in found], total=len(found)
        )

    @router.post(
        "/api/mcp",
        status_code=201,
        response_model=ServerToolsResponse,
        summary="Connect a tool server",
        responses=documented(409),
    )
    async def connect_server(
        caller: Writer, body: ConnectServer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Connects to the server, reads its tools and accepts them.

        The service connects before it responds: if the server does not respond, the response is
        400 with the reason, and nothing is saved. Returns 409 if the name or URL is already
        connected, or if the account has no room for the definitions of the tools
        (`TOOLS_TOO_LARGE`). Tools that change later are not used until a person accepts them again.
        """
        return respond(await servers.connect(caller, body, idempotency_key))

    @router.get("/api/mcp/{id}", summary="Get a tool server", responses=documented(404))
    async def get_server(caller: Reader, id: ServerId) -> ServerResponse:  # noqa: A002
        """Returns the server, with the result of its last check."""
        server = await servers.get(caller, ids.from_wire("mcp", id))
        return ServerResponse(server=schemas.ToolServer.of(server))

    @router.patch("/api/mcp/{id}", summary="Change a tool server", responses=documented(404, 409))
    async def update_server(
        caller: Writer,
        id: ServerId,  # noqa: A002
        body: UpdateServer,
    ) -> ServerToolsResponse:
        """Changes the fields that you send.

        A change of `url`, `transport`, `headers` or `auth` connects before it is saved: if the
        server does not respond, the response is 400 with the reason, and nothing is saved. It
        increases `revision`. Tools whose definitions differ from the accepted ones have to be
        accepted again. Returns 409 if the name or URL is already connected, or if the account has
        no room for the definitions of the tools (`TOOLS_TOO_LARGE`).
        """
        return await servers.update(caller, ids.from_wire("mcp", id), body)

    @router.post(
        "/api/mcp/{id}/ping",
        summary="Check a tool server",
        responses=documented(404, 409),
    )
    async def ping_server(caller: Reader, id: ServerId) -> PingResponse:  # noqa: A002
        """Connects to the server now and updates its status and tools. The response is 200 even
        if the server is down; `ok` is then false. Returns 409 (`TOOLS_TOO_LARGE`) if the account
        has no room for the definitions of the tools."""
        return await servers.ping(caller, ids.from_wire("mcp", id))

    @router.get(
        "/api/mcp/{id}/checks",
        summary="List the checks of a tool server",
        responses=documented(404),
    )
    async def list_checks(
        caller: Reader,
        id: ServerId,  # noqa: A002
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> ChecksResponse:
        """Returns the history of the server's status, newest first. The last 500 checks are kept.
        While the status stays the same, there is at most one entry per minute."""
        found, total = await servers.checks(caller, ids.from_wire("mcp", id), limit, offset)
        return ChecksResponse(checks=[schemas.PastCheck.of(each) for each in found], total=total)

    @router.get(
        "/api/mcp/{id}/tools",
        summary="List the tools of a server",
        responses=documented(404, 409),
    )
    async def list_tools(caller: Reader, id: ServerId) -> ToolsResponse:  # noqa: A002
        """Returns the tools that the server offers now. If it does not respond, returns
        the last known tools. Returns 409 (`TOOLS_TOO_LARGE`) if the account has no room for their
        definitions."""
        tools = await servers.tools(caller, ids.from_wire("mcp", id))
        return ToolsResponse(tools=tools, total=len(tools))

    @router.post(
        "/api/mcp/{id}/invoke",
        response_model=InvokedResponse,
        summary="Call a tool",
        responses=documented(404, 409, 502, 504),
    )
    async def invoke_tool(
        caller: Invoker,
        id: ServerId,  # noqa: A002
        body: InvokeTool,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Calls a tool and returns its result.

        The arguments are first checked against the schema of the tool (400). Returns 404 if the
        server does not have the tool, 403 if the tool is not in `allowedTools`, and 409 if its
        definition has changed since it was accepted. Returns 502 if the server fails, and 504 if
        it does not respond in time; the call may then have taken effect.

        With an `Idempotency-Key`, a repeated request never calls the tool again. If the first
        request was interrupted, the response is 409, because its outcome is unknown.
        """
        server_id = ids.from_wire("mcp", id)
        return respond(await tool_calls.invoke(caller, server_id, body, idempotency_key))

    @router.post(
        "/api/mcp/{id}/accept",
        summary="Accept changed tools",
        responses=documented(404, 409),
    )
    async def accept_tools(
        caller: Writer,
        id: ServerId,  # noqa: A002
        body: AcceptTools,
    ) -> ServerToolsResponse:
        """Accepts tools that are new or have changed.

        `GET /api/mcp/{id}/tools` shows what changed, and the `hash` of each definition. Returns
        404 for an unknown tool. Returns 409 if a definition is not the one that you saw; then
        nothing is accepted, and `details.tools` shows the current definitions.
        """
        return await servers.accept(caller, ids.from_wire("mcp", id), body)

    @router.delete("/api/mcp/{id}", summary="Disconnect a tool server", responses=documented(404))
    async def disconnect_server(caller: Writer, id: ServerId) -> DeletedResponse:  # noqa: A002
        """Disconnects the server and deletes its credentials. Agents can no longer call its
        tools."""
        await servers.delete(caller, ids.from_wire("mcp", id))
        return DeletedResponse(id=id)

    return router
