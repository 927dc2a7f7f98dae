"""What an account gets around the end of a period: only what was paid."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.payments.stripe import Stripe
from tests.plans.world import PAID_AFTER, World, overview, refused, subscription_state
from tests.service import Person

SUBSCRIBE = "/api/subscriptions/subscribe"


async def bar(person: Person) -> dict[str, Any]:
    found: dict[str, Any] = (await person.get("/api/credits/balance")).json()["usageBar"]
    return found


async def period_end(person: Person) -> datetime:
    subscription = (await overview(person))["subscription"]
    return datetime.fromisoformat(subscription["currentPeriodEnd"])


async def month_ends(person: Person) -> datetime:
    return datetime.fromisoformat((await bar(person))["resetsAt"])


async def at_stripe(a: World, person: Person) -> tuple[str, int]:
    """The product and the seats of the account's live subscription."""
    statuses = await a.stripe_statuses(person)
    [name] = [name for name, status in statuses.items() if status != "canceled"]
    found = await a.stripe_server.api("GET", f"/v1/subscriptions/{name}")
    [item] = found["items"]["data"]
    return item["price"]["product"], item["quantity"]


async def test_a_month_starts_when_its_invoice_is_paid_and_not_before(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    first, ends = await month_ends(person), await period_end(person)
    await a.move_clock(to=max(ends, first))
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    # The invoice is a draft.
    assert (await bar(person))["resetsAt"] is None
    await a.move_clock(to=ends + PAID_AFTER)
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    await a.move_clock(to=a.now() + timedelta(minutes=10))
    # The month is the period that was paid.
    assert await month_ends(person) == await period_end(person) > ends + timedelta(days=25)


async def test_a_late_upgrade_gives_one_month_for_one_payment(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    ends = await period_end(person)
    await month_ends(person)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=ends + timedelta(days=2))
    assert (await bar(person))["resetsAt"] is None
    await a.stripe_server.decline(await a.customer(person), False)
    await a.buy(person, "advanced")
    assert (await bar(person))["total"] == 5_000
    assert await month_ends(person) == await period_end(person) > ends + timedelta(days=30)


async def test_a_plan_that_is_bought_again_gives_one_month_for_one_payment(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    ends = await month_ends(person)
    await person.post("/api/subscriptions/cancel")
    await a.stripe_server.settled()
    # Nobody looks at the balance while there is no plan.
    await a.move_clock(to=ends + timedelta(days=25))
    await a.buy(person, "standard")
    assert await month_ends(person) == await period_end(person) > ends + timedelta(days=50)


async def test_a_lower_plan_that_is_not_paid_gives_nothing(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    assert (await bar(person))["total"] == 5_000
    assert (await person.post(SUBSCRIBE, {"plan": "standard"})).status_code == 200
    ends = await period_end(person)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=ends + PAID_AFTER)
    assert await subscription_state(person) == ("PAST_DUE", "STANDARD", "STANDARD")
    assert (await bar(person))["total"] == 5_000
    await a.stripe_server.decline(await a.customer(person), False)
    await a.move_clock(days=2)
    assert (await bar(person))["total"] == 1_500


async def test_a_lower_plan_cannot_be_taken_back_when_the_next_period_has_begun(a: World) -> None:
    company = await a.company()
    await a.buy(company, "corporate", seats=1_000)
    assert (await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 1})).status_code == 200
    await a.stripe_server.settled()
    ends = await period_end(company)
    # Just before the end, the processor could answer after it.
    await a.move_clock(to=ends - timedelta(minutes=1))
    back = await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 1_000})
    assert refused(back) == (409, "CONFLICT")
    assert "ends in a moment" in back.json()["error"]["message"]
    # After it, our row still has the old period.
    await a.stripe_server.hold()
    await a.move_clock(to=ends)
    back = await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 1_000})
    assert refused(back) == (409, "CONFLICT")
    assert await at_stripe(a, company) == ("rota_corporate", 1)
    await a.stripe_server.release()
    await a.stripe_server.settled()
    assert (await overview(company))["subscription"]["seats"] == 1
    # Now it is a purchase.
    again = await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 1_000})
    assert "checkoutUrl" in again.json()


