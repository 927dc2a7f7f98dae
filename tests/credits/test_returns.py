"""Refunds that fail and disputes, with a simulated Stripe server, in any order and many times."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from rota.credits.verify import problems
from rota.dev.stack import Stack
from rota.platform.db import Database
from tests.payments.stripe_server import StripeServer
from tests.service import Person, Service
from tests.tasks.world import newcomer


@dataclass
class Store:
    """A service that sells credits through the simulated Stripe server."""

    service: Service
    stripe_server: StripeServer
    # The events of earlier tests, which are not sent again.
    earlier: int = 0

    async def deliver_again(self, **options: Any) -> None:
        await self.stripe_server.deliver(again=True, after=self.earlier, **options)

    async def buy(self, person: Person, amount_cents: int) -> str:
        """Pays a top-up. Returns Stripe's ID of the payment."""
        response = await person.post("/api/credits/topup", {"amountCents": amount_cents})
        assert response.status_code == 200, response.text
        back = await self.stripe_server.pay(response.json()["checkoutUrl"])
        session = await self.stripe_server.api(
            "GET", f"/v1/checkout/sessions/{back.partition('session_id=')[2]}"
        )
        return str(session["payment_intent"])

    async def customer_with_payment(self, amount_cents: int) -> tuple[Person, str]:
        person = await newcomer(self.service, tier="basic")
        return person, await self.buy(person, amount_cents)

    async def problems(self, person: Person) -> list[Any]:
        db = Database(self.service.database_url, pool_size=1)
        await db.open()
        try:
            async with db.snapshot(person.user_id) as tx:
                return list(await problems(tx))
        finally:
            await db.close()


