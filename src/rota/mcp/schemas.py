"""Public schemas of tool servers: responses."""

from typing import Annotated, Any

from typing_extensions import TypeAliasType

from rota.auth.schemas import Actor
from rota.mcp import history, model
from rota.mcp.model import Acceptance, Server, ServerTool
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Count, Timestamp, Total, Wire, doc

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
    missing_tools: Annotated[
        list[str], doc("The names in `allowedTools` that the server does not offer.", [])
    ]
    revision: Annotated[
        Count, doc("Increases with every change of the URL, transport or credentials.", 1)
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
            missing_tools=list(server.missing_tools),
            revision=server.revision,
        )


class DefinitionChange(Wire):
    """A field of a tool's definition that changed."""

    field: Annotated[str, doc("The field that changed.", "description")]
    accepted: Annotated[Any, doc("The accepted value. Null for a new tool.", "Creates a draft.")]
    live: Annotated[
        Any, doc("The current value on the server.", "Creates a draft and publishes it.")
    ]


def _actor(acceptance: Acceptance) -> Actor:
    key = acceptance.key_id
    return Actor(
        user_id=ids.to_wire("user", acceptance.user_id),
        name=acceptance.name,
        via="key" if key else "session",
        key_id=ids.to_wire("key", key) if key else None,
    )


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
    hash: Annotated[
        str,
        doc("Identifies this definition. Send it to accept the tool.", examples.TOOL_HASH),
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
    accepted_by: Annotated[
        Actor | None,
        doc(
            "Who accepted the accepted definition. Null if the tool was never accepted, or "
            "before acceptances were recorded."
        ),
    ]
    accepted_at: Annotated[
        Timestamp | None,
        doc("When the accepted definition was accepted.", examples.SERVER_CREATED),
    ]

    @classmethod
    def of(cls, server: Server, tool: ServerTool) -> "Tool":
        live, acceptance = tool.live or {}, tool.acceptance
        return cls(
            name=tool.name,
            title=live.get("title"),
            description=live.get("description"),
            input_schema=live.get("inputSchema") or {},
            output_schema=live.get("outputSchema"),
            annotations=live.get("annotations"),
            hash=tool.live_hash or "",
            allowed=server.allows(tool.name),
            accepted=tool.usable,
            changed=tool.changed,
            difference=[DefinitionChange(**each) for each in tool.difference],
            accepted_by=_actor(acceptance) if acceptance else None,
            accepted_at=acceptance.at if acceptance else None,
        )


class ServersResponse(Wire):
    """All tool servers of the account."""

    servers: Annotated[list[ToolServer], doc("The servers, oldest first.")]
    total: Total


class PingResponse(Wire):
    """The result of a check."""

    ok: Annotated[bool, doc("Whether the server responds.", True)]
    status: Annotated[ServerStatus, doc("The status after the check.")]
    latency_ms: Annotated[float, doc("How long the check took, in milliseconds.", 42.125)]
    server: Annotated[ToolServer, doc("The server after the check.")]


class PastCheck(Wire):
    """The status of a tool server at one time."""

    checked_at: Annotated[Timestamp, doc("When it was checked.", examples.CREATED)]
    status: Annotated[ServerStatus, doc("The status after the check.")]
    latency_ms: Annotated[
        float | None,
        doc(
            "How long the server took to respond, in milliseconds. Null if it did not respond, "
            "or if nothing was measured.",
            42.125,
        ),
    ]
    error: Annotated[
        str | None,
        doc("Why the check failed. Null if it succeeded.", None, "Connection refused"),
    ]

    @classmethod
    def of(cls, check: history.PastCheck) -> "PastCheck":
        latency_ms = check.latency_ms
        return cls(
            checked_at=check.checked_at,
            status=check.status,
            latency_ms=None if latency_ms is None else round(latency_ms, 3),
            error=check.error,
        )


class ChecksResponse(Wire):
    """A page of checks."""

    checks: Annotated[list[PastCheck], doc("The checks on this page, newest first.")]
    total: Total


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


class ServerResponse(Wire):
    """A tool server."""

    server: Annotated[ToolServer, doc("The server.")]


class ServerToolsResponse(Wire):
    """A tool server and its tools."""

    server: Annotated[ToolServer, doc("The server.")]
    tools: Annotated[list[Tool], doc("Its tools.")]

    @classmethod
    def of(cls, server: Server, tools: list[ServerTool]) -> "ServerToolsResponse":
        return cls(
            server=ToolServer.of(server),
            tools=[Tool.of(server, tool) for tool in tools if tool.live is not None],
        )
