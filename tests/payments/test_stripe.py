"""The adapter against the simulated Stripe server: every call of the processor interface."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from rota.payments.port import (
    NoProcessor,
    Payer,
    PaymentFailed,
    Processor,
    ProcessorUnavailable,
    Product,
    Subscription,
)
from rota.payments.stripe import Stripe
from tests.payments.conftest import (
    PRODUCTS,
    RETURN_URL,
    adapter,
    key,
    listed,
    new_payer,
    session_of,
)
from tests.payments.stripe_server import DECLINED_CARD, StripeServer


async def subscribed(
    stripe: Stripe,
    stripe_server: StripeServer,
    payer: Payer,
    product: str = "standard",
    seats: int = 1,
) -> Subscription:
    checkout = await stripe.plan_checkout(payer, product, seats, key())
    await stripe_server.pay(checkout.url)
    session = await session_of(stripe_server, checkout.id)
    return await stripe.subscription(session["subscription"])


async def test_a_returning_payer_is_the_same_customer(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    first = await subscribed(stripe, stripe_server, payer)
    known = replace(payer, customer_id=first.customer_id)
    checkout = await stripe.top_up_checkout(known, 500, key())
    assert (await session_of(stripe_server, checkout.id))["customer"] == first.customer_id


async def test_a_payer_without_an_email_can_pay(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    payer = await new_payer(stripe, None)
    checkout = await stripe.top_up_checkout(payer, 500, key())
    await stripe_server.pay(checkout.url)
    assert (await session_of(stripe_server, checkout.id))["customer"] == payer.customer_id


async def test_the_same_key_creates_one_customer(
    stripe: Stripe, stripe_server: StripeServer
) -> None:
    account_id, same_key = uuid4(), key()
    created = {await stripe.create_customer(account_id, None, same_key) for _ in range(2)}
    assert len(created) == 1
    customer = await stripe_server.api("GET", f"/v1/customers/{created.pop()}")
    assert customer["metadata"] == {"account": str(account_id)}


async def test_a_plan_is_bought_with_seats(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    bought = await subscribed(stripe, stripe_server, payer, "corporate", 7)
    assert bought == Subscription(
        id=bought.id,
        account_id=payer.account_id,
        customer_id=bought.customer_id,
        product="corporate",
        seats=7,
        status="active",
        period_start=bought.period_start,
        period_end=bought.period_end,
        cancel_at_period_end=False,
        replaces=None,
    )
    assert timedelta(days=28) <= bought.period_end - bought.period_start <= timedelta(days=31)
    (invoice,) = [
        event["data"]["object"]
        for event in await stripe_server.events("invoice.paid")
        if event["data"]["object"]["customer"] == bought.customer_id
    ]
    assert invoice["amount_paid"] == 7 * 5_000


async def test_a_plan_can_start_with_a_trial_and_replace_another(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    checkout = await stripe.plan_checkout(
        payer, "connect_pass", 1, key(), replaces="sub_old", trial_days=14
    )
    await stripe_server.pay(checkout.url)
    session = await session_of(stripe_server, checkout.id)
    bought = await stripe.subscription(session["subscription"])
    assert (bought.status, bought.replaces, bought.product) == (
        "trialing",
        "sub_old",
        "connect_pass",
    )
    assert bought.period_end - bought.period_start == timedelta(days=14)


async def test_a_changed_plan_applies_from_the_next_period(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    bought = await subscribed(stripe, stripe_server, payer, "corporate", 7)
    changed = await stripe.change(bought.id, "standard", 1)
    assert changed == replace(bought, product="standard", seats=1)
    assert await stripe.subscription(bought.id) == changed


async def test_a_cancellation_can_be_set_and_cleared(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    bought = await subscribed(stripe, stripe_server, payer)
    cancelled = await stripe.cancel(bought.id, at_period_end=True)
    assert cancelled == replace(bought, cancel_at_period_end=True)
    assert await stripe.cancel(bought.id, at_period_end=False) == bought


async def test_ending_a_subscription_credits_the_unused_time_and_can_be_repeated(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    bought = await subscribed(stripe, stripe_server, payer)
    for _ in range(2):
        await stripe.end(bought.id)
        assert (await stripe.subscription(bought.id)).status == "ended"
    customer = await stripe_server.api("GET", f"/v1/customers/{bought.customer_id}")
    assert -2_000 <= customer["balance"] < -1_900


async def test_the_end_of_a_subscription_is_known_although_its_invoices_are_not(
    stripe_server: StripeServer,
    payer: Payer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("rota.payments.stripe.RETRIES", 0)
    stripe = adapter(stripe_server)
    bought = await subscribed(stripe, stripe_server, payer)
    await stripe.end(bought.id)
    await stripe_server.fault("/v1/invoices", "500")
    assert (await stripe.subscription(bought.id)).status == "ended"
    assert "ended_subscription_unchecked" in capsys.readouterr().out
    await stripe.close()


async def test_live_subscriptions_are_listed_over_many_pages(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.payments.stripe.PAGE_SIZE", 2)
    bought = [await subscribed(stripe, stripe_server, payer) for _ in range(5)]
    await stripe.end(bought[2].id)
    ours = [s async for s in stripe.subscriptions() if s.account_id == payer.account_id]
    assert ours == [bought[4], bought[3], bought[1], bought[0]]


async def prices(stripe_server: StripeServer, product: str) -> list[dict[str, Any]]:
    asked = {"lookup_keys[]": f"rota_{product}"}
    found: list[dict[str, Any]] = (await stripe_server.api("GET", "/v1/prices", params=asked))[
        "data"
    ]
    return found


async def test_an_unchanged_product_is_left_alone_and_a_new_price_replaces_the_old(
    stripe_server: StripeServer, stripe: Stripe, payer: Payer
) -> None:
    name = f"plan_{uuid4().hex[:8]}"
    await stripe.offer((Product(name, "A plan", 1_000),))
    bought = await subscribed(stripe, stripe_server, payer, name)
    (first,) = await prices(stripe_server, name)
    await stripe.offer((Product(name, "A plan", 1_000), *PRODUCTS))
    (second,) = await prices(stripe_server, name)
    assert first == second

    await stripe.offer((Product(name, "A better plan", 1_500),))

    (third,) = await prices(stripe_server, name)
    assert (third["unit_amount"], third["product"]) == (1_500, first["product"])
    product = await stripe_server.api("GET", f"/v1/products/rota_{name}")
    assert product["name"] == "A better plan"
    # The existing subscription keeps the product at its old price.
    assert (await stripe.subscription(bought.id)).product == name
    checkout = await stripe.plan_checkout(payer, name, 1, key())
    assert (await session_of(stripe_server, checkout.id))["amount_total"] == 1_500


async def test_a_subscriber_keeps_the_old_price_when_a_lower_plan_is_chosen_and_taken_back(
    stripe_server: StripeServer, stripe: Stripe, payer: Payer
) -> None:
    name = f"plan_{uuid4().hex[:8]}"
    await stripe.offer((Product(name, "A plan", 1_000),))
    bought = await subscribed(stripe, stripe_server, payer, name, 7)
    await stripe.offer((Product(name, "A plan", 1_500),))

    async def change(product: str, seats: int) -> tuple[int, int]:
        assert (await stripe.change(bought.id, product, seats)).product == product
        found = await stripe_server.api("GET", f"/v1/subscriptions/{bought.id}")
        [item] = found["items"]["data"]
        return item["price"]["unit_amount"], item["quantity"]

    assert await change(name, 5) == (1_000, 5)
    assert await change("standard", 1) == (2_000, 1)
    assert await change(name, 7) == (1_000, 7)


async def test_concurrent_setups_and_ends_act_once(
    stripe_server: StripeServer, stripe: Stripe, payer: Payer
) -> None:
    name = f"plan_{uuid4().hex[:8]}"
    offered = (Product(name, "A plan", 1_000),)
    await asyncio.gather(*[stripe.offer(offered) for _ in range(8)])
    assert len(await prices(stripe_server, name)) == 1
    bought = await subscribed(stripe, stripe_server, payer, name)
    await asyncio.gather(*[stripe.end(bought.id) for _ in range(8)])
    deleted = await stripe_server.events("customer.subscription.deleted")
    assert [e["data"]["object"]["id"] for e in deleted].count(bought.id) == 1


async def test_a_product_that_is_not_on_sale_cannot_be_bought(stripe: Stripe, payer: Payer) -> None:
    with pytest.raises(PaymentFailed, match="not on sale"):
        await stripe.plan_checkout(payer, "gold", 1, key())


async def test_the_same_key_creates_one_checkout(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    same_key = key()
    first = await stripe.top_up_checkout(payer, 500, same_key)
    assert await stripe.top_up_checkout(payer, 500, same_key) == first
    with pytest.raises(PaymentFailed):
        await stripe.top_up_checkout(payer, 600, same_key)


async def sessions(stripe_server: StripeServer, payer: Payer) -> list[str]:
    """The checkout sessions of an account."""
    latest = await stripe_server.api("GET", "/v1/checkout/sessions", params={"limit": "20"})
    return [
        s["id"] for s in latest["data"] if s["metadata"].get("account") == str(payer.account_id)
    ]


@pytest.mark.parametrize("mode", ["500", "drop", "timeout"])
async def test_a_short_fault_is_retried_and_nothing_happens_twice(
    stripe_server: StripeServer, payer: Payer, mode: Any
) -> None:
    stripe = adapter(stripe_server, timeout_s=0.5)
    await stripe_server.fault("/v1/checkout/sessions", mode)
    same_key = key()
    first = await stripe.top_up_checkout(payer, 500, same_key)
    assert await stripe.top_up_checkout(payer, 500, same_key) == first
    assert await sessions(stripe_server, payer) == [first.id]
    await stripe_server.pay(first.url)
    start = await stripe_server.now() - timedelta(minutes=1)
    assert len(await listed(stripe, payer, start)) == 1
    await stripe.close()


@pytest.mark.parametrize("mode", ["500", "drop", "timeout"])
async def test_a_lasting_fault_is_an_error_and_the_same_key_works_afterwards(
    stripe_server: StripeServer, payer: Payer, mode: Any
) -> None:
    stripe = adapter(stripe_server, timeout_s=0.3)
    await stripe_server.fault("/v1/checkout/sessions", mode, times=3)
    same_key = key()
    with pytest.raises(PaymentFailed, match="Try again later") as failed:
        await stripe.top_up_checkout(payer, 500, same_key)
    assert (failed.value.status_code, failed.value.code) == (402, "PAYMENT_PROCESSOR_ERROR")
    first = await stripe.top_up_checkout(payer, 500, same_key)
    assert await sessions(stripe_server, payer) == [first.id]
    await stripe.close()


async def every_call(processor: Processor, payer: Payer, since: Any) -> AsyncIterator[Any]:
    """Every call of the interface, as an awaitable."""

    async def drained(items: Any) -> None:
        [item async for item in items()]

    yield processor.create_customer(payer.account_id, None, key())
    yield processor.top_up_checkout(payer, 500, key())
    yield processor.plan_checkout(payer, "standard", 1, key())
    yield processor.subscription("sub_1")
    yield processor.change("sub_1", "standard", 1)
    yield processor.cancel("sub_1", at_period_end=True)
    yield processor.end("sub_1")
    yield processor.offer(PRODUCTS)
    yield processor.payment("pi_1")
    yield drained(lambda: processor.payments(since, changed_since=since))
    yield drained(processor.subscriptions)


async def test_every_call_to_an_unavailable_processor_is_a_payment_error(
    stripe_server: StripeServer, payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.payments.stripe.RETRIES", 0)
    unreachable = Stripe(
        "sk_test_x", return_url=RETURN_URL, api_url="http://127.0.0.1:9", timeout_s=1
    )
    refusing = Stripe("pk_wrong_key", return_url=RETURN_URL, api_url=stripe_server.url)
    for processor in (unreachable, refusing):
        async for call in every_call(processor, payer, await stripe_server.now()):
            with pytest.raises(ProcessorUnavailable, match="Try again later") as failed:
                await call
            assert "pk_wrong" not in str(failed.value)
        await processor.close()


async def test_without_a_processor_every_call_names_the_missing_setting(
    stripe_server: StripeServer, payer: Payer
) -> None:
    async for call in every_call(NoProcessor(), payer, await stripe_server.now()):
        with pytest.raises(PaymentFailed, match="does not take payments"):
            await call
    with pytest.raises(PaymentFailed, match="does not take payments"):
        NoProcessor().read_webhook(b"{}", "")


async def test_an_unknown_or_foreign_subscription_is_a_payment_error(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    with pytest.raises(PaymentFailed) as failed:
        await stripe.subscription("sub_nobody")
    assert not isinstance(failed.value, ProcessorUnavailable)
    bought = await subscribed(stripe, stripe_server, payer)
    await stripe_server.api("POST", f"/v1/subscriptions/{bought.id}", {"metadata[account]": ""})
    with pytest.raises(PaymentFailed):
        await stripe.subscription(bought.id)


async def test_a_declined_card_buys_nothing(
    stripe: Stripe, stripe_server: StripeServer, payer: Payer
) -> None:
    checkout = await stripe.top_up_checkout(payer, 500, key())
    refused = await stripe_server.http.post(
        checkout.url, data={"action": "pay", "card": DECLINED_CARD}
    )
    assert refused.status_code == 402
    assert "declined" in refused.text
    assert (await session_of(stripe_server, checkout.id))["status"] == "open"
    await stripe_server.pay(checkout.url)
    assert (await session_of(stripe_server, checkout.id))["status"] == "complete"
