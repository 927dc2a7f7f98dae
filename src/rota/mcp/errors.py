"""What can go wrong with a tool server, told apart by what a caller should do."""

from typing import Any

from rota.mcp.model import Status
from rota.platform.errors import ApiError, Conflict


class ServerTrouble(Exception):
    """A tool server failed us. `sent` is False when a call surely did not reach it."""

    status: Status = "UNREACHABLE"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class Unreachable(ServerTrouble):
    """Nobody answers, or what answers is no tool server."""


class AuthRefused(ServerTrouble):
    """The server wants other credentials."""

    status: Status = "AUTH_FAILED"


class BadServer(ServerTrouble):
    """It answers, with something that cannot be used or is too much."""


class TooSlow(ServerTrouble):
    """It did not answer in time."""


class CallRefused(Exception):
    """The server answered a call with an error of the protocol: it did not carry it out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolServerFailed(ApiError):
    status = 502
    code = "TOOL_SERVER_ERROR"


class ToolServerSlow(ApiError):
    status = 504
    code = "TOOL_SERVER_TIMEOUT"


class Quarantined(Conflict):
    """The tool is not the one that was accepted."""

    def __init__(self, name: str, server_id: str, difference: list[dict[str, Any]]) -> None:
        super().__init__(
            f"The definition of {name} is not the one that was accepted. Look at the difference, "
            f"then accept it with POST /api/mcp/{server_id}/accept.",
            details={"difference": difference},
        )


def to_api(trouble: ServerTrouble) -> ApiError:
    if isinstance(trouble, TooSlow):
        return ToolServerSlow(f"The tool server did not answer in time. {trouble.message}")
    return ToolServerFailed(f"The tool server failed. {trouble.message}")
