"""Parts of endpoints whose protocol a library speaks, such as MCP and A2A."""

from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then what the client does: it can only disconnect."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


class NamedRoute(Route):
    """The log and the metrics name the route of a request."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, {**child, "route": self}
