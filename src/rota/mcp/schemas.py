"""Public schemas of tool servers."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from rota.mcp import model
from rota.mcp.model import Server, ServerTool
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    Body,
    Count,
    Timestamp,
    Total,
    Wire,
    doc,
    example_of,
    resource_of,
)

MAX_HEADERS = 20
MAX_SECRET_CHARACTERS = 8_192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
# HTTP and the protocol set these themselves.
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


Transport = TypeAliasType(
    "Transport",
    Annotated[
        model.Transport,
        doc("The protocol of a tool server. `sse` is the older one.", "streamable-http"),
    ],
)
ServerStatus = TypeAliasType(
    "ServerStatus",
    Annotated[
        model.Status,
        doc(
            "`CONNECTED`: the last check succeeded. `UNREACHABLE`: it does not respond. "
            "`AUTH_FAILED`: it refuses the credentials. `CHANGED`: a tool is new or differs from "
            "the one that was accepted.",
            "CONNECTED",
        ),
    ],
)


class Bearer(Body):
    """A bearer token for a tool server."""

    type: Annotated[Literal["bearer"], doc("Always `bearer`.", "bearer")]
    token: Annotated[
        str,
        doc(
            "The token. It is stored encrypted and never returned.",
            "s3cr3t-token",
            min_length=1,
            max_length=MAX_SECRET_CHARACTERS,
            repr=False,
        ),
        AfterValidator(_token),
    ]


ToolName = Annotated[str, doc("The name of a tool.", "create_draft", min_length=1, max_length=128)]


class ConnectServer(Body):
    """A tool server to connect."""

    model_config = example_of("name", "url", "transport")

    # Agents refer to tools as server/tool, so only a few characters are allowed in the name.
    name: Annotated[
        str,
        doc(
            "A short name, unique in the account. Agents call its tools as `name/tool`. Lowercase "
            "letters, digits and inner hyphens, at most 32 characters.",
            "docs",
            pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
            max_length=32,
        ),
    ]
    url: Annotated[
        str,
        doc(
            "The URL of the MCP endpoint. The service connects to it before it saves anything, so "
            "replace the example with a server that exists. In production, it must use https. "
            "Private addresses are refused unless the operator allows them.",
            "https://mcp.example.com/mcp",
            min_length=1,
            max_length=2_048,
        ),
    ]
    transport: Annotated[Transport, doc("The protocol of the server.")] = "streamable-http"
    headers: Annotated[
        dict[str, str],
        Field(
            default_factory=dict,
            max_length=MAX_HEADERS,
            repr=False,
            description="Headers to send with every request, at most 20. Values are stored "
            "encrypted and never returned.",
            examples=[{"X-Team": "blue"}],
        ),
        AfterValidator(_headers),
    ]
    auth: Annotated[
        Bearer | None,
        doc(
            "The credentials for the server. Default: none.",
            {"type": "bearer", "token": "s3cr3t-token"},
        ),
    ] = None
    allowed_tools: Annotated[
        Annotated[list[ToolName], Field(max_length=500)] | None,
        doc("The tools that can be used, at most 500 names. Default: all.", ["create_draft"]),
    ] = None


class InvokeTool(Body):
    """A tool call."""

    tool: Annotated[ToolName, doc("The name of the tool.", "add")]
    arguments: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="The arguments, valid against the `inputSchema` of the tool. "
            "Default: none.",
            examples=[{"a": 1, "b": 2}],
        ),
    ]


class AcceptTools(Body):
    """Tools to accept."""

    tools: Annotated[
        Annotated[list[ToolName], Field(min_length=1, max_length=500)] | None,
        doc("The names of the tools. Default: every tool that is new or changed.", ["add"]),
    ] = None


@resource_of(ConnectServer)
class ToolServer(Wire):
    """A connected tool server."""

    id: Annotated[str, doc("The ID of the server, `mcp_…`.", examples.SERVER_ID)]
    name: Annotated[str, doc("The short name. Agents call its tools as `name/tool`.", "docs")]
    url: Annotated[str, doc("The URL of the MCP endpoint.", "https://mcp.example.com/mcp")]
    transport: Annotated[Transport, doc("The protocol of the server.")]
    status: Annotated[ServerStatus, doc("The result of the last check.")]
    tool_count: Annotated[Count, doc("The number of tools that it offers.", 4)]
    last_checked_at: Annotated[Timestamp, doc("When it was last checked.", examples.CREATED)]
    last_error: Annotated[
        str | None,
        doc("Why the last check failed. Null if it succeeded.", None, "Connection refused"),
    ]
    created_at: Annotated[Timestamp, doc("When it was connected.", examples.SERVER_CREATED)]
    updated_at: Annotated[Timestamp, doc("When it last changed.", examples.SERVER_CREATED)]
    allowed_tools: Annotated[
        list[str] | None, doc("The tools that can be used. Null means all.", None, ["create_draft"])
    ]

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
    """A field of a tool's definition that changed."""

    field: Annotated[str, doc("The field that changed.", "description")]
    accepted: Annotated[Any, doc("The accepted value. Null for a new tool.", "Creates a draft.")]
    live: Annotated[
        Any, doc("The current value on the server.", "Creates a draft and publishes it.")
    ]


