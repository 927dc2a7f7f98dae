"""Receives the answer of an identity provider on a port of this machine (RFC 8252)."""

import secrets
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

PATH = "/callback"
SCOPE = "openid email profile"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Rota</title>
<style>body{font:1.1rem system-ui;margin:20vh auto;max-width:30rem;text-align:center;
color-scheme:light dark}</style><h1>%s</h1><p>%s</p></html>"""


class SignInRefused(Exception):
    """The sign-in did not succeed. The message says why."""


class _Server(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser may close a connection at any time. A traceback would only confuse."""


@dataclass
class Receiver:
    """Waits at a loopback address for one sign-in, which it knows by its `state`."""

    redirect_uri: str | None = None
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def __enter__(self) -> Self:
        answers: list[dict[str, str]] = []
        expected = self.state

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(address.query).items()}
                # Another page can send a browser here too, but it does not know the state.
                is_answer = address.path == PATH and secrets.compare_digest(
                    query.get("state", "").encode(), expected.encode()
                )
                if is_answer:
                    answers.append(query)
                self._respond(is_answer, "error" in query)

            def _respond(self, is_answer: bool, is_refused: bool) -> None:
                # The service still has to accept the code.
                is_code = is_answer and not is_refused
                title = "Continue in the terminal" if is_code else "Not signed in"
                page = (_PAGE % (title, "Close this page and go back to the terminal.")).encode()
                self.send_response(200 if is_answer else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """The address has the code, so it is not logged."""

        wanted = urlsplit(self.redirect_uri or "http://127.0.0.1:0")
        try:
            # A name such as localhost can also stand for ::1, but the browser tries both.
            self._server = _Server(("127.0.0.1", wanted.port or 0), Handler)
        except OSError as error:
            raise SignInRefused(
                f"Cannot wait on port {wanted.port}: {error.strerror}. Stop what uses the port."
            ) from None
        # A connection that sends nothing must not block the others for long.
        Handler.timeout = 5
        self._answers = answers
        if self.redirect_uri is None:
            self.redirect_uri = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.server_close()

    def wait(self, issuer: str, timeout_s: float) -> str:
        """The authorization code."""
        deadline = time.monotonic() + timeout_s
        while not self._answers:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise SignInRefused("Sign-in timed out. Run rota login again.")
            self._server.timeout = min(left_s, 1.0)
            self._server.handle_request()
        answer = self._answers[0]
        # RFC 9207: an answer of another issuer, sent here by an attack.
        if answer.get("iss", issuer) != issuer:
            raise SignInRefused("Another identity provider answered. Run rota login again.")
        if "code" not in answer:
            reason = answer.get("error_description") or answer.get("error") or "it gave no reason"
            raise SignInRefused(f"The identity provider refused the sign-in: {reason}")
        return answer["code"]
