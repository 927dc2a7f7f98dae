"""Plans, from checkout through renewals to the end."""

import asyncio
from datetime import datetime, timedelta

from tests.plans.world import (
    PAID_AFTER,
    World,
    events_of,
    overview,
    refused,
    subscription_state,
    tier_of,
)
from tests.service import Person
from tests.tasks.world import newcomers

SUBSCRIBE = "/api/subscriptions/subscribe"
CANCEL = "/api/subscriptions/cancel"
RESUME = "/api/subscriptions/resume"


async def period_end(person: Person) -> datetime:
    seen = (await overview(person))["subscription"]
    return datetime.fromisoformat(seen["currentPeriodEnd"])


async def test_the_tier_changes_when_the_plan_is_paid(a: World) -> None:
    person = await a.person()
    assert await overview(person) == {
        "subscription": None,
        "effectiveTier": "BASIC",
        "userTier": "BASIC",
    }
    response = await person.post(SUBSCRIBE, {"plan": "Advanced"})
    assert response.status_code == 200
    checkout = response.json()
    assert checkout == {"checkoutUrl": checkout["checkoutUrl"], "plan": "ADVANCED", "seats": None}
    assert await tier_of(person) == "BASIC"

    await a.stripe_server.pay(checkout["checkoutUrl"])
    await a.stripe_server.settled()
    seen = await overview(person)
    assert seen["subscription"] == {
        "tier": "ADVANCED",
        "status": "ACTIVE",
        "seats": None,
        "currentPeriodStart": seen["subscription"]["currentPeriodStart"],
        "currentPeriodEnd": seen["subscription"]["currentPeriodEnd"],
        "cancelAtPeriodEnd": False,
        "downgradeTarget": None,
        "downgradeSeats": None,
    }
    assert (seen["effectiveTier"], seen["userTier"]) == ("ADVANCED", "ADVANCED")
    assert await events_of(a, person.user_id) == ["subscription.updated"]


async def test_limits_agents_and_allowance_follow_the_tier(a: World) -> None:
    person = await a.person()
    before = await person.get("/api/agents")
    assert before.headers["RateLimit-Policy"].startswith("600;")
    balance = (await person.get("/api/credits/balance")).json()
    assert balance["hasAllowance"] is False
    await a.buy(person, "advanced")
    # Processes cache a caller for up to half a second.
    fresh = await a.with_new_key(person)
    after = await fresh.get("/api/agents")
    assert after.headers["RateLimit-Policy"].startswith("6000;")
    locked = [sum(agent["locked"] for agent in each.json()["agents"]) for each in (before, after)]
    assert locked[0] > locked[1]
    assert "model" in after.json()["agents"][0]
    balance = (await fresh.get("/api/credits/balance")).json()
    assert (balance["hasAllowance"], balance["usageBar"]["total"]) == (True, 5_000)


async def test_invalid_plans_and_seats_are_refused(a: World) -> None:
    person, company = await a.person(), await a.company()
    for body, status in (
        ({}, 400),
        ({"plan": 5}, 400),
        ({"plan": "golden"}, 400),
        ({"plan": "BASIC"}, 400),
        ({"plan": "standard", "seats": 3}, 400),
        ({"plan": "corporate"}, 403),
        ({"plan": "enterprise", "seats": 100}, 403),
        ({"plan": "standard", "seats": True}, 400),
    ):
        assert (await person.post(SUBSCRIBE, body)).status_code == status, body
    for body, status in (
        ({"plan": "enterprise", "seats": 99}, 400),
        ({"plan": "enterprise", "seats": 0}, 400),
        ({"plan": "corporate", "seats": 0}, 400),
        ({"plan": "corporate", "seats": 10**7}, 400),
        ({"plan": "corporate", "seats": 1}, 200),
        ({"plan": "enterprise", "seats": 100}, 200),
    ):
        assert (await company.post(SUBSCRIBE, body)).status_code == status, body
    response = (await company.post(SUBSCRIBE, {"plan": "Enterprise"})).json()
    assert (response["plan"], response["seats"]) == ("ENTERPRISE", 100)


async def test_in_a_company_only_owners_and_admins_can_subscribe(a: World) -> None:
    for role, status in (("owner", 200), ("admin", 200), ("member", 403)):
        person = await a.company(role)
        assert (await person.post(SUBSCRIBE, {"plan": "corporate"})).status_code == status
        assert (await person.get("/api/subscriptions")).status_code == 200
        for path in (CANCEL, RESUME):
            expected = (403, "AUTHORIZATION_ERROR") if role == "member" else (404, "NOT_FOUND")
            assert refused(await person.post(path)) == expected


async def test_an_api_key_needs_the_billing_scopes(a: World) -> None:
    (reader,) = await newcomers(a.service, tier="basic", scopes=("billing:read",))
    assert (await reader.get("/api/subscriptions")).status_code == 200
    assert (await reader.post(SUBSCRIBE, {"plan": "standard"})).status_code == 403
    (other,) = await newcomers(a.service, tier="basic", scopes=("tasks:read",))
    assert (await other.get("/api/subscriptions")).status_code == 403


