"""The simulated Stripe server's subscriptions over time, as the adapter sees them."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from rota.payments.port import Payer
from tests.payments.conftest import TimedStripeServer
from tests.payments.stripe_server import FAILS_LATER_CARD, StripeServer


def day(moment: datetime) -> str:
    return moment.date().isoformat()


async def test_a_subscription_renews_on_its_day_or_on_the_last_day_of_a_shorter_month(
    timed: TimedStripeServer,
) -> None:
    await timed.stripe_server.advance(to="2027-10-31T09:30:00Z")
    bought = await timed.subscribe()
    start = bought.period_start
    assert day(bought.period_end) == "2027-11-30"
    ends = []
    for _ in range(6):
        await timed.stripe_server.advance(to=bought.period_end)
        bought = await timed.stripe.subscription(bought.id)
        assert bought.status == "active"
        ends.append(bought.period_end)
    # 2028 has a 29 February.
    assert [day(end) for end in ends] == [
        "2027-12-31",
        "2028-01-31",
        "2028-02-29",
        "2028-03-31",
        "2028-04-30",
        "2028-05-31",
    ]
    assert {end.time() for end in ends} == {start.time()}


async def test_a_subscription_of_29_february_renews_on_the_29th_or_the_28th(
    timed: TimedStripeServer,
) -> None:
    await timed.stripe_server.advance(to="2028-02-29T12:00:00Z")
    bought = await timed.subscribe()
    assert day(bought.period_end) == "2028-03-29"
    await timed.stripe_server.advance(to="2029-02-10T00:00:00Z")
    bought = await timed.stripe.subscription(bought.id)
    assert (day(bought.period_start), day(bought.period_end)) == ("2029-01-29", "2029-02-28")


async def test_a_long_move_of_the_clock_runs_every_renewal_once_and_in_order(
    timed: TimedStripeServer,
) -> None:
    await timed.stripe_server.advance(to="2027-01-31T00:00:00Z")
    first = await timed.subscribe()
    await timed.stripe_server.advance(days=5)
    second = await timed.subscribe()
    before = await timed.count()
    await timed.stripe_server.advance(to="2027-04-02T00:00:00Z")
    renewals = [
        (
            event["data"]["object"]["parent"]["subscription_details"]["subscription"],
            day(datetime.fromtimestamp(event["created"], UTC)),
        )
        for event in (await timed.stripe_server.events())[before:]
        if event["type"] == "invoice.paid"
    ]
    assert renewals == [
        (first.id, "2027-02-28"),
        (second.id, "2027-03-05"),
        (first.id, "2027-03-31"),
    ]


async def test_a_trial_ends_with_a_payment_that_starts_the_month(timed: TimedStripeServer) -> None:
    await timed.stripe_server.advance(to="2027-01-17T00:00:00Z")
    bought = await timed.subscribe(trial_days=14)
    assert (bought.status, day(bought.period_end)) == ("trialing", "2027-01-31")
    (free,) = await timed.stripe_server.events("invoice.paid")
    assert free["data"]["object"]["amount_paid"] == 0

    await timed.stripe_server.advance(days=15)

    bought = await timed.stripe.subscription(bought.id)
    assert (bought.status, day(bought.period_end)) == ("active", "2027-02-28")
    *_, paid = await timed.stripe_server.events("invoice.paid")
    assert paid["data"]["object"]["amount_paid"] == 2_000


async def test_a_failed_renewal_is_retried_and_recovers(timed: TimedStripeServer) -> None:
    await timed.stripe_server.advance(to="2027-01-01T00:00:00Z")
    bought = await timed.subscribe()
    await timed.stripe_server.decline(bought.customer_id)
    before = await timed.count()

    await timed.stripe_server.advance(to="2027-02-02T12:00:00Z")
    assert (await timed.stripe.subscription(bought.id)).status == "past_due"
    await timed.stripe_server.decline(bought.customer_id, False)
    await timed.stripe_server.advance(to="2027-02-10T00:00:00Z")

    recovered = await timed.stripe.subscription(bought.id)
    assert (recovered.status, day(recovered.period_end)) == ("active", "2027-03-01")
    assert await timed.events_since(before) == [
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-02"),
        ("invoice.paid", "2027-02-04"),
        ("customer.subscription.updated", "2027-02-04"),
    ]


async def test_an_unpaid_subscription_ends_after_three_weeks(timed: TimedStripeServer) -> None:
    await timed.stripe_server.advance(to="2027-01-01T00:00:00Z")
    bought = await timed.subscribe(FAILS_LATER_CARD)
    before = await timed.count()
    await timed.stripe_server.advance(to="2027-06-01T00:00:00Z")
    assert (await timed.stripe.subscription(bought.id)).status == "ended"
    assert await timed.events_since(before) == [
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-02"),
        ("invoice.payment_failed", "2027-02-04"),
        ("invoice.payment_failed", "2027-02-06"),
        ("invoice.payment_failed", "2027-02-08"),
        ("customer.subscription.deleted", "2027-02-22"),
    ]
    assert bought.id not in [s.id async for s in timed.stripe.subscriptions()]


async def test_ending_an_unpaid_subscription_credits_nothing(timed: TimedStripeServer) -> None:
    bought = await timed.subscribe(FAILS_LATER_CARD)
    await timed.stripe_server.advance(to=bought.period_end + timedelta(hours=1))
    await timed.stripe.end(bought.id)
    customer = await timed.stripe_server.api("GET", f"/v1/customers/{bought.customer_id}")
    assert customer["balance"] == 0


async def test_a_cancelled_subscription_ends_and_a_changed_one_renews_with_the_new_plan(
    timed: TimedStripeServer,
) -> None:
    await timed.stripe_server.advance(to="2027-01-01T00:00:00Z")
    cancelled, changed = await timed.subscribe(), await timed.subscribe()
    await timed.stripe.cancel(cancelled.id, at_period_end=True)
    await timed.stripe.change(changed.id, "corporate", 3)
    before = await timed.count()

    await timed.stripe_server.advance(to="2027-01-31T23:00:00Z")
    assert (await timed.stripe.subscription(cancelled.id)).status == "active"
    await timed.stripe_server.advance(to="2027-02-15T00:00:00Z")

    assert (await timed.stripe.subscription(cancelled.id)).status == "ended"
    assert sorted(await timed.events_since(before)) == [
        ("customer.subscription.deleted", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.paid", "2027-02-01"),
    ]
    (paid,) = (await timed.stripe_server.events("invoice.paid"))[-1:]
    assert paid["data"]["object"]["amount_paid"] == 3 * 5_000


async def test_a_credit_pays_for_the_next_subscription(timed: TimedStripeServer) -> None:
    first = await timed.subscribe()
    await timed.stripe.end(first.id)
    payer = Payer(first.account_id, first.customer_id)
    checkout = await timed.stripe.plan_checkout(payer, "standard", 1, uuid4().hex)
    await timed.stripe_server.pay(checkout.url)
    *_, paid = await timed.stripe_server.events("invoice.paid")
    assert paid["data"]["object"]["amount_due"] < 100


async def test_the_clock_cannot_go_back(stripe_server: StripeServer) -> None:
    response = await stripe_server.http.post("/_control/clock", json={"advance_seconds": -1})
    assert response.status_code == 400
