"""The MCP server: its tools and methods, on the official SDK.

It keeps no state between requests, so every process can answer every request, and a restart ends
only the waits that are under way. The SDK speaks the protocol of 2026-07-28 and its predecessors on
the same URL.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from sse_starlette.sse import AppStatus
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from rota.auth.access_tokens import AccessTokens, check_program, still_allowed
from rota.auth.caller import Caller
from rota.auth.routing import renewed_caller
from rota.events.messages import StillAllowed
from rota.mcp_server.calls import READER, WRITER, Call, Calls, Created, UnknownTool
from rota.mcp_server.results import shown
from rota.mcp_server.task_handles import (
    EXTENSION,
    Handles,
    TaskParams,
    UpdateParams,
    understands_handles,
)
from rota.mcp_server.tools import INSTRUCTIONS, TOOLS, agent_tools
from rota.platform.errors import ApiError
from rota.platform.http.bodies import MAX_BODY_BYTES
from rota.platform.http.edge import as_api_error
from rota.platform.request_pace import measured

PATH = "/mcp"
# What the protocol calls a missing capability of the client.
MISSING_CAPABILITY = -32021

Context = ServerRequestContext[Any, Request]


class McpServer:
    def __init__(
        self, calls: Calls, handles: Handles, credentials: AccessTokens, *, most_agents: int
    ) -> None:
        self._calls = calls
        self._handles = handles
        self._credentials = credentials
        self._most_agents = most_agents
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the service runs. A manager of the SDK can run only once."""
        # The SDK's responses would be cut off when the service stops. Waits end by themselves then,
        # with an answer.
        AppStatus.enable_automatic_graceful_drain = False
        self._manager = StreamableHTTPSessionManager(
            self._server(), stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)

    def _server(self) -> Server[Any]:
        server: Server[Any] = Server(
            "rota",
            version=version("rota"),
            title="Rota",
            description="Gives tasks to AI agents. People approve what the agents do.",
            instructions=INSTRUCTIONS,
            # No tool mirrors its arguments into headers, so there is nothing to compare.
            get_tool_input_schema=lambda name: None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,  # type: ignore[arg-type]
        )
        # Edge traces requests. The SDK handles messages in tasks of their own, often after the
        # response has begun.
        server.middleware = [_count]
        server.extensions = {EXTENSION: {}}
        server.add_request_handler("tasks/get", TaskParams, self._get_handle)
        server.add_request_handler("tasks/update", UpdateParams, self._update_handle)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel_handle)
        return server

    async def _list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        caller = await self._caller(context)
        assert context.request is not None
        scope = context.request.scope
        try:
            agents = await self._calls.open_agents(caller, scope) if self._most_agents else []
        except Exception as raised:
            raise _protocol_error(as_api_error(raised)) from None
        return ListToolsResult(tools=[*TOOLS, *agent_tools(agents, self._most_agents)])

    async def _call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | dict[str, Any]:
        caller = await self._caller(context)
        assert context.request is not None

        async def report(progress: int, message: str) -> None:
            await context.session.report_progress(progress, message=message)

        call = Call(
            caller, context.request.scope, self._still_allowed(context.request, caller), report
        )
        try:
            outcome = await self._calls.run(call, params.name, params.arguments)
        except UnknownTool:
            raise MCPError(
                code=INVALID_PARAMS,
                message=f"Unknown tool: {params.name[:100]!r}. tools/list lists all tools.",
            ) from None
        if isinstance(outcome, Created):
            if understands_handles(context):
                return self._handles.created(caller, outcome.task)
            return outcome.result
        return outcome

    async def _get_handle(self, context: Context, params: TaskParams) -> dict[str, Any]:
        caller = await self._task_caller(context)
        try:
            return await self._handles.detailed(context, READER.check(caller), params.task_id)
        except Exception as raised:
            raise _protocol_error(as_api_error(raised)) from None

    async def _update_handle(self, context: Context, params: UpdateParams) -> dict[str, Any]:
        """What a client answers decides nothing: a person decides in the dashboard."""
        await self._get_handle(context, params)
        return {}

    async def _cancel_handle(self, context: Context, params: TaskParams) -> dict[str, Any]:
        caller = await self._task_caller(context)
        try:
            await self._calls.cancel(WRITER.check(caller), params.task_id)
        except Exception as raised:
            raise _protocol_error(as_api_error(raised)) from None
        return {}

    async def _task_caller(self, context: Context) -> Caller:
        if not understands_handles(context):
            raise MCPError(
                code=MISSING_CAPABILITY,
                message="Missing required client capability",
                data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            )
        return await self._caller(context)

    async def _caller(self, context: Context) -> Caller:
        assert context.request is not None
        try:
            return check_program(await renewed_caller(context.request.scope), PATH)
        except ApiError as error:
            raise _protocol_error(error) from None

    def _still_allowed(self, request: Request, before: Caller) -> StillAllowed:
        return still_allowed(self._credentials, request, PATH, before, READER)


async def _count(ctx: Context, call_next: CallNext) -> HandlerResult:
    return await measured(call_next(ctx))


def _protocol_error(error: ApiError) -> MCPError:
    """For what is not a tool: the same code and message, in the form of the protocol."""
    if error.status >= 500:
        code = INTERNAL_ERROR
    else:
        # Whoever may not do something, or not yet, has sent valid parameters.
        code = INVALID_REQUEST if error.status in (401, 403, 429) else INVALID_PARAMS
    data = shown(error)
    return MCPError(code=code, message=data.pop("message"), data=data)
