"""Selecting an account with X-Service-Account, and the response of GET /api/me."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rota.accounts import service as accounts
from rota.platform.db import Database
from rota.platform.ids import to_wire
from tests.assertions import MOMENT
from tests.service import Person, Service


@asynccontextmanager
async def database(service: Service) -> AsyncIterator[Database]:
    db = Database(service.database_url, pool_size=2)
    await db.open()
    try:
        yield db
    finally:
        await db.close()


async def company_of(service: Service, owner: Person, tier: str = "basic") -> str:
    async with database(service) as db:
        account_id = await accounts.create_company(db, "Acme", owner.user_id, tier=tier)
    return to_wire("acct", account_id)


async def joins(service: Service, person: Person, company: str) -> None:
    async with database(service) as db:
        await accounts.put_member(db, UUID(company[5:]), person.user_id, "member")


async def me(person: Person, selection: str | None = None) -> Any:
    headers = {} if selection is None else {"X-Service-Account": selection}
    response = await person.get("/api/me", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def status(person: Person, selection: str) -> int:
    response = await person.get("/api/me", headers={"X-Service-Account": selection})
    if response.status_code == 403:
        assert response.json()["error"]["code"] == "AUTHORIZATION_ERROR"
    return response.status_code


async def test_a_new_user_has_a_personal_account_of_the_lowest_tier(service: Service) -> None:
    person = await service.sign_in()
    seen = await me(person)
    assert list(seen) == ["user", "account", "accounts", "effectiveTier", "userTier", "variant"]
    assert list(seen["user"]) == ["id", "email", "name", "createdAt"]
    assert seen["user"]["id"] == to_wire("user", person.user_id)
    assert seen["user"]["email"] == f"{person.subject}@example.test"
    assert MOMENT.fullmatch(seen["user"]["createdAt"])
    account = seen["account"]
    fields = ["id", "kind", "name", "tier", "role", "approver", "trialEndsAt", "createdAt"]
    assert list(account) == fields
    assert account["id"] == to_wire("acct", person.user_id)
    assert (account["kind"], account["role"], account["tier"]) == ("personal", "owner", "BASIC")
    assert seen["accounts"] == [account]
    assert (seen["effectiveTier"], seen["userTier"]) == ("BASIC", "BASIC")
    assert seen["variant"] == service.variant.upper()


async def test_only_variant_b_has_a_signup_trial(service: Service) -> None:
    person = await service.sign_in()
    account = (await me(person))["account"]
    if service.variant == "a":
        assert account["trialEndsAt"] is None
        return
    lasts = datetime.fromisoformat(account["trialEndsAt"]) - datetime.fromisoformat(
        account["createdAt"]
    )
    assert abs(lasts - timedelta(days=14)) < timedelta(minutes=1)
    # The next sign-in does not start it again.
    again = await service.sign_in(person.subject)
    assert (await me(again))["account"] == account


async def test_the_personal_account_is_selected_by_default_by_kind_and_by_id(
    service: Service,
) -> None:
    person = await service.sign_in()
    await company_of(service, person)
    default = await me(person)
    assert default["account"]["kind"] == "personal"
    assert await me(person, "personal") == default
    assert await me(person, to_wire("acct", person.user_id)) == default


async def test_a_company_is_selected_by_kind_and_by_id(service: Service) -> None:
    tier = "enterprise" if service.variant == "a" else "business"
    person = await service.sign_in()
    company = await company_of(service, person, tier)
    seen = await me(person, "company")
    assert seen["account"]["id"] == company
    assert (seen["account"]["kind"], seen["account"]["role"]) == ("company", "owner")
    assert seen["account"]["trialEndsAt"] is None
    assert (seen["effectiveTier"], seen["userTier"]) == (tier.upper(), "BASIC")
    assert [account["kind"] for account in seen["accounts"]] == ["personal", "company"]
    assert await me(person, company) == seen


async def test_a_member_of_several_companies_must_select_one_by_id(service: Service) -> None:
    person = await service.sign_in()
    companies = [await company_of(service, person) for _ in range(3)]
    response = await person.get("/api/me", headers={"X-Service-Account": "company"})
    assert response.status_code == 403
    assert "several companies" in response.json()["error"]["message"]
    for company in companies:
        assert (await me(person, company))["account"]["id"] == company
    seen = await me(person)
    assert [account["id"] for account in seen["accounts"][1:]] == companies


@pytest.mark.parametrize(
    "selection",
    ["", "company", "Personal", "PERSONAL", "nonsense", "acct_", "*", "personal,x"],
)
async def test_an_account_that_the_user_does_not_have_cannot_be_selected(
    service: Service, selection: str
) -> None:
    assert await status(await service.sign_in(), selection) == 403


async def test_an_account_of_another_user_looks_like_one_that_does_not_exist(
    service: Service,
) -> None:
    person, other = await service.sign_in(), await service.sign_in()
    company = await company_of(service, other)
    bodies = []
    for foreign in (to_wire("acct", other.user_id), company, to_wire("acct", uuid4())):
        response = await person.get("/api/me", headers={"X-Service-Account": foreign})
        assert response.status_code == 403
        error = response.json()["error"]
        error.pop("timestamp")
        bodies.append(error)
    assert bodies[0] == bodies[1] == bodies[2]
    own = to_wire("acct", person.user_id)
    for disguise in (own.upper(), own.replace("acct_", "user_"), str(person.user_id)):
        assert await status(person, disguise) == 403


async def test_a_member_sees_the_company_but_not_the_accounts_of_other_members(
    service: Service,
) -> None:
    owner, member = await service.sign_in(), await service.sign_in()
    company = await company_of(service, owner)
    await joins(service, member, company)
    seen = await me(member, "company")
    assert (seen["account"]["id"], seen["account"]["role"]) == (company, "member")
    assert [account["id"] for account in seen["accounts"]] == [
        to_wire("acct", member.user_id),
        company,
    ]
    assert await status(member, to_wire("acct", owner.user_id)) == 403


async def test_the_end_of_a_membership_is_visible_immediately(service: Service) -> None:
    owner, member = await service.sign_in(), await service.sign_in()
    company = await company_of(service, owner)
    await joins(service, member, company)
    assert await status(member, company) == 200
    async with service.owner() as connection:
        await connection.execute("DELETE FROM members WHERE user_id = $1", member.user_id)
    # Also while the process has the caller cached.
    assert await status(member, company) == 403
    assert await status(member, "personal") == 200


async def test_a_deleted_user_is_refused(service: Service) -> None:
    person = await service.sign_in()
    async with service.owner() as connection:
        await connection.execute("DELETE FROM users WHERE id = $1", person.user_id)
    # Both while the process has the caller cached and afterwards.
    assert (await person.get("/api/me")).status_code == 401
    async with service.owner() as connection:
        await connection.execute("DELETE FROM accounts WHERE id = $1", person.user_id)
    assert (await person.get("/api/me")).status_code == 401


async def test_the_rate_limit_of_a_company_depends_on_its_tier(service: Service) -> None:
    tier, ceiling = ("standard", "3000") if service.variant == "a" else ("business", "6000")
    person = await service.sign_in()
    company = await company_of(service, person, tier)
    response = await person.get("/api/me", headers={"X-Service-Account": company})
    assert response.headers["RateLimit-Limit"] == ceiling
    assert (await person.get("/api/me")).headers["RateLimit-Limit"] == "600"
