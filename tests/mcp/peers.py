"""Tool servers for tests: real ones, and one that a test controls."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.sse import SseServerTransport
from mcp_server_time.server import create_server
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

from tests.peers import installed
from tests.service import free_port, listens


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """Serves the app on a local port and yields its base URL."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_level="critical",
            lifespan="on",
            ws="none",
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
    )
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    task = asyncio.create_task(server._serve([listener]))
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


def definition(
    name: str,
    description: str = "A tool.",
    *,
    read_only: bool | None = None,
    properties: dict[str, Any] | None = None,
    required: tuple[str, ...] = (),
) -> types.Tool:
    return types.Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties or {},
            "required": list(required),
        },
        annotations=types.ToolAnnotations(read_only_hint=read_only)
        if read_only is not None
        else None,
    )


NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}


class Peer:
    """A tool server whose tools, results and HTTP status a test controls."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        self.tools: dict[str, types.Tool] = {
            tool.name: tool
            for tool in (
                definition("add", "Adds.", read_only=True, properties=NUMBERS, required=("a", "b")),
                definition("note", "Writes a note.", properties={"text": {"type": "string"}}),
                definition("wait", "Waits.", properties={"seconds": {"type": "number"}}),
                definition("fail", "Fails."),
            )
        }
        # The calls that reached the server.
        self.calls: list[tuple[str, dict[str, Any]]] = []
        # The key in `_meta` of each of these calls.
        self.keys: list[object] = []
        # The state that each of these calls gave back.
        self.states: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {}
        # If set, a list of tools waits for it.
        self.before_list: Callable[[], Awaitable[None]] | None = None
        # If set, every response has this HTTP status.
        self.status: int | None = None
        self.url = ""

    @asynccontextmanager
    async def serve(self, transport: str = "streamable-http") -> AsyncIterator["Peer"]:
        server: Server[Any] = Server("peer", on_list_tools=self._list, on_call_tool=self._call)
        app = server.streamable_http_app() if transport != "sse" else _sse(server)
        async with listening(self._with_checks(app)) as base:
            self.url = f"{base}/{'mcp' if transport != 'sse' else 'sse'}"
            yield self

    async def _list(self, *_: Any) -> types.ListToolsResult:
        if self.before_list is not None:
            await self.before_list()
        return types.ListToolsResult(tools=list(self.tools.values()))

    async def _call(
        self, _: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        arguments = params.arguments or {}
        self.calls.append((params.name, arguments))
        self.keys.append((params.meta or {}).get("rota/idempotency-key"))
        self.states.append(params.request_state)
        if params.name in self.answers:
            answer = await self.answers[params.name](arguments)
            return answer if isinstance(answer, types.InputRequiredResult) else text_result(answer)
        if params.name == "add":
            total = arguments["a"] + arguments["b"]
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=str(total))],
                structured_content={"sum": total},
            )
        if params.name == "wait":
            await asyncio.sleep(arguments.get("seconds", 0))
        if params.name == "fail":
            return types.CallToolResult(
                content=[types.TextContent(type="text", text="It did not work.")], is_error=True
            )
        return text_result("done")

    def _with_checks(self, app: Any) -> Any:
        async def checked(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = {k.decode(): v.decode() for k, v in scope["headers"]}
                self.headers.append(headers)
                status = self.status
                wanted = f"Bearer {self.token}" if self.token else None
                if wanted and headers.get("authorization") != wanted:
                    status = 401
                if status is not None:
                    await Response("no", status)(scope, receive, send)
                    return
            await app(scope, receive, send)

        return checked


def text_result(text: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(text))])


def _sse(server: Server[Any]) -> Starlette:
    transport = SseServerTransport("/messages/")

    async def stream(request: Any) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            read, write = streams
            await server.run(read, write, server.create_initialization_options())
        return Response()

    return Starlette(
        routes=[
            Route("/sse", stream, methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )


@asynccontextmanager
async def time_server() -> AsyncIterator[str]:
    """The time server of the MCP project, over HTTP."""
    async with listening(create_server("UTC").streamable_http_app()) as base:
        yield f"{base}/mcp"


@asynccontextmanager
async def everything_server(
    transport: str = "streamable-http", port: int | None = None
) -> AsyncIterator[str]:
    """The MCP reference server, which runs on Node.js."""
    port = port or free_port()
    mode = "sse" if transport == "sse" else "streamableHttp"
    process = await asyncio.create_subprocess_exec(
        "node",
        "serve.mjs",
        mode,
        cwd=installed("mcp"),
        env=os.environ | {"PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while not await listens(port):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        process.kill()
        await process.wait()
