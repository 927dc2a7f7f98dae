"""HTTP to a tool server, between the SDK and the guarded way out.

The SDK ends a whole session when one request fails on the wire. Here such a
failure becomes an answer to that one request, which says whether the request
had left. Everything but event streams is read here, within bounds, so nothing
that is too much gets as far as a parser.
"""

import secrets
from collections.abc import Callable
from typing import Any

import httpcore2
import httpx2
import orjson

from rota.mcp.errors import AuthRefused, BadServer, ServerTrouble, TooSlow, Unreachable
from rota.platform.egress import EgressRefused, EgressTimeout, ResponseRejected, time_limit

SESSION_HEADER = "mcp-session-id"
# Nobody else knows it, so no server can pretend to be this transport.
_OURS = secrets.token_hex(16)
_CODE = -32_900
_MAX_ERROR_BYTES = 64 * 1024

_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpcore2.ConnectError,
    EgressRefused,
)


class SessionEnded(Unreachable):
    """The server has forgotten the session, and carried nothing out."""


class McpTransport(httpx2.AsyncBaseTransport):
    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        kind: str,
        total_s: float,
        on_trouble: Callable[[ServerTrouble], None],
    ) -> None:
        self._inner = inner
        self._streams = kind == "sse"
        self._total_s = total_s
        self._on_trouble = on_trouble
        # What went wrong last, for when the SDK tells only that something did.
        self.trouble: ServerTrouble | None = None

    async def __aenter__(self) -> "McpTransport":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> None:
        await self._inner.__aexit__(*details)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and not self._streams:
            # The stream for what a server says unasked. Nothing here listens to that, and a
            # server could have us come back for it for ever.
            return httpx2.Response(405, request=request)
        if request.method == "GET":
            request.extensions = {**request.extensions, "endless": True}
        try:
            async with time_limit(self._total_s):
                response = await self._inner.handle_async_request(request)
                self._check(request, response)
                return await self._read(request, response)
        except Exception as error:
            self.trouble = trouble = classify_error(error)
            if self._streams:
                self._on_trouble(trouble)
            if self._streams or request.method == "DELETE":
                raise
            return _told(request, trouble)

    def _check(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if status in (401, 403):
            raise AuthRefused(f"It answered {status}: the credentials are missing or not right.")
        if status == 404 and SESSION_HEADER in request.headers:
            raise SessionEnded("The session has ended.", sent=False)
        if status == 429 or status >= 500:
            raise Unreachable(f"It answered {status}.", sent=status >= 500)

    async def _read(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_success and kind == "text/event-stream":
            return response
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() in ("content-type", "location", SESSION_HEADER)
        ]
        body = b""
        try:
            if kind == "application/json" and not response.is_redirect:
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                pieces: list[bytes] = []
                size = 0
                async for piece in response.stream:
                    pieces.append(piece)
                    size += len(piece)
                    if size > _MAX_ERROR_BYTES and response.is_error:
                        raise ResponseRejected("The error response is too large.")
                body = b"".join(pieces)
        finally:
            await response.aclose()
        in_session = SESSION_HEADER in request.headers
        if response.status_code == 400 and in_session and b"session" in body.lower():
            # How some servers say that they do not know it any more.
            raise SessionEnded("The session has ended.", sent=False)
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def classify_error(error: BaseException) -> ServerTrouble:
    """What a failure means. Of a group, the first that says more than that it failed."""
    if isinstance(error, BaseExceptionGroup):
        found = [classify_error(each) for each in error.exceptions]
        return next((each for each in found if type(each) is not Unreachable), found[0])
    if isinstance(error, ServerTrouble):
        return error
    if isinstance(error, EgressRefused):
        return Unreachable(str(error), sent=False)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return TooSlow("The connection took too long.", sent=False)
    if isinstance(error, _NOT_SENT):
        return Unreachable(f"{_words(error)}.", sent=False)
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return TooSlow("It took too long to answer.")
    if isinstance(error, EgressTimeout):
        return TooSlow(str(error))
    if isinstance(error, ResponseRejected):
        return BadServer(str(error))
    if isinstance(error, httpx2.TransportError | OSError):
        return Unreachable(f"The connection broke ({type(error).__name__}).")
    return BadServer(f"What it sends cannot be understood ({type(error).__name__}).")


def _words(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return f"{text[:1].upper()}{text[1:200]}".rstrip(".")


def _told(request: httpx2.Request, trouble: ServerTrouble) -> httpx2.Response:
    """The failure as an answer that the SDK hands to whoever asked."""
    kind = next(name for name, each in _KINDS.items() if each is type(trouble))
    data = {"by": _OURS, "kind": kind, "sent": trouble.sent}
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": _CODE, "message": trouble.message, "data": data},
    }
    return httpx2.Response(
        503,
        headers={"content-type": "application/json"},
        content=orjson.dumps(body),
        request=request,
    )


_KINDS: dict[str, type[ServerTrouble]] = {
    "unreachable": Unreachable,
    "auth": AuthRefused,
    "bad": BadServer,
    "slow": TooSlow,
    "ended": SessionEnded,
}


def decode_error(code: int, message: str, data: Any) -> ServerTrouble | None:
    """The failure that `_told` wrote, or None where it is the server's own words."""
    if code != _CODE or not isinstance(data, dict) or data.get("by") != _OURS:
        return None
    return _KINDS[data["kind"]](message, sent=bool(data["sent"]))
