"""Payments at the simulated Stripe server: what was paid, refunded and disputed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.payments.port import Payer, Payment, PaymentState
from rota.payments.stripe import Stripe
from tests.payments.conftest import (
    RETURN_URL,
    TimedStripeServer,
    key,
    listed,
    new_payer,
    session_of,
    topped_up,
)
from tests.payments.stripe_server import StripeServer


async def test_a_top_up_is_paid_on_the_hosted_page_and_listed_as_a_payment(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    start = await stripe_server.now()
    checkout = await stripe.top_up_checkout(payer, 1_250, key())
    back = await stripe_server.pay(checkout.url)

    assert back == f"{RETURN_URL}?checkout=done&session_id={checkout.id}"
    session = await session_of(stripe_server, checkout.id)
    assert (session["amount_total"], session["payment_status"]) == (1_250, "paid")
    assert session["customer_details"]["email"] == "ada@example.test"
    payment = Payment(session["payment_intent"], payer.account_id, payer.customer_id, 1_250)
    paid = PaymentState(payment, 0, 0)
    assert await listed(stripe, payer, start) == [paid]
    assert await stripe.payment(payment.id) == paid

    await stripe_server.refund(payment.id, 250)
    await stripe_server.refund(payment.id, 100)
    refunded = replace(paid, refunded_cents=350)
    assert await listed(stripe, payer, start) == [refunded]
    assert await stripe.payment(payment.id) == refunded
    assert await listed(stripe, payer, await stripe_server.now() + timedelta(hours=1)) == []


async def test_a_failed_refund_does_not_count(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    start = await stripe_server.now()
    paid = await topped_up(stripe, stripe_server, payer, 1_000)
    refunds = [await stripe_server.refund(paid, cents) for cents in (100, 200, 300, 400)]
    for refund, status in zip(refunds, ("failed", "canceled", "pending", "succeeded"), strict=True):
        await stripe_server.update_refund(refund["id"], status)
    state = await stripe.payment(paid)
    assert state is not None
    assert (state.refunded_cents, state.disputed_cents) == (700, 0)
    assert await listed(stripe, payer, start) == [state]


@pytest.mark.parametrize(
    ("inquiry", "steps", "disputed_cents"),
    [
        (False, [], 800),
        (False, ["under_review"], 800),
        (False, ["lost"], 800),
        (False, ["under_review", "won"], 0),
        (True, [], 0),
        (True, ["warning_under_review"], 0),
        (True, ["warning_closed"], 0),
        # The inquiry becomes a dispute.
        (True, ["needs_response"], 800),
        (True, ["needs_response", "won"], 0),
    ],
)
async def test_a_dispute_counts_while_its_money_is_gone(
    stripe: Stripe,
    stripe_server: StripeServer,
    payer: Payer,
    inquiry: bool,
    steps: list[str],
    disputed_cents: int,
) -> None:
    start = await stripe_server.now()
    paid = await topped_up(stripe, stripe_server, payer, 1_000)
    dispute = await stripe_server.dispute(paid, 800, inquiry=inquiry)
    for status in steps:
        await stripe_server.update_dispute(dispute["id"], status)
    state = await stripe.payment(paid)
    assert state is not None
    assert (state.refunded_cents, state.disputed_cents) == (0, disputed_cents)
    assert await listed(stripe, payer, start) == [state]


async def test_a_lost_dispute_of_a_refunded_payment_counts_without_the_part_that_came_back(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    paid = await topped_up(stripe, stripe_server, payer, 1_000)
    await stripe_server.refund(paid, 300)
    dispute = await stripe_server.dispute(paid)
    await stripe_server.update_dispute(dispute["id"], "lost", returned_cents=300)
    state = await stripe.payment(paid)
    assert state is not None
    assert (state.refunded_cents, state.disputed_cents) == (300, 700)


async def test_refunds_and_disputes_of_old_payments_are_listed(timed: TimedStripeServer) -> None:
    stripe, stripe_server = timed.stripe, timed.stripe_server
    payer = await new_payer(stripe)
    for cents in (500, 600, 700):
        await topped_up(stripe, stripe_server, payer, cents)
    old = await stripe_server.now()
    await stripe_server.advance(days=90)
    start = await stripe_server.now()
    _, disputed, refunded = await listed(stripe, payer, old - timedelta(minutes=1))
    await stripe_server.refund(refunded.payment.id, 100)
    await stripe_server.dispute(disputed.payment.id)
    assert await listed(stripe, payer, start) == [
        replace(refunded, refunded_cents=100),
        replace(disputed, disputed_cents=600),
    ]


async def test_a_payment_that_is_not_ours_has_no_state(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    assert await stripe.payment("pi_nothing") is None
    foreign = await foreign_payment(stripe_server)
    assert await stripe.payment(foreign) is None


async def test_payments_are_listed_over_many_pages(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.payments.stripe_payments.PAGE_SIZE", 2)
    start = await stripe_server.now()
    for amount_cents in range(100, 105):
        payment = await topped_up(stripe, stripe_server, payer, amount_cents)
        for refund_cents in (1, 2, 3):
            await stripe_server.refund(payment, refund_cents)
    ours = await listed(stripe, payer, start)
    assert [state.payment.amount_cents for state in ours] == [104, 103, 102, 101, 100]
    assert {state.refunded_cents for state in ours} == {6}


async def test_payments_of_other_services_are_left_out(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    start = await stripe_server.now()
    before = [s async for s in stripe.payments(start, changed_since=start)]
    await stripe_server.refund(await foreign_payment(stripe_server))
    assert [s async for s in stripe.payments(start, changed_since=start)] == before


async def foreign_payment(stripe_server: StripeServer) -> str:
    """A payment of another service that uses the same Stripe account."""
    foreign = await stripe_server.api(
        "POST",
        "/v1/checkout/sessions",
        {
            "mode": "payment",
            "success_url": "https://shop.example/",
            "line_items[0][quantity]": "1",
            "line_items[0][price_data][currency]": "usd",
            "line_items[0][price_data][unit_amount]": "700",
            "line_items[0][price_data][product_data][name]": "A mug",
        },
    )
    await stripe_server.pay(foreign["url"])
    return str((await session_of(stripe_server, foreign["id"]))["payment_intent"])
