"""The outermost layer of the service, which handles what all requests have in common.

It gives each request an ID, refuses unknown API versions and bodies that are too large, asks the
guard to admit the request, responds to HEAD and to CORS preflights, adds headers to the response,
turns exceptions into error responses, and logs and counts each request once.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial

import structlog
from opentelemetry.trace import SpanKind
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.platform import audit, tracing
from rota.platform.db import DATABASE_ERRORS
from rota.platform.errors import (
    ApiError,
    DatabaseFailed,
    FieldError,
    HeadersTooLarge,
    PayloadTooLarge,
    RequestTimeout,
    Unavailable,
    ValidationFailed,
)
from rota.platform.http.bodies import MAX_BODY_BYTES, Bodies
from rota.platform.http.cors import PREFLIGHT, Cors, preflight_response
from rota.platform.http.responses import METHODS, error_response
from rota.platform.request_pace import RequestPace, Use
from rota.platform.telemetry import REQUEST_SECONDS, REQUESTS, REQUESTS_IN_PROGRESS
from rota.platform.top_accounts import TopAccounts

API_VERSION = "2026-11-15"
# How much more of a refused body is read and discarded, and for how long.
LINGER_BYTES = 4 * 1024 * 1024
LINGER_S = 2.0

MAX_LOGGED_PATH = 1_000

# The server stores an error here if it could not read the request.
REFUSAL = "rota.refusal"

VALID_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Secrets in paths: the token of an invitation, also where no route matches, and the token of a link
# to unsubscribe.
_SECRETS = re.compile(r"(?<=/api/invitations/)[^/]+|invite_[^/]+|(?<=/api/unsubscribe/)[^/]+")
_MARKS_OF_SECRETS = ("invit", "unsubscribe")
_VERSION_HEADER = (b"api-version", API_VERSION.encode())
# Headers of responses that do not set them.
_DEFAULT_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
# For a year, browsers use https only.
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
# The client may still be sending when it gets one of these.
_LINGERING = (RequestTimeout.status, PayloadTooLarge.status, HeadersTooLarge.status)
_TOO_LARGE = (
    f"The request body is larger than {MAX_BODY_BYTES} bytes. Send the data in smaller requests."
)

TOP_REQUESTS = TopAccounts(
    "rota_top_account_requests_total", "HTTP requests of the accounts that send the most."
)

log = structlog.get_logger()


@dataclass(slots=True)
class Admission:
    """The guard's result for a request: headers for the response, and a refusal if it has one."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    refusal: ASGIApp | None = None
    # The account to log the request with.
    account: str | None = None
    # Whose share of the process the request uses: an account's, or an address's.
    client: str | None = None


Guard = Callable[[Scope, dict[bytes, bytes]], Awaitable[Admission]]


class Edge:
    def __init__(
        self, app: ASGIApp, guard: Guard, cors_origins: Iterable[str] = (), *, https: bool = False
    ) -> None:
        self._app = app
        self._guard = guard
        self._cors = Cors(cors_origins)
        self._headers = [_HTTPS_ONLY] if https else []
        self._bodies = Bodies()
        self._pace = RequestPace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers, method = dict(scope["headers"]), scope["method"]
        request_id = _request_id(headers)
        # Every line that is logged during the request includes its ID.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        # Until the guard knows who it is.
        audit.act_as(audit.Actor("service", request_id=request_id))
        writer = _ResponseWriter(receive, send, request_id, headers_only=method == "HEAD")
        writer.headers += [*self._headers, *self._cors.headers(headers)]
        bounded = _bounded(receive, scope)
        if method == "HEAD":
            # The same as GET, without the body. The server still sees the original scope.
            scope = {**scope, "method": "GET"}
        admitted = Admission()
        REQUESTS_IN_PROGRESS.inc()
        try:
            preflight = self._cors.is_preflight(method, headers)
            if preflight:
                scope[PREFLIGHT] = True
            writer.admission = admitted = await self._guard(scope, headers)
            writer.admitted_at = time.monotonic()
            answer = admitted.refusal or _refuse_early(scope, headers)
            if preflight:
                answer = preflight_response()
            app = answer or self._app
            if tracing.enabled():
                app = _traced(app, headers)
            respond = partial(self._respond, app, scope, headers, bounded, writer)
            if answer is not None or admitted.account is None:
                await respond()
            else:
                try:
                    await self._pace.run(admitted.account, respond)
                finally:
                    if writer.use is None:
                        # It was refused, or its client left, while it waited.
                        writer.waited_s = time.monotonic() - writer.admitted_at
        except (Exception, asyncio.CancelledError) as raised:
            error = as_api_error(raised)
            if writer.status:
                # The response has started. The server closes the connection.
                raise
            await error_response(scope["path"], error)(scope, receive, writer.send)
        finally:
            REQUESTS_IN_PROGRESS.dec()
        route = getattr(scope.get("route"), "path_format", None) or "unmatched"
        # Without what an account waits for itself: that says nothing about the service.
        seconds = time.perf_counter() - started - writer.waited_s
        # A client can invent methods. Each would be a new time series.
        counted = method if method in METHODS else "other"
        _count_of(counted, route, writer.status).inc()
        _seconds_of(route).observe(seconds)
        if admitted.account is not None:
            TOP_REQUESTS.add(admitted.account)
        log.info(
            "request",
            method=method,
            route=route,
            path=_without_token(scope["path"])[:MAX_LOGGED_PATH],
            status=writer.status,
            ms=round(seconds * 1000, 2),
            **({"waited_ms": round(writer.waited_s * 1000)} if writer.waited_s >= 0.001 else {}),
            account=admitted.account,
        )

    async def _respond(
        self,
        app: ASGIApp,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        writer: "_ResponseWriter",
        use: Use | None = None,
    ) -> None:
        writer.use = use
        if use is not None:
            writer.waited_s = use.began - writer.admitted_at
        with self._bodies.reserved(writer.admission.client, headers):
            await app(scope, receive, writer.send)


