"""The HTTP transport between the MCP SDK and the egress client.

The SDK ends the whole session when one HTTP request fails. This transport turns the failure into
a response to that one request, which also says whether the request was sent. It reads every
response except event streams itself, within limits, so that no parser gets an oversized one.
"""

import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import httpcore2
import httpx2
import orjson

from rota.mcp.errors import (
    CredentialsRejected,
    InvalidResponse,
    ServerBusy,
    ServerError,
    ServerTimeout,
    ServerUnreachable,
)
from rota.mcp.messages import check_values
from rota.platform.egress import (
    LONG_LIVED,
    EgressRefused,
    EgressTimeout,
    ResponseRejected,
    time_limit,
)
from rota.platform.errors import RateLimited

SESSION_HEADER = "mcp-session-id"
# A random value that servers do not know, so that no server can forge an error of this transport.
_MARKER = secrets.token_hex(16)
_CODE = -32_900
_MAX_ERROR_BYTES = 64 * 1024

# Not every text about a session: a tool can reject a call because of a session of its own. Then the
# server must not get the call again.
_SESSION_UNKNOWN = re.compile(
    rb"(?:\bno valid|\binvalid|\bunknown|\bexpired) (?:mcp )?session"
    rb"|(?<!\w )\bsession(?: id)? (?:is |was |has )?(?:not found|unknown|invalid|expired|ended"
    rb"|terminated|closed|does not exist)",
    re.IGNORECASE,
)
# Redirects after which the SDK sends the same request again.
_SAME_METHOD = (307, 308)
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")

_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpcore2.ConnectError,
    EgressRefused,
)

# Ends the request that is sent. With `sse`, its response arrives elsewhere, or never.
REFUSE: ContextVar[Callable[[ServerError], None]] = ContextVar("REFUSE", default=lambda error: None)


class SessionEnded(ServerUnreachable):
    """The server no longer knows the session, so it did not run the request."""

    def __init__(self, message: str = "The session has ended.", *, sent: bool = False) -> None:
        super().__init__(message, sent=sent)


