"""A processor that is down or too slow, or whose responses get lost."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from rota.accounts.model import Kind
from rota.auth.caller import Caller
from rota.credits.payers import Payers
from rota.events.relay import Relay
from rota.payments.port import PaymentFailed
from rota.payments.stripe import Stripe
from rota.payments.turns import PaymentTurns
from rota.plans.allowance import plan_allowance
from rota.plans.purchases import Purchases
from rota.plans.schemas import Subscribe
from rota.plans.service import Plans
from rota.plans.tiers import Tiers
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.idempotency import Idempotency
from rota.variants import VARIANTS
from tests.payments.stripe_server import KEY
from tests.plans.world import World, overview, refused, subscription_state
from tests.service import Person

SUBSCRIBE = "/api/subscriptions/subscribe"
CANCEL = "/api/subscriptions/cancel"
FAILED = (402, "PAYMENT_PROCESSOR_ERROR")
# The first attempt and the adapter's retries.
ATTEMPTS = 3


async def open_sessions(world: World) -> int:
    page = (await world.stripe_server.http.get("/")).text
    return len(re.findall(r"<li><a href", page))


@pytest.mark.parametrize("mode", ["500", "drop"])
async def test_a_failed_checkout_can_be_retried(a: World, mode: Any) -> None:
    person = await a.person()
    before = await open_sessions(a)
    key = {"Idempotency-Key": f"subscribe-{mode}"}
    body = {"plan": "standard"}
    await a.stripe_server.fault("/v1/checkout/sessions", mode, times=ATTEMPTS)
    assert refused(await person.post(SUBSCRIBE, body, headers=key)) == FAILED
    assert (await overview(person))["subscription"] is None
    first = await person.post(SUBSCRIBE, body, headers=key)
    assert first.status_code == 200
    again = await person.post(SUBSCRIBE, body, headers=key)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await open_sessions(a) == before + 1
    other = await person.post(SUBSCRIBE, {"plan": "advanced"}, headers=key)
    assert refused(other) == (409, "CONFLICT")


async def test_concurrent_requests_with_one_key_create_one_session(a: World) -> None:
    person = await a.person()
    before = await open_sessions(a)
    key = {"Idempotency-Key": "at-once"}
    responses = await asyncio.gather(
        *[person.post(SUBSCRIBE, {"plan": "standard"}, headers=key) for _ in range(8)]
    )
    assert {response.status_code for response in responses} <= {200, 409}
    urls = {response.json()["checkoutUrl"] for response in responses if response.status_code == 200}
    assert len(urls) == 1
    assert await open_sessions(a) == before + 1


async def test_requests_without_a_key_create_separate_sessions(a: World) -> None:
    person = await a.person()
    before = await open_sessions(a)
    for _ in range(2):
        await person.post(SUBSCRIBE, {"plan": "standard"})
    assert await open_sessions(a) == before + 2


async def test_a_failed_cancellation_changes_nothing(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    before = await overview(person)
    (name,) = await a.stripe_statuses(person)
    await a.stripe_server.fault(f"/v1/subscriptions/{name}", "500", times=ATTEMPTS)
    assert refused(await person.post(CANCEL)) == FAILED
    assert await overview(person) == before
    key = {"Idempotency-Key": "cancel"}
    response = await person.post(CANCEL, headers=key)
    assert response.status_code == 200
    # Without the key, this would be a conflict.
    again = await person.post(CANCEL, headers=key)
    assert (again.status_code, again.json()) == (200, response.json())


async def test_a_webhook_reports_a_cancellation_whose_response_was_lost(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    (name,) = await a.stripe_statuses(person)
    await a.stripe_server.hold()
    await a.stripe_server.fault(f"/v1/subscriptions/{name}", "drop", times=ATTEMPTS)
    key = {"Idempotency-Key": "lost"}
    assert refused(await person.post(CANCEL, headers=key)) == FAILED
    assert (await overview(person))["subscription"]["cancelAtPeriodEnd"] is False
    await a.stripe_server.release()
    assert (await overview(person))["subscription"]["cancelAtPeriodEnd"] is True
    again = await person.post(CANCEL, headers=key)
    assert again.status_code == 200
    assert again.json()["subscription"]["cancelAtPeriodEnd"] is True


async def test_a_failed_downgrade_changes_nothing(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    (name,) = await a.stripe_statuses(person)
    await a.stripe_server.fault(f"/v1/subscriptions/{name}", "500", times=ATTEMPTS)
    assert refused(await person.post(SUBSCRIBE, {"plan": "standard"})) == FAILED
    assert (await overview(person))["subscription"]["downgradeTarget"] is None
    assert (await person.post(SUBSCRIBE, {"plan": "standard"})).status_code == 200


async def test_a_downgrade_whose_response_was_lost_can_be_sent_again(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    (name,) = await a.stripe_statuses(person)
    # The first request has reached the processor, and its response was lost.
    await a.plans._processor.change(name, "standard", 1)
    await a.stripe_server.settled()
    assert refused(await person.post(SUBSCRIBE, {"plan": "standard"})) == (409, "CONFLICT")
    key = {"Idempotency-Key": "lost"}
    again = await person.post(SUBSCRIBE, {"plan": "standard"}, headers=key)
    assert again.status_code == 200
    assert again.json()["subscription"]["downgradeTarget"] == "STANDARD"


async def test_a_webhook_fails_while_the_processor_is_down(a: World) -> None:
    person = await a.person()
    await a.stripe_server.hold()
    checkout = (await person.post(SUBSCRIBE, {"plan": "standard"})).json()["checkoutUrl"]
    await a.stripe_server.pay(checkout)
    await a.stripe_server.fault("/v1/subscriptions", "500", times=1_000)
    attempts = await a.stripe_server.deliver()
    types = ("checkout.session.completed", "customer.subscription.created", "invoice.paid")
    statuses = {each["type"]: each["status"] for each in attempts if each["type"] in types}
    assert statuses == dict.fromkeys(types, 503)
    assert await subscription_state(person) == (None, "", "BASIC")
    await a.clear_faults()
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")


async def test_an_outage_leaves_no_replaced_plan_that_goes_on(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    (name,) = await a.stripe_statuses(person)
    await a.buy(person, "advanced")
    await a.stripe_server.fault(f"/v1/subscriptions/{name}", "500", times=1_000)
    # It would give up after the first failure.
    relay = Relay(a.plans._db, a.plans.handlers, max_attempts=1)
    while await relay.step():
        pass
    assert (await a.stripe_statuses(person))[name] == "active"
    await a.clear_faults()
    async with a.service.owner() as connection:
        retried = await connection.fetch(
            "UPDATE outbox SET due_at = now() WHERE account_id = $1 RETURNING dead_at",
            person.user_id,
        )
    assert [row["dead_at"] for row in retried] == [None]
    await a.sweep()
    assert (await a.stripe_statuses(person))[name] == "canceled"


@pytest.fixture
async def short_timeouts(a: World) -> AsyncIterator[Purchases]:
    """The service's purchases with a short timeout for the processor."""
    db = Database(a.service.database_url, pool_size=4)
    await db.open()
    stripe = Stripe(KEY, return_url="http://rota.test", api_url=a.stripe_server.url, timeout_s=0.3)
    tiers = Tiers(VARIANTS["a"].tiers)
    turns = PaymentTurns(db)
    payers = Payers(db, stripe, turns)
    allowance_of = plan_allowance(VARIANTS["a"].tier_allowance({}), "basic", a.grace)
    plans = Plans(db, stripe, turns, allowance_of, tiers=tiers, grace=a.grace)
    idempotency = Idempotency(Vault(*a.service.settings.secret_keys))
    yield Purchases(db, idempotency, stripe, payers, plans, tiers=tiers, trial_days=0)
    await stripe.close()
    await db.close()


