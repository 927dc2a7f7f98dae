"""Sends email through the SMTP server of the installation.

Each email has a connection of its own. A mail server that does not respond costs the time limit,
and the email is tried again.
"""

import asyncio
import ssl
from collections.abc import Awaitable
from email.message import EmailMessage
from email.policy import SMTP as MAIL_POLICY
from functools import cached_property
from typing import Literal, Protocol

import aiosmtplib
import structlog
from aiosmtplib.errors import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from rota.notifications.channels import UNUSUAL_ADDRESS, NotDelivered, Refused, shown
from rota.platform.settings import Settings

log = structlog.get_logger()

# For a whole email, from the connection to the answer.
TIME_LIMIT_S = 30.0

# The longest line that RFC 5322 allows. With a shorter one, Python encodes long words, and mail
# programs do not decode List-Unsubscribe.
_WIRE = MAIL_POLICY.clone(max_line_length=998)
_UNUSABLE = "The mail server cannot be used at the moment."

# How emails leave: over SMTP, into the log (in development), or not at all.
Transport = Literal["smtp", "log", "off"]


class Mailer(Protocol):
    transport: Transport
    # What the header From has.
    sender: str

    async def send(self, mail: EmailMessage) -> None: ...


class SmtpMailer:
    transport: Transport = "smtp"

    def __init__(self, settings: Settings, *, limit_s: float = TIME_LIMIT_S) -> None:
        assert settings.smtp_from is not None
        self.sender = settings.smtp_from
        self._settings = settings
        self._limit_s = limit_s

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        """Kept, because it reads all certificates of the system."""
        if self._settings.smtp_tls == "none":
            return None
        ca_file = self._settings.smtp_ca_file
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)

    def _client(self) -> aiosmtplib.SMTP:
        settings = self._settings
        password = settings.smtp_password
        return aiosmtplib.SMTP(
            hostname=settings.smtp_host,
            port=settings.smtp_port,
            username=settings.smtp_user,
            password=password.get_secret_value() if password else None,
            timeout=self._limit_s,
            use_tls=settings.smtp_tls == "tls",
            # Required, not opportunistic: an attacker could strip the server's STARTTLS offer.
            start_tls=settings.smtp_tls == "starttls",
            tls_context=self._tls,
        )

    async def check(self) -> None:
        """Connects and signs in, and sends nothing."""
        await self._within_limit(self._greet())

    async def _greet(self) -> None:
        async with self._client():
            pass

    async def send(self, mail: EmailMessage) -> None:
        await self._within_limit(self._deliver(mail))

    async def _deliver(self, mail: EmailMessage) -> None:
        client = self._client()
        try:
            await client.connect()
            sender, to = (mail[name].addresses[0].addr_spec for name in ("From", "To"))
            await client.sendmail(sender, [to], mail.as_bytes(policy=_WIRE))
        finally:
            # No QUIT: its answer changes nothing, and a server can delay it.
            client.close()

    async def _within_limit(self, work: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._limit_s):
                await work
        except TimeoutError:
            raise NotDelivered(
                f"The mail server did not respond within {self._limit_s:g} s."
            ) from None
        except UnicodeEncodeError:
            raise Refused(UNUSUAL_ADDRESS) from None
        except (SMTPRecipientsRefused, SMTPDataError) as error:
            code, text = _answer(error)
            if 500 <= code < 600:
                raise Refused(f"The mail server refused the email: {code} {text}") from None
            raise NotDelivered(f"The mail server asked to try later: {code} {text}") from None
        except SMTPResponseException as error:
            # About the login or the sender. The operator can correct both.
            detail = f"The mail server responded with {error.code} {_line(error.message)}"
            raise NotDelivered(_UNUSABLE, detail=detail) from None
        except (SMTPException, OSError) as error:
            detail = f"The mail server cannot be used: {_line(str(error)) or type(error).__name__}"
            raise NotDelivered(_UNUSABLE, detail=detail) from None


class LogMailer:
    """Writes emails into the log, for development without a mail server."""

    transport: Transport = "log"
    sender = "Rota <rota@localhost>"

    async def send(self, mail: EmailMessage) -> None:
        body = mail.get_body(("plain",))
        log.info(
            "mail_not_sent",
            to=str(mail["To"]),
            subject=str(mail["Subject"]),
            text=body.get_content() if body is not None else "",
            reason="ROTA_SMTP_HOST is not set.",
        )


class NoMailer:
    transport: Transport = "off"
    sender = "Rota <rota@localhost>"

    async def send(self, mail: EmailMessage) -> None:
        raise Refused("Email is off. The operator has to set ROTA_SMTP_HOST.")


def mailer_of(settings: Settings) -> Mailer:
    if settings.smtp_host is not None:
        return SmtpMailer(settings)
    return LogMailer() if settings.env == "development" else NoMailer()


def _answer(error: SMTPRecipientsRefused | SMTPDataError) -> tuple[int, str]:
    if isinstance(error, SMTPDataError):
        return error.code, _line(error.message)
    # Each email has one recipient.
    refused = error.recipients[0]
    return refused.code, _line(refused.message)


def _line(text: str) -> str:
    """Text of the mail server, for an error."""
    return " ".join(shown(text).split())[:200]
