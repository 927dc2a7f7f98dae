"""Endpoints: tool servers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.auth.schemas import DeletedResponse
from rota.mcp import schemas
from rota.mcp.schemas import (
    AcceptedResponse,
    AcceptTools,
    ConnectedResponse,
    ConnectServer,
    InvokedResponse,
    InvokeTool,
    PingResponse,
    ServersResponse,
    ToolsResponse,
)
from rota.mcp.service import Servers
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Text
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("mcp:read"))]
Writer = Annotated[Caller, Depends(allowed("mcp:write"))]
Invoker = Annotated[Caller, Depends(allowed("mcp:invoke"))]


def mcp_routes(servers: Servers) -> APIRouter:
    router = secured_router("Tool servers")

    @router.get("/api/mcp", summary="List the connected tool servers")
    async def list_servers(caller: Reader) -> ServersResponse:
        found = await servers.all(caller)
        return ServersResponse(
            servers=[schemas.ToolServer.of(each) for each in found], total=len(found)
        )

    @router.post(
        "/api/mcp",
        status_code=201,
        response_model=ConnectedResponse,
        summary="Connect a tool server, and accept the tools that it shows",
        responses=documented(409),
    )
    async def connect_server(
        caller: Writer, body: ConnectServer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await servers.connect(caller, body, idempotency_key))

    @router.post(
        "/api/mcp/{id}/ping",
        summary="Check a tool server, also for changed tools",
        responses=documented(404),
    )
    async def ping_server(caller: Reader, id: Text) -> PingResponse:  # noqa: A002
        return await servers.ping(caller, ids.from_wire("mcp", id))

    @router.get("/api/mcp/{id}/tools", summary="List a server's tools", responses=documented(404))
    async def list_tools(caller: Reader, id: Text) -> ToolsResponse:  # noqa: A002
        tools = await servers.tools(caller, ids.from_wire("mcp", id))
        return ToolsResponse(tools=tools, total=len(tools))

    @router.post(
        "/api/mcp/{id}/invoke",
        summary="Call a tool",
        responses=documented(404, 409, 502, 504),
    )
    async def invoke_tool(
        caller: Invoker,
        id: Text,  # noqa: A002
        body: InvokeTool,
    ) -> InvokedResponse:
        return await servers.invoke(caller, ids.from_wire("mcp", id), body)

    @router.post(
        "/api/mcp/{id}/accept",
        summary="Accept tools that are new or have changed: those named, or all",
        responses=documented(404),
    )
    async def accept_tools(
        caller: Writer,
        id: Text,  # noqa: A002
        body: AcceptTools | None = None,
    ) -> AcceptedResponse:
        answer = await servers.accept(caller, ids.from_wire("mcp", id), body)
        return AcceptedResponse(server=answer.server, tools=answer.tools)

    @router.delete("/api/mcp/{id}", summary="Disconnect a tool server", responses=documented(404))
    async def disconnect_server(caller: Writer, id: Text) -> DeletedResponse:  # noqa: A002
        await servers.delete(caller, ids.from_wire("mcp", id))
        return DeletedResponse(id=id)

    return router