class McpTransport(httpx2.AsyncBaseTransport):
    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        kind: str,
        total_s: float,
        on_error: Callable[[ServerError], None],
        on_end: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._is_sse = kind == "sse"
        self._total_s = total_s
        self._on_error = on_error
        # Called when the stream of an `sse` session has ended, which carries all its responses.
        self._on_end = on_end
        # The last failure. The SDK sometimes reports only that a connection closed.
        self.last_error: ServerError | None = None
        # The status and the content type of the last response, for messages.
        self.last_response: str | None = None

    async def __aenter__(self) -> "McpTransport":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> None:
        await self._inner.__aexit__(*details)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and not self._is_sse:
            # The SDK opens this stream for messages that the server sends unprompted, and to resume
            # a response. Rota does neither, because a server could make the SDK reconnect forever.
            return httpx2.Response(405, request=request)
        if request.method == "GET":
            request.extensions = {**request.extensions, LONG_LIVED: True}
        try:
            async with time_limit(self._total_s):
                response = await self._inner.handle_async_request(request)
                self.last_response = _summary(response)
                try:
                    self._check_status(request, response)
                except ServerError:
                    # Otherwise its connection would stay in use.
                    await response.aclose()
                    raise
                return await self._read(request, response)
        except Exception as exception:
            self.last_error = error = classify_error(exception)
            if self._is_sse:
                self._on_error(error)
            if request.method != "POST":
                raise
            if not self._is_sse:
                return _error_response(request, error)
            if _is_request(await _message(request)):
                REFUSE.get()(error)
            # Otherwise the SDK would send no other message, such as those that wait now.
            return httpx2.Response(202, request=request)

    def _check_status(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if status in (401, 403):
            raise CredentialsRejected(
                f"The server responded with {status}. Check the token or the headers.", sent=False
            )
        if status == 404 and SESSION_HEADER in request.headers:
            raise SessionEnded
        if status == 429 or status >= 500:
            raise ServerUnreachable(f"The server responded with {status}.", sent=status >= 500)
        if self._is_sse and request.method == "POST" and not _goes_on(response):
            # A server can refuse a message that it has begun to handle.
            raise ServerUnreachable(f"The server responded with {status}.")

    async def _read(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        kind = _media_type(response)
        has_no_answer = not self._is_sse and _has_no_answer(response, kind)
        if response.is_success and kind == "text/event-stream" and not has_no_answer:
            if self._is_sse and request.method == "GET":
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                response.stream = _WatchedStream(response.stream, self._on_end)
            return response
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() in ("content-type", "location", SESSION_HEADER)
        ]
        body = b""
        try:
            if has_no_answer and (await _message(request)).get("method") == "tools/call":
                # The SDK would report an invalid request, as if the tool had not run.
                raise not_mcp(self.last_response)
            if kind == "application/json" and not response.is_redirect:
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                chunks: list[bytes] = []
                size = 0
                async for chunk in response.stream:
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _MAX_ERROR_BYTES and response.is_error:
                        raise ResponseRejected("The error response is too large.")
                body = b"".join(chunks)
                check_values(body)
        finally:
            await response.aclose()
        in_session = SESSION_HEADER in request.headers
        if response.status_code == 400 and in_session and _SESSION_UNKNOWN.search(body):
            # Some servers respond with 400 instead of 404 when they do not know the session.
            raise SessionEnded
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WatchedStream(httpx2.AsyncByteStream):
    """Reports when a stream has ended."""

    def __init__(self, stream: httpx2.AsyncByteStream, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        finally:
            self._on_end()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _goes_on(response: httpx2.Response) -> bool:
    """Whether the message was taken, or is sent again to another URL of the server."""
    return response.is_success or response.status_code in _SAME_METHOD


def _has_no_answer(response: httpx2.Response, kind: str) -> bool:
    """Whether a response to a request of the protocol cannot have the response of the protocol."""
    if response.status_code == 202 or response.is_redirect:
        return response.status_code not in _SAME_METHOD
    return response.is_success and kind not in ("application/json", "text/event-stream")


async def _message(request: httpx2.Request) -> dict[str, Any]:
    """The message of the protocol. Empty if there is none, as when a session is deleted."""
    # After a redirect, the content has not been read.
    content = await request.aread()
    message: dict[str, Any] = orjson.loads(content) if content else {}
    return message


def _is_request(message: dict[str, Any]) -> bool:
    return "method" in message and "id" in message


def _media_type(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _summary(response: httpx2.Response) -> str:
    kind = _media_type(response)
    shown = kind if _MEDIA_TYPE.fullmatch(kind) else "no valid content type"
    return f"HTTP {response.status_code}, {shown}"


def not_mcp(last_response: str | None) -> InvalidResponse:
    shown = f" ({last_response})" if last_response else ""
    return InvalidResponse(
        f"The server's response{shown} is not valid MCP. Check that the URL points to its MCP "
        "endpoint (often /mcp), and that the transport is the one that it uses."
    )


def classify_error(error: BaseException, last_response: str | None = None) -> ServerError:
    """Converts an exception. In a group, the most specific failure wins."""
    if isinstance(error, BaseExceptionGroup):
        found = [classify_error(each, last_response) for each in error.exceptions]
        return next((each for each in found if type(each) is not ServerUnreachable), found[0])
    if isinstance(error, ServerError):
        return error
    if isinstance(error, RateLimited):
        return ServerBusy(error.message, sent=False)
    if isinstance(error, EgressRefused):
        return ServerUnreachable(str(error), sent=False)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ServerTimeout("The connection took too long.", sent=False)
    if isinstance(error, _NOT_SENT):
        return ServerUnreachable(_sentence(error), sent=False)
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return ServerTimeout("The response took too long.")
    if isinstance(error, EgressTimeout):
        return ServerTimeout(str(error))
    if isinstance(error, ResponseRejected):
        return InvalidResponse(str(error))
    if isinstance(error, httpx2.SSEError):
        return not_mcp(last_response)
    if isinstance(error, httpx2.TransportError | OSError):
        return ServerUnreachable(f"The connection broke ({type(error).__name__}).")
    return not_mcp(last_response)


def _sentence(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return f"{text[:1].upper()}{text[1:200]}".rstrip(".") + "."


def _error_response(request: httpx2.Request, error: ServerError) -> httpx2.Response:
    """The failure as a JSON-RPC error, which the SDK returns to the caller of the request."""
    kind = next(name for name, each in _KINDS.items() if each is type(error))
    data = {"marker": _MARKER, "kind": kind, "sent": error.sent}
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": _CODE, "message": error.message, "data": data},
    }
    return httpx2.Response(
        503,
        headers={"content-type": "application/json"},
        content=orjson.dumps(body),
        request=request,
    )


_KINDS: dict[str, type[ServerError]] = {
    "unreachable": ServerUnreachable,
    "credentials": CredentialsRejected,
    "invalid": InvalidResponse,
    "timeout": ServerTimeout,
    "session": SessionEnded,
    "busy": ServerBusy,
}


def decode_error(code: int, message: str, data: Any) -> ServerError | None:
    """The failure that `_error_response` encoded, or None if the error is from the server."""
    if code != _CODE or not isinstance(data, dict) or data.get("marker") != _MARKER:
        return None
    return _KINDS[data["kind"]](message, sent=bool(data["sent"]))
