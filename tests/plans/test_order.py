"""Messages in any order, several times and at once: everybody has what they paid for, once."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.plans.world import World, overview
from tests.service import Person

CHECKOUTS = int(os.environ.get("ROTA_TEST_CHECKOUTS", "50"))
AT_ONCE = 16


@dataclass
class Customer:
    """What somebody does, and what must come of it."""

    person: Person
    topped_up_cents: int = 0
    tier: str = "BASIC"
    status: str | None = None
    cancelling: bool = False
    checkouts: int = 0


async def in_turns(work: list[Callable[[], Awaitable[Any]]]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(each: Callable[[], Awaitable[Any]]) -> None:
        async with turns:
            await each()

    await asyncio.gather(*map(one, work))


async def pay(world: World, customer: Customer, path: str, body: dict[str, Any]) -> None:
    answer = await customer.person.post(path, body)
    assert answer.status_code == 200, answer.text
    await world.standin.pay(answer.json()["checkoutUrl"])
    customer.checkouts += 1


async def shop(world: World, customer: Customer, chance: Random) -> None:
    """Three checkouts: a top-up, and then two more or a plan and another on top of it."""
    cents = chance.randint(500, 100_000)
    await pay(world, customer, "/api/credits/topup", {"amountCents": cents})
    customer.topped_up_cents += cents
    # Nothing is told yet, so a second plan is bought as if there were none.
    for plan in chance.choice((("standard",), ("advanced",), ("standard", "advanced"))):
        await pay(world, customer, "/api/subscriptions/subscribe", {"plan": plan})
        customer.tier, customer.status = plan.upper(), "ACTIVE"


async def books(world: World) -> dict[str, list[Any]]:
    """All that is known of money and plans, but for when it was written down."""
    async with world.service.owner() as connection:
        subscriptions = await connection.fetch(
            """
            SELECT to_jsonb(s) - 'updated_at' - 'due_at' - 'replaced' FROM subscriptions s
            ORDER BY account_id
            """
        )
        balances = await connection.fetch("SELECT to_jsonb(b) FROM balances b ORDER BY account_id")
        entries = await connection.fetch("SELECT to_jsonb(e) FROM entries e ORDER BY id")
        tiers = await connection.fetch("SELECT id, tier FROM accounts ORDER BY id")
    found = {"subscriptions": subscriptions, "balances": balances, "entries": entries}
    return {name: [row[0] for row in rows] for name, rows in found.items()} | {
        "tiers": [tuple(row) for row in tiers]
    }


async def test_messages_in_any_order_and_many_times(a: World) -> None:
    chance = Random(11)
    a.standin.http.timeout = 600
    await a.standin.hold()
    customers: list[Customer] = []
    while sum(customer.checkouts for customer in customers) < CHECKOUTS:
        batch = [Customer(await a.person()) for _ in range(AT_ONCE)]
        await in_turns([lambda c=each: shop(a, c, chance) for each in batch])  # type: ignore[misc]
        customers += batch

    attempts = await a.standin.deliver(duplicates=(1, 5), seed=7, at_once=AT_ONCE)
    assert {attempt["status"] for attempt in attempts} == {200}
    # Some cancel, and that is told in any order with all that came before.
    for customer in customers[::3]:
        if customer.status:
            answer = await customer.person.post("/api/subscriptions/cancel")
            assert answer.status_code == 200, answer.text
            customer.cancelling = True
    await a.sweep()
    first = await books(a)
    attempts = await a.standin.deliver(again=True, duplicates=(1, 5), seed=8, at_once=AT_ONCE)
    assert {attempt["status"] for attempt in attempts} == {200}
    await a.sweep()
    assert await books(a) == first

    for customer in customers:
        seen = await overview(customer.person)
        subscription = seen["subscription"] or {}
        balance = (await customer.person.get("/api/credits/balance")).json()
        assert balance["topUpCents"] == customer.topped_up_cents
        assert (seen["effectiveTier"], subscription.get("status")) == (
            *(customer.tier, customer.status),
        )
        assert subscription.get("cancelAtPeriodEnd", False) == customer.cancelling
    live = [s["metadata"]["account"] for s in await live_at_stripe(a)]
    ours = {str(customer.person.user_id) for customer in customers}
    assert sorted(account for account in live if account in ours) == sorted(ours)


async def live_at_stripe(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        params = {"limit": "100"} | ({"starting_after": found[-1]["id"]} if found else {})
        page = await world.standin.api("GET", "/v1/subscriptions", params=params)
        found += page["data"]
        if not page["has_more"]:
            return found
