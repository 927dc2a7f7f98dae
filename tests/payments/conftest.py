"""The stand-in for Stripe, and our adapter that talks to it over HTTP."""

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
    """One whose clock nobody turns."""
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


class Turned:
    """A stand-in of one's own, whose clock can be turned, with the adapter to it."""

    def __init__(self, standin: StandIn) -> None:
        self.standin = standin
        self.stripe = adapter(standin)

    async def subscribe(self, card: str = GOOD_CARD, **options: Any) -> Subscription:
        payer = Payer(uuid4(), None, "ada@example.test")
        checkout = await self.stripe.plan_checkout(payer, "standard", 1, uuid4().hex, **options)
        await self.standin.pay(checkout.url, card)
        session = await self.standin.api("GET", f"/v1/checkout/sessions/{checkout.id}")
        return await self.stripe.subscription(session["subscription"])

    async def told(self, since: int) -> list[tuple[str, str]]:
        """What happened, with the day that it happened on."""
        return [
            (event["type"], datetime.fromtimestamp(event["created"], UTC).date().isoformat())
            for event in (await self.standin.events())[since:]
        ]

    async def count(self) -> int:
        return len(await self.standin.events())


@pytest.fixture
async def turned() -> AsyncIterator[Turned]:
    async with StandIn.start() as standin:
        made = Turned(standin)
        await made.stripe.offer(PRODUCTS)
        yield made
        await made.stripe.close()
