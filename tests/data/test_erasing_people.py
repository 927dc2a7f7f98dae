"""Who can erase an account, and what happens to the companies of its user."""

import asyncio

import pytest

from rota.companies.members import Members
from rota.credits.ledger import add_entry
from rota.credits.model import Entry
from rota.credits.retention import debt_micros
from rota.platform import ids
from tests.companies.world import Company
from tests.data.filled import own_name
from tests.data.world import World


async def test_an_erasure_needs_the_name_a_new_session_and_an_owner(world_a: World) -> None:
    service = world_a.service
    person = await service.sign_in()
    name = await own_name(person)
    wrong = await person.request("DELETE", "/api/account", json={"name": name + " "})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["details"][0]["field"] == "name"
    key = (await person.post("/api/keys", {"name": "k"})).json()["secret"]
    by_key = await service.http.request(
        "DELETE",
        "/api/account",
        json={"name": name},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert by_key.status_code == 403
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE sessions SET created_at = now() - interval '11 minutes' WHERE user_id = $1",
            person.user_id,
        )
    old = await person.request("DELETE", "/api/account", json={"name": name})
    assert old.status_code == 403
    assert old.json()["error"]["code"] == "RECENT_SIGN_IN_REQUIRED"
    assert (await person.get("/api/me")).status_code == 200

    company = await Company.create(service)
    admin = await company.join(role="admin")
    refused = await admin.request(
        "DELETE", "/api/account", json={"name": "Acme"}, headers=company.selected
    )
    assert refused.status_code == 403
    assert "owners" in refused.json()["error"]["message"]
    # The only owner cannot leave the company behind.
    sole = await company.owner.request(
        "DELETE", "/api/account", json={"name": await own_name(company.owner)}
    )
    assert sole.status_code == 409
    assert "Acme" in sole.json()["error"]["message"]
    erased = await company.owner.request(
        "DELETE", "/api/account", json={"name": "Acme"}, headers=company.selected
    )
    assert erased.status_code == 200
    for member in (company.owner, admin):
        lost = await member.get("/api/tasks", headers=company.selected)
        assert lost.status_code == 403
    # A person who is a member leaves with the erasure.
    other = await Company.create(service)
    member = await other.join()
    gone = await member.request("DELETE", "/api/account", json={"name": await own_name(member)})
    assert gone.status_code == 200, gone.text
    assert len(await other.members()) == 1
    await world_a.sweep().erase()


async def test_an_account_stops_before_its_user_leaves_companies(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = await Company.create(world_a.service)
    member = await company.join()
    name = await own_name(member)

    async def refuse(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        # A process that dies between both transactions.
        patched.setattr(Members, "remove", refuse)
        erased = await member.request("DELETE", "/api/account", json={"name": name})
    assert erased.status_code == 200, erased.text
    assert (await member.get("/api/me")).status_code == 401
    assert len(await company.members()) == 2
    await world_a.sweep().erase()
    assert len(await company.members()) == 1


async def test_a_membership_that_a_late_request_adds_ends_too(world_a: World) -> None:
    """For example an invitation that was accepted while the account was erased."""
    company = await Company.create(world_a.service)
    person = await world_a.service.sign_in()
    name = await own_name(person)
    erased = await person.request("DELETE", "/api/account", json={"name": name})
    assert erased.status_code == 200, erased.text
    sweep = world_a.sweep(confirm_s=600)
    await sweep.erase()
    async with world_a.service.owner() as connection:
        await connection.execute(
            "INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, 'member')",
            ids.from_wire("acct", company.id),
            person.user_id,
        )
        await connection.execute(
            "UPDATE erasures SET due_at = now(), requested_at = now() - interval '1 hour' "
            "WHERE account_id = $1",
            person.user_id,
        )
    await sweep.erase()
    assert await world_a.rows("members", person.user_id, "user_id") == 0


@pytest.mark.parametrize("with_member", [False, True])
async def test_owners_who_erase_their_accounts_at_the_same_time_are_both_erased(
    world_a: World, monkeypatch: pytest.MonkeyPatch, with_member: bool
) -> None:
    company = await Company.create(world_a.service)
    other = await company.join(role="admin")
    assert (await company.change(other, role="owner")).status_code == 200
    member = await company.join() if with_member else None

    async def nothing(*_: object) -> None:
        """Both requests have checked it before the first of them leaves."""

    monkeypatch.setattr(type(world_a.parts.erasures), "_check_companies", nothing)
    for person in (company.owner, other):
        name = await own_name(person)
        erased = await person.request("DELETE", "/api/account", json={"name": name})
        assert erased.status_code == 200, erased.text
    await world_a.sweep().erase()
    for person in (company.owner, other):
        found = await world_a.parts.erasures.find(person.user_id)
        assert found is not None
        assert found.finished_at is not None
    company_id = ids.from_wire("acct", company.id)
    assert company_id is not None
    erasure = await world_a.parts.erasures.find(company_id)
    if member is None:
        # Nobody could use it or end its plan any more.
        assert erasure is not None
        assert erasure.finished_at is not None
    else:
        assert erasure is None
        answer = await member.get("/api/tasks", headers=company.selected)
        assert answer.status_code == 200


async def test_an_owner_cannot_erase_an_account_that_owes_money(world_a: World) -> None:
    person = await world_a.service.sign_in()
    name = await own_name(person)
    async with world_a.parts.db.write(person.user_id) as tx:
        owed = Entry("dispute", key="d1", reference="pi_1", owed=-1_230_000, outside=1_230_000)
        await add_entry(tx, owed)
    refused = await person.request("DELETE", "/api/account", json={"name": name})
    assert refused.status_code == 409
    assert "owes $1.23" in refused.json()["error"]["message"]
    assert (await person.get("/api/me")).status_code == 200
    # An operator can, for example to follow the law. The ledger keeps what is owed.
    await world_a.parts.erasures.erase(person.user_id)
    async with world_a.parts.db.read(person.user_id) as tx:
        assert await debt_micros(tx) == 1_230_000
    await world_a.sweep().erase()


async def test_two_requests_erase_once(world_a: World) -> None:
    person = await world_a.service.sign_in()
    name = await own_name(person)
    answers = await asyncio.gather(
        *[person.request("DELETE", "/api/account", json={"name": name}) for _ in range(3)]
    )
    assert 200 in {each.status_code for each in answers}
    assert {each.status_code for each in answers} <= {200, 400, 401, 403}
    assert await world_a.rows("erasures", person.user_id) == 1
    await world_a.sweep().erase()
