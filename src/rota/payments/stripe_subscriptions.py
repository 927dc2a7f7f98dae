"""What Stripe's subscriptions say."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import stripe
from stripe.params import SubscriptionUpdateParamsItem as UpdateItem

from rota.payments.port import Status, Subscription
from rota.payments.stripe_payments import id_of
from rota.payments.stripe_webhook import Names, account_of

# Every other status means that the subscription has ended.
STATUSES: Mapping[str, Status] = {
    "incomplete": "incomplete",
    "trialing": "trialing",
    "active": "active",
    "past_due": "past_due",
}


def lookup_key(product: str) -> str:
    """The lookup key of a product's price, which is also the ID of the product."""
    return f"rota_{product}"


def subscription_of(found: stripe.Subscription, own: Names) -> Subscription | None:
    """Returns None for a subscription that this service did not create."""
    metadata = found.metadata.to_dict()
    account = account_of(metadata, own)
    items = found.items.data
    if account is None or len(items) != 1:
        return None
    item = items[0]
    return Subscription(
        id=found.id,
        account_id=account,
        customer_id=id_of(found.customer),
        product=_product(item.price) or metadata.get("product", ""),
        seats=item.quantity or 1,
        status=STATUSES.get(found.status, "ended"),
        period_start=datetime.fromtimestamp(item.current_period_start, UTC),
        period_end=datetime.fromtimestamp(item.current_period_end, UTC),
        cancel_at_period_end=found.cancel_at_period_end,
        replaces=metadata.get("replaces"),
        paid=is_paid(found),
    )


def is_paid(found: stripe.Subscription) -> bool:
    """Whether the last invoice is paid. That of a renewal is a draft for about an hour, while the
    subscription is already active in its new period. One that was written off is not paid."""
    invoice = found.latest_invoice
    return not isinstance(invoice, stripe.Invoice) or invoice.status == "paid"


def was_paid_late(invoice: stripe.Invoice, ended: stripe.Subscription) -> bool:
    """Whether it was paid after the subscription ended, because a bank took days for it."""
    paid_at = invoice.status_transitions.paid_at
    return bool(invoice.amount_paid and paid_at and ended.ended_at and paid_at > ended.ended_at)


def kept_price(found: stripe.Subscription, product: str) -> str | None:
    """The price at which the subscriber has the product already, or had it in the last invoice. It
    stays when the list price changes."""
    [item] = found.items.data
    if _product(item.price) == product:
        return item.price.id
    line = _billed_line(found)
    return line.price if line and line.product == lookup_key(product) else None


def paid_item(found: stripe.Subscription) -> UpdateItem | None:
    """The item as the last invoice billed it, if a lower plan is set for the next period.

    With classic billing, Stripe credits the price that the item has at the end. With flexible
    billing, it credits what was paid.
    """
    [item] = found.items.data
    line = _billed_line(found)
    if found.billing_mode.type == "flexible" or line is None:
        return None
    if (line.price, line.quantity) == (item.price.id, item.quantity):
        return None
    return {"id": item.id, "price": line.price, "quantity": line.quantity}


class _Line(NamedTuple):
    price: str
    # The ID at Stripe.
    product: str
    quantity: int


def _billed_line(found: stripe.Subscription) -> _Line | None:
    """What the last invoice billed for the item."""
    invoice, [item] = found.latest_invoice, found.items.data
    if not isinstance(invoice, stripe.Invoice):
        return None
    for line in invoice.lines.data:
        source = line.parent.subscription_item_details if line.parent else None
        if source is None or source.proration or source.subscription_item != item.id:
            continue
        details = line.pricing.price_details if line.pricing else None
        if details is None or not line.quantity:
            continue
        price = details.price if isinstance(details.price, str) else details.price.id
        return _Line(price, details.product, line.quantity)
    return None


def _product(price: stripe.Price) -> str | None:
    named: str | None = price.metadata.to_dict().get("product")
    return named or (price.lookup_key or "").removeprefix("rota_") or None
