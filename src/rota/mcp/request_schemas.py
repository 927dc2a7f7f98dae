"""Public schemas of tool servers: request bodies."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, FailFast, Field
from pydantic_core import PydanticCustomError

from rota.mcp.schemas import Tool, ToolServer, Transport
from rota.platform.http import examples
from rota.platform.http.schemas import Body, doc, example_of, resource_of

MAX_HEADERS = 20
MAX_SECRET_CHARACTERS = 8_192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
_SERVER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
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


def _server_name(value: str) -> str:
    if not _SERVER_NAME.fullmatch(value):
        raise PydanticCustomError(
            "server_name",
            "must contain only lowercase letters, digits and hyphens, and must start and end with "
            "a letter or a digit",
        )
    return value


def _token(value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise PydanticCustomError("token", "must be visible ASCII")
    return value


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
# Agents refer to tools as server/tool, so only a few characters are allowed in the name.
ServerName = Annotated[
    str,
    doc(
        "A short name, unique in the account. Agents call its tools as `name/tool`. Lowercase "
        "letters, digits and inner hyphens, at most 32 characters.",
        "docs",
        json_schema_extra={"pattern": f"^{_SERVER_NAME.pattern}$"},
        max_length=32,
    ),
    AfterValidator(_server_name),
]
ServerUrl = Annotated[
    str,
    doc(
        "The URL of the MCP endpoint.",
        "https://mcp.example.com/mcp",
        min_length=1,
        max_length=2_048,
    ),
]
Headers = Annotated[
    dict[str, str],
    Field(max_length=MAX_HEADERS, examples=[{"X-Team": "blue"}]),
    AfterValidator(_headers),
]
AllowedTools = Annotated[
    list[ToolName],
    Field(max_length=500),
    AfterValidator(lambda names: list(dict.fromkeys(names))),
]


class ConnectServer(Body):
    """A tool server to connect."""

    model_config = example_of("name", "url", "transport")

    name: ServerName
    url: Annotated[
        ServerUrl,
        doc(
            "The URL of the MCP endpoint. The service connects to it before it saves anything, so "
            "replace the example with a server that exists. In production, it must use https. "
            "Private addresses are refused unless the operator allows them."
        ),
    ]
    transport: Annotated[Transport, doc("The protocol of the server.")] = "streamable-http"
    headers: Annotated[
        Headers,
        Field(
            default_factory=dict,
            repr=False,
            description="Headers to send with every request, at most 20. Values are stored "
            "encrypted and never returned.",
        ),
    ]
    auth: Annotated[
        Bearer | None,
        doc(
            "The credentials for the server. Default: none.",
            {"type": "bearer", "token": "s3cr3t-token"},
        ),
    ] = None
    allowed_tools: Annotated[
        AllowedTools | None,
        doc("The tools that can be used, at most 500 names. Default: all.", ["create_draft"]),
    ] = None


class UpdateServer(Body):
    """Changes to a tool server. Absent fields change nothing."""

    model_config = example_of("allowedTools")

    name: Annotated[ServerName | None, doc("A new name. Null changes nothing.")] = None
    url: Annotated[
        ServerUrl | None,
        doc(
            "A new URL. Stored credentials are not sent to a new URL, so send `auth` and "
            "`headers` again if the server has them. Null changes nothing."
        ),
    ] = None
    transport: Annotated[Transport | None, doc("Null changes nothing.")] = None
    headers: Annotated[
        Headers | None,
        doc(
            "Replaces all headers except `Authorization`, which belongs to `auth`. Null removes "
            "them.",
            {"X-Team": "blue"},
            repr=False,
        ),
    ] = None
    auth: Annotated[
        Bearer | None,
        doc(
            "Replaces the credentials. Null removes them.",
            {"type": "bearer", "token": "s3cr3t-token"},
        ),
    ] = None
    allowed_tools: Annotated[
        AllowedTools | None,
        doc(
            "The tools that can be used, at most 500 names. Null means all.",
            ["add", "create_draft"],
        ),
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


class ShownTool(Body):
    """A tool, with the definition that you saw."""

    name: Annotated[ToolName, doc("The name of the tool.", "add")]
    hash: Annotated[
        str,
        doc(
            "The `hash` in the list of tools. It identifies the definition in that list.",
            examples.TOOL_HASH,
            min_length=64,
            max_length=64,
        ),
    ]


class AcceptTools(Body):
    """Tools to accept."""

    # Without FailFast, thousands of wrong objects take longer to describe than to send.
    tools: Annotated[
        list[ShownTool],
        doc("The tools, at most 500.", min_length=1, max_length=500),
        FailFast(),
    ]


# A server and a tool that were read can be sent back.
resource_of(ConnectServer, UpdateServer)(ToolServer)
resource_of(ShownTool)(Tool)