class Tool(Wire):
    """A tool of a tool server."""

    name: Annotated[str, doc("The name of the tool.", "create_draft")]
    title: Annotated[
        str | None, doc("The display title. Null if the server provides none.", "Create a draft")
    ]
    description: Annotated[
        str | None,
        doc("What the tool does. Null if the server provides none.", "Creates a draft document."),
    ]
    input_schema: Annotated[
        dict[str, Any],
        doc(
            "The JSON Schema of the arguments.",
            {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        ),
    ]
    output_schema: Annotated[
        dict[str, Any] | None,
        doc(
            "The JSON Schema of the structured result. Null if the server provides none.",
            None,
            {"type": "object"},
        ),
    ]
    annotations: Annotated[
        dict[str, Any] | None,
        doc(
            "Hints from the server, such as `readOnlyHint`. Null if it provides none.",
            {"readOnlyHint": False},
        ),
    ]
    allowed: Annotated[bool, doc("Whether `allowedTools` of the server permits it.", True)]
    accepted: Annotated[
        bool,
        doc("Whether a person accepted this definition. Only accepted tools are used.", True),
    ]
    changed: Annotated[
        bool, doc("Whether the definition differs from the one that was accepted.", False)
    ]
    difference: Annotated[
        list[DefinitionChange],
        doc("What differs from the accepted definition; everything for a new tool.", []),
    ]

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
    """All tool servers of the account."""

    servers: Annotated[list[ToolServer], doc("The servers, oldest first.")]
    total: Total


class ConnectedResponse(Wire):
    """A tool server that was just connected."""

    server: Annotated[ToolServer, doc("The server.")]
    tools: Annotated[list[Tool], doc("Its tools, all of which are now accepted.")]


class PingResponse(Wire):
    """The result of a check."""

    ok: Annotated[bool, doc("Whether the server responds.", True)]
    status: Annotated[ServerStatus, doc("The status after the check.")]
    latency_ms: Annotated[float, doc("How long the check took, in milliseconds.", 42.125)]
    server: Annotated[ToolServer, doc("The server after the check.")]


class ToolsResponse(Wire):
    """All tools of a tool server."""

    tools: Annotated[list[Tool], doc("The tools, in the order of the server.")]
    total: Total


class ToolResult(Wire):
    """What a tool returned."""

    content: Annotated[
        list[dict[str, Any]],
        doc("The content blocks, as the server sent them.", [{"type": "text", "text": "3"}]),
    ]
    structured_content: Annotated[
        Any, doc("The structured result. Null if the tool returned none.", {"result": 3})
    ]
    is_error: Annotated[bool, doc("Whether the tool reports that it failed.", False)]


class InvokedResponse(Wire):
    """The result of a tool call."""

    result: Annotated[ToolResult, doc("What the tool returned.")]
    latency_ms: Annotated[float, doc("How long the call took, in milliseconds.", 42.125)]


class AcceptedResponse(Wire):
    """A tool server after its tools were accepted."""

    server: Annotated[ToolServer, doc("The server.")]
    tools: Annotated[list[Tool], doc("Its tools.")]
