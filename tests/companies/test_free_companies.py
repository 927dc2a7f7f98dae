"""A company costs nothing to create, so it gives nothing that costs something."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from rota.dev.stack import Stack
from rota.mcp.server_limit import Holder
from rota.variants import VARIANTS
from tests.companies.test_seats import buy
from tests.companies.world import Company
from tests.plans.world import World


@pytest.fixture(scope="module")
async def world(stack: Stack) -> AsyncIterator[World]:
    changes = {"plan_trial_days": 10, "allowances": {"basic": 500}}
    async with World.start(stack, "a", "free_companies", **changes) as started:
        yield started


async def test_a_company_that_a_user_created_has_no_free_allowance_and_no_trial(
    world: World,
) -> None:
    company = await Company.create(world.service)
    owner = company.owner
    totals = []
    for headers in ({}, company.selected):
        shown = (await owner.get("/api/credits/balance", headers=headers)).json()
        totals.append(shown["totalAvailable"])
    assert totals == [500, 0]
    await buy(world, company, "corporate", seats=2)
    overview = await owner.get("/api/subscriptions", headers=company.selected)
    assert overview.json()["subscription"]["status"] == "ACTIVE"
    shown = (await owner.get("/api/credits/balance", headers=company.selected)).json()
    assert shown["totalAvailable"] == 5_000
    # A company of the operator's has both.
    person = await world.company()
    assert (await person.get("/api/credits/balance")).json()["totalAvailable"] == 500
    assert (await world.buy(person, "corporate"))["subscription"]["status"] == "TRIALING"


@pytest.mark.parametrize(("tier", "servers"), [("basic", 1), ("business", 50)])
def test_a_basic_company_connects_as_many_servers_as_a_personal_account(
    tier: str, servers: int
) -> None:
    assert VARIANTS["b"].servers(Holder(tier, has_pass=False)) == servers
    assert VARIANTS["b"].servers(Holder(tier, has_pass=True)) == 50


async def test_the_customer_of_a_company_has_no_address_of_a_member(world: World) -> None:
    company = await Company.create(world.service)
    emails = []
    for headers in ({}, company.selected):
        plan = {"plan": "standard"} if not headers else {"plan": "corporate", "seats": 2}
        response = await company.owner.post("/api/subscriptions/subscribe", plan, headers=headers)
        assert response.status_code == 200, response.text
        account_id = UUID(company.id[5:]) if headers else company.owner.user_id
        async with world.service.owner() as connection:
            customer = await connection.fetchval(
                "SELECT customer_id FROM customers WHERE account_id = $1", account_id
            )
        found = await world.stripe_server.api("GET", f"/v1/customers/{customer}")
        emails.append(found["email"])
    assert emails == [f"{company.owner.subject}@example.test", None]
