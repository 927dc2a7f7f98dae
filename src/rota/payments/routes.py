"""The endpoint for the payment processor's webhooks."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from prometheus_client import Counter
from starlette.requests import Request

from rota.payments.port import (
    BadSignature,
    Payment,
    PaymentChanged,
    PaymentFailed,
    Processor,
)
from rota.platform.errors import Unavailable
from rota.platform.http.schemas import Wire

WEBHOOKS = Counter(
    "rota_webhooks_received_total", "Webhook requests from the payment processor.", ["outcome"]
)
for _outcome in ("payment", "payment_change", "subscription", "ignored", "forged", "failed"):
    WEBHOOKS.labels(_outcome)

OnPayment = Callable[[Payment], Awaitable[None]]
# Called with the processor's ID of the payment.
OnPaymentChange = Callable[[str], Awaitable[None]]
# Called with the processor's ID of the subscription, and its account.
OnSubscription = Callable[[str, UUID], Awaitable[None]]


class ReceivedResponse(Wire):
    received: bool = True


def webhook_routes(
    processor: Processor,
    on_payment: OnPayment,
    on_payment_change: OnPaymentChange,
    on_subscription: OnSubscription,
) -> APIRouter:
    """Returns 200 only after the event has taken effect. Otherwise the processor sends it again."""
    router = APIRouter(tags=["Payments"])

    # Not in the OpenAPI description: only the processor can call it.
    @router.post("/webhooks/stripe", include_in_schema=False)
    async def stripe_webhook(
        request: Request, stripe_signature: Annotated[str, Header()] = ""
    ) -> ReceivedResponse:
        outcome = "failed"
        try:
            event = processor.read_webhook(await request.body(), stripe_signature)
            if event is None:
                outcome = "ignored"
            elif isinstance(event, Payment):
                await on_payment(event)
                outcome = "payment"
            elif isinstance(event, PaymentChanged):
                await on_payment_change(event.payment_id)
                outcome = "payment_change"
            else:
                await on_subscription(event.subscription_id, event.account_id)
                outcome = "subscription"
        except BadSignature:
            outcome = "forged"
            raise
        except PaymentFailed as error:
            raise Unavailable(error.message) from error
        finally:
            WEBHOOKS.labels(outcome).inc()
        return ReceivedResponse()

    return router
