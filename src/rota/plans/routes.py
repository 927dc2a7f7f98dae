"""Endpoints: tier, plan and connect pass."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from rota.auth.caller import Caller
from rota.auth.routing import AnyCaller, allowed, secured_router
from rota.plans.allowance import TierAllowance
from rota.plans.purchases import Purchases
from rota.plans.schemas import (
    BillingResponse,
    CheckoutResponse,
    LowerPlanResponse,
    PassBillingResponse,
    PassCheckoutResponse,
    PassOffer,
    PlanOffer,
    PlansResponse,
    Subscribe,
    SubscriptionResponse,
    SubscriptionsResponse,
)
from rota.plans.tiers import Tier
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("billing:read"))]
Writer = Annotated[Caller, Depends(allowed("billing:write", right="billing"))]
PassReader = Annotated[Caller, Depends(allowed("billing:read", personal=True))]
PassWriter = Annotated[Caller, Depends(allowed("billing:write", personal=True))]


def tier_routes(purchases: Purchases) -> APIRouter:
    router = secured_router("Subscriptions")

    @router.get("/api/subscriptions", summary="Get the subscription")
    async def get_subscription(caller: Reader) -> SubscriptionsResponse:
        """Returns the subscription and the tier of the selected account."""
        return await purchases.overview(caller)

    return router


def offer_routes(
    tiers: Sequence[Tier],
    pass_cents: int | None,
    tier_allowance: TierAllowance,
    *,
    takes_payments: bool,
) -> APIRouter:
    router = secured_router("Subscriptions")
    offer = PlansResponse(
        plans=[PlanOffer.of(tier, tier_allowance) for tier in tiers],
        connect_pass=None if pass_cents is None else PassOffer(price_cents=pass_cents),
        takes_payments=takes_payments,
    )

    @router.get("/api/plans", summary="List the plans")
    async def list_plans(caller: AnyCaller) -> PlansResponse:
        """Returns the tiers of this deployment, from the lowest to the highest, with what each
        costs and gives, and whether this deployment takes payments. Any credential can call
        this."""
        return offer

    return router


def plan_routes(purchases: Purchases) -> APIRouter:
    """For variants that sell tiers as plans."""
    router = secured_router("Subscriptions")

    @router.post(
        "/api/subscriptions/subscribe",
        response_model=CheckoutResponse | LowerPlanResponse,
        summary="Subscribe or change the plan",
        responses=documented(402, 409),
    )
    async def subscribe(
        caller: Writer, body: Subscribe, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Subscribes to a plan, or changes to another one.

        A higher plan needs a payment: send the user to `checkoutUrl`; the plan starts when the
        payment is complete. A lower plan needs no payment: `checkoutUrl` is null, and the plan
        starts when the paid period ends. Requesting the current plan returns 409, or 200 with an
        `Idempotency-Key`.
        """
        return respond(await purchases.subscribe(caller, body, idempotency_key))

    @router.post(
        "/api/subscriptions/cancel",
        response_model=SubscriptionResponse,
        summary="Cancel the subscription",
        responses=documented(402, 404, 409),
    )
    async def cancel_subscription(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Ends the subscription when its paid period ends. Until then the tier stays, and the
        cancellation can be undone. Returns 404 without a subscription, and 409 if it is already
        cancelled, or 200 with an `Idempotency-Key`."""
        return respond(await purchases.cancel(caller, idempotency_key))

    @router.post(
        "/api/subscriptions/resume",
        response_model=SubscriptionResponse,
        summary="Resume the subscription",
        responses=documented(402, 404, 409),
    )
    async def resume_subscription(
        caller: Writer, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Undoes a cancellation before the paid period ends. Returns 409 if the
        subscription is not cancelled, or 200 with an `Idempotency-Key`."""
        return respond(await purchases.resume(caller, idempotency_key))

    return router


def pass_routes(purchases: Purchases) -> APIRouter:
    """For variants that sell the personal add-on."""
    router = secured_router("Connect pass")
    base = "/api/addons/connect-pass"

    @router.post(
        f"{base}/checkout",
        response_model=PassCheckoutResponse,
        summary="Buy the connect pass",
        responses=documented(402, 409),
    )
    async def checkout_connect_pass(
        caller: PassWriter, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a checkout page at the payment processor. The personal account must be selected
        (403). Returns 409 if the account already has the pass."""
        return respond(await purchases.checkout_pass(caller, idempotency_key))

    @router.post(
        f"{base}/cancel",
        response_model=BillingResponse,
        summary="Cancel the connect pass",
        responses=documented(402, 404, 409),
    )
    async def cancel_connect_pass(
        caller: PassWriter, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Ends the pass when its paid period ends. The personal account must be selected (403).
        Returns 404 without a pass, and 409 if it is already cancelled, or 200 with an
        `Idempotency-Key`."""
        return respond(await purchases.cancel_pass(caller, idempotency_key))

    @router.post(
        f"{base}/resume",
        response_model=BillingResponse,
        summary="Resume the connect pass",
        responses=documented(402, 404, 409),
    )
    async def resume_connect_pass(
        caller: PassWriter, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Undoes a cancellation before the paid period ends. The personal account must be
        selected (403). Returns 409 if the pass is not cancelled, or 200 with an
        `Idempotency-Key`."""
        return respond(await purchases.resume_pass(caller, idempotency_key))

    @router.get(f"{base}/billing", summary="Get the connect pass")
    async def connect_pass_billing(caller: PassReader) -> PassBillingResponse:
        """Returns the paid pass and the signup trial. The personal account must be selected
        (403)."""
        return await purchases.pass_billing(caller)

    return router
