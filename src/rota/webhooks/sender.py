"""Sends one event to one endpoint, through the guarded egress, and reports what happened.

Redirects are not followed. The status decides: a 2xx confirms the event. Of the response, only the
beginning is read, so an endpoint that sends without end costs little.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx2
import structlog

from rota.events import journal, schemas
from rota.platform import clock, ids, json
from rota.platform.crypto import SealBroken, Vault
from rota.platform.egress import (
    Egress,
    EgressRefused,
    EgressTimeout,
    ResponseRejected,
    time_limit,
)
from rota.platform.errors import RateLimited
from rota.platform.telemetry import without_secrets
from rota.webhooks.model import TEST_SEQUENCE, TEST_TYPE, Delivery, Webhook, seal_context
from rota.webhooks.signing import Signer

log = structlog.get_logger()

# Characters of a request and of a response that are kept.
KEPT_REQUEST, KEPT_RESPONSE, KEPT_ERROR = 4_096, 1_024, 500
RESPONSE_BYTES = 4 * KEPT_RESPONSE
# For the beginning of the body, after the status has arrived.
PREVIEW_S = 2.0
# An endpoint can ask for a longer pause than the usual one, up to this.
MAX_RETRY_AFTER_S = 3_600
USER_AGENT = "Rota-Webhooks/1"


@dataclass(frozen=True, slots=True)
class Attempt:
    delivery: Delivery
    # The endpoint no longer accepts events.
    gone: bool = False
    retry_after_s: float = 0


class Sender:
    def __init__(self, egress: Egress, vault: Vault, signer: Signer, *, timeout_s: float) -> None:
        self._egress = egress
        self._vault = vault
        self._signer = signer
        self.timeout_s = timeout_s
        # Webhooks with an old secret that cannot be read. Each is logged once.
        self._unreadable: set[UUID] = set()

    def client(self, account_id: UUID) -> httpx2.AsyncClient:
        """For one webhook, so that its connection can be used for the next event."""
        return self._egress.client(account_id, {"User-Agent": USER_AGENT})

    def secrets(self, account_id: UUID, webhook: Webhook) -> list[str]:
        """The secrets that sign now, the newest first."""
        context, now = seal_context(account_id, webhook.id), clock.now()
        opened = [self._vault.open(webhook.sealed_secret, context).decode()]
        for sealed, until in webhook.old_secrets:
            if until > now:
                try:
                    opened.append(self._vault.open(sealed, context).decode())
                except SealBroken:
                    # Perhaps it was replaced for this reason.
                    if webhook.id not in self._unreadable:
                        self._unreadable.add(webhook.id)
                        log.warning("webhook_old_secret_unreadable", webhook_id=str(webhook.id))
        return opened

    async def send(
        self,
        client: httpx2.AsyncClient,
        account_id: UUID,
        webhook: Webhook,
        event: journal.Event,
        *,
        attempt: int,
        previous: int,
    ) -> Attempt:
        body = body_of(account_id, webhook.id, event, previous)
        sent_at, started = clock.now(), time.monotonic()
        message_id = ids.to_wire("evt", event.id)
        status: int | None = None
        text: bytes | None = None
        retry_after_s = 0.0
        try:
            secrets = self.secrets(account_id, webhook)
        except SealBroken:
            error: str | None = "The secret of the webhook cannot be read. Rotate it."
        else:
            headers = self._signer.headers(message_id, int(sent_at.timestamp()), body, secrets)
            status, error, text, retry_after_s = await self._post(
                client, webhook.url, body, headers
            )
        delivered = status is not None and 200 <= status < 300
        if status is not None and not delivered:
            error = _refusal(status)
        return Attempt(
            Delivery(
                id=ids.new_uuid(),
                event_id=event.id,
                sequence=event.sequence,
                type=event.type,
                attempt=attempt,
                url=webhook.url,
                sent_at=sent_at,
                duration_ms=round(1000 * (time.monotonic() - started)),
                delivered=delivered,
                status=status,
                error=error,
                request_body=_kept(body, KEPT_REQUEST),
                response_body=None if text is None else _kept(text, KEPT_RESPONSE),
            ),
            gone=status == 410,
            retry_after_s=retry_after_s,
        )

    async def _post(
        self, client: httpx2.AsyncClient, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int | None, str | None, bytes | None, float]:
        """Status, error, the beginning of the response, and the pause that it asks for."""
        try:
            request = client.build_request(
                "POST", url, content=body, headers={"Content-Type": "application/json", **headers}
            )
            async with time_limit(self.timeout_s):
                response = await client.send(request, stream=True, follow_redirects=False)
        except RateLimited:
            raise
        except Exception as error:
            return None, _reason(error, self.timeout_s), None, 0
        try:
            return response.status_code, None, await _beginning(response), _pause(response)
        finally:
            with contextlib.suppress(Exception):
                await response.aclose()


def body_of(account_id: UUID, webhook_id: UUID, event: journal.Event, previous: int) -> bytes:
    """The exact bytes that are signed and sent."""
    shown: dict[str, Any] = schemas.Event.of(event).model_dump(mode="json", by_alias=True)
    shown["accountId"] = ids.to_wire("acct", account_id)
    shown["webhookId"] = ids.to_wire("wh", webhook_id)
    shown["previousSequence"] = previous
    return json.dumps(shown)


def test_event(at: datetime) -> journal.Event:
    """An event outside the journal, to try a webhook."""
    return journal.Event(TEST_SEQUENCE, ids.new_uuid(), TEST_TYPE, None, {}, at)


async def _beginning(response: httpx2.Response) -> bytes:
    received: Sequence[bytes] = []
    try:
        async with asyncio.timeout(PREVIEW_S):
            async for chunk in response.aiter_raw():
                received = [*received, chunk]
                if sum(map(len, received)) >= RESPONSE_BYTES:
                    break
    except Exception as error:
        # The status has arrived, and it decides.
        log.debug("webhook_response_cut", error=repr(error))
    return b"".join(received)


def _pause(response: httpx2.Response) -> float:
    asked = response.headers.get("retry-after", "")
    if not asked.isascii() or not asked.isdigit():
        return 0
    return min(int(asked[:6]), MAX_RETRY_AFTER_S)


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return f"The endpoint redirects ({status}). Redirects are not followed: correct the URL."
    if status == 410:
        return "The endpoint responded with 410: it no longer accepts events."
    return f"The endpoint responded with {status}. It must respond with 2xx."


def _reason(error: Exception, timeout_s: float) -> str:
    if isinstance(error, EgressRefused | ResponseRejected):
        return _short(str(error))
    if isinstance(error, EgressTimeout | httpx2.TimeoutException):
        return f"The endpoint did not respond within {timeout_s:g} s."
    if isinstance(error, httpx2.ConnectError):
        return _short(f"The connection failed: {error}.")
    return _short(f"The endpoint did not respond with valid HTTP ({type(error).__name__}).")


def _short(text: str) -> str:
    return without_secrets(text)[:KEPT_ERROR]


def _kept(raw: bytes, characters: int) -> str:
    """What can be shown: valid text, without NUL, which PostgreSQL cannot store."""
    text = raw[: 4 * characters].decode("utf-8", "replace").replace("\0", "\ufffd")
    return without_secrets(text)[:characters]