# Finding a time series by its labels takes longer than counting. There are as many as routes.
_count_of = cache(REQUESTS.labels)
_seconds_of = cache(REQUEST_SECONDS.labels)


class _ResponseWriter:
    """Sends the response: adds the common headers and records the status."""

    def __init__(
        self, receive: Receive, send: Send, request_id: str, *, headers_only: bool
    ) -> None:
        self._receive = receive
        self._send = send
        self._headers_only = headers_only
        self.headers = [(b"x-request-id", request_id.encode()), _VERSION_HEADER]
        # Its headers can change until the response starts.
        self.admission = Admission()
        self.status = 0
        self.admitted_at = 0.0
        # How long it waited for other requests of its account.
        self.waited_s = 0.0
        self.use: Use | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.use is not None:
                self.use.end()
            own = [*message["headers"], *self.headers, *self.admission.headers]
            names = {name for name, _ in own}
            message["headers"] = own + [each for each in _DEFAULT_HEADERS if each[0] not in names]
            if self._headers_only:
                # The response is complete, so an endless one, such as a stream of events, stops.
                await self._send(message)
                message = {"type": "http.response.body"}
        elif self._headers_only:
            return
        elif self.status in _LINGERING:
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body"}
        await self._send(message)

    async def _linger(self) -> None:
        """Reads on briefly: a client that is cut off while it sends cannot read the response."""
        left = LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return


def as_api_error(error: BaseException) -> ApiError:
    """The error that the client sees. Unexpected exceptions are logged and not shown."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, asyncio.CancelledError):
        return Unavailable("The service is shutting down. Try again.")
    log.error("request_failed", exc_info=error)
    if isinstance(error, DATABASE_ERRORS):
        return DatabaseFailed(
            "The database returned an error. Try again, and wait longer after each attempt."
        )
    return ApiError(
        "An internal error occurred. Try again. If it happens again, report the X-Request-Id."
    )


def _without_token(path: str) -> str:
    """The path for the log."""
    if not any(mark in path for mark in _MARKS_OF_SECRETS):
        return path
    return _SECRETS.sub("{token}", path)


def _request_id(headers: dict[bytes, bytes]) -> str:
    sent = headers.get(b"x-request-id")
    if sent is not None and VALID_ID.fullmatch(text := sent.decode("latin-1")):
        return text
    return secrets.token_hex(16)


def _refuse_early(scope: Scope, headers: dict[bytes, bytes]) -> ASGIApp | None:
    """Refuses a request that the server could not read, an unknown API version, or a body whose
    Content-Length is too large."""
    version = headers.get(b"api-version")
    error: ApiError
    if REFUSAL in scope:
        error = scope[REFUSAL]
    elif version is not None and version != _VERSION_HEADER[1]:
        error = ValidationFailed.of(
            FieldError("Api-Version", f"is not supported; use {API_VERSION}")
        )
    elif (length := headers.get(b"content-length")) and int(length) > MAX_BODY_BYTES:
        error = PayloadTooLarge(_TOO_LARGE)
    else:
        return None

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await error_response(scope["path"], error)(scope, receive, send)

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


def _bounded(receive: Receive, scope: Scope) -> Receive:
    """Stops reading a body at the limit, for requests without a Content-Length, and where the
    server could not read it."""
    total = 0

    async def bounded() -> Message:
        nonlocal total
        message = await receive()
        if REFUSAL in scope:
            raise scope[REFUSAL]
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > MAX_BODY_BYTES:
                raise PayloadTooLarge(_TOO_LARGE)
        return message

    return bounded
