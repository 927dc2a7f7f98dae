"""The Stripe stand-in, and an adapter that calls it over HTTP."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from rota.payments.port import Payer, Product, Subscription
from rota.payments.stripe import Stripe
from tests.payments.standin import GOOD_CARD, KEY, SECRET, StandIn

RETURN_URL = "https://rota.example/billing"
PRODUCTS = (
    Product("standard", "Standard", 2_000),
    Product("corporate", "Corporate", 5_000),
    Product("connect_pass", "Connect pass", 900),
)


def adapter(standin: StandIn, *, timeout_s: float = 10) -> Stripe:
    return Stripe(
        KEY,
        return_url=RETURN_URL,
        webhook_secrets=(SECRET,),
        api_url=standin.url,
        timeout_s=timeout_s,
    )


@pytest.fixture(scope="package")
async def standin() -> AsyncIterator[StandIn]:
    """A stand-in whose clock tests do not move."""
    async with StandIn.start() as started:
        yield started


@pytest.fixture(scope="package")
async def stripe(standin: StandIn) -> AsyncIterator[Stripe]:
    made = adapter(standin)
    await made.offer(PRODUCTS)
    yield made
    await made.close()


@pytest.fixture
def payer() -> Payer:
    return Payer(uuid4(), None, "ada@example.test")


class TimedStandIn:
    """A stand-in for one test, which can move its clock, and the adapter to it."""

    def __init__(self, standin: StandIn) -> None:
        self.standin = standin
        self.stripe = adapter(standin)

    async def subscribe(self, card: str = GOOD_CARD, **options: Any) -> Subscription:
        payer = Payer(uuid4(), None, "ada@example.test")
        checkout = await self.stripe.plan_checkout(payer, "standard", 1, uuid4().hex, **options)
        await self.standin.pay(checkout.url, card)
        session = await self.standin.api("GET", f"/v1/checkout/sessions/{checkout.id}")
        return await self.stripe.subscription(session["subscription"])

    async def events_since(self, start: int) -> list[tuple[str, str]]:
        """The type and the day of each event after the first `start` ones."""
        return [
            (event["type"], datetime.fromtimestamp(event["created"], UTC).date().isoformat())
            for event in (await self.standin.events())[start:]
        ]

    async def count(self) -> int:
        return len(await self.standin.events())


@pytest.fixture
async def timed() -> AsyncIterator[TimedStandIn]:
    async with StandIn.start() as standin:
        made = TimedStandIn(standin)
        await made.stripe.offer(PRODUCTS)
        yield made
        await made.stripe.close()