@pytest.fixture(scope="module", params=["a", "b"])
async def running(stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    variant: str = request.param
    async with (
        StripeServer.start() as stripe_server,
        Service.start(
            stack,
            variant=variant,
            name=f"returns_{variant}",
            allowances={},
            **stripe_server.settings,
        ) as service,
    ):
        await stripe_server.send_to(f"http://127.0.0.1:{service.settings.port}/webhooks/stripe")
        yield Store(service, stripe_server)


@pytest.fixture
async def store(running: Store) -> Store:
    return replace(running, earlier=len(await running.stripe_server.events()))


async def loaded_cents(person: Person) -> int:
    shown = (await person.get("/api/credits/balance")).json()
    assert shown["topUpCents"] - shown.get("owedCents", 0) == shown["totalLoadedCents"]
    return int(shown["totalLoadedCents"])


async def kinds(person: Person) -> list[str]:
    page = (await person.get("/api/credits/transactions")).json()
    return [each["kind"] for each in page["transactions"]]


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_a_failed_refund_gives_the_credits_back_once(store: Store, status: str) -> None:
    stripe_server = store.stripe_server
    person, payment = await store.customer_with_payment(2_500)
    refund = await stripe_server.refund(payment, 700)
    await stripe_server.settled()
    assert await loaded_cents(person) == 1_800
    await stripe_server.update_refund(refund["id"], status)
    await stripe_server.settled()
    assert await loaded_cents(person) == 2_500
    # All events again, and the refund's own event says that it succeeded.
    for reverse in (False, True):
        await store.deliver_again(reverse=reverse, duplicates=(1, 2))
    assert await loaded_cents(person) == 2_500
    assert await kinds(person) == ["refund_reversal", "refund", "top_up"]
    # The same amount can be refunded again.
    await stripe_server.refund(payment, 700)
    await stripe_server.settled()
    assert await loaded_cents(person) == 1_800
    assert await store.problems(person) == []


@pytest.mark.parametrize(
    ("inquiry", "steps", "expected_cents"),
    [
        (False, [], 0),
        (False, ["under_review", "lost"], 0),
        (False, ["under_review", "won"], 1_500),
        (True, [], 1_500),
        (True, ["warning_under_review", "warning_closed"], 1_500),
        (True, ["needs_response", "lost"], 0),
        (True, ["needs_response", "won"], 1_500),
    ],
)
async def test_a_dispute_takes_the_credits_while_the_money_is_gone(
    store: Store, inquiry: bool, steps: list[str], expected_cents: int
) -> None:
    stripe_server = store.stripe_server
    person, payment = await store.customer_with_payment(1_500)
    dispute = await stripe_server.dispute(payment, inquiry=inquiry)
    await stripe_server.settled()
    assert await loaded_cents(person) == (1_500 if inquiry else 0)
    for status in steps:
        await stripe_server.update_dispute(dispute["id"], status)
        await stripe_server.settled()
    assert await loaded_cents(person) == expected_cents
    seen = await kinds(person)
    await store.deliver_again(reverse=True, duplicates=(2, 2))
    assert await loaded_cents(person) == expected_cents
    assert await kinds(person) == seen
    assert await store.problems(person) == []


async def test_the_newest_event_can_come_first(store: Store) -> None:
    stripe_server = store.stripe_server
    await stripe_server.hold()
    person, payment = await store.customer_with_payment(2_000)
    refund = await stripe_server.refund(payment, 500)
    await stripe_server.update_refund(refund["id"], "failed")
    dispute = await stripe_server.dispute(payment, 800)
    await stripe_server.update_dispute(dispute["id"], "lost")
    attempts = await stripe_server.deliver(reverse=True, duplicates=(2, 2))
    assert {attempt["status"] for attempt in attempts} == {200}
    await stripe_server.release()
    assert await loaded_cents(person) == 1_200
    # One report had the whole state.
    assert await kinds(person) == ["dispute", "top_up"]


@pytest.mark.long
async def test_many_refunds_and_disputes_in_any_order_and_at_once(store: Store) -> None:
    stripe_server, random = store.stripe_server, Random(3)
    await stripe_server.hold()
    expected: list[tuple[Person, int]] = []
    for number in range(6):
        person, payment = await store.customer_with_payment(1_000)
        cents = 1_000
        for _ in range(random.randint(0, 2)):
            refund = await stripe_server.refund(payment, 200)
            failed = random.random() < 0.5
            if failed:
                await stripe_server.update_refund(refund["id"], "failed")
            cents -= 0 if failed else 200
        if number % 3:
            inquiry = random.random() < 0.3
            dispute = await stripe_server.dispute(payment, 300, inquiry=inquiry)
            ending = "warning_closed" if inquiry else random.choice(("won", "lost", "under_review"))
            await stripe_server.update_dispute(dispute["id"], ending)
            cents -= 300 if ending in ("lost", "under_review") else 0
        expected.append((person, cents))
    for seed in (1, 2):
        # Stripe gives up on a slow answer and sends the event again later, so a busy machine may
        # need more than one delivery.
        await store.deliver_again(duplicates=(1, 3), seed=seed, at_once=8)
        while attempts := await stripe_server.deliver():
            assert {attempt["status"] for attempt in attempts} <= {0, 200, 503}
    await stripe_server.release()
    for person, cents in expected:
        assert await loaded_cents(person) == cents
        assert await store.problems(person) == []


async def test_an_event_is_sent_again_if_stripe_does_not_answer_the_question(store: Store) -> None:
    stripe_server = store.stripe_server
    person, payment = await store.customer_with_payment(1_000)
    await stripe_server.settled()
    await stripe_server.hold()
    await stripe_server.dispute(payment, 400)
    await stripe_server.fault("/v1/disputes", "500", times=1_000)
    attempts = await stripe_server.deliver()
    assert {attempt["status"] for attempt in attempts} == {503}
    assert await loaded_cents(person) == 1_000
    await stripe_server.fault("/nowhere", "500", times=0)
    attempts = await stripe_server.deliver()
    assert {attempt["status"] for attempt in attempts} == {200}
    await stripe_server.release()
    assert await loaded_cents(person) == 600


async def test_the_metrics_count_what_left_and_what_came_back(store: Store) -> None:
    async def counted() -> dict[str, float]:
        lines = (await store.service.http.get("/metrics")).text.splitlines()
        return {
            name: float(value)
            for name, value in (line.split() for line in lines if line.startswith("rota_credits_"))
            if name.endswith("_cents_total")
        }

    before = await counted()
    _, payment = await store.customer_with_payment(1_000)
    refund = await store.stripe_server.refund(payment, 100)
    dispute = await store.stripe_server.dispute(payment, 200)
    await store.stripe_server.settled()
    await store.stripe_server.update_refund(refund["id"], "failed")
    await store.stripe_server.update_dispute(dispute["id"], "won")
    await store.stripe_server.settled()
    after = await counted()
    assert {name: after[name] - before[name] for name in after} == {
        "rota_credits_topped_up_cents_total": 1_000,
        "rota_credits_refunded_cents_total": 100,
        "rota_credits_refunds_reversed_cents_total": 100,
        "rota_credits_disputed_cents_total": 200,
        "rota_credits_disputes_reversed_cents_total": 200,
    }
