"""The HTTP server: uvicorn with limits for slow clients and large headers, JSON errors and a clean
shutdown."""

import asyncio
import errno
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import structlog
import uvicorn
import uvloop
from prometheus_client import Counter
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rota.platform.errors import ApiError, HeadersTooLarge, RequestTimeout, ValidationFailed
from rota.platform.http.edge import REFUSAL
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused

log = structlog.get_logger()

# The machine has no such address: IPv6 is off, or the host belongs to another machine.
_NO_SUCH_ADDRESS = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)

MAX_HEAD_BYTES = 64 * 1024
# The kernel takes this much of a response ahead of the network. With its own, much larger default,
# a client that reads slowly would look like one that does not read.
MAX_UNSENT_BYTES = 64 * 1024

SLOW_CLIENTS = Counter(
    "rota_http_slow_clients_total",
    "Connections that were cut off because the client was too slow.",
    ["phase"],
)
for _phase in ("headers", "body", "response"):
    SLOW_CLIENTS.labels(_phase)

# A method and the beginning of a path.
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) /")
_PARSED_METHODS = frozenset(
    (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE")
)


@dataclass(frozen=True, slots=True)
class ClientTimeouts:
    """How slow a client can be before its connection is cut off."""

    # Between two requests, and before the first one. Longer than proxies and clients keep an idle
    # connection, commonly 60 s. If the server closed first, it could miss a request that is
    # already on its way.
    idle_s: int = 75
    # From the first byte of a request to the end of its headers.
    head_s: float = 10
    # From there to the end of the body, and a second more for this number of bytes received.
    body_s: float = 30
    body_bytes_per_s: int = 64 * 1024
    # The client must receive this much of a response in this time, or the rest of it.
    response_s: float = 30
    response_bytes: int = 16 * 1024


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits for slow clients and large headers, any method, and refusals
    by the service.

    A request that cannot be read goes to the service with the error that explains it. So it is
    limited, logged and counted, and its response has the same headers as every other.
    """

    timeouts = ClientTimeouts()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._refused = False
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self._start_head()
        self.timeout_keep_alive = self.timeouts.idle_s
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        with suppress(OSError, AttributeError):
            transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_response_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            # The service reads on for a moment. Nothing here is a request any more.
            self.cycle.body += data
            if len(self.cycle.body) > HIGH_WATER_LIMIT:
                # Until the service reads it. A response before this one can take as long as it
                # likes.
                self.flow.pause_reading()
            self.cycle.message_event.set()
            return
        if not self._begun:
            data = self._with_known_method(data)
        self._received += len(data)
        super().data_received(data)
        # The request line and the headers stay in memory until they are complete.
        if self._in_head and self._received > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(
                HeadersTooLarge(f"The request headers are larger than {MAX_HEAD_BYTES} bytes.")
            )
        # Most requests arrive at once and need no timer.
        incomplete = self._begun or self._received
        if incomplete and self._request_timer is None and not self._refused:
            self._request_since = self.loop.time()
            self._start_request_timer(self._request_time_s())

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False
        self._stop_request_timer()
        if self._method is not None:
            self.scope["method"] = self._method

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stop_request_timer()
        self._start_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ValidationFailed(msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Does not log: the client gets a normal response."""

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._response_timer is None:
            self._start_response_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_response_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _request_time_s(self) -> float:
        timeouts = self.timeouts
        if self._in_head:
            return timeouts.head_s
        return timeouts.body_s + self._received / timeouts.body_bytes_per_s

    def _start_request_timer(self, seconds: float) -> None:
        self._request_timer = self.loop.call_later(seconds, self._check_request)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _check_request(self) -> None:
        self._request_timer = None
        if self.transport.is_closing():
            return
        if not self._begun and (self.cycle is None or self.cycle.response_complete):
            # Line breaks, and no request.
            self._close()
            return
        if self.flow.read_paused or not self._begun:
            # The client waits for the service, so its time starts again.
            self._request_since = self.loop.time()
        left = self._request_since + self._request_time_s() - self.loop.time()
        if left > 0:
            self._start_request_timer(left)
            return
        part = "headers" if self._in_head else "body"
        SLOW_CLIENTS.labels(part).inc()
        self._refuse(
            RequestTimeout(
                f"The request {part} did not arrive completely in time. Send the request again."
            )
        )

    def _start_response_timer(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._response_timer = self.loop.call_later(self.timeouts.response_s, self._check_response)

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None

    def _check_response(self) -> None:
        self._response_timer = None
        left = self.transport.get_write_buffer_size()
        if not left:
            return
        # Nothing is added to the buffer while writing is paused.
        if self._unread - left >= self.timeouts.response_bytes:
            self._start_response_timer()
            return
        SLOW_CLIENTS.labels("response").inc()
        self.transport.abort()

    def _close(self) -> None:
        """Closes the connection after the client has read the response, unless it does not read."""
        self.transport.close()
        if self._response_timer is None:
            self._start_response_timer()

    def _start_head(self) -> None:
        # `_received` is the number of bytes of the current request.
        self._in_head, self._begun, self._received = True, False, 0
        self._method: str | None = None

    def _with_known_method(self, data: bytes) -> bytes:
        """Replaces a method that the parser does not know. The service gets the original."""
        match = _REQUEST_LINE.match(data)
        if match is None or match[1] in _PARSED_METHODS:
            return data
        self._method = match[1].decode()
        return b"GET" + data[match.end(1) :]

    def _refuse(self, error: ApiError) -> None:
        if self._refused:
            return
        self._refused = True
        self._stop_request_timer()
        if self._in_head:
            self._start_refusal(error)
        elif self.cycle.response_started:
            self._close()
        else:
            # The service is handling this request and finds the error when it reads the body.
            cast(Scope, self.cycle.scope)[REFUSAL] = error
            self.cycle.keep_alive = False
            self.cycle.message_event.set()

    def _start_refusal(self, error: ApiError) -> None:
        """Hands what is known of the request to the service, behind the requests before it."""
        if not self._begun:
            self.on_message_begin()
        path, _, query = self.url.partition(b"?")
        cast(Scope, self.scope).update(
            {
                "method": self._method or "GET",
                "path": path[:1000].decode("latin-1"),
                "raw_path": path,
                "query_string": query,
                REFUSAL: error,
            }
        )
        before = self.cycle
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))


