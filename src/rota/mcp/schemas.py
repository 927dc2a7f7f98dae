"""Wire shapes of tool servers."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rota.mcp.model import Server, ServerTool, Status, Transport
from rota.platform import ids
from rota.platform.http.schemas import Body, Timestamp, Wire

MAX_HEADERS = 20
MAX_SECRET_CHARACTERS = 8_192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
# What HTTP and the protocol need for themselves.
_RESERVED = {
    *("host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade"),
    *("accept", "accept-encoding", "te", "trailer", "expect", "keep-alive", "proxy-authorization"),
    *("proxy-connection", "mcp-session-id", "mcp-protocol-version", "last-event-id"),
}


def _headers(value: dict[str, str]) -> dict[str, str]:
    # The messages never repeat a value: it is a secret.
    seen: set[str] = set()
    for name, text in value.items():
        low = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise PydanticCustomError("header", "a header name is not valid")
        if low in _RESERVED or low.startswith("mcp-"):
            raise PydanticCustomError("header", "a header is reserved for HTTP or MCP")
        if low in seen:
            raise PydanticCustomError("header", "a header appears twice")
        if len(text) > MAX_SECRET_CHARACTERS or not _HEADER_VALUE.fullmatch(text):
            raise PydanticCustomError("header", "a header value must be visible ASCII")
        seen.add(low)
    return value


def _token(value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise PydanticCustomError("token", "must be visible ASCII")
    return value


class Bearer(Body):
    type: Literal["bearer"]
    token: Annotated[
        str,
        Field(min_length=1, max_length=MAX_SECRET_CHARACTERS, repr=False),
        AfterValidator(_token),
    ]


ToolName = Annotated[str, Field(min_length=1, max_length=128)]


class ConnectServer(Body):
    # Agents name tools as server/tool, so the name is made of few characters.
    name: Annotated[
        str,
        Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=32, examples=["weather"]),
    ]
    url: Annotated[
        str, Field(min_length=1, max_length=2_048, examples=["https://mcp.example.com/mcp"])
    ]
    transport: Transport = "streamable-http"
    headers: Annotated[
        dict[str, str],
        Field(
            default_factory=dict,
            max_length=MAX_HEADERS,
            repr=False,
            examples=[{"X-Team": "blue"}],
        ),
        AfterValidator(_headers),
    ]
    auth: Bearer | None = None
    allowed_tools: Annotated[list[ToolName], Field(max_length=500)] | None = None


class InvokeTool(Body):
    tool: Annotated[ToolName, Field(examples=["add"])]
    arguments: Annotated[dict[str, Any], Field(default_factory=dict, examples=[{"a": 1, "b": 2}])]


class AcceptTools(Body):
    tools: Annotated[list[ToolName], Field(min_length=1, max_length=500)] | None = None


class ToolServer(Wire):
    id: str
    name: str
    url: str
    transport: Transport
    status: Status
    tool_count: int
    last_checked_at: Timestamp
    last_error: str | None
    created_at: Timestamp
    updated_at: Timestamp
    allowed_tools: list[str] | None

    @classmethod
    def of(cls, server: Server) -> "ToolServer":
        return cls(
            id=ids.to_wire("mcp", server.id),
            name=server.name,
            url=server.url,
            transport=server.transport,
            status=server.status,
            tool_count=server.tool_count,
            last_checked_at=server.last_checked_at,
            last_error=server.last_error,
            created_at=server.created_at,
            updated_at=server.updated_at,
            allowed_tools=server.allowed_tools,
        )


class DefinitionChange(Wire):
    field: str
    accepted: Any
    live: Any


class Tool(Wire):
    name: str
    title: str | None
    description: str | None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    # Whether `allowedTools` lets it be used.
    allowed: bool
    # Whether a person has accepted it as it is now; it is used only then.
    accepted: bool
    # Whether it was accepted once, and is another since.
    changed: bool
    difference: list[DefinitionChange]

    @classmethod
    def of(cls, server: Server, tool: ServerTool) -> "Tool":
        live = tool.live or {}
        return cls(
            name=tool.name,
            title=live.get("title"),
            description=live.get("description"),
            input_schema=live.get("inputSchema") or {},
            output_schema=live.get("outputSchema"),
            annotations=live.get("annotations"),
            allowed=server.allows(tool.name),
            accepted=tool.usable,
            changed=tool.changed,
            difference=[DefinitionChange(**each) for each in tool.difference],
        )


class ServersResponse(Wire):
    servers: list[ToolServer]
    total: int


class ConnectedResponse(Wire):
    server: ToolServer
    tools: list[Tool]


class PingResponse(Wire):
    ok: bool
    status: Status
    latency_ms: float
    server: ToolServer


class ToolsResponse(Wire):
    tools: list[Tool]
    total: int


class ToolResult(Wire):
    content: list[dict[str, Any]]
    structured_content: Any
    is_error: bool


class InvokedResponse(Wire):
    result: ToolResult
    latency_ms: float


class AcceptedResponse(Wire):
    server: ToolServer
    tools: list[Tool]
