"""Where the payment processor tells what happened."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from prometheus_client import Counter
from starlette.requests import Request

from rota.payments.port import BadSignature, Payment, PaymentFailed, Processor
from rota.platform.errors import Unavailable
from rota.platform.http.schemas import Wire

WEBHOOKS = Counter("rota_webhooks_received_total", "What the payment processor told.", ["outcome"])

OnPayment = Callable[[Payment], Awaitable[None]]
# The processor's name of a subscription, and the account that it is for.
OnSubscription = Callable[[str, UUID], Awaitable[None]]


class ReceivedResponse(Wire):
    received: bool = True


def webhook_routes(
    processor: Processor, on_payment: OnPayment, on_subscription: OnSubscription
) -> APIRouter:
    """Answers 200 only when what was told has taken effect; anything else is told again."""
    router = APIRouter(tags=["Payments"])

    # Not in the description: nobody but the processor can call it.
    @router.post("/webhooks/stripe", include_in_schema=False)
    async def stripe_webhook(
        request: Request, stripe_signature: Annotated[str, Header()] = ""
    ) -> ReceivedResponse:
        outcome = "failed"
        try:
            notice = processor.notice(await request.body(), stripe_signature)
            if notice is None:
                outcome = "ignored"
            elif isinstance(notice.about, Payment):
                await on_payment(notice.about)
                outcome = "payment"
            else:
                await on_subscription(notice.about.subscription_id, notice.about.account_id)
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
