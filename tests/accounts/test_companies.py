"""Companies and tiers, managed with operator commands."""

import asyncio
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner, Result

from rota.accounts import service as accounts
from rota.accounts.service import SeatsTaken
from rota.cli import cli
from rota.platform.ids import to_wire
from tests.accounts.test_selection import database, me
from tests.service import Person, Service, environment


async def rota(service: Service, *arguments: str) -> Result:
    """`rota admin …`, in a thread: the command starts its own event loop."""
    env = dict(environment(service.settings))
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, ["admin", *arguments], env=env))


async def output_of(service: Service, *arguments: str) -> str:
    """The last line that a successful command prints."""
    result = await rota(service, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip().splitlines()[-1]


def user(person: Person) -> str:
    return to_wire("user", person.user_id)


async def test_a_company_gets_a_member_a_role_and_a_tier(service: Service) -> None:
    owner, member = await service.sign_in(), await service.sign_in()
    tier = "CORPORATE" if service.variant == "a" else "BUSINESS"
    company = await output_of(service, "companies", "create", "Acme", "--owner", user(owner))
    seen = await me(owner, company)
    assert seen["account"]["name"] == "Acme"
    assert (seen["account"]["role"], seen["effectiveTier"]) == ("owner", "BASIC")

    await output_of(service, "companies", "set-member", company, user(member))
    assert (await me(member, company))["account"]["role"] == "member"
    await output_of(service, "companies", "set-member", company, user(member), "--role", "admin")
    assert (
        await output_of(service, "accounts", "set-tier", company, tier.lower())
        == f"{company} has the tier {tier}."
    )

    # A new session is not cached, so it sees the change immediately.
    again = await service.sign_in(member.subject)
    seen = await me(again, company)
    assert (seen["account"]["role"], seen["effectiveTier"]) == ("admin", tier)
    assert seen["userTier"] == "BASIC"


async def test_an_operator_changes_a_right_and_the_role_stays(service_a: Service) -> None:
    owner, member = await service_a.sign_in(), await service_a.sign_in()
    company = await output_of(service_a, "companies", "create", "Acme", "--owner", user(owner))
    change = ("companies", "set-member", company)
    assert "role owner" in await output_of(service_a, *change, user(owner))
    refused = await rota(service_a, *change, user(owner), "--role", "member")
    assert refused.exit_code == 1
    assert "no other owner" in refused.output
    assert "role member" in await output_of(service_a, *change, user(member))
    await output_of(service_a, *change, user(member), "--approver")
    await output_of(service_a, *change, user(member), "--role", "admin")
    assert "role admin" in await output_of(service_a, *change, user(member))
    refused = await rota(service_a, *change, user(member), "--no-approver")
    assert "can always approve" in refused.output
    listed = await owner.get(
        "/api/events", headers={"X-Service-Account": company, "Accept": "application/json"}
    )
    events = [(e["type"], e["data"]) for e in listed.json()["events"]]
    common = {"userId": user(member), "by": None}
    assert events == [
        ("member.added", common | {"role": "member", "approver": False}),
        ("member.updated", common | {"role": "member", "approver": True}),
        ("member.updated", common | {"role": "admin", "approver": True}),
    ]


async def test_an_operator_removes_a_member(service: Service) -> None:
    owner, member = await service.sign_in(), await service.sign_in()
    company = await output_of(service, "companies", "create", "Acme", "--owner", user(owner))
    await output_of(service, "companies", "set-member", company, user(member), "--role", "owner")
    key = await member.post("/api/keys", {"name": "k"}, headers={"X-Service-Account": company})
    said = await output_of(service, "companies", "remove-member", company, user(member))
    assert said == f"{user(member)} was removed from {company}."
    again = await service.sign_in(member.subject)
    assert len((await me(again))["accounts"]) == 1
    headers = {"Authorization": f"Bearer {key.json()['secret']}"}
    assert (await service.http.get("/api/tasks", headers=headers)).status_code == 401
    for person, why in ((member, "Member not found"), (owner, "no other owner")):
        refused = await rota(service, "companies", "remove-member", company, user(person))
        assert refused.exit_code == 1
        assert why in refused.output
    events = await owner.get(
        "/api/events", headers={"X-Service-Account": company, "Accept": "application/json"}
    )
    assert events.json()["events"][-1]["data"] == {"userId": user(member), "by": None}


async def test_a_company_cannot_have_more_members_than_seats(service_a: Service) -> None:
    people = [await service_a.sign_in() for _ in range(4)]
    company = await output_of(
        service_a, "companies", "create", "Acme", "--owner", user(people[0]), "--seats", "2"
    )
    await output_of(service_a, "companies", "set-member", company, user(people[1]))
    full = await rota(service_a, "companies", "set-member", company, user(people[2]))
    assert full.exit_code == 1
    assert "All 2 seats" in full.output
    # The role of a current member can change.
    await output_of(
        service_a, "companies", "set-member", company, user(people[1]), "--role", "owner"
    )
    assert len((await me(people[2]))["accounts"]) == 1


async def test_concurrent_requests_cannot_exceed_the_seats(service_a: Service) -> None:
    people = [await service_a.sign_in() for _ in range(8)]
    async with database(service_a) as db:
        company = await accounts.create_company(
            db, "Acme", people[0].user_id, tier="basic", seats=3
        )
        outcomes = await asyncio.gather(
            *[accounts.put_member(db, company, p.user_id, "member") for p in people[1:]],
            return_exceptions=True,
        )
    assert sum(outcome is None for outcome in outcomes) == 2
    assert sum(isinstance(outcome, SeatsTaken) for outcome in outcomes) == 5
    async with service_a.owner() as connection:
        count = await connection.fetchval(
            "SELECT count(*) FROM members WHERE account_id = $1", company
        )
    assert count == 3


async def test_a_company_over_its_seats_can_still_change_roles(service_a: Service) -> None:
    people = [await service_a.sign_in() for _ in range(3)]
    async with database(service_a) as db:
        company = await accounts.create_company(db, "Acme", people[0].user_id, tier="basic")
        for person in people[1:]:
            await accounts.put_member(db, company, person.user_id, "member")
        async with service_a.owner() as connection:
            await connection.execute("UPDATE accounts SET seats = 1 WHERE id = $1", company)
        await accounts.put_member(db, company, people[2].user_id, "admin")
        newcomer = await service_a.sign_in()
        with pytest.raises(SeatsTaken):
            await accounts.put_member(db, company, newcomer.user_id, "member")


async def test_a_personal_account_cannot_have_members(service_a: Service) -> None:
    person, guest = await service_a.sign_in(), await service_a.sign_in()
    account = to_wire("acct", person.user_id)
    result = await rota(service_a, "companies", "set-member", account, user(guest))
    assert result.exit_code == 1
    assert f"Company {account} not found" in result.output
    assert len((await me(guest))["accounts"]) == 1


async def test_an_unknown_user_company_or_account_is_reported(service_a: Service) -> None:
    person = await service_a.sign_in()
    company = await output_of(service_a, "companies", "create", "Acme", "--owner", user(person))
    nobody, nothing = to_wire("user", uuid4()), to_wire("acct", uuid4())
    for arguments, said in (
        (("companies", "create", "Acme", "--owner", nobody), f"User {nobody} not found"),
        (("companies", "set-member", company, nobody), f"User {nobody} not found"),
        (("companies", "set-member", nothing, user(person)), f"Company {nothing} not found"),
        (("companies", "remove-member", nothing, user(person)), f"Company {nothing} not found"),
        (("accounts", "set-tier", nothing, "basic"), f"Account {nothing} not found"),
    ):
        result = await rota(service_a, *arguments)
        assert result.exit_code == 1, result.output
        assert said in result.output
    async with service_a.owner() as connection:
        members = await connection.fetch(
            "SELECT user_id FROM members WHERE account_id = $1", UUID(company[5:])
        )
    assert [row["user_id"] for row in members] == [person.user_id]


async def test_invalid_arguments_are_reported(service_a: Service) -> None:
    person = await service_a.sign_in()
    account = to_wire("acct", person.user_id)
    for arguments in (
        ("companies", "create", "Acme", "--owner", "somebody"),
        ("companies", "create", "Acme", "--owner", user(person), "--tier", "business"),
        ("companies", "set-member", account, user(person), "--role", "emperor"),
        ("companies", "set-member", "acme", user(person)),
        ("accounts", "set-tier", account, "golden"),
    ):
        assert (await rota(service_a, *arguments)).exit_code == 2
