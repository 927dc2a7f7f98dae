"""`rota admin payments`: what is sold is set up, and books that differ are found and mended."""

from typing import Any

from rota.plans.commands import EVENTS
from rota.platform import ids
from tests.plans.world import World, standing
from tests.service import Person

TOP_UP = "/api/credits/topup"
SUBSCRIBE = "/api/subscriptions/subscribe"


async def pay(world: World, person: Person, path: str, body: Any) -> None:
    answer = await person.post(path, body)
    assert answer.status_code == 200, answer.text
    await world.standin.pay(answer.json()["checkoutUrl"])


async def top_up_cents(person: Person) -> int:
    return int((await person.get("/api/credits/balance")).json()["topUpCents"])


async def test_what_is_sold_is_set_up(a: World, b: World) -> None:
    for world, lines in (
        (a, ["Rota Standard: $20.00 a month", "Rota Enterprise: $50.00 a month"]),
        (b, ["Rota Connect pass: $9.00 a month"]),
    ):
        result = await world.rota("setup")
        assert result.exit_code == 0, result.output
        said = result.stdout.splitlines()
        assert set(lines) <= set(said)
        assert f"  {world.service.settings.public_url}/webhooks/stripe" in said
        assert {f"  {event}" for event in EVENTS} <= set(said)


async def test_books_that_agree(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    await a.sweep()
    result = await a.rota("reconcile", "--apply")
    result = await a.rota("reconcile")
    assert (result.exit_code, result.stdout) == (0, "The books agree.\n")


async def test_a_webhook_that_never_came_is_found_and_mended(a: World) -> None:
    await a.rota("reconcile", "--apply")
    buyer, payer, leaver = [await a.person() for _ in range(3)]
    await a.buy(leaver, "standard")
    await a.standin.hold()
    await pay(a, buyer, SUBSCRIBE, {"plan": "advanced"})
    await pay(a, payer, TOP_UP, {"amountCents": 2_500})
    (name,) = await a.at_stripe(leaver)
    await a.standin.api("DELETE", f"/v1/subscriptions/{name}")

    result = await a.rota("reconcile")
    assert result.exit_code == 1
    for person, what in ((buyer, "plan"), (payer, "top-up"), (leaver, "plan")):
        (line,) = [
            line
            for line in result.stdout.splitlines()
            if ids.to_wire("acct", person.user_id) in line
        ]
        assert what in line
        assert "--apply mends it" in line
    assert await standing(buyer) == (None, "", "BASIC")
    assert await top_up_cents(payer) == 0

    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "The books agree now." in result.stdout
    assert await standing(buyer) == ("ACTIVE", "ADVANCED", "ADVANCED")
    assert await standing(leaver) == ("CANCELLED", "BASIC", "BASIC")
    assert await top_up_cents(payer) == 2_500
    assert (await a.rota("reconcile")).exit_code == 0
    # What comes after all changes nothing.
    await a.standin.release()
    assert await top_up_cents(payer) == 2_500


async def test_a_refund_that_was_not_told(a: World) -> None:
    person = await a.person()
    await pay(a, person, TOP_UP, {"amountCents": 2_000})
    await a.standin.settled()
    await a.standin.hold()
    async with a.service.owner() as connection:
        payment = await connection.fetchval(
            "SELECT reference FROM entries WHERE account_id = $1", person.user_id
        )
    await a.standin.refund(payment, 500)
    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "refund" in result.stdout
    assert await top_up_cents(person) == 1_500


async def test_what_only_we_have_is_for_a_person_to_look_at(a: World) -> None:
    person = await a.person()
    await pay(a, person, TOP_UP, {"amountCents": 700})
    await a.standin.settled()
    async with a.service.owner() as connection:
        await connection.execute(
            "UPDATE entries SET reference = 'pi_forged' WHERE account_id = $1", person.user_id
        )
    result = await a.rota("reconcile")
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if "pi_forged" in line]
    assert "look by hand" in line
    async with a.service.owner() as connection:
        # The next test wants books that agree.
        await connection.execute(
            "UPDATE entries SET reference = substr(key, 8) WHERE account_id = $1", person.user_id
        )
    assert (await a.rota("reconcile")).exit_code == 0


async def test_one_that_should_have_been_ended_is_found(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    await a.buy(person, "advanced")
    async with a.service.owner() as connection:
        await connection.execute("DELETE FROM outbox WHERE kind = 'plans.end'")
    result = await a.rota("reconcile", "--apply")
    assert result.exit_code == 0, result.output
    assert "replaced" in result.stdout
    assert sorted((await a.at_stripe(person)).values()) == ["active", "canceled"]


async def test_nothing_is_compared_while_the_processor_is_away(a: World) -> None:
    await a.standin.fault("/v1/", "500", times=1_000)
    result = await a.rota("reconcile")
    assert result.exit_code == 1
    assert "payment processor" in result.output
