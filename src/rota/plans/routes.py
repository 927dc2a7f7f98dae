"""Endpoints: the account's tier, its plan, and the personal add-on."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.plans.purchases import Purchases
from rota.plans.schemas import (
    BillingResponse,
    CheckoutResponse,
    LowerPlanResponse,
    PassBillingResponse,
    PassCheckoutResponse,
    Subscribe,
    SubscriptionResponse,
    SubscriptionsResponse,
)
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("billing:read"))]
Writer = Annotated[Caller, Depends(allowed("billing:write"))]


def tier_routes(purchases: Purchases) -> APIRouter:
    router = secured_router("Subscriptions")

    @router.get("/api/subscriptions", summary="The account's subscription and tier")
    async def get_subscription(caller: Reader) -> SubscriptionsResponse:
        return await purchases.overview(caller)

    return router


def plan_routes(purchases: Purchases) -> APIRouter:
    """Where tiers are sold as plans."""
    router = secured_router("Subscriptions")

    @router.post(
        "/api/subscriptions/subscribe",
        response_model=CheckoutResponse | LowerPlanResponse,
        summary="Subscribe to a plan, or change to another",
        responses=documented(402, 409),
    )
    async def subscribe(
        caller: Writer, body: Subscribe, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """A higher plan is paid for on the processor's page and counts from then on. A lower
        one needs no payment, and follows when the period is over."""
        return respond(await purchases.subscribe(caller, body, idempotency_key))

    @router.post(
        "/api/subscriptions/cancel",
        response_model=SubscriptionResponse,
        summary="Let the subscription end with its period",
        responses=documented(402, 404, 409),
    )
    async def cancel_subscription(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await purchases.cancel(caller, idempotency_key))

    @router.post(
        "/api/subscriptions/resume",
        response_model=SubscriptionResponse,
        summary="Take a cancellation back that has not taken effect",
        responses=documented(402, 404, 409),
    )
    async def resume_subscription(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await purchases.resume(caller, idempotency_key))

    return router


def pass_routes(purchases: Purchases) -> APIRouter:
    """Where the personal add-on is sold."""
    router = secured_router("Connect pass")
    base = "/api/addons/connect-pass"

    @router.post(
        f"{base}/checkout",
        response_model=PassCheckoutResponse,
        summary="Buy the connect pass for the personal account",
        responses=documented(402, 409),
    )
    async def checkout_connect_pass(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await purchases.checkout_pass(caller, idempotency_key))

    @router.post(
        f"{base}/cancel",
        response_model=BillingResponse,
        summary="Let the connect pass end with its period",
        responses=documented(402, 404, 409),
    )
    async def cancel_connect_pass(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await purchases.cancel_pass(caller, idempotency_key))

    @router.post(
        f"{base}/resume",
        response_model=BillingResponse,
        summary="Take a cancellation back that has not taken effect",
        responses=documented(402, 404, 409),
    )
    async def resume_connect_pass(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await purchases.resume_pass(caller, idempotency_key))

    @router.get(f"{base}/billing", summary="Paid period and trial of the connect pass")
    async def connect_pass_billing(caller: Reader) -> PassBillingResponse:
        return await purchases.pass_billing(caller)

    return router
