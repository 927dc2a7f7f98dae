"""Failures of tool servers, and the API errors that report them."""

from typing import Any

from rota.mcp.model import Status
from rota.platform.errors import ApiError, Conflict


class ServerError(Exception):
    """A tool server failed. `sent` is False if the request certainly did not reach it."""

    status: Status = "UNREACHABLE"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class ServerUnreachable(ServerError):
    """The connection failed, or the server answered with an HTTP error."""


class CredentialsRejected(ServerError):
    """The server requires other credentials."""

    status: Status = "AUTH_FAILED"


class InvalidResponse(ServerError):
    """The server's response is not valid, or it exceeds a limit."""


class ServerTimeout(ServerError):
    """The server did not respond in time."""


class CallRejected(Exception):
    """The server responded to a request with an error of the protocol and did not run it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolServerFailed(ApiError):
    status = 502
    code = "TOOL_SERVER_ERROR"


class ToolServerTimeout(ApiError):
    status = 504
    code = "TOOL_SERVER_TIMEOUT"


class ToolNotAccepted(Conflict):
    """The tool's current definition is not the accepted one."""

    def __init__(self, name: str, server_id: str, difference: list[dict[str, Any]]) -> None:
        super().__init__(
            f"The definition of {name} is not the one that was accepted. Look at the difference, "
            f"then accept it with POST /api/mcp/{server_id}/accept.",
            details={"difference": difference},
        )


def api_error(error: ServerError) -> ApiError:
    if isinstance(error, ServerTimeout):
        return ToolServerTimeout(f"The tool server did not respond in time. {error.message}")
    return ToolServerFailed(f"The tool server failed. {error.message}")
