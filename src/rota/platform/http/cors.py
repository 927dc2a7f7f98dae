"""Lets the web pages of configured origins call the API from a browser (CORS).

Browsers send no cookies with these requests, because `Access-Control-Allow-Credentials` is never
set. A page authenticates with a token in the Authorization header, which it must already have.
"""

from collections.abc import Iterable, Mapping

from starlette.responses import Response

# Set in the scope of a preflight request, which has no credentials and reaches no route.
PREFLIGHT = "rota.preflight"

_EXPOSED = (
    "Allow, Api-Version, ETag, Idempotent-Replayed, RateLimit-Limit, RateLimit-Policy, "
    "RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id"
)
_PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "A2A-Version, Api-Version, Authorization, Content-Type, "
    "Idempotency-Key, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, "
    "X-Request-Id, X-Service-Account",
    # Two hours, the longest time that Chrome accepts.
    "Access-Control-Max-Age": "7200",
}
# Caches must not give the response for one origin to another.
_VARY = (b"vary", b"Origin")

Headers = Mapping[bytes, bytes]


class Cors:
    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Headers) -> list[tuple[bytes, bytes]]:
        """The headers to add to the response."""
        if not self._origins:
            return []
        origin = request.get(b"origin")
        if origin not in self._origins:
            return [_VARY]
        return [
            _VARY,
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED.encode()),
        ]

    def is_preflight(self, method: str, request: Headers) -> bool:
        """Whether a browser asks if a page of a configured origin may send a request."""
        return (
            method == "OPTIONS"
            and request.get(b"origin") in self._origins
            and b"access-control-request-method" in request
        )


def preflight_response() -> Response:
    return Response(status_code=204, headers=_PREFLIGHT_HEADERS)
