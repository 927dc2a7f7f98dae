"""The HTTP server: uvicorn with a limit on request headers, JSON errors and a clean shutdown."""

import asyncio
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rota.platform.errors import ApiError, HeadersTooLarge, ValidationFailed
from rota.platform.http.edge import REFUSAL
from rota.platform.settings import Settings

MAX_HEAD_BYTES = 64 * 1024

# A method and the beginning of a path.
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) /")
_PARSED_METHODS = frozenset(
    (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE")
)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on request headers, any method, and refusals by the service.

    A request that cannot be read goes to the service with the error that explains it. So it is
    limited, logged and counted, and its response has the same headers as every other.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._refused = False
        self._start_head()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            # The service reads on for a moment. Nothing here is a request any more.
            self.cycle.body += data
            self.cycle.message_event.set()
            return
        if not self._begun:
            data = self._with_known_method(data)
        self._head_bytes += len(data)
        super().data_received(data)
        # The request line and the headers stay in memory until they are complete.
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(
                HeadersTooLarge(f"The request headers are larger than {MAX_HEAD_BYTES} bytes.")
            )

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False
        if self._method is not None:
            self.scope["method"] = self._method

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._start_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(ValidationFailed(msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Does not log: the client gets a normal response."""

    def _start_head(self) -> None:
        self._in_head, self._begun, self._head_bytes = True, False, 0
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
        if self._in_head:
            self._start_refusal(error)
        elif self.cycle.response_complete:
            self.transport.close()
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


def run(app: ASGIApp, settings: Settings, *, on_stop: Callable[[], None]) -> None:
    """Serves until a signal arrives, then finishes the requests in progress.

    `on_stop` runs when the signal arrives. It ends responses that would otherwise stay open.
    """

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            on_stop()
            super().handle_exit(sig, frame)

    # After a clean shutdown uvicorn raises the signal again. Without this handler the process would
    # exit with an error status.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server(server_config(app, settings))
    server.run()
    if not server.started:
        sys.exit(3)


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
        # Longer than proxies and clients keep an idle connection, commonly 60 s. If the server
        # closed first, it could miss a request that is already on its way.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(20 if grace_s is None else grace_s),
    )