async def test_a_lower_plan_can_be_bought_after_the_end_while_workers_are_down(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    assert (await person.post(CANCEL)).status_code == 200
    await a.stripe_server.settled()
    await a.stripe_server.hold()
    await a.move_clock(to=await period_end(person))
    checkout = (await person.post(SUBSCRIBE, {"plan": "standard"})).json()["checkoutUrl"]
    await a.stripe_server.pay(checkout)
    # The messages about the new subscription arrive first.
    await a.stripe_server.deliver(reverse=True)
    await a.stripe_server.release()
    await a.sweep()
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    assert sorted((await a.stripe_statuses(person)).values()) == ["active", "canceled"]


async def test_a_higher_plan_replaces_the_lower(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    (old,) = await a.stripe_statuses(person)
    assert refused(await person.post(SUBSCRIBE, {"plan": "standard"})) == (409, "CONFLICT")
    seen = await a.buy(person, "advanced")
    assert (seen["subscription"]["status"], seen["effectiveTier"]) == ("ACTIVE", "ADVANCED")
    # Both are active until a worker ends the old one.
    assert sorted((await a.stripe_statuses(person)).values()) == ["active", "active"]
    await a.sweep()
    await a.stripe_server.settled()
    statuses = await a.stripe_statuses(person)
    assert statuses.pop(old) == "canceled"
    assert list(statuses.values()) == ["active"]
    assert await subscription_state(person) == ("ACTIVE", "ADVANCED", "ADVANCED")
    assert (await a.row(person))["replaced"] == [old]


async def test_a_plan_that_is_paid_after_the_erasure_is_ended(a: World) -> None:
    person = await a.person()
    response = await person.post(SUBSCRIBE, {"plan": "standard"})
    async with a.service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET erased_at = now() WHERE id = $1", person.user_id
        )
    await a.stripe_server.pay(response.json()["checkoutUrl"])
    await a.stripe_server.settled()
    assert await a.row(person) == {}
    assert list((await a.stripe_statuses(person)).values()) == ["active"]
    await a.sweep()
    assert list((await a.stripe_statuses(person)).values()) == ["canceled"]


async def test_the_old_subscription_is_ended_when_the_processor_is_up_again(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    (old,) = await a.stripe_statuses(person)
    await a.buy(person, "advanced")
    await a.stripe_server.fault(f"/v1/subscriptions/{old}", "500", times=3)
    await a.relay.step()
    assert (await a.stripe_statuses(person))[old] == "active"
    async with a.service.owner() as connection:
        # The next attempt is a second later.
        await connection.execute("UPDATE outbox SET due_at = now() WHERE kind = 'plans.end'")
    await a.relay.step()
    assert (await a.stripe_statuses(person))[old] == "canceled"


async def test_more_seats_start_when_paid_and_fewer_with_the_next_period(a: World) -> None:
    company = await a.company()
    await a.buy(company, "corporate", seats=5)
    assert refused(await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 5}))[0] == 409
    assert refused(await company.post(SUBSCRIBE, {"plan": "corporate"}))[0] == 409
    seen = await a.buy(company, "corporate", seats=8)
    assert seen["subscription"]["seats"] == 8
    response = (await company.post(SUBSCRIBE, {"plan": "corporate", "seats": 3})).json()
    assert response["checkoutUrl"] is None
    assert response["subscription"]["seats"] == 8
    assert response["subscription"]["downgradeTarget"] == "CORPORATE"
    assert response["subscription"]["downgradeSeats"] == 3
    await a.sweep()
    await a.move_clock(to=await period_end(company))
    seen = (await overview(company))["subscription"]
    assert (seen["seats"], seen["downgradeTarget"]) == (3, None)
    async with a.service.owner() as connection:
        seats = await connection.fetchval(
            "SELECT seats FROM accounts WHERE id = $1", company.user_id
        )
    assert seats == 3


async def test_a_lower_plan_starts_with_the_next_period(a: World) -> None:
    person = await a.person()
    await a.buy(person, "advanced")
    response = await person.post(SUBSCRIBE, {"plan": "standard"})
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"checkoutUrl", "subscription"}
    assert body["checkoutUrl"] is None
    assert body["subscription"]["tier"] == "ADVANCED"
    assert body["subscription"]["downgradeTarget"] == "STANDARD"
    assert refused(await person.post(SUBSCRIBE, {"plan": "standard"}))[0] == 409
    # The downgrade can be removed.
    back = (await person.post(SUBSCRIBE, {"plan": "advanced"})).json()
    assert back["subscription"]["downgradeTarget"] is None
    assert (await person.post(SUBSCRIBE, {"plan": "standard"})).status_code == 200
    await a.stripe_server.settled()
    ends = await period_end(person)
    await a.move_clock(to=ends - timedelta(hours=1))
    assert await tier_of(person) == "ADVANCED"
    await a.move_clock(to=ends)
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    assert (await overview(person))["subscription"]["downgradeTarget"] is None