def run(
    app: ASGIApp,
    settings: Settings,
    lifespan: AbstractAsyncContextManager[object],
    *,
    on_stop: Callable[[], None],
) -> None:
    """Serves until a signal arrives, then finishes the requests in progress.

    `lifespan` is entered while it serves. `on_stop` runs when the signal arrives. It ends responses
    that would otherwise stay open. Raises what makes the application refuse to start.
    """
    uvloop.run(_run(app, settings, lifespan, on_stop))


async def _run(
    app: ASGIApp,
    settings: Settings,
    lifespan: AbstractAsyncContextManager[object],
    on_stop: Callable[[], None],
) -> None:
    sockets = listen(settings.host, settings.port, "ROTA_PORT")
    config = server_config(app, settings)
    # uvicorn would log a traceback for an application that refuses to start.
    config.lifespan = "off"
    server = Server(config)

    def stop(number: int) -> None:
        on_stop()
        server.handle_exit(number, None)

    async with lifespan:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        log.info("ready", host=settings.host, port=settings.port)
        await server.serve(sockets)


class Server(uvicorn.Server):
    """Leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int, variable: str) -> list[socket.socket]:
    """Sockets for every address of the host. `variable` is the setting that has the port."""
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                sockets.append(_bound(family, kind, protocol, address))
            except OSError as error:
                if error.errno not in _NO_SUCH_ADDRESS:
                    raise
                missing = error
        if missing is not None and not sockets:
            raise missing
    except OSError as error:
        for opened in sockets:
            opened.close()
        fix = _listen_fix(error, variable)
        raise StartRefused(
            f"Cannot listen on {host}, port {port} ({error.strerror}). {fix}"
        ) from error
    return sockets


def _bound(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The addresses of IPv4 have a socket of their own.
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


def _listen_fix(error: OSError, variable: str) -> str:
    if isinstance(error, socket.gaierror) or error.errno in _NO_SUCH_ADDRESS:
        host = "ROTA_WORKER_HOST" if variable == "ROTA_WORKER_PORT" else "ROTA_HOST"
        return f"Set {host} to an address of this machine."
    if error.errno == errno.EACCES:
        return f"Set {variable} to a port above 1023, or allow the process to use lower ones."
    return f"Set {variable} to a port that is free, or stop the process that uses it."


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    grace_s = settings.shutdown_grace_s
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # The request guard reads X-Forwarded-For itself.
        proxy_headers=False,
        timeout_graceful_shutdown=int(20 if grace_s is None else grace_s),
    )
