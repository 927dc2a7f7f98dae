"""A first subscription with a trial."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from rota.dev.stack import Stack
from rota.platform import clock
from tests.payments.stripe_server import FAILS_LATER_CARD
from tests.plans.world import PAID_AFTER, World, overview, subscription_state

SUBSCRIBE = "/api/subscriptions/subscribe"


@pytest.fixture(scope="module")
async def started(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "a", "plans_trial", plan_trial_days=10) as world:
        yield world


@pytest.fixture
def world(started: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(clock, "now", started.now)
    return started


async def test_a_paid_trial_becomes_active(world: World) -> None:
    person = await world.person()
    seen = (await world.buy(person, "standard"))["subscription"]
    assert await subscription_state(person) == ("TRIALING", "STANDARD", "STANDARD")
    ends = datetime.fromisoformat(seen["currentPeriodEnd"])
    assert timedelta(days=9) < ends - world.now() < timedelta(days=11)
    await world.move_clock(to=ends)
    await world.sweep()
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")


async def test_the_allowance_starts_with_the_first_payment_after_the_trial(world: World) -> None:
    person = await world.person()
    seen = (await world.buy(person, "standard"))["subscription"]
    ends = datetime.fromisoformat(seen["currentPeriodEnd"])
    # The invoice is a draft.
    await world.move_clock(to=ends + PAID_AFTER - timedelta(minutes=1))
    assert (await person.get("/api/credits/balance")).json()["hasAllowance"] is False
    await world.move_clock(to=ends + PAID_AFTER)
    assert (await person.get("/api/credits/balance")).json()["usageBar"]["total"] > 0


async def test_an_unpaid_trial_ends(world: World) -> None:
    person = await world.person()
    checkout = (await person.post(SUBSCRIBE, {"plan": "standard"})).json()["checkoutUrl"]
    await world.stripe_server.pay(checkout, FAILS_LATER_CARD)
    await world.stripe_server.settled()
    seen = (await overview(person))["subscription"]
    await world.move_clock(to=datetime.fromisoformat(seen["currentPeriodEnd"]) + PAID_AFTER)
    assert await subscription_state(person) == ("CANCELLED", "BASIC", "BASIC")
    # The processor does not retry the payment.
    await world.sweep()
    assert list((await world.stripe_statuses(person)).values()) == ["canceled"]


async def test_an_account_gets_one_trial(world: World) -> None:
    person = await world.person()
    await world.buy(person, "standard")
    # Neither an upgrade nor a new subscription has another trial.
    assert (await world.buy(person, "advanced"))["subscription"]["status"] == "ACTIVE"
    await world.sweep()
    await person.post("/api/subscriptions/cancel")
    await world.stripe_server.settled()
    ends = datetime.fromisoformat((await overview(person))["subscription"]["currentPeriodEnd"])
    await world.move_clock(to=ends)
    assert (await subscription_state(person))[0] == "CANCELLED"
    assert (await world.buy(person, "standard"))["subscription"]["status"] == "ACTIVE"
