"""The simulated Stripe server, and an adapter that calls it over HTTP."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from rota.payments.port import Payer, PaymentState, Product, Subscription
from rota.payments.stripe import Stripe
from tests.payments.stripe_server import GOOD_CARD, KEY, SECRET, StripeServer

RETURN_URL = "https://rota.example/billing"
PRODUCTS = (
    Product("standard", "Standard", 2_000),
    Product("corporate", "Corporate", 5_000),
    Product("connect_pass", "Connect pass", 900),
)


def adapter(stripe_server: StripeServer, *, timeout_s: float = 10) -> Stripe:
    return Stripe(
        KEY,
        return_url=RETURN_URL,
        webhook_secrets=(SECRET,),
        api_url=stripe_server.url,
        timeout_s=timeout_s,
    )


@pytest.fixture(scope="package")
async def stripe_server() -> AsyncIterator[StripeServer]:
    """A simulated Stripe server whose clock tests do not move."""
    async with StripeServer.start() as started:
        yield started


@pytest.fixture(scope="package")
async def stripe(stripe_server: StripeServer) -> AsyncIterator[Stripe]:
    made = adapter(stripe_server)
    await made.offer(PRODUCTS)
    yield made
    await made.close()


def key() -> str:
    return uuid4().hex


async def session_of(stripe_server: StripeServer, checkout_id: str) -> dict[str, Any]:
    return await stripe_server.api("GET", f"/v1/checkout/sessions/{checkout_id}")


async def topped_up(stripe: Stripe, stripe_server: StripeServer, payer: Payer, cents: int) -> str:
    """Pays a top-up. Returns the payment's ID."""
    checkout = await stripe.top_up_checkout(payer, cents, key())
    await stripe_server.pay(checkout.url)
    return str((await session_of(stripe_server, checkout.id))["payment_intent"])


async def listed(stripe: Stripe, payer: Payer, since: datetime) -> list[PaymentState]:
    """The account's payments that were paid or changed since then."""
    return [
        state
        async for state in stripe.payments(since, changed_since=since)
        if state.payment.account_id == payer.account_id
    ]


async def new_payer(stripe: Stripe, email: str | None = "ada@example.test") -> Payer:
    account_id = uuid4()
    return Payer(account_id, await stripe.create_customer(account_id, email, uuid4().hex))


@pytest.fixture
async def payer(stripe: Stripe) -> Payer:
    return await new_payer(stripe)


class TimedStripeServer:
    """A simulated Stripe server for one test, which can move its clock, and the adapter to it."""

    def __init__(self, stripe_server: StripeServer) -> None:
        self.stripe_server = stripe_server
        self.stripe = adapter(stripe_server)

    async def subscribe(self, card: str = GOOD_CARD, **options: Any) -> Subscription:
        payer = await new_payer(self.stripe)
        checkout = await self.stripe.plan_checkout(payer, "standard", 1, uuid4().hex, **options)
        await self.stripe_server.pay(checkout.url, card)
        session = await self.stripe_server.api("GET", f"/v1/checkout/sessions/{checkout.id}")
        return await self.stripe.subscription(session["subscription"])

    async def events_since(self, start: int) -> list[tuple[str, str]]:
        """The type and the day of each event after the first `start` ones."""
        return [
            (event["type"], datetime.fromtimestamp(event["created"], UTC).date().isoformat())
            for event in (await self.stripe_server.events())[start:]
        ]

    async def count(self) -> int:
        return len(await self.stripe_server.events())


@pytest.fixture
async def timed() -> AsyncIterator[TimedStripeServer]:
    async with StripeServer.start() as stripe_server:
        made = TimedStripeServer(stripe_server)
        await made.stripe.offer(PRODUCTS)
        yield made
        await made.stripe.close()
