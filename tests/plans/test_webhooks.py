"""Requests to /webhooks/stripe."""

import asyncio
import json
import time

import httpx

from tests.payments.stripe_server import SECRET
from tests.plans.world import World, subscription_state

PATH = "/webhooks/stripe"


async def post(world: World, body: bytes, signature: str | None) -> httpx.Response:
    headers = {"Stripe-Signature": signature} if signature is not None else {}
    return await world.service.http.post(PATH, content=body, headers=headers)


async def test_requests_without_a_valid_signature_are_refused(a: World) -> None:
    event = {"id": "evt_1", "type": "customer.subscription.updated", "data": {"object": {}}}
    body, signature = a.stripe_server.signed(event)
    _, foreign = a.stripe_server.signed(event, secret="whsec_other")
    _, old = a.stripe_server.signed(event, at=int(time.time()) - 3_600)
    for sent, with_signature in (
        (body, None),
        (body, ""),
        (body, "t=1,v1=00"),
        (body, foreign),
        (body, old),
        (body + b" ", signature),
        (b"", None),
    ):
        response = await post(a, sent, with_signature)
        assert response.status_code == 400, with_signature
        assert response.json()["error"]["code"] == "VALIDATION_ERROR"
    assert (await post(a, b"x" * 3_000_000, signature)).status_code == 413
    assert (await a.service.http.get(PATH)).status_code == 405


async def test_irrelevant_events_are_accepted_and_ignored(a: World) -> None:
    for event in (
        {"id": "evt_1", "type": "payout.paid", "data": {"object": {"id": "po_1"}}},
        {"id": "evt_2", "type": "customer.subscription.updated", "data": {"object": {}}},
        {"id": "evt_3"},
    ):
        response = await post(a, *a.stripe_server.signed(event))
        assert (response.status_code, response.json()) == (200, {"received": True})


async def test_webhooks_are_not_rate_limited(a: World) -> None:
    event = {"id": "evt_1", "type": "payout.paid", "data": {"object": {}}}
    body, signature = a.stripe_server.signed(event, secret=SECRET)
    responses = [await post(a, body, signature) for _ in range(650)]
    assert {response.status_code for response in responses} == {200}


async def test_events_of_an_unknown_account_are_accepted(a: World) -> None:
    """The Stripe account may serve another database too. Its events must not be sent again."""
    person = await a.person()
    await a.stripe_server.hold()
    response = await person.post("/api/subscriptions/subscribe", {"plan": "standard"})
    await a.stripe_server.pay(response.json()["checkoutUrl"])
    async with a.service.owner() as connection:
        for table in ("api_key_hashes", "api_keys", "account_heads", "balances"):
            await connection.execute(f"DELETE FROM {table} WHERE account_id = $1", person.user_id)
        await connection.execute("DELETE FROM accounts WHERE id = $1", person.user_id)
    attempts = await a.stripe_server.deliver()
    assert {attempt["status"] for attempt in attempts} == {200}
    await a.stripe_server.release()


async def test_repeated_events_change_nothing(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    before = await a.row(person)
    account = str(person.user_id)
    sent = [event for event in await a.stripe_server.events() if account in json.dumps(event)]
    assert len(sent) >= 3
    responses = await asyncio.gather(
        *[post(a, *a.stripe_server.signed(event)) for event in sent * 5]
    )
    assert {response.status_code for response in responses} == {200}
    after = await a.row(person)
    assert after | {"updated_at": None} == before | {"updated_at": None}
    assert await subscription_state(person) == ("ACTIVE", "ADVANCED", "ADVANCED")