async def test_an_upgrade_credits_what_was_paid_although_a_lower_plan_was_scheduled(
    a: World,
) -> None:
    company = await a.company()
    await a.buy(company, "corporate", seats=100)
    assert (await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 10})).status_code == 200
    await a.buy(company, "enterprise", seats=100)
    await a.sweep()
    customer = await a.stripe_server.api("GET", f"/v1/customers/{await a.customer(company)}")
    # Nearly the whole month of 100 seats at $30.
    assert -300_000 <= customer["balance"] < -295_000


async def test_a_plan_that_is_bought_twice_gives_one_month(a: World) -> None:
    person = await a.person()
    both = [(await person.post(SUBSCRIBE, {"plan": "standard"})).json() for _ in range(2)]
    await a.stripe_server.pay(both[0]["checkoutUrl"])
    await a.stripe_server.settled()
    first = await month_ends(person)
    async with a.service.owner() as connection:
        # All of it is spent.
        await connection.execute(
            "UPDATE balances SET allowance = 0, allowance_used = allowance_total, "
            "spent = spent + allowance WHERE account_id = $1",
            person.user_id,
        )
    await a.move_clock(days=0.9)
    await a.stripe_server.pay(both[1]["checkoutUrl"])
    await a.stripe_server.settled()
    # Nobody looks at the balance before the month of the first one has ended.
    await a.move_clock(to=first)
    shown = await bar(person)
    assert shown["used"] > 1_400
    assert await month_ends(person) == await period_end(person) > first


async def test_an_invoice_that_was_written_off_is_not_paid(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    ends = await month_ends(person)
    [name] = await a.stripe_statuses(person)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=ends + PAID_AFTER)
    assert await subscription_state(person) == ("PAST_DUE", "STANDARD", "STANDARD")
    await a.stripe_server.write_off(name)
    await a.stripe_server.settled()
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    await a.move_clock(days=1)
    assert (await bar(person))["resetsAt"] is None
    # Nor is anything credited when a higher plan replaces it.
    await a.stripe_server.decline(await a.customer(person), False)
    await a.buy(person, "advanced")
    await a.sweep()
    customer = await a.stripe_server.api("GET", f"/v1/customers/{await a.customer(person)}")
    assert customer["balance"] == 0


async def test_a_bank_debit_for_a_plan_that_was_replaced_is_logged(
    a: World, capsys: pytest.CaptureFixture[str]
) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    [name] = await a.stripe_statuses(person)
    await a.stripe_server.debit(await a.customer(person))
    await a.move_clock(to=await period_end(person) + PAID_AFTER)
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    await a.buy(person, "advanced")
    await a.sweep()
    assert (await a.stripe_statuses(person))[name] == "canceled"
    # The invoice cannot be voided, because the bank processes its payment.
    assert "subscription_ended_with_open_invoice" in capsys.readouterr().out
    await a.move_clock(days=1)
    await a.stripe_server.settle(name)
    await a.stripe_server.settled()
    assert await subscription_state(person) == ("ACTIVE", "ADVANCED", "ADVANCED")
    assert "ended_subscription_paid" in capsys.readouterr().out


async def invoices_of(a: World, subscription_id: str) -> list[str]:
    """The status of each invoice of a subscription, newest first."""
    found = await a.stripe_server.api(
        "GET", "/v1/invoices", params={"subscription": subscription_id}
    )
    return [invoice["status"] for invoice in found["data"]]


async def test_every_open_invoice_of_a_plan_that_was_replaced_is_watched(
    a: World, capsys: pytest.CaptureFixture[str]
) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    [name] = await a.stripe_statuses(person)
    await a.stripe_server.debit(await a.customer(person))
    first = await period_end(person)
    await a.move_clock(to=first + PAID_AFTER)
    # The bank has not finished when the next period begins, whose payment fails.
    await a.stripe_server.debit(await a.customer(person), False)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=await period_end(person) + PAID_AFTER)
    assert await invoices_of(a, name) == ["open", "open", "paid"]
    await a.stripe_server.decline(await a.customer(person), False)
    await a.buy(person, "advanced")
    await a.sweep()
    assert await invoices_of(a, name) == ["void", "open", "paid"]
    assert "subscription_ended_with_open_invoice" in capsys.readouterr().out
    await a.move_clock(days=1)
    await a.stripe_server.settle(name)
    await a.stripe_server.settled()
    assert await invoices_of(a, name) == ["void", "paid", "paid"]
    assert "ended_subscription_paid" in capsys.readouterr().out


