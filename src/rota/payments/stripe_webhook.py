"""Stripe's webhooks: verifies the signature and reads the event."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from stripe import SignatureVerificationError, WebhookSignature

from rota.payments.port import (
    BadSignature,
    Payment,
    PaymentChanged,
    SubscriptionChanged,
    WebhookEvent,
)

TOLERANCE_S = 300
# The value of `kind` in the metadata of a top-up.
TOP_UP = "topup"
# Events about a charge, a refund or a dispute. Each of these objects names its payment.
_REVERSALS = ("charge.refund", "refund.", "charge.dispute.")
# The values of `cell` in the metadata of a deployment's own objects.
Names = frozenset[str | None]
NAMELESS: Names = frozenset((None,))


def names_of(cell: str | None, *, owns_nameless: bool) -> Names:
    """An object without the name of a cell is older than the names, and of one cell only."""
    return frozenset((cell, None) if owns_nameless else (cell,))


def read(
    body: bytes, signature: str, secrets: Sequence[str], own: Names = NAMELESS
) -> WebhookEvent | None:
    """Returns None for an event that is irrelevant here, such as one of another cell."""
    if not any(_is_signed(body, signature, secret) for secret in secrets):
        raise BadSignature
    try:
        event = orjson.loads(body)
    except ValueError:
        return None
    event_id, kind = _at(event, "id"), _at(event, "type")
    if not isinstance(event_id, str) or not isinstance(kind, str):
        return None
    return _event(kind, _at(event, "data", "object"), own)


def _is_signed(body: bytes, signature: str, secret: str) -> bool:
    try:
        WebhookSignature.verify_header(body, signature, secret, TOLERANCE_S)
    # A body that is not UTF-8 and a header that is not ASCII raise the other two.
    except (SignatureVerificationError, UnicodeDecodeError, TypeError):
        return False
    return True


def _event(kind: str, data: object, own: Names) -> WebhookEvent | None:
    if kind in ("checkout.session.completed", "checkout.session.async_payment_succeeded"):
        if _at(data, "mode") == "subscription":
            return _changed(_at(data, "subscription"), _at(data, "metadata"), own)
        if _at(data, "mode") == "payment" and _at(data, "payment_status") == "paid":
            return _paid(data, own)
    elif kind.startswith(_REVERSALS):
        payment_id = _id(_at(data, "payment_intent"))
        return PaymentChanged(payment_id) if payment_id else None
    elif kind.startswith("customer.subscription."):
        return _changed(_at(data, "id"), _at(data, "metadata"), own)
    elif kind in ("invoice.paid", "invoice.payment_failed"):
        parent = _at(data, "parent", "subscription_details")
        # An endpoint with an API version before 2025-03-31 gets invoices without a parent.
        subscription = _at(parent or data, "subscription")
        metadata = _at(parent or _at(data, "subscription_details"), "metadata")
        return _changed(subscription, metadata, own)
    return None


def _paid(data: object, own: Names) -> Payment | None:
    metadata, payment_id = _at(data, "metadata"), _id(_at(data, "payment_intent"))
    account, amount_cents = account_of(metadata, own), _at(data, "amount_total")
    if account is None or payment_id is None or not is_top_up(metadata):
        return None
    if not isinstance(amount_cents, int):
        return None
    return Payment(payment_id, account, _id(_at(data, "customer")), amount_cents)


def _changed(subscription: object, metadata: object, own: Names) -> SubscriptionChanged | None:
    subscription_id, account = _id(subscription), account_of(metadata, own)
    return SubscriptionChanged(subscription_id, account) if subscription_id and account else None


def account_of(metadata: object, own: Names) -> UUID | None:
    """The account that an object belongs to. None for an object of another service, or of another
    cell."""
    if _at(metadata, "cell") not in own:
        return None
    try:
        return UUID(_at(metadata, "account"))
    except (ValueError, TypeError, AttributeError):
        return None


def is_top_up(metadata: object) -> bool:
    return bool(_at(metadata, "kind") == TOP_UP)


def _id(reference: object) -> str | None:
    """Stripe refers to another object by its ID, or includes the whole object."""
    found = reference if isinstance(reference, str) else _at(reference, "id")
    return found if isinstance(found, str) else None


def _at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node
