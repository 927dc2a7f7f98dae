"""The stand-in's subscriptions as time goes by, as the adapter sees them."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from rota.payments.port import Payer
from tests.payments.conftest import Turned
from tests.payments.standin import FAILS_LATER_CARD, StandIn


def day(moment: datetime) -> str:
    return moment.date().isoformat()


async def test_renewals_keep_to_the_day_they_began_on_and_months_without_it_to_their_last(
    turned: Turned,
) -> None:
    await turned.standin.advance(to="2027-10-31T09:30:00Z")
    bought = await turned.subscribe()
    began = bought.period_start
    assert day(bought.period_end) == "2027-11-30"
    ends = []
    for _ in range(6):
        await turned.standin.advance(to=bought.period_end)
        bought = await turned.stripe.subscription(bought.id)
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
    assert {end.time() for end in ends} == {began.time()}


async def test_a_subscription_of_29_february_renews_on_the_29th_or_the_28th(
    turned: Turned,
) -> None:
    await turned.standin.advance(to="2028-02-29T12:00:00Z")
    bought = await turned.subscribe()
    assert day(bought.period_end) == "2028-03-29"
    await turned.standin.advance(to="2029-02-10T00:00:00Z")
    bought = await turned.stripe.subscription(bought.id)
    assert (day(bought.period_start), day(bought.period_end)) == ("2029-01-29", "2029-02-28")


async def test_turned_far_everything_on_the_way_happens_once_and_in_order(turned: Turned) -> None:
    await turned.standin.advance(to="2027-01-31T00:00:00Z")
    first = await turned.subscribe()
    await turned.standin.advance(days=5)
    second = await turned.subscribe()
    before = await turned.count()
    await turned.standin.advance(to="2027-04-02T00:00:00Z")
    told = [
        (
            event["data"]["object"]["parent"]["subscription_details"]["subscription"],
            day(datetime.fromtimestamp(event["created"], UTC)),
        )
        for event in (await turned.standin.events())[before:]
        if event["type"] == "invoice.paid"
    ]
    assert told == [
        (first.id, "2027-02-28"),
        (second.id, "2027-03-05"),
        (first.id, "2027-03-31"),
    ]


async def test_a_trial_ends_with_a_payment_and_the_month_counts_from_there(turned: Turned) -> None:
    await turned.standin.advance(to="2027-01-17T00:00:00Z")
    bought = await turned.subscribe(trial_days=14)
    assert (bought.status, day(bought.period_end)) == ("trialing", "2027-01-31")
    (free,) = await turned.standin.events("invoice.paid")
    assert free["data"]["object"]["amount_paid"] == 0

    await turned.standin.advance(days=15)

    bought = await turned.stripe.subscription(bought.id)
    assert (bought.status, day(bought.period_end)) == ("active", "2027-02-28")
    *_, paid = await turned.standin.events("invoice.paid")
    assert paid["data"]["object"]["amount_paid"] == 2_000


async def test_a_failed_renewal_is_tried_again_and_recovers(turned: Turned) -> None:
    await turned.standin.advance(to="2027-01-01T00:00:00Z")
    bought = await turned.subscribe()
    await turned.standin.decline(bought.customer_id)
    before = await turned.count()

    await turned.standin.advance(to="2027-02-02T12:00:00Z")
    assert (await turned.stripe.subscription(bought.id)).status == "past_due"
    await turned.standin.decline(bought.customer_id, False)
    await turned.standin.advance(to="2027-02-10T00:00:00Z")

    recovered = await turned.stripe.subscription(bought.id)
    assert (recovered.status, day(recovered.period_end)) == ("active", "2027-03-01")
    assert await turned.told(before) == [
        ("invoice.payment_failed", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-02"),
        ("invoice.paid", "2027-02-04"),
        ("customer.subscription.updated", "2027-02-04"),
    ]


async def test_what_is_never_paid_ends_after_three_weeks(turned: Turned) -> None:
    await turned.standin.advance(to="2027-01-01T00:00:00Z")
    bought = await turned.subscribe(FAILS_LATER_CARD)
    before = await turned.count()
    await turned.standin.advance(to="2027-06-01T00:00:00Z")
    assert (await turned.stripe.subscription(bought.id)).status == "ended"
    assert await turned.told(before) == [
        ("invoice.payment_failed", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.payment_failed", "2027-02-02"),
        ("invoice.payment_failed", "2027-02-04"),
        ("invoice.payment_failed", "2027-02-06"),
        ("invoice.payment_failed", "2027-02-08"),
        ("customer.subscription.deleted", "2027-02-22"),
    ]
    assert bought.id not in [s.id async for s in turned.stripe.subscriptions()]


async def test_what_is_unpaid_gives_nothing_back_when_it_is_ended(turned: Turned) -> None:
    bought = await turned.subscribe(FAILS_LATER_CARD)
    await turned.standin.advance(to=bought.period_end + timedelta(hours=1))
    await turned.stripe.end(bought.id)
    customer = await turned.standin.api("GET", f"/v1/customers/{bought.customer_id}")
    assert customer["balance"] == 0


async def test_a_cancelled_one_ends_with_its_period_and_a_changed_one_renews_as_changed(
    turned: Turned,
) -> None:
    await turned.standin.advance(to="2027-01-01T00:00:00Z")
    cancelled, changed = await turned.subscribe(), await turned.subscribe()
    await turned.stripe.cancel(cancelled.id, at_period_end=True)
    await turned.stripe.change(changed.id, "corporate", 3, uuid4().hex)
    before = await turned.count()

    await turned.standin.advance(to="2027-01-31T23:00:00Z")
    assert (await turned.stripe.subscription(cancelled.id)).status == "active"
    await turned.standin.advance(to="2027-02-15T00:00:00Z")

    assert (await turned.stripe.subscription(cancelled.id)).status == "ended"
    assert sorted(await turned.told(before)) == [
        ("customer.subscription.deleted", "2027-02-01"),
        ("customer.subscription.updated", "2027-02-01"),
        ("invoice.paid", "2027-02-01"),
    ]
    (paid,) = (await turned.standin.events("invoice.paid"))[-1:]
    assert paid["data"]["object"]["amount_paid"] == 3 * 5_000


async def test_what_was_given_back_pays_for_what_comes(turned: Turned) -> None:
    first = await turned.subscribe()
    await turned.stripe.end(first.id)
    payer = Payer(first.account_id, first.customer_id, None)
    checkout = await turned.stripe.plan_checkout(payer, "standard", 1, uuid4().hex)
    await turned.standin.pay(checkout.url)
    *_, paid = await turned.standin.events("invoice.paid")
    assert paid["data"]["object"]["amount_due"] < 100


async def test_the_clock_goes_forward_only(standin: StandIn) -> None:
    answer = await standin.http.post("/_control/clock", json={"advance_seconds": -1})
    assert answer.status_code == 400
