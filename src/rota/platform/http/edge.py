"""The outermost layer of the service: what holds for every request whatever its route.

It gives each request an id, refuses unknown contract versions and bodies that
are too large, lets a gate decide whether the request may pass (who calls, and
is there room in the window), writes the headers on the way out, turns what
crashes into an answer, and logs and counts each request once.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import structlog
from opentelemetry.trace import SpanKind
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.platform import tracing
from rota.platform.db import DATABASE_ERRORS
from rota.platform.errors import (
    ApiError,
    DatabaseFailed,
    FieldError,
    PayloadTooLarge,
    Unavailable,
    ValidationFailed,
)
from rota.platform.http.answers import error_response
from rota.platform.telemetry import REQUEST_SECONDS, REQUESTS

API_VERSION = "2026-11-01"
MAX_BODY_BYTES = 2 * 1024 * 1024
# How much more is read and forgotten of a body that was refused for its size, and how long.
LINGER_BYTES = 4 * 1024 * 1024
LINGER_S = 2.0

_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_VERSION_HEADER = (b"api-version", API_VERSION.encode())
_TOO_LARGE = f"The body is larger than {MAX_BODY_BYTES} bytes. Send less at once."

log = structlog.get_logger()


@dataclass(slots=True)
class Pass:
    """What the gate says of a request: headers for its answer, and a refusal, if any."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    refusal: ASGIApp | None = None
    # Who the log line names.
    account: str | None = None


Gate = Callable[[Scope, dict[bytes, bytes]], Awaitable[Pass]]


class Edge:
    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = _request_id(headers)
        # Whatever is logged on the way says which request it belongs to.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        answer = _Answer(receive, send, request_id)
        admitted = Pass()
        try:
            admitted = await self._gate(scope, headers)
            answer.headers += admitted.headers
            app = admitted.refusal or _refuse_early(headers) or self._app
            if tracing.enabled():
                app = _traced(app, headers)
            await app(scope, _bounded(receive), answer.send)
        except (Exception, asyncio.CancelledError) as error:
            problem = as_api_error(error)
            if answer.status:
                # Too late for another answer; the server closes the connection.
                raise
            await error_response(scope["path"], problem)(scope, receive, answer.send)
        route = getattr(scope.get("route"), "path_format", None) or "unmatched"
        seconds = time.perf_counter() - started
        REQUESTS.labels(scope["method"], route, answer.status).inc()
        REQUEST_SECONDS.labels(route).observe(seconds)
        log.info(
            "request",
            method=scope["method"],
            route=route,
            path=scope["path"],
            status=answer.status,
            ms=round(seconds * 1000, 2),
            account=admitted.account,
        )


class _Answer:
    """The way out: adds the edge's headers and remembers what was answered."""

    def __init__(self, receive: Receive, send: Send, request_id: str) -> None:
        self._receive = receive
        self._send = send
        self.headers = [(b"x-request-id", request_id.encode()), _VERSION_HEADER]
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self.headers]
        elif self.status == PayloadTooLarge.status:
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body"}
        await self._send(message)

    async def _linger(self) -> None:
        """Reads on for a moment: a sender cut off in full flow would not see its answer."""
        left = LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return


def as_api_error(error: BaseException) -> ApiError:
    """What a client is told of a failure that nothing foresaw. The log is told everything."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, asyncio.CancelledError):
        return Unavailable("The service is being stopped. Try again.")
    log.error("request failed", exc_info=error)
    if isinstance(error, DATABASE_ERRORS):
        return DatabaseFailed(
            "The database did not answer as expected. Try again, waiting longer each time."
        )
    return ApiError(
        "Something went wrong on our side. Try again, and quote X-Request-Id if it goes on."
    )


def _request_id(headers: dict[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id")
    if given is not None and _SANE_ID.fullmatch(text := given.decode("latin-1")):
        return text
    return uuid4().hex


def _refuse_early(headers: dict[bytes, bytes]) -> ASGIApp | None:
    """An answer that needs no route: a wrong version, or a body that announces its size."""
    version = headers.get(b"api-version")
    if version is not None and version != _VERSION_HEADER[1]:
        problem: ApiError = ValidationFailed.of(
            FieldError("Api-Version", f"is not known here; this service speaks {API_VERSION}")
        )
    elif (length := headers.get(b"content-length")) and int(length) > MAX_BODY_BYTES:
        problem = PayloadTooLarge(_TOO_LARGE)
    else:
        return None

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await error_response(scope["path"], problem)(scope, receive, send)

    return refuse


def _traced(app: ASGIApp, headers: dict[bytes, bytes]) -> ASGIApp:
    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        parent = headers.get(b"traceparent", b"").decode("latin-1") or None
        with tracing.span(method, parent=parent, kind=SpanKind.SERVER) as span:
            await app(scope, receive, send)
            route = getattr(scope.get("route"), "path_format", None) or "unmatched"
            span.update_name(f"{method} {route}")
            span.set_attributes({"http.request.method": method, "http.route": route})

    return traced


def _bounded(receive: Receive) -> Receive:
    """Cuts a body off while it is being read, for senders that do not say how long it is."""
    total = 0

    async def bounded() -> Message:
        nonlocal total
        message = await receive()
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > MAX_BODY_BYTES:
                raise PayloadTooLarge(_TOO_LARGE)
        return message

    return bounded
