"""The personal add-on: trial, checkout and periods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.accounts import service as accounts
from rota.platform import clock, ids
from rota.platform.db import Database
from tests.mcp.conftest import try_to_connect
from tests.mcp.peers import Peer
from tests.plans.world import PAID_AFTER, World, events_of, overview, refused
from tests.service import Person

BASE = "/api/addons/connect-pass"


async def billing(person: Person) -> dict[str, Any]:
    response = await person.get(f"{BASE}/billing")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def buy_pass(world: World, person: Person) -> None:
    response = await person.post(f"{BASE}/checkout")
    assert response.status_code == 200, response.text
    assert set(response.json()) == {"checkoutUrl"}
    await world.stripe_server.pay(response.json()["checkoutUrl"])
    await world.stripe_server.settled()


async def has_pass(world: World, person: Person) -> bool:
    db = Database(world.service.database_url, pool_size=1)
    await db.open()
    try:
        async with db.read(person.user_id) as tx:
            return await world.plans.has_pass(tx)
    finally:
        await db.close()


async def test_the_pass_can_be_bought_cancelled_and_resumed_and_ends(b: World) -> None:
    person = await b.person()
    assert await billing(person) == {"billing": None, "trial": None}
    for path in ("cancel", "resume"):
        assert refused(await person.post(f"{BASE}/{path}")) == (404, "NOT_FOUND")
    assert not await has_pass(b, person)
    await buy_pass(b, person)
    seen = (await billing(person))["billing"]
    assert seen == {
        "status": "ACTIVE",
        "currentPeriodStart": seen["currentPeriodStart"],
        "currentPeriodEnd": seen["currentPeriodEnd"],
        "cancelAtPeriodEnd": False,
        "canCancel": True,
        "canResume": False,
    }
    assert await has_pass(b, person)
    assert refused(await person.post(f"{BASE}/checkout")) == (409, "CONFLICT")
    assert refused(await person.post(f"{BASE}/resume")) == (409, "CONFLICT")

    cancelled = (await person.post(f"{BASE}/cancel")).json()["billing"]
    assert (cancelled["cancelAtPeriodEnd"], cancelled["status"]) == (True, "ACTIVE")
    assert (cancelled["canCancel"], cancelled["canResume"]) == (False, True)
    assert refused(await person.post(f"{BASE}/cancel")) == (409, "CONFLICT")
    assert refused(await person.post(f"{BASE}/checkout")) == (409, "CONFLICT")
    assert (await person.post(f"{BASE}/resume")).json()["billing"] == seen
    assert (await person.post(f"{BASE}/cancel")).status_code == 200
    await b.stripe_server.settled()

    ends = datetime.fromisoformat(seen["currentPeriodEnd"])
    await b.move_clock(to=ends - timedelta(hours=1))
    assert await has_pass(b, person)
    await b.move_clock(to=ends)
    assert not await has_pass(b, person)
    ended = (await billing(person))["billing"]
    assert ended["status"] == "CANCELLED"
    assert (ended["canCancel"], ended["canResume"]) == (False, False)
    for path in ("cancel", "resume"):
        assert refused(await person.post(f"{BASE}/{path}")) == (409, "CONFLICT")
    # It can be bought again.
    await buy_pass(b, person)
    assert (await billing(person))["billing"]["status"] == "ACTIVE"


async def test_the_pass_allows_more_tool_servers(b: World) -> None:
    person = await b.person()
    async with Peer().serve() as one, Peer().serve() as two, Peer().serve() as three:
        assert (await try_to_connect(person, one.url, "one")).status_code == 201
        assert (await try_to_connect(person, two.url, "two")).status_code == 403
        await buy_pass(b, person)
        assert (await try_to_connect(person, two.url, "two")).status_code == 201
        ends = datetime.fromisoformat((await billing(person))["billing"]["currentPeriodEnd"])
        await person.post(f"{BASE}/cancel")
        await b.stripe_server.settled()
        await b.move_clock(to=ends)
        assert (await try_to_connect(person, three.url, "three")).status_code == 403
        # Connected servers stay connected.
        assert (await person.get("/api/mcp")).json()["total"] == 2


async def test_the_pass_never_changes_the_tier(b: World) -> None:
    person = await b.person()
    await buy_pass(b, person)
    assert await overview(person) == {
        "subscription": None,
        "effectiveTier": "BASIC",
        "userTier": "BASIC",
    }
    assert await events_of(b, person.user_id) == ["subscription.updated"]


async def test_an_unpaid_pass_continues_for_a_week(b: World) -> None:
    person = await b.person()
    await buy_pass(b, person)
    ends = datetime.fromisoformat((await billing(person))["billing"]["currentPeriodEnd"])
    await b.stripe_server.decline(await b.customer(person))
    await b.move_clock(to=ends + PAID_AFTER)
    assert (await billing(person))["billing"]["status"] == "PAST_DUE"
    assert await has_pass(b, person)
    # The pass ends on time even if no worker has updated it.
    await b.move_clock(to=ends + timedelta(days=7))
    assert not await has_pass(b, person)


async def test_only_personal_accounts_have_the_pass(b: World) -> None:
    company = await b.company()
    for method, path in (
        ("POST", "checkout"),
        ("POST", "cancel"),
        ("POST", "resume"),
        ("GET", "billing"),
    ):
        response = await company.request(method, f"{BASE}/{path}")
        assert refused(response) == (403, "AUTHORIZATION_ERROR")


async def test_the_header_selects_the_account(world_b: World) -> None:
    person = await world_b.service.sign_in()
    db = Database(world_b.service.database_url, pool_size=1)
    await db.open()
    company = await accounts.create_company(db, "Acme", person.user_id, tier="business")
    await db.close()
    for selected, status in (
        ("personal", 200),
        ("company", 403),
        (ids.to_wire("acct", person.user_id), 200),
        (ids.to_wire("acct", company), 403),
    ):
        headers = {"X-Service-Account": selected}
        assert (await person.get(f"{BASE}/billing", headers=headers)).status_code == status
        seen = (await person.get("/api/subscriptions", headers=headers)).json()
        assert seen["effectiveTier"] == ("BASIC" if status == 200 else "BUSINESS")
        assert (seen["subscription"], seen["userTier"]) == (None, "BASIC")


async def test_the_signup_trial_needs_no_card_and_ends_automatically(
    world_b: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_b.service.sign_in()
    seen = await billing(person)
    assert seen["billing"] is None
    starts, ends = (datetime.fromisoformat(seen["trial"][name]) for name in ("startedAt", "endsAt"))
    assert seen["trial"]["active"] is True
    assert timedelta(days=13, hours=23) < ends - starts < timedelta(days=14, hours=1)
    assert await has_pass(world_b, person)
    for path in ("cancel", "resume"):
        assert (await person.post(f"{BASE}/{path}")).status_code == 404
    later = await world_b.with_new_key(person)
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(days=14, minutes=1))
    seen = await billing(later)
    assert (seen["billing"], seen["trial"]["active"]) == (None, False)
    assert not await has_pass(world_b, person)


async def test_variant_b_does_not_sell_plans(b: World) -> None:
    person = await b.person()
    for path in ("subscribe", "cancel", "resume"):
        assert (await person.post(f"/api/subscriptions/{path}", {})).status_code == 404


async def test_variant_a_does_not_sell_the_pass(a: World) -> None:
    person = await a.person()
    for path in ("checkout", "cancel", "resume"):
        assert (await person.post(f"{BASE}/{path}")).status_code == 404
