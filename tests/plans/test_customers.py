"""An account has one customer at Stripe, no matter how many checkouts start at once."""

import asyncio
from typing import Any

import pytest

from tests.plans.world import World
from tests.service import Person

TOP_UP = ("/api/credits/topup", {"amountCents": 700})


async def customers(world: World, person: Person) -> list[str]:
    """The account's customers at Stripe."""
    found = await world.stripe_server.api("GET", "/v1/customers", params={"limit": "100"})
    account = str(person.user_id)
    return [c["id"] for c in found["data"] if c["metadata"].get("account") == account]


async def sessions(world: World, urls: list[str]) -> list[dict[str, Any]]:
    ids = [url.rpartition("/")[2] for url in urls]
    api = world.stripe_server.api
    return [await api("GET", f"/v1/checkout/sessions/{each}") for each in ids]


@pytest.mark.parametrize("variant", ["a", "b"])
async def test_first_checkouts_at_once_create_one_customer(
    a: World, b: World, variant: str
) -> None:
    world, (path, body) = {
        "a": (a, ("/api/subscriptions/subscribe", {"plan": "standard"})),
        "b": (b, ("/api/addons/connect-pass/checkout", None)),
    }[variant]
    person = await world.person()
    responses = await asyncio.gather(
        *[person.post(*TOP_UP) for _ in range(8)], *[person.post(path, body) for _ in range(4)]
    )
    assert {response.status_code for response in responses} == {200}
    urls = [response.json()["checkoutUrl"] for response in responses]
    (customer_id,) = await customers(world, person)
    assert {s["customer"] for s in await sessions(world, urls)} == {customer_id}
    assert await world.customer(person) == customer_id
    # Paying them creates no other customer, and a later checkout has the same one.
    for url in (urls[0], urls[1], urls[-1]):
        await world.stripe_server.pay(url)
    await world.stripe_server.settled()
    later = (await person.post(*TOP_UP)).json()["checkoutUrl"]
    assert {s["customer"] for s in await sessions(world, [later])} == {customer_id}
    assert await customers(world, person) == [customer_id]
    assert await world.customer(person) == customer_id


async def test_a_lost_response_does_not_create_a_second_customer(a: World) -> None:
    person = await a.person()
    # Each attempt of the client creates the customer and does not get the response.
    await a.stripe_server.fault("/v1/customers", "drop", times=3)
    assert (await person.post(*TOP_UP)).status_code == 402
    assert (await person.post(*TOP_UP)).status_code == 200
    assert await customers(a, person) == [await a.customer(person)]


async def test_two_members_with_the_same_key_get_checkouts_of_their_own(a: World) -> None:
    company = await a.company()
    colleague = await a.colleague(company)
    await company.post(*TOP_UP)
    for path, body in (TOP_UP, ("/api/subscriptions/subscribe", {"plan": "corporate", "seats": 5})):
        key = {"Idempotency-Key": path}
        responses = [await each.post(path, body, headers=key) for each in (company, colleague)]
        assert [response.status_code for response in responses] == [200, 200]
        assert len({response.json()["checkoutUrl"] for response in responses}) == 2
        again = await company.post(path, body, headers=key)
        assert again.json() == responses[0].json()
