"""Verifies webhooks: that Rota sent them, to this receiver, just now. Signs them for tests.

Signatures follow Standard Webhooks: `v1` with a shared secret (`whsec_…`), and `v1a` with a public
key (`whpk_…`), which needs the package cryptography: the extra `webhooks`.
"""

import base64
import hmac
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from rota_sdk.errors import RotaError, WebhookVerificationError
from rota_sdk.models import Event

# How far the time of a webhook may be from now, in both directions.
TOLERANCE_S = 300


class Headers(Protocol):
    """The headers of a request: a mapping, or what a framework has."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class WebhookEvent(Event):
    """An event, with the account that it belongs to and the webhook that it was sent to."""

    account_id: str
    webhook_id: str
    # The number of the event that was sent to this webhook before it.
    previous_sequence: int | None = None


def verify(
    body: bytes | str,
    headers: Headers,
    *,
    webhook_id: str,
    secret: str | Sequence[str] | None = None,
    public_key: str | Sequence[str] | None = None,
    tolerance_s: float = TOLERANCE_S,
) -> WebhookEvent:
    """The event of a webhook. Raises WebhookVerificationError if something is not right.

    `body` is the body exactly as it arrived, not parsed. `webhook_id` is the ID of your webhook: a
    delivery to another receiver is refused, even if the signature matches. Pass several secrets or
    keys while you rotate them.
    """
    # All keys are checked first: one that is empty would accept what anybody can sign.
    secrets, keys = _decoded(secret, "whsec_"), _decoded(public_key, "whpk_")
    if not secrets and not keys:
        raise ValueError("Pass the secret or the public key of the webhook.")
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message_id = given["webhook-id"]
        timestamp = given["webhook-timestamp"]
        signatures = given["webhook-signature"].split()
    except KeyError as error:
        raise WebhookVerificationError(f"The header {error.args[0]} is missing.") from None
    _check_time(timestamp, tolerance_s)
    content = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{timestamp}.".encode() + content
    if not any(_is_right(each, signed, secrets, keys) for each in signatures):
        raise WebhookVerificationError("No signature matches. Check the secret or public key.")
    try:
        event = WebhookEvent.model_validate_json(content)
    except ValueError as error:
        raise WebhookVerificationError("The body is not an event of Rota.") from error
    if not hmac.compare_digest(event.webhook_id.encode(), webhook_id.encode()):
        raise WebhookVerificationError("The webhook was sent to another receiver.")
    return event


def sign(
    body: bytes | str, *, secret: str, message_id: str = "evt_test", timestamp: int | None = None
) -> dict[str, str]:
    """The headers of a webhook with this body, signed with `v1`. For tests of a receiver."""
    [key] = _decoded(secret, "whsec_")
    stamp = str(int(time.time()) if timestamp is None else timestamp)
    content = body.encode() if isinstance(body, str) else body
    digest = hmac.digest(key, f"{message_id}.{stamp}.".encode() + content, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _decoded(given: str | Sequence[str] | None, prefix: str) -> list[bytes]:
    if given is None:
        return []
    return [_key(each, prefix) for each in ([given] if isinstance(given, str) else given)]


def _key(text: str, prefix: str) -> bytes:
    # The messages do not repeat the key, which may be a secret.
    try:
        key = base64.b64decode(text.removeprefix(prefix), validate=True)
    except ValueError:
        raise ValueError(f"A key is not base64 with the prefix {prefix}.") from None
    if not key:
        raise ValueError(f"A key with the prefix {prefix} is empty.")
    return key


def _check_time(timestamp: str, tolerance_s: float) -> None:
    # Ten digits are enough until the year 2286.
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 10:
        raise WebhookVerificationError("The header webhook-timestamp is not a number.")
    if abs(time.time() - int(timestamp)) > tolerance_s:
        raise WebhookVerificationError("The webhook is too old, or a clock is wrong.")


def _is_right(signature: str, signed: bytes, secrets: list[bytes], keys: list[bytes]) -> bool:
    version, _, text = signature.partition(",")
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    if version == "v1":
        return any(
            hmac.compare_digest(hmac.digest(each, signed, "sha256"), value) for each in secrets
        )
    if version == "v1a":
        return any(_is_signed_by(each, value, signed) for each in keys)
    return False


def _is_signed_by(key: bytes, signature: bytes, signed: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise RotaError("Public keys need another package. Install cryptography.") from error
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except InvalidSignature:
        return False
    return True
