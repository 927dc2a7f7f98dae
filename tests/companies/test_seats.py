"""Seats: a plan bounds the members of a company. Variant A sells such plans."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from rota.dev.stack import Stack
from rota.platform import clock
from tests.accounts.test_selection import me
from tests.companies.examples import run_example
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


@pytest.mark.long
async def test_an_enterprise_with_100_seats_from_sign_up_to_use(
    world: World, tmp_path: Path
) -> None:
    """With the examples of docs/companies.md."""
    service = world.service
    owner, colleague = await service.sign_in(), await service.sign_in()
    run = partial(run_example, service=service, folder=tmp_path, owner=owner, colleague=colleague)
    [checkout] = await run(1)
    await world.stripe_server.pay(checkout)
    await world.stripe_server.settled()
    seen = await me(owner)
    [company_id] = [a["id"] for a in seen["accounts"] if a["kind"] == "company"]
    company = Company(company_id, owner)
    overview = await owner.get("/api/subscriptions", headers=company.selected)
    assert overview.json()["effectiveTier"] == "ENTERPRISE"
    assert await seats_of(company) == (SEATS, 1)

    subjects = [colleague.subject, *(f"person-{uuid4().hex}" for _ in range(SEATS - 2))]
    lines = "".join(f"{subject}@example.test\n" for subject in subjects)
    (tmp_path / "people.txt").write_text(lines)
    assert await run(2, COMPANY=company_id) == [f"{SEATS}"]
    used = await run(3, COMPANY=company_id)
    assert used == ["ENTERPRISE", "PENDING"]

    links = dict(line.split() for line in (tmp_path / "links.txt").read_text().splitlines())

    async def join(subject: str) -> Person:
        person = await service.sign_in(subject)
        token = links[f"{subject}@example.test"].rpartition("#")[2]
        accepted = await person.post(f"/api/invitations/{token}/accept")
        assert accepted.status_code == 200, accepted.text
        return person

    joined: list[Person] = []
    for start in range(1, SEATS - 1, 14):
        joined += await asyncio.gather(*map(join, subjects[start : start + 14]))
    assert await seats_of(company) == (SEATS, SEATS)
    page = await company.owner.get(f"{company.path}/members?limit=100")
    assert (page.json()["total"], len(page.json()["members"])) == (SEATS, SEATS)
    full = await company.invite("one-more@example.test")
    assert full.status_code == 409
    assert f"All {SEATS} seats" in full.json()["error"]["message"]

    # A member works, and an approver decides.
    member, approver, *_ = joined
    assert (await company.change(approver, approver=True)).status_code == 200
    created = await member.post(
        "/api/tasks",
        {"name": "Plan the quarter", "agent": "process-writer", "status": "WAITING_APPROVAL"},
        headers=company.selected,
    )
    assert created.status_code == 201, created.text
    path = f"/api/tasks/{created.json()['task']['id']}/approve"
    assert (await member.post(path, headers=company.selected)).status_code == 403
    approved = await approver.post(path, headers=company.selected)
    assert approved.json()["task"]["status"] == "PENDING"

    # A seat that becomes free can be used again.
    assert (await company.remove(member)).status_code == 200
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