def caller(person: Person, kind: Kind = "personal") -> Caller:
    account = person.user_id
    return Caller(account, account, kind, "owner", "basic", "basic", None, None)


async def test_a_processor_that_times_out_changes_nothing(
    a: World, short_timeouts: Purchases
) -> None:
    person = await a.person()
    before = await open_sessions(a)
    wanted: BaseModel = Subscribe(plan="standard")
    assert isinstance(wanted, Subscribe)
    await a.stripe_server.fault("/v1/checkout/sessions", "timeout", times=ATTEMPTS)
    with pytest.raises(PaymentFailed):
        await short_timeouts.subscribe(caller(person), wanted, "slow")
    assert await open_sessions(a) == before
    responses = [await short_timeouts.subscribe(caller(person), wanted, "slow") for _ in range(2)]
    assert responses[0].body == responses[1].body
    assert await open_sessions(a) == before + 1

    await a.buy(person, "standard")
    (name,) = await a.stripe_statuses(person)
    await a.stripe_server.fault(f"/v1/subscriptions/{name}", "timeout", times=ATTEMPTS)
    with pytest.raises(PaymentFailed):
        await short_timeouts.cancel(caller(person), None)
    assert (await overview(person))["subscription"]["cancelAtPeriodEnd"] is False


async def test_a_slow_processor_does_not_use_up_the_connections(
    a: World, short_timeouts: Purchases
) -> None:
    """Other requests succeed while many requests wait for the processor."""
    people = [await a.person() for _ in range(6)]
    for person in people:
        await a.buy(person, "standard")
    await a.stripe_server.fault("/v1/subscriptions", "timeout", times=1_000)
    cancelling = [
        asyncio.create_task(short_timeouts.cancel(caller(person), None)) for person in people
    ]
    async with asyncio.timeout(1):
        # At most two of the four connections wait for the processor.
        for person in people:
            await short_timeouts.overview(caller(person))
    outcomes = await asyncio.gather(*cancelling, return_exceptions=True)
    assert all(isinstance(outcome, PaymentFailed) for outcome in outcomes)
