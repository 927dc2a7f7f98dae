"""`rota admin payments`: products are set up, and differences are found and repaired."""

import json
from typing import Any

import pytest

from rota.plans.commands import EVENTS
from rota.platform import ids
from tests.plans.world import World, subscription_state
from tests.service import Person

TOP_UP = "/api/credits/topup"
SUBSCRIBE = "/api/subscriptions/subscribe"


async def pay(world: World, person: Person, path: str, body: Any) -> None:
    response = await person.post(path, body)
    assert response.status_code == 200, response.text
    await world.stripe_server.pay(response.json()["checkoutUrl"])


async def top_up_cents(person: Person) -> int:
    return int((await person.get("/api/credits/balance")).json()["topUpCents"])


async def test_setup_creates_the_products(a: World, b: World) -> None:
    for world, lines in (
        (a, ["Rota Standard: $20.00 a month", "Rota Enterprise: $50.00 a month"]),
        (b, ["Rota Connect pass: $9.00 a month"]),
    ):
        result = await world.rota("setup")
        assert result.exit_code == 0, result.output
        printed = result.stdout.splitlines()
        assert set(lines) <= set(printed)
        assert f"  {world.service.settings.public_url}/webhooks/stripe" in printed
        assert {f"  {event}" for event in EVENTS} <= set(printed)


async def test_records_without_differences(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    await a.sweep()
    result = await a.rota("reconcile", "--apply")
    result = await a.rota("reconcile")
    assert (result.exit_code, result.stdout) == (0, "No differences.\n")
    assert json.loads((await a.rota("reconcile", "--json")).stdout) == {"differences": []}


async def test_a_lost_webhook_is_found_and_repaired(a: World) -> None:
    await a.rota("reconcile", "--apply")
    buyer, payer, leaver = [await a.person() for _ in range(3)]
    await a.buy(leaver, "standard")
    await a.stripe_server.hold()
    await pay(a, buyer, SUBSCRIBE, {"plan": "advanced"})
    await pay(a, payer, TOP_UP, {"amountCents": 2_500})
    (name,) = await a.stripe_statuses(leaver)
    await a.stripe_server.api("DELETE", f"/v1/subscriptions/{name}")

    result = await a.rota("reconcile", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)["differences"]
    assert {"plan", "top-up"} <= {each["kind"] for each in found}
    assert not any(each["repaired"] for each in found)
    result = await a.rota("reconcile")
    assert result.exit_code == 1
    for person, kind in ((buyer, "plan"), (payer, "top-up"), (leaver, "plan")):
        (line,) = [
            line
            for line in result.stdout.splitlines()
            if ids.to_wire("acct", person.user_id) in line
        ]
        assert kind in line
        assert "run with --apply" in line
    assert await subscription_state(buyer) == (None, "", "BASIC")
    assert await top_up_cents(payer) == 0

    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "All differences are repaired." in result.stdout
    assert await subscription_state(buyer) == ("ACTIVE", "ADVANCED", "ADVANCED")
    assert await subscription_state(leaver) == ("CANCELLED", "BASIC", "BASIC")
    assert await top_up_cents(payer) == 2_500
    assert (await a.rota("reconcile")).exit_code == 0
    # Late webhooks change nothing.
    await a.stripe_server.release()
    assert await top_up_cents(payer) == 2_500


async def test_a_refund_without_a_webhook_is_found_and_repaired(a: World) -> None:
    person = await a.person()
    await pay(a, person, TOP_UP, {"amountCents": 2_000})
    await a.stripe_server.settled()
    await a.stripe_server.hold()
    async with a.service.owner() as connection:
        payment = await connection.fetchval(
            "SELECT reference FROM entries WHERE account_id = $1", person.user_id
        )
    await a.stripe_server.refund(payment, 500)
    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "refund" in result.stdout
    assert await top_up_cents(person) == 1_500


async def payment_of(world: World, person: Person) -> str:
    async with world.service.owner() as connection:
        found: str = await connection.fetchval(
            "SELECT reference FROM entries WHERE account_id = $1 AND kind = 'top_up'",
            person.user_id,
        )
    return found


@pytest.mark.long
async def test_refunds_and_disputes_of_old_payments_are_found_and_repaired(a: World) -> None:
    server = a.stripe_server
    refunded, disputed = await a.person(), await a.person()
    for person in (refunded, disputed):
        await pay(a, person, TOP_UP, {"amountCents": 2_000})
    await server.settled()
    payments = [await payment_of(a, person) for person in (refunded, disputed)]
    await a.move_clock(days=60)
    await a.rota("reconcile", "--apply")
    await server.hold()
    refund = await server.refund(payments[0], 500)
    dispute = await server.dispute(payments[1], 1_200)

    async def repair(kinds: tuple[str, str], cents: tuple[int, int]) -> None:
        result = await a.rota("reconcile", "--apply")
        assert result.exit_code == 0, result.output
        for payment, kind in zip(payments, kinds, strict=True):
            lines = [line for line in result.stdout.splitlines() if payment in line]
            # A dispute is logged too.
            (line,) = [line for line in lines if "repaired" in line]
            assert f" {kind} " in line
        assert (await top_up_cents(refunded), await top_up_cents(disputed)) == cents
        result = await a.rota("reconcile")
        assert (result.exit_code, result.stdout) == (0, "No differences.\n"), result.stdout

    await repair(("refund", "dispute"), (1_500, 800))
    # Months later, the refund fails and the dispute is won.
    await a.move_clock(days=60)
    await a.rota("reconcile", "--apply")
    await server.update_refund(refund["id"], "failed")
    await server.update_dispute(dispute["id"], "won")
    await repair(("refund", "dispute"), (2_000, 2_000))


async def test_a_payment_that_stripe_does_not_have_is_left_for_a_person(a: World) -> None:
    person = await a.person()
    await pay(a, person, TOP_UP, {"amountCents": 700})
    await a.stripe_server.settled()
    async with a.service.owner() as connection:
        await connection.execute(
            "UPDATE entries SET reference = 'pi_forged' WHERE account_id = $1", person.user_id
        )
    result = await a.rota("reconcile")
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if "pi_forged" in line]
    assert "check manually" in line
    async with a.service.owner() as connection:
        # Other tests need records without differences.
        await connection.execute(
            "UPDATE entries SET reference = substr(key, 8) WHERE account_id = $1", person.user_id
        )
    assert (await a.rota("reconcile")).exit_code == 0


async def test_a_replaced_subscription_that_was_not_ended_is_found_and_ended(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    await a.buy(person, "advanced")
    async with a.service.owner() as connection:
        await connection.execute("DELETE FROM outbox WHERE kind = 'plans.end'")
    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "replaced" in result.stdout
    assert sorted((await a.stripe_statuses(person)).values()) == ["active", "canceled"]


async def test_reconcile_fails_while_the_processor_is_down(a: World) -> None:
    await a.stripe_server.fault("/v1/", "500", times=1_000)
    result = await a.rota("reconcile")
    assert result.exit_code == 1
    assert "payment processor" in result.output
