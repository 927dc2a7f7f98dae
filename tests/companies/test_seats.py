"""Seats: a plan bounds the members of a company. Variant A sells such plans."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from rota.platform import clock
from tests.companies.world import Company, accept_path
from tests.plans.world import World
from tests.service import Person

SEATS = 100


@pytest.fixture(scope="module")
async def world(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "a", "seats_a", allowances={}) as started:
        yield started


async def buy(world: World, company: Company, plan: str, **more: object) -> None:
    response = await company.owner.post(
        "/api/subscriptions/subscribe", {"plan": plan, **more}, headers=company.selected
    )
    assert response.status_code == 200, response.text
    if response.json()["checkoutUrl"] is not None:
        await world.stripe_server.pay(response.json()["checkoutUrl"])
        await world.stripe_server.settled()


async def seats_of(company: Company) -> tuple[int | None, int]:
    account = (await company.owner.get(company.path)).json()["account"]
    return account["seats"], account["members"]


async def test_an_enterprise_with_100_seats_from_sign_up_to_use(world: World) -> None:
    company = await Company.create(world.service, "Enterprise")
    await buy(world, company, "enterprise", seats=SEATS)
    overview = await company.owner.get("/api/subscriptions", headers=company.selected)
    assert overview.json()["effectiveTier"] == "ENTERPRISE"
    assert await seats_of(company) == (SEATS, 1)

    async def join(number: int) -> Person:
        role = "admin" if number == 0 else "member"
        return await company.join(role=role, approver=number < 10)

    people: list[Person] = []
    for start in range(0, SEATS - 1, 11):
        people += await asyncio.gather(*(join(start + n) for n in range(11)))
    assert await seats_of(company) == (SEATS, SEATS)
    page = await company.owner.get(f"{company.path}/members?limit=100")
    assert (page.json()["total"], len(page.json()["members"])) == (SEATS, SEATS)
    full = await company.invite("one-more@example.test")
    assert full.status_code == 409
    assert f"All {SEATS} seats" in full.json()["error"]["message"]

    # A member works, and an approver decides.
    created = await people[50].post(
        "/api/tasks",
        {"name": "Plan the quarter", "agent": "process-writer", "status": "WAITING_APPROVAL"},
        headers=company.selected,
    )
    assert created.status_code == 201, created.text
    path = f"/api/tasks/{created.json()['task']['id']}/approve"
    assert (await people[50].post(path, headers=company.selected)).status_code == 403
    approved = await people[5].post(path, headers=company.selected)
    assert approved.json()["task"]["status"] == "PENDING"

    # A seat that becomes free can be used again.
    assert (await company.remove(people[98], by=people[0])).status_code == 200
    await company.join()
    assert await seats_of(company) == (SEATS, SEATS)


async def test_fewer_seats_than_members_cannot_be_bought(world: World) -> None:
    company = await Company.create(world.service)
    for _ in range(2):
        await company.join()
    for body in ({"plan": "corporate", "seats": 2}, {"plan": "corporate"}):
        refused = await company.owner.post(
            "/api/subscriptions/subscribe", body, headers=company.selected
        )
        assert refused.status_code == 409
        assert "at least 3" in refused.json()["error"]["message"]
    await buy(world, company, "corporate", seats=4)
    # Neither for the next period.
    lower = await company.owner.post(
        "/api/subscriptions/subscribe", {"plan": "corporate", "seats": 2}, headers=company.selected
    )
    assert lower.status_code == 409
    await company.join()
    assert await seats_of(company) == (4, 4)


async def test_an_invitation_waits_for_a_free_seat(world: World) -> None:
    company = await Company.create(world.service)
    await buy(world, company, "corporate", seats=2)
    first, second = await world.service.sign_in(), await world.service.sign_in()
    invited = [await company.invite(f"{p.subject}@example.test") for p in (first, second)]
    answers = await asyncio.gather(
        first.post(accept_path(invited[0])), second.post(accept_path(invited[1]))
    )
    assert sorted(each.status_code for each in answers) == [200, 409]
    assert await seats_of(company) == (2, 2)
    joined, refused = (first, second) if answers[0].status_code == 200 else (second, first)
    await company.remove(joined)
    again = await refused.post(accept_path(invited[1] if joined is first else invited[0]))
    assert again.status_code == 200


async def test_a_renewal_with_fewer_seats_keeps_the_members_and_tells_the_owners(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", world.now)
    company = await Company.create(world.service)
    await buy(world, company, "corporate", seats=3)
    await buy(world, company, "corporate", seats=1)
    # The members join after the lower plan was chosen, and before it begins.
    members = [await company.join() for _ in range(2)]
    await world.move_clock(days=32)
    assert await seats_of(company) == (1, 3)
    told = [e for e in await company.events() if e["type"] == "company.seats_exceeded"]
    assert [e["data"] for e in told] == [{"seats": 1, "members": 3}]
    for member in members:
        assert (await member.get("/api/tasks", headers=company.selected)).status_code == 200
    refused = await company.invite("one-more@example.test")
    assert refused.status_code == 409
