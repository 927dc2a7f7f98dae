"""Verifies webhooks: that Rota sent them, to this receiver, just now.

Signatures follow Standard Webhooks: `v1` with a shared secret (`whsec_…`), and `v1a` with a public
key (`whpk_…`), which needs the extra `rota-sdk[webhooks]`.
"""

import base64
import hmac
import time
from collections.abc import Mapping, Sequence

from rota_sdk.errors import RotaError, WebhookVerificationError
from rota_sdk.models import Event

# How far the time of a webhook may be from now, in both directions.
TOLERANCE_S = 300


class WebhookEvent(Event):
    """An event, with the account that it belongs to and the webhook that it was sent to."""

    account_id: str
    webhook_id: str


def verify(
    body: bytes,
    headers: Mapping[str, str],
    *,
    webhook_id: str,
    secret: str | Sequence[str] | None = None,
    public_key: str | Sequence[str] | None = None,
    tolerance_s: float = TOLERANCE_S,
) -> WebhookEvent:
    """The event of a webhook. Raises WebhookVerificationError if something is not right.

    `body` is the body exactly as it arrived. `webhook_id` is the ID of your webhook: a delivery to
    another receiver is refused, even if the signature is right. Pass several secrets or keys while
    you rotate them.
    """
    secrets, keys = _several(secret), _several(public_key)
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
    signed = f"{message_id}.{timestamp}.".encode() + body
    if not any(_is_right(each, signed, secrets, keys) for each in signatures):
        raise WebhookVerificationError("No signature is right. Check the secret or public key.")
    try:
        event = WebhookEvent.model_validate_json(body)
    except ValueError as error:
        raise WebhookVerificationError("The body is not an event of Rota.") from error
    if not hmac.compare_digest(event.webhook_id.encode(), webhook_id.encode()):
        raise WebhookVerificationError("The webhook was sent to another receiver.")
    return event


def _several(given: str | Sequence[str] | None) -> Sequence[str]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


def _check_time(timestamp: str, tolerance_s: float) -> None:
    # Ten digits are enough until the year 2286.
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 10:
        raise WebhookVerificationError("The header webhook-timestamp is not a number.")
    if abs(time.time() - int(timestamp)) > tolerance_s:
        raise WebhookVerificationError("The webhook is too old, or a clock is wrong.")


def _is_right(signature: str, signed: bytes, secrets: Sequence[str], keys: Sequence[str]) -> bool:
    version, _, text = signature.partition(",")
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    if version == "v1":
        return any(
            hmac.compare_digest(hmac.digest(_decoded(each, "whsec_"), signed, "sha256"), value)
            for each in secrets
        )
    if version == "v1a":
        return any(_is_signed_by(_decoded(each, "whpk_"), value, signed) for each in keys)
    return False


def _is_signed_by(key: bytes, signature: bytes, signed: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise RotaError("Public keys need another package: install rota-sdk[webhooks].") from error
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _decoded(key: str, prefix: str) -> bytes:
    try:
        return base64.b64decode(key.removeprefix(prefix), validate=True)
    except ValueError:
        # The message does not repeat the key, which may be a secret.
        raise ValueError(f"A key is not base64 with the prefix {prefix}.") from None
