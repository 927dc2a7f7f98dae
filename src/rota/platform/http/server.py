"""The HTTP server: uvicorn with a limit on request headers, JSON errors and a clean shutdown."""

import asyncio
import http
import signal
import sys
from collections.abc import Callable
from types import FrameType

import orjson
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rota.platform import clock
from rota.platform.errors import ValidationFailed, envelope
from rota.platform.settings import Settings

MAX_HEAD_BYTES = 64 * 1024


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on request headers, and JSON responses to invalid HTTP.

    The request line and the headers stay in memory until they are complete.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, f"The request headers are larger than {MAX_HEAD_BYTES} bytes.")

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._start_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Does not log: the client gets a normal response."""

    def _start_head(self) -> None:
        self._in_head, self._head_bytes = True, 0

    def _refuse(self, status: int, message: str) -> None:
        now = clock.to_wire(clock.now())
        body = orjson.dumps(
            envelope(message, ValidationFailed.code, None, timestamp=now, path=self._path())
        )
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s"
            % (status, http.HTTPStatus(status).phrase.encode(), len(body), body)
        )
        self.transport.close()

    def _path(self) -> str:
        # An invalid request may not have a path.
        url: bytes = getattr(self, "url", b"")
        return url.partition(b"?")[0][:1000].decode("latin-1")


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
        timeout_graceful_shutdown=int(settings.shutdown_grace_s),
    )
