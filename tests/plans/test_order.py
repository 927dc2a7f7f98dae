"""Webhooks in any order, repeated and concurrent: every customer gets what they paid for once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from tests.plans.world import World, overview
from tests.service import Person
from tests.sizes import size

CHECKOUTS = size(15, 50)
CONCURRENCY = 16


@dataclass
class Customer:
    """A customer, and the expected result of their purchases."""

    person: Person
    topped_up_cents: int = 0
    tier: str = "BASIC"
    status: str | None = None
    cancelling: bool = False
    checkouts: int = 0


async def run_limited(work: list[Callable[[], Awaitable[Any]]]) -> None:
    limit = asyncio.Semaphore(CONCURRENCY)

    async def one(each: Callable[[], Awaitable[Any]]) -> None:
        async with limit:
            await each()

    await asyncio.gather(*map(one, work))


async def pay(world: World, customer: Customer, path: str, body: dict[str, Any]) -> None:
    response = await customer.person.post(path, body)
    assert response.status_code == 200, response.text
    await world.stripe_server.pay(response.json()["checkoutUrl"])
    customer.checkouts += 1


async def shop(world: World, customer: Customer, random: Random) -> None:
    """Two or three checkouts: a top-up, then one plan or two."""
    amount_cents = random.randint(500, 100_000)
    await pay(world, customer, "/api/credits/topup", {"amountCents": amount_cents})
    customer.topped_up_cents += amount_cents
    # Webhooks are held, so the second plan is bought as a first one.
    for plan in random.choice((("standard",), ("advanced",), ("standard", "advanced"))):
        await pay(world, customer, "/api/subscriptions/subscribe", {"plan": plan})
        customer.tier, customer.status = plan.upper(), "ACTIVE"


async def books(world: World) -> dict[str, list[Any]]:
    """Everything stored about money and plans, except when it was written."""
    async with world.service.owner() as connection:
        subscriptions = await connection.fetch(
            """
            SELECT to_jsonb(s) - 'updated_at' - 'due_at' - 'replaced' AS record FROM subscriptions s
            ORDER BY account_id
            """
        )
        balances = await connection.fetch(
            "SELECT to_jsonb(b) AS record FROM balances b ORDER BY account_id"
        )
        entries = await connection.fetch("SELECT to_jsonb(e) AS record FROM entries e ORDER BY id")
        tiers = await connection.fetch("SELECT id, tier FROM accounts ORDER BY id")
    found = {"subscriptions": subscriptions, "balances": balances, "entries": entries}
    return {name: [row["record"] for row in rows] for name, rows in found.items()} | {
        "tiers": [dict(row) for row in tiers]
    }


@pytest.mark.long
async def test_webhooks_in_any_order_and_many_times(a: World) -> None:
    random = Random(11)
    a.stripe_server.http.timeout = 600
    await a.stripe_server.hold()
    customers: list[Customer] = []
    while sum(customer.checkouts for customer in customers) < CHECKOUTS:
        batch = [Customer(await a.person()) for _ in range(CONCURRENCY)]
        await run_limited([lambda c=each: shop(a, c, random) for each in batch])  # type: ignore[misc]
        customers += batch

    attempts = await a.stripe_server.deliver(duplicates=(1, 5), seed=7, at_once=CONCURRENCY)
    assert {attempt["status"] for attempt in attempts} == {200}
    # Some customers cancel. Those webhooks are shuffled with all earlier ones.
    for customer in customers[::3]:
        if customer.status:
            response = await customer.person.post("/api/subscriptions/cancel")
            assert response.status_code == 200, response.text
            customer.cancelling = True
    await a.sweep()
    first = await books(a)
    attempts = await a.stripe_server.deliver(
        again=True, duplicates=(1, 5), seed=8, at_once=CONCURRENCY
    )
    assert {attempt["status"] for attempt in attempts} == {200}
    await a.sweep()
    assert await books(a) == first

    for customer in customers:
        seen = await overview(customer.person)
        subscription = seen["subscription"] or {}
        balance = (await customer.person.get("/api/credits/balance")).json()
        assert balance["topUpCents"] == customer.topped_up_cents
        assert seen["effectiveTier"] == customer.tier
        assert subscription.get("status") == customer.status
        assert subscription.get("cancelAtPeriodEnd", False) == customer.cancelling
    live = [s["metadata"]["account"] for s in await live_at_stripe(a)]
    ours = {str(customer.person.user_id) for customer in customers}
    assert sorted(account for account in live if account in ours) == sorted(ours)


async def live_at_stripe(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        params = {"limit": "100"} | ({"starting_after": found[-1]["id"]} if found else {})
        page = await world.stripe_server.api("GET", "/v1/subscriptions", params=params)
        found += page["data"]
        if not page["has_more"]:
            return found
