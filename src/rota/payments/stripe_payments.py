"""Top-ups at Stripe: what was paid, and how much of it was refunded or is disputed."""

from collections.abc import AsyncIterator
from datetime import datetime

import stripe

from rota.payments.port import Payment, PaymentState
from rota.payments.stripe_webhook import NAMELESS, Names, account_of, is_top_up

PAGE_SIZE = 100

# A refund in one of these states has returned its money to the operator.
FAILED_REFUNDS = ("failed", "canceled")
# A dispute in one of these states takes no money. Inquiries (`warning_…`) never do.
HARMLESS_DISPUTES = ("won", "prevented")


async def find(
    client: stripe.StripeClient, payment_id: str, own: Names = NAMELESS
) -> PaymentState | None:
    """Returns None for a payment that is not a top-up of this service, or of this cell of it."""
    try:
        intent = await client.v1.payment_intents.retrieve_async(payment_id)
    except stripe.InvalidRequestError as error:
        if error.code != "resource_missing":
            raise
        return None
    payment = _payment(intent, own)
    return await _state(client, payment) if payment else None


async def paid_or_changed(
    client: stripe.StripeClient,
    paid_since: datetime,
    changed_since: datetime,
    own: Names = NAMELESS,
) -> AsyncIterator[PaymentState]:
    """Every top-up that was paid, or refunded or disputed, since these times."""
    seen: set[str] = set()
    intents = await client.v1.payment_intents.list_async(
        {
            "created": {"gte": int(paid_since.timestamp())},
            "limit": PAGE_SIZE,
            "expand": ["data.latest_charge"],
        }
    )
    async for intent in intents.auto_paging_iter():
        seen.add(intent.id)
        if payment := _payment(intent, own):
            changed = _has_changed(intent.latest_charge)
            yield await _state(client, payment) if changed else PaymentState(payment, 0, 0)
    async for payment_id in _changed(client, changed_since):
        if payment_id not in seen:
            seen.add(payment_id)
            if state := await find(client, payment_id, own):
                yield state


async def _changed(client: stripe.StripeClient, since: datetime) -> AsyncIterator[str]:
    """The payments of all refunds and disputes since then."""
    start = int(since.timestamp())
    refunds = await client.v1.refunds.list_async({"created": {"gte": start}, "limit": PAGE_SIZE})
    async for refund in refunds.auto_paging_iter():
        if refund.payment_intent:
            yield id_of(refund.payment_intent)
    disputes = await client.v1.disputes.list_async({"created": {"gte": start}, "limit": PAGE_SIZE})
    async for dispute in disputes.auto_paging_iter():
        if dispute.payment_intent:
            yield id_of(dispute.payment_intent)


async def _state(client: stripe.StripeClient, payment: Payment) -> PaymentState:
    refunds = await client.v1.refunds.list_async({"payment_intent": payment.id, "limit": PAGE_SIZE})
    disputes = await client.v1.disputes.list_async(
        {"payment_intent": payment.id, "limit": PAGE_SIZE}
    )
    return PaymentState(
        payment,
        refunded_cents=sum(
            [
                refund.amount
                async for refund in refunds.auto_paging_iter()
                if refund.status not in FAILED_REFUNDS
            ]
        ),
        disputed_cents=sum(
            [_withdrawn_cents(dispute) async for dispute in disputes.auto_paging_iter()]
        ),
    )


def _withdrawn_cents(dispute: stripe.Dispute) -> int:
    """The disputed amount that the operator does not have at the moment."""
    if dispute.status in HARMLESS_DISPUTES or dispute.status.startswith("warning_"):
        return 0
    amounts = [transaction.amount for transaction in dispute.balance_transactions]
    withdrawn = -sum(amount for amount in amounts if amount < 0)
    missing = max(-sum(amounts), 0)
    # A ratio, because the operator's balance can have another currency than the payment.
    return dispute.amount * missing // withdrawn if withdrawn else 0


def _has_changed(charge: object) -> bool:
    if not isinstance(charge, stripe.Charge):
        return True
    return charge.amount_refunded > 0 or charge.disputed


def _payment(intent: stripe.PaymentIntent, own: Names) -> Payment | None:
    metadata = intent.metadata.to_dict()
    account = account_of(metadata, own)
    if account is None or not is_top_up(metadata) or intent.status != "succeeded":
        return None
    return Payment(
        id=intent.id,
        account_id=account,
        customer_id=id_of(intent.customer) if intent.customer else None,
        amount_cents=intent.amount_received,
    )


def id_of(reference: str | stripe.Customer | stripe.PaymentIntent) -> str:
    return reference if isinstance(reference, str) else reference.id
