"""What Stripe tells by webhook: whether it is Stripe that tells it, and what it means."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from stripe import SignatureVerificationError, WebhookSignature

from rota.payments.port import BadSignature, Notice, Payment, SubscriptionChanged

TOLERANCE_S = 300
# What a top-up's metadata say it is.
TOP_UP = "topup"


def read(body: bytes, signature: str, secrets: Sequence[str]) -> Notice | None:
    """None for what is nothing of ours; BadSignature for what is not Stripe's."""
    if not any(_is_signed(body, signature, secret) for secret in secrets):
        raise BadSignature(
            "The Stripe-Signature header does not fit the body, or is too old. Check the secret "
            "of the webhook endpoint, and that nothing on the way changes the body."
        )
    try:
        event = orjson.loads(body)
    except ValueError:
        return None
    name, kind, about = _at(event, "id"), _at(event, "type"), _at(event, "data", "object")
    if not isinstance(name, str) or not isinstance(kind, str):
        return None
    told = _meaning(kind, about)
    return Notice(name, told) if told else None


def _is_signed(body: bytes, signature: str, secret: str) -> bool:
    try:
        WebhookSignature.verify_header(body, signature, secret, TOLERANCE_S)
    # A body that is no text, and a header that is not ASCII, raise the other two.
    except (SignatureVerificationError, UnicodeDecodeError, TypeError):
        return False
    return True


def _meaning(kind: str, about: object) -> Payment | SubscriptionChanged | None:
    if kind in ("checkout.session.completed", "checkout.session.async_payment_succeeded"):
        if _at(about, "mode") == "subscription":
            return _changed(_at(about, "subscription"), _at(about, "metadata"))
        if _at(about, "mode") == "payment" and _at(about, "payment_status") == "paid":
            return _paid(about, _at(about, "amount_total"), 0)
    elif kind == "charge.refunded":
        return _paid(about, _at(about, "amount"), _at(about, "amount_refunded"))
    elif kind.startswith("customer.subscription."):
        return _changed(_at(about, "id"), _at(about, "metadata"))
    elif kind in ("invoice.paid", "invoice.payment_failed"):
        details = _at(about, "parent", "subscription_details")
        return _changed(_at(details, "subscription"), _at(details, "metadata"))
    return None


def _paid(about: object, cents: object, refunded_cents: object) -> Payment | None:
    metadata, name = _at(about, "metadata"), _id(_at(about, "payment_intent"))
    account = account_of(metadata)
    if account is None or name is None or not is_top_up(metadata):
        return None
    if not isinstance(cents, int) or not isinstance(refunded_cents, int):
        return None
    return Payment(name, account, _id(_at(about, "customer")), cents, refunded_cents)


def _changed(subscription: object, metadata: object) -> SubscriptionChanged | None:
    name, account = _id(subscription), account_of(metadata)
    return SubscriptionChanged(name, account) if name and account else None


def account_of(metadata: object) -> UUID | None:
    """The account that something was made for; None when it is not ours."""
    try:
        return UUID(_at(metadata, "account"))
    except (ValueError, TypeError, AttributeError):
        return None


def is_top_up(metadata: object) -> bool:
    return bool(_at(metadata, "kind") == TOP_UP)


def _id(named: object) -> str | None:
    """Stripe names another thing by its id, or puts all of it there."""
    name = named if isinstance(named, str) else _at(named, "id")
    return name if isinstance(name, str) else None


def _at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node
