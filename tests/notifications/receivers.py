"""A mail server and a chat service for tests, on real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any

import orjson
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.service import free_port


@dataclass
class Mailbox:
    """An SMTP server that keeps what it accepts. Tests tell it what to answer."""

    mails: list[EmailMessage] = field(default_factory=list)
    # As they arrived.
    raw: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    # What the next mails get as an answer, by address.
    refusals: dict[str, str] = field(default_factory=dict)
    data_answers: list[str] = field(default_factory=list)
    # While it is cleared, the server accepts mails and does not say so.
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    logins: list[tuple[str, str]] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if refusal := self.refusals.get(address):
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str | bytes:
        if self.data_answers and not (answer := self.data_answers.pop(0)).startswith("2"):
            # Also bytes that are not UTF-8.
            return answer.encode(errors="surrogateescape")
        content = envelope.content
        assert isinstance(content, bytes)
        mail = BytesParser(policy=default).parsebytes(content)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.raw.append(content)
        self.recipients += envelope.rcpt_tos
        self.encrypted.append(session.ssl is not None)
        await self.answers.wait()
        return "250 Accepted"

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if mail["To"] == address]

    def authenticate(self, *arguments: Any) -> AuthResult:
        data = arguments[4]
        user, password = data.login.decode(), data.password.decode()
        self.logins.append((user, password))
        return AuthResult(success=password == "right", handled=False)

    @asynccontextmanager
    async def serve(
        self,
        *,
        starttls: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        needs_login: bool = False,
    ) -> AsyncIterator["Mailbox"]:
        self.answers.set()

        def session() -> SMTP:
            return SMTP(
                self,
                hostname="mail.test",
                tls_context=starttls,
                require_starttls=starttls is not None,
                authenticator=self.authenticate if needs_login else None,
                auth_required=needs_login,
                auth_require_tls=False,
                enable_SMTPUTF8=True,
            )

        loop = asyncio.get_running_loop()
        server = await loop.create_server(session, "127.0.0.1", self.port, ssl=tls)
        try:
            yield self
        finally:
            self.answers.set()
            server.close()


@dataclass
class Channel:
    """The incoming webhook of a chat service."""

    messages: list[Any] = field(default_factory=list)
    # Statuses and headers of the next answers. Then it answers with 200.
    answers: list[tuple[int, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    silent: bool = False
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/a-long-and-secret-part-of-the-url"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.partition(":")[2])
            for line in head.splitlines()
            if line.lower().startswith("content-length")
        )
        body = await reader.readexactly(length)
        self.paths.append(head.split()[1])
        if self.silent:
            await reader.read()
        else:
            status, headers = self.answers.pop(0) if self.answers else (200, "")
            if status < 300:
                self.messages.append(orjson.loads(body))
            head = f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\n{headers}"
            writer.write(f"{head}Connection: close\r\n\r\nok".encode())
            await writer.drain()
        writer.close()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["Channel"]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", self.port)
        try:
            yield self
        finally:
            server.close()
