"""Failures of tool servers, and the API errors that report them."""

from typing import Any

import mcp_types as types

from rota.accounts.model import Kind
from rota.auth.errors import SecondPersonRequired
from rota.mcp.model import Definition, Server, ServerTool, Status
from rota.platform import ids
from rota.platform.errors import ApiError, Conflict, Forbidden, NotFound

MAX_DEFINITIONS_MIB = 8
DEFINITIONS_TOO_LARGE = (
    f"The tool definitions of this account would be larger than {MAX_DEFINITIONS_MIB} MiB. "
    "Disconnect a server that you do not need, or connect one that offers fewer tools."
)


class ServerError(Exception):
    """A tool server failed. `sent` is False if the request certainly did not reach it."""

    status: Status = "UNREACHABLE"
    # Whether a call of a tool failed, and not connecting or a list of tools.
    of_call = False

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class ServerUnreachable(ServerError):
    """The connection failed, or the server responded with an HTTP error."""


class CredentialsRejected(ServerError):
    """The server requires other credentials."""

    status: Status = "AUTH_FAILED"


class InvalidResponse(ServerError):
    """The server's response is not valid, or it exceeds a limit."""


class ServerTimeout(ServerError):
    """The server did not respond in time."""


class ServerBusy(ServerError):
    """Not sent, because the account uses its whole share of this process."""


class DefinitionsTooLarge(ServerError):
    """The account has no room for the definitions that the server sent. They were not saved."""

    def __init__(self) -> None:
        super().__init__(DEFINITIONS_TOO_LARGE, sent=False)


# Codes for requests that a server does not handle. In earlier versions of the protocol, they belong
# to the server.
_REFUSED = (
    types.HEADER_MISMATCH,
    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
    types.UNSUPPORTED_PROTOCOL_VERSION,
)


class CallRejected(Exception):
    """The server responded to a request with an error of the protocol."""

    def __init__(self, message: str, code: int, *, is_modern: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        # Whether the session has a protocol version without a handshake.
        self.is_modern = is_modern

    def may_have_run(self, definition: Definition) -> bool:
        """Whether the tool may have run. Many servers report its failures with such errors."""
        if self.code == types.INVALID_PARAMS:
            # Servers also send it for a result that does not match the schema of the tool's output.
            return definition.get("outputSchema") is not None
        if self.is_modern and self.code in _REFUSED:
            return False
        return self.code not in (types.INVALID_REQUEST, types.METHOD_NOT_FOUND)


class ServerNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Tool server not found. GET /api/mcp lists the tool servers.")


class ToolNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"The server has no tool named {name[:128]!r}. List its tools to see their names."
        )


class ServerNameTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"A tool server named {name} is already connected. Choose another name.")


class ServerUrlTaken(Conflict):
    def __init__(self, url: str) -> None:
        super().__init__(
            f"A tool server with the URL {url} is already connected. Use that server, or "
            "disconnect it first."
        )


class ServerChanged(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Another request changed the connection of this tool server at the same time. Read the "
            "server, then try again."
        )


class TooManyServers(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"An account can connect {limit} tool servers. Disconnect one first.")


class ToolsTooLarge(Conflict):
    code = "TOOLS_TOO_LARGE"

    def __init__(self) -> None:
        super().__init__(DEFINITIONS_TOO_LARGE)


class ConnectPassRequired(Forbidden):
    """The account has as many servers as it can connect without the connect pass, which only
    personal accounts can have."""

    def __init__(self, limit: int, kind: Kind) -> None:
        servers = "1 tool server" if limit == 1 else f"{limit} tool servers"
        if kind == "personal":
            message = (
                f"Without the connect pass, this account can connect {servers}. "
                "Disconnect one or buy the connect pass."
            )
        else:
            message = (
                f"A company of this tier can connect {servers}. Disconnect one, or ask the "
                "operator of this service for a higher tier."
            )
        super().__init__(message)


class ToolNotAllowed(Forbidden):
    def __init__(self, server: Server, name: str) -> None:
        super().__init__(
            f"The tool {name} is not in the allowedTools of the server {server.name}. To use it, "
            f"add it to allowedTools with PATCH /api/mcp/{ids.to_wire('mcp', server.id)}."
        )


class DirectCallRefused(SecondPersonRequired):
    def __init__(self, name: str) -> None:
        super().__init__(
            "This account requires a second person's approval, so tools that write cannot be "
            f"called directly. Let an agent call {name} in a task."
        )


class ToolNotAccepted(Conflict):
    """The tool is new, or its definition has changed since it was accepted."""

    def __init__(self, server: Server, tool: ServerTool) -> None:
        problem = (
            f"The definition of {tool.name} differs from the accepted one."
            if tool.changed
            else f"The tool {tool.name} is new and has not been accepted."
        )
        super().__init__(
            f"{problem} Check the difference, then accept the tool with "
            f"POST /api/mcp/{ids.to_wire('mcp', server.id)}/accept.",
            details={"difference": tool.difference, "hash": tool.live_hash},
        )


class DefinitionNotShown(Conflict):
    """A definition is not the one that the person saw. Carries the current ones."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        names = ", ".join(tool["name"] for tool in tools[:10])
        super().__init__(
            f"The definitions of these tools are not the ones that you sent: {names}. Nothing was "
            "accepted. Check the current definitions in details, then accept their hashes.",
            details={"tools": tools},
        )


class ToolServerFailed(ApiError):
    status = 502
    code = "TOOL_SERVER_ERROR"

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        # Whether the call may have taken effect.
        self.sent = sent


class ToolServerTimeout(ToolServerFailed):
    status = 504
    code = "TOOL_SERVER_TIMEOUT"


def call_rejected(error: CallRejected, definition: Definition) -> ToolServerFailed:
    may_have_run = error.may_have_run(definition)
    next_step = (
        "The call may have taken effect: check that, correct the call, then try again."
        if may_have_run
        else "The tool did not run. Correct the call, then try again."
    )
    message = f"The tool server rejected the call: {sentence(error.message)} {next_step}"
    return ToolServerFailed(message, sent=may_have_run)


def api_error(error: ServerError) -> ApiError:
    """The error of a tool call."""
    if isinstance(error, DefinitionsTooLarge):
        return ToolsTooLarge()
    if isinstance(error, ServerTimeout):
        message = f"The tool server did not respond in time. {error.message} {_next(error)}"
        return ToolServerTimeout(message, sent=error.sent)
    message = f"The tool server failed. {error.message} {_next(error)}"
    return ToolServerFailed(message, sent=error.sent)


def sentence(text: str) -> str:
    """The text of a server, before another sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _next(error: ServerError) -> str:
    if error.sent:
        return "The call may have taken effect: check that before you call the tool again."
    return "The call was not made. Check the server, then try again."


def tool_lookup_failed(name: str, error: ServerError) -> ApiError:
    """The tool is not known, and the server cannot be asked for it."""
    if isinstance(error, DefinitionsTooLarge):
        return ToolsTooLarge()
    happened = {
        CredentialsRejected: "refuses the credentials",
        InvalidResponse: "sent an invalid response",
        ServerTimeout: "did not respond in time",
    }.get(type(error), "is not available")
    kind = ToolServerTimeout if isinstance(error, ServerTimeout) else ToolServerFailed
    return kind(
        f"The tool server {happened}, so Rota cannot look up the tool {name[:128]!r}, which was "
        f"not in its last list. {error.message}",
        sent=False,
    )