async def test_the_draft_invoice_of_a_plan_that_was_replaced_is_not_collected(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    [name] = await a.stripe_statuses(person)
    await a.move_clock(to=await period_end(person))
    assert await invoices_of(a, name) == ["draft", "paid"]
    await a.buy(person, "advanced")
    await a.sweep()
    await a.move_clock(days=1)
    assert await invoices_of(a, name) == ["draft", "paid"]
    # Its period was not paid, so nothing is credited for it.
    customer = await a.stripe_server.api("GET", f"/v1/customers/{await a.customer(person)}")
    assert customer["balance"] == 0


async def test_a_renewal_that_is_paid_while_its_plan_ends_is_logged(
    a: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    [name] = await a.stripe_statuses(person)
    ends = await period_end(person)
    await a.move_clock(to=ends)
    stripe = a.plans._processor
    assert isinstance(stripe, Stripe)
    draft = await stripe._retrieve(name)

    async def retrieve(subscription_id: str) -> Any:
        return draft

    monkeypatch.setattr(stripe, "_retrieve", retrieve)
    await a.move_clock(to=ends + PAID_AFTER)
    await stripe.end(name)
    assert "subscription_ended_without_credit" in capsys.readouterr().out


async def test_an_open_invoice_of_a_plan_that_was_replaced_cannot_be_paid(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    [name] = await a.stripe_statuses(person)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=await period_end(person) + PAID_AFTER)
    await a.buy(person, "advanced")
    await a.sweep()
    found = await a.stripe_server.api(
        "GET", f"/v1/subscriptions/{name}", params={"expand[]": "latest_invoice"}
    )
    assert (found["status"], found["latest_invoice"]["status"]) == ("canceled", "void")


async def test_one_subscription_that_stripe_does_not_know_stops_no_other(a: World) -> None:
    people = [await a.person() for _ in range(5)]
    for person in people:
        await a.buy(person, "standard")
    ends = await period_end(people[-1])
    await a.stripe_server.hold()
    for person in people[:4]:
        [name] = await a.stripe_statuses(person)
        await a.stripe_server.api("DELETE", f"/v1/subscriptions/{name}")
    async with a.service.owner() as connection:
        await connection.execute(
            "UPDATE subscriptions SET processor_id = 'sub_gone_' || account_id "
            "WHERE account_id = ANY($1)",
            [person.user_id for person in people[:4]],
        )
    await a.move_clock(to=ends + PAID_AFTER)
    await a.sweep()
    assert await period_end(people[-1]) > ends
    # A repair that cannot be made does not stop the others either.
    done = await a.rota("reconcile", "--apply")
    assert done.exit_code == 1
    assert "sub_gone_" in done.output
    # In a week, a wrong key would have been corrected.
    assert (await subscription_state(people[0]))[0] == "ACTIVE"
    await a.move_clock(to=ends + a.grace)
    await a.sweep()
    assert await subscription_state(people[0]) == ("CANCELLED", "BASIC", "BASIC")
    await a.stripe_server.release()


async def test_a_customer_that_stripe_does_not_know_is_created_again(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    async with a.service.owner() as connection:
        await connection.execute(
            "UPDATE customers SET customer_id = 'cus_gone' WHERE account_id = $1", person.user_id
        )
    checkouts = [
        ("/api/credits/topup", {"amountCents": 500}),
        (SUBSCRIBE, {"plan": "advanced"}),
    ]
    for path, body in checkouts:
        response = await person.post(path, body)
        assert response.status_code == 200, response.text
        assert response.json()["checkoutUrl"]
    assert await a.customer(person) not in ("cus_gone", None)
