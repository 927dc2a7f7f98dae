"""Tool servers (MCP): connect them and call their tools."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, bodies, change, creation, id_of

ServerRef: TypeAlias = str | models.ToolServer
Auth: TypeAlias = models.Bearer | Mapping[str, Any]


class ToolServers(AsyncResource):
    async def connect(
        self,
        *,
        name: str,
        url: str,
        transport: models.Transport | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        allowed_tools: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> models.ServerToolsResponse:
        """Connects a server and reads its tools. Nothing is stored if that fails."""
        body = creation(
            models.ConnectServer,
            name=name,
            url=url,
            transport=transport,
            headers=headers,
            auth=auth,
            allowed_tools=allowed_tools,
        )
        return await self._call(
            operations.connect_server, body=body, idempotency_key=idempotency_key
        )

    def list(self) -> AsyncPages[models.ToolServer]:
        return self._whole_list(operations.list_servers, lambda r: r.servers)

    async def get(self, server: ServerRef) -> models.ToolServer:
        return (await self._call(operations.get_server, {"id": id_of(server)})).server

    async def update(
        self,
        server: ServerRef,
        *,
        name: str | Unset = UNSET,
        url: str | Unset = UNSET,
        transport: models.Transport | Unset = UNSET,
        headers: Mapping[str, str] | Unset | None = UNSET,
        auth: Auth | Unset | None = UNSET,
        allowed_tools: Sequence[str] | Unset | None = UNSET,
    ) -> models.ServerToolsResponse:
        """Changes the fields that are given, and connects again."""
        body = change(
            models.UpdateServer,
            name=name,
            url=url,
            transport=transport,
            headers=headers,
            auth=auth,
            allowed_tools=allowed_tools,
        )
        return await self._call(operations.update_server, {"id": id_of(server)}, body=body)

    async def disconnect(self, server: ServerRef) -> None:
        await self._end(operations.disconnect_server, {"id": id_of(server)})

    async def ping(self, server: ServerRef) -> models.PingResponse:
        """Whether the server answers now. A server that is down is not an error here."""
        return await self._call(operations.ping_server, {"id": id_of(server)})

    def checks(
        self, server: ServerRef, *, page_size: int | None = None
    ) -> AsyncPages[models.PastCheck]:
        """The past checks of the server, newest first."""
        return self._offset_list(
            operations.list_checks,
            lambda r: r.checks,
            page_size,
            lambda check: check.checked_at,
            {"id": id_of(server)},
        )

    def tools(self, server: ServerRef) -> AsyncPages[models.Tool]:
        return self._whole_list(operations.list_tools, lambda r: r.tools, {"id": id_of(server)})

    async def invoke(
        self,
        server: ServerRef,
        *,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> models.InvokedResponse:
        """Calls a tool once. A call whose outcome is unknown is never repeated."""
        body = creation(models.InvokeTool, tool=tool, arguments=arguments)
        path = {"id": id_of(server)}
        return await self._call(
            operations.invoke_tool, path, body=body, idempotency_key=idempotency_key
        )

    async def accept(
        self,
        server: ServerRef,
        *,
        tools: Sequence[models.Tool | models.ShownTool | Mapping[str, Any]],
    ) -> models.ServerToolsResponse:
        """Accepts the definitions of tools, as they were shown."""
        shown = [
            models.ShownTool(name=tool.name, hash=tool.hash)
            if isinstance(tool, models.Tool)
            else tool
            for tool in tools
        ]
        body = models.AcceptTools(tools=bodies(models.ShownTool, shown))
        return await self._call(operations.accept_tools, {"id": id_of(server)}, body=body)
