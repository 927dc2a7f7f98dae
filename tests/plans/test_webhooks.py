"""What comes in at /webhooks/stripe, and what does not."""

import asyncio
import json
import time

import httpx

from tests.payments.standin import SECRET
from tests.plans.world import World, standing

PATH = "/webhooks/stripe"


async def post(world: World, body: bytes, signature: str | None) -> httpx.Response:
    headers = {"Stripe-Signature": signature} if signature is not None else {}
    return await world.service.http.post(PATH, content=body, headers=headers)


async def test_what_is_not_signed_is_refused(a: World) -> None:
    event = {"id": "evt_1", "type": "customer.subscription.updated", "data": {"object": {}}}
    body, signature = a.standin.signed(event)
    _, stranger = a.standin.signed(event, secret="whsec_other")
    _, old = a.standin.signed(event, at=int(time.time()) - 3_600)
    for sent, with_signature in (
        (body, None),
        (body, ""),
        (body, "t=1,v1=00"),
        (body, stranger),
        (body, old),
        (body + b" ", signature),
        (b"", None),
    ):
        answer = await post(a, sent, with_signature)
        assert answer.status_code == 400, with_signature
        assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert (await post(a, b"x" * 3_000_000, signature)).status_code == 413
    assert (await a.service.http.get(PATH)).status_code == 405


async def test_what_is_not_ours_is_received_and_forgotten(a: World) -> None:
    for event in (
        {"id": "evt_1", "type": "payout.paid", "data": {"object": {"id": "po_1"}}},
        {"id": "evt_2", "type": "customer.subscription.updated", "data": {"object": {}}},
        {"id": "evt_3"},
    ):
        answer = await post(a, *a.standin.signed(event))
        assert (answer.status_code, answer.json()) == (200, {"received": True})


async def test_bursts_from_one_address_are_not_limited(a: World) -> None:
    event = {"id": "evt_1", "type": "payout.paid", "data": {"object": {}}}
    body, signature = a.standin.signed(event, secret=SECRET)
    answers = [await post(a, body, signature) for _ in range(650)]
    assert {answer.status_code for answer in answers} == {200}


async def test_an_account_that_is_not_here_is_no_reason_to_ask_again(a: World) -> None:
    """Somebody uses the same account at Stripe for another service, or another database."""
    person = await a.person()
    await a.standin.hold()
    answer = await person.post("/api/subscriptions/subscribe", {"plan": "standard"})
    await a.standin.pay(answer.json()["checkoutUrl"])
    async with a.service.owner() as connection:
        for table in ("api_key_hashes", "api_keys", "account_heads", "balances"):
            await connection.execute(f"DELETE FROM {table} WHERE account_id = $1", person.user_id)
        await connection.execute("DELETE FROM accounts WHERE id = $1", person.user_id)
    attempts = await a.standin.deliver()
    assert {attempt["status"] for attempt in attempts} == {200}
    await a.standin.release()


async def test_messages_again_and_again_change_nothing(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    before = await a.row(person)
    account = str(person.user_id)
    told = [event for event in await a.standin.events() if account in json.dumps(event)]
    assert len(told) >= 3
    answers = await asyncio.gather(*(post(a, *a.standin.signed(event)) for event in told * 5))
    assert {answer.status_code for answer in answers} == {200}
    after = await a.row(person)
    assert after | {"updated_at": None} == before | {"updated_at": None}
    assert await standing(person) == ("ACTIVE", "ADVANCED", "ADVANCED")
