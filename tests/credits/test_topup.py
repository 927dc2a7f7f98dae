"""Buying credits: one checkout for each key, and each payment counts once."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from rota.credits.verify import problems
from rota.dev.stack import Stack
from rota.payments.port import Payment
from tests.credits.world import CENT, Shop, end_run, payment, spend, start_run
from tests.payments.stripe_server import StripeServer
from tests.service import Person, Service
from tests.tasks.world import newcomer

TOPUP = "/api/credits/topup"


async def test_a_checkout_returns_the_processors_page_and_moves_no_money(shop: Shop) -> None:
    person = await shop.service.sign_in()
    other = await person.post(TOPUP, {"amountCents": 2_000, "accountId": "acct_other"})
    assert other.status_code == 400
    response = await person.post(TOPUP, {"amountCents": 2_000})
    assert response.status_code == 200
    payer, amount_cents, _ = shop.processor.requests[-1]
    assert response.json()["amount"] == amount_cents == 2_000
    assert response.json()["checkoutUrl"].startswith("https://pay.example/")
    assert payer.account_id == person.user_id
    assert shop.processor.emails[payer.customer_id] == f"{person.subject}@example.test"
    assert (await shop.balance(person))["topUpCents"] == 0


async def test_the_same_idempotency_key_returns_the_same_checkout(shop: Shop) -> None:
    person = await newcomer(shop.service)
    key, requests = {"Idempotency-Key": "order-1"}, len(shop.processor.requests)
    first = await person.post(TOPUP, {"amountCents": 500}, headers=key)
    again = await person.post(TOPUP, {"amountCents": 500}, headers=key)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(shop.processor.requests) == requests + 1
    other = await person.post(TOPUP, {"amountCents": 600}, headers=key)
    assert other.status_code == 409
    without = [await person.post(TOPUP, {"amountCents": 500}) for _ in range(2)]
    assert len({response.json()["checkoutUrl"] for response in (first, *without)}) == 3


async def test_a_processor_failure_is_402_and_a_retry_with_the_same_key_gets_the_same_session(
    shop: Shop,
) -> None:
    person = await newcomer(shop.service)
    key = {"Idempotency-Key": str(uuid4())}
    shop.processor.down = True
    try:
        failed = await person.post(TOPUP, {"amountCents": 500}, headers=key)
    finally:
        shop.processor.down = False
    assert failed.status_code == 402
    assert failed.json()["error"]["code"] == "PAYMENT_PROCESSOR_ERROR"
    assert (await shop.balance(person))["totalLoadedCents"] == 0
    # The processor created the session, but its response was lost.
    created = shop.processor.sessions[shop.processor.requests[-1][2]]
    response = await person.post(TOPUP, {"amountCents": 500}, headers=key)
    assert response.status_code == 200
    assert response.json()["checkoutUrl"] == created.url


async def test_idempotency_keys_of_different_accounts_are_independent(shop: Shop) -> None:
    key = {"Idempotency-Key": "the same"}
    people = [await newcomer(shop.service) for _ in range(2)]
    urls = {
        (await person.post(TOPUP, {"amountCents": 500}, headers=key)).json()["checkoutUrl"]
        for person in people
    }
    assert len(urls) == 2


@pytest.mark.parametrize("amount", [499, 100_001, 0, -500, 500.0, "500", True, None, 10**30, [500]])
async def test_the_amount_is_a_whole_number_of_cents_within_bounds(shop: Shop, amount: Any) -> None:
    person = await newcomer(shop.service)
    requests = len(shop.processor.requests)
    response = await person.post(TOPUP, {"amountCents": amount})
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "amountCents"
    assert len(shop.processor.requests) == requests


async def topped_up_cents(shop: Shop, account_id: UUID) -> list[int]:
    async with shop.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT (data::jsonb ->> 'amountCents')::int AS amount_cents FROM events"
            " WHERE account_id = $1 AND type = 'credits.topped_up' ORDER BY sequence",
            account_id,
        )
    return [row["amount_cents"] for row in rows]


async def test_a_payment_counts_once_and_sends_one_event(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="basic")
    shop.announced.clear()
    paid = payment(person.user_id, "pi_1", 2_000)
    await asyncio.gather(*[shop.credits.take_payment(paid) for _ in range(8)])
    shown = await shop.balance(person)
    assert shown["topUpCents"] == shown["totalAvailable"] == shown["totalLoadedCents"] == 2_000
    assert shown["balance"]["totalLoadedUsd"] == "20.00"
    assert await topped_up_cents(shop, person.user_id) == [2_000]
    assert shop.announced == [person.user_id]
    # The next checkout uses the processor's customer.
    await person.post(TOPUP, {"amountCents": 500})
    assert shop.processor.requests[-1][0].customer_id == "cus_1"


async def person_who_spent(shop: Shop, paid_cents: int, spent_cents: int) -> tuple[Person, Payment]:
    person = await newcomer(shop.service, tier="basic")
    paid = payment(person.user_id, f"pi_{uuid4().hex}", paid_cents)
    await shop.credits.take_payment(paid)
    async with shop.db.write(person.user_id) as tx:
        run = await start_run(tx, spent_cents * CENT)
        await spend(tx, run, 1, spent_cents * CENT)
        await end_run(tx, run)
    return person, paid


@pytest.mark.parametrize("returned", ["refunded_cents", "disputed_cents"])
async def test_spent_money_that_is_returned_is_owed_until_the_next_payment(
    shop: Shop, returned: str
) -> None:
    person, paid = await person_who_spent(shop, 1_000, 400)
    await shop.report(paid, **{returned: 1_000})
    shown = await shop.balance(person)
    assert (shown["owedCents"], shown["totalAvailable"]) == (400, 0)
    assert shown["totalLoadedCents"] == 0
    await shop.credits.take_payment(payment(person.user_id, "pi_2", 1_000))
    shown = await shop.balance(person)
    assert shown["totalAvailable"] == 600
    assert "owedCents" not in shown


@pytest.mark.parametrize("returned", ["refunded_cents", "disputed_cents"])
async def test_money_that_comes_back_pays_what_is_owed_first(shop: Shop, returned: str) -> None:
    person, paid = await person_who_spent(shop, 1_000, 400)
    for cents in (1_000, 1_000, 250, 700, 0, 0):
        await shop.report(paid, **{returned: cents})
    shown = await shop.balance(person)
    assert (shown["totalAvailable"], shown["totalLoadedCents"]) == (600, 1_000)
    assert "owedCents" not in shown
    assert await topped_up_cents(shop, person.user_id) == [1_000, -1_000, 750, -450, 700]
    async with shop.db.snapshot(person.user_id) as tx:
        assert await problems(tx) == []


async def test_a_payment_for_an_unknown_account_is_ignored(shop: Shop) -> None:
    unknown = payment(uuid4(), "pi_1", 1_000)
    await shop.credits.take_payment(unknown)
    await shop.report(unknown, refunded_cents=1_000)


async def test_a_top_up_and_its_refund_change_the_balance(stack: Stack) -> None:
    """Everything is real except the processor, which is a separate process."""
    async with (
        StripeServer.start() as stripe_server,
        Service.start(stack, variant="a", name="credits_paid", **stripe_server.settings) as service,
    ):
        await stripe_server.send_to(f"{service.settings.public_url}/webhooks/stripe")
        person = await service.sign_in()

        async def loaded_cents() -> list[int]:
            shown = (await person.get("/api/credits/balance")).json()
            return [shown["topUpCents"], shown["totalLoadedCents"]]

        await stripe_server.hold()
        response = await person.post(TOPUP, {"amountCents": 2_500})
        assert response.status_code == 200, response.text
        await stripe_server.pay(response.json()["checkoutUrl"])
        assert await loaded_cents() == [0, 0]
        await stripe_server.release()
        await stripe_server.settled()
        assert await loaded_cents() == [2_500, 2_500]
        page = (await person.get("/api/credits/transactions")).json()
        paid = next(each for each in page["transactions"] if each["kind"] == "top_up")
        await stripe_server.refund(paid["reference"], 700)
        await stripe_server.settled()
        # Every event again, in another order, changes nothing.
        await stripe_server.deliver(again=True, seed=7, duplicates=(1, 3))
        assert await loaded_cents() == [1_800, 1_800]