async def test_a_cancelled_subscription_lasts_until_the_period_ends(a: World) -> None:
    person = await a.person()
    for path in (CANCEL, RESUME):
        assert refused(await person.post(path)) == (404, "NOT_FOUND")
    await a.buy(person, "standard")
    assert refused(await person.post(RESUME)) == (409, "CONFLICT")
    response = await person.post(CANCEL)
    assert response.status_code == 200
    assert response.json()["subscription"]["cancelAtPeriodEnd"] is True
    assert response.json()["subscription"]["status"] == "ACTIVE"
    for path, body in ((CANCEL, None), (SUBSCRIBE, {"plan": "advanced"})):
        assert refused(await person.post(path, body)) == (409, "CONFLICT")
    assert (await person.post(RESUME)).json()["subscription"]["cancelAtPeriodEnd"] is False
    assert (await person.post(CANCEL)).status_code == 200
    await a.stripe_server.settled()
    ends = await period_end(person)
    await a.move_clock(to=ends - timedelta(hours=1))
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    await a.move_clock(to=ends)
    assert await subscription_state(person) == ("CANCELLED", "BASIC", "BASIC")
    for path in (CANCEL, RESUME):
        assert refused(await person.post(path)) == (409, "CONFLICT")
    # The account can subscribe again.
    assert (await a.buy(person, "standard"))["effectiveTier"] == "STANDARD"


async def test_an_unpaid_renewal_keeps_the_tier_for_the_grace_period(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    customer, ends = await a.customer(person), await period_end(person)
    await a.stripe_server.decline(customer)
    await a.move_clock(to=ends)
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    await a.move_clock(to=ends + PAID_AFTER)
    assert await subscription_state(person) == ("PAST_DUE", "STANDARD", "STANDARD")
    await a.move_clock(to=ends + timedelta(days=6, hours=23))
    await a.sweep()
    assert await subscription_state(person) == ("PAST_DUE", "STANDARD", "STANDARD")
    # Moves only our clock: Stripe retries the payment in an hour.
    a.ahead += timedelta(hours=2)
    await a.sweep()
    assert await subscription_state(person) == ("PAST_DUE", "BASIC", "BASIC")
    again = await person.post(SUBSCRIBE, {"plan": "standard"})
    assert refused(again) == (409, "CONFLICT")
    assert "Pay the invoice" in again.json()["error"]["message"]
    await a.stripe_server.decline(customer, False)
    await a.move_clock()
    assert await subscription_state(person) == ("ACTIVE", "STANDARD", "STANDARD")
    events = await events_of(a, person.user_id)
    assert events == ["subscription.updated"] * 5


async def test_an_unpaid_subscription_ends(a: World) -> None:
    person = await a.person()
    await a.buy(person, "standard")
    ends = await period_end(person)
    await a.stripe_server.decline(await a.customer(person))
    await a.move_clock(to=ends + timedelta(days=22))
    assert await subscription_state(person) == ("CANCELLED", "BASIC", "BASIC")


async def test_grace_periods_and_cancellations_end_while_the_processor_is_down(a: World) -> None:
    unpaid, cancelled = await a.person(), await a.person()
    for person in (unpaid, cancelled):
        await a.buy(person, "standard")
    await cancelled.post(CANCEL)
    await a.stripe_server.decline(await a.customer(unpaid))
    ends = await period_end(unpaid)
    await a.stripe_server.settled()
    await a.stripe_server.hold()
    await a.move_clock(to=ends + timedelta(hours=1))
    await a.stripe_server.fault("/v1/subscriptions", "500", times=1_000)
    await a.sweep()
    assert await subscription_state(cancelled) == ("CANCELLED", "BASIC", "BASIC")
    assert await subscription_state(unpaid) == ("ACTIVE", "STANDARD", "STANDARD")
    # The processor answers once, and is down again when the grace period ends.
    await a.stripe_server.fault("/nowhere", "500")
    await a.move_clock(days=0.1)
    await a.sweep()
    assert (await subscription_state(unpaid))[0] == "PAST_DUE"
    await a.stripe_server.fault("/v1/subscriptions", "500", times=1_000)
    await a.move_clock(to=ends + timedelta(days=7))
    await a.sweep()
    assert await subscription_state(unpaid) == ("PAST_DUE", "BASIC", "BASIC")
    await a.clear_faults()


async def test_syncs_do_not_deadlock_with_other_requests(world_a: World) -> None:
    """Creating keys, creating tasks and syncing lock the same rows in the same order."""
    person = await world_a.service.sign_in()
    await world_a.buy(person, "standard")
    (name,) = await world_a.stripe_statuses(person)
    syncs = [world_a.plans.sync(name, person.user_id) for _ in range(20)]
    work = [
        person.post(path, {"name": f"{n}"})
        for n in range(20)
        for path in ("/api/keys", "/api/tasks")
    ]
    _, responses = await asyncio.gather(asyncio.gather(*syncs), asyncio.gather(*work))
    assert {response.status_code for response in responses} == {201}
