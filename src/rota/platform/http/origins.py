"""The origin of this service, and the Host headers that belong to it.

A service on a loopback address has no single name: people open it as localhost or 127.0.0.1, and
through the port of a development server. There, the Host header of the request decides.
"""

import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from rota.platform.errors import ApiError
from rota.platform.http.responses import error_response

LOOPBACK_ADDRESSES = ("127.0.0.1", "localhost", "::1")
_LOOPBACK_HOST = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


class WrongHost(ApiError):
    status = 421
    code = "MISDIRECTED_REQUEST"

    def __init__(self) -> None:
        super().__init__(
            "The Host header does not name this service. In development, a service on a loopback "
            "address accepts 127.0.0.1, localhost, [::1] and the host of ROTA_PUBLIC_URL."
        )


def is_loopback(host: bytes) -> bool:
    """Whether a Host header names this machine, with any port."""
    return _LOOPBACK_HOST.fullmatch(host) is not None


class OwnOrigin:
    """Knows which origin the pages of this service have."""

    def __init__(self, public_url: str, *, production: bool) -> None:
        parts = urlsplit(public_url)
        # As browsers write it: without the default port.
        default_port = ":443" if parts.scheme == "https" else ":80"
        self._public = f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}"
        # Plain http on this machine, for development.
        self.local = (
            not production and parts.scheme == "http" and is_loopback(parts.netloc.encode())
        )

    def of(self, headers: dict[bytes, bytes]) -> str:
        """The origin that the request was sent to."""
        host = headers.get(b"host", b"").lower()
        if self.local and is_loopback(host):
            return f"http://{host.decode()}"
        return self._public


class HostCheck:
    """Refuses requests whose Host header names another machine.

    A web page can point its own domain at 127.0.0.1 (DNS rebinding). Its requests then reach a
    service on this machine, and the browser lets the page read the responses. They still carry the
    domain of the page in the Host header.
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self._app = app
        self._public = urlsplit(public_url or "").netloc.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            if not is_loopback(host) and not (host and host.lower() == self._public):
                app = error_response(scope["path"], WrongHost())
        await app(scope, receive, send)
