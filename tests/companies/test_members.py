"""Companies and their members over HTTP: roles, the right to approve, and the last owner."""

import asyncio
from uuid import UUID, uuid4

from rota.platform.ids import to_wire
from tests.accounts.test_selection import me
from tests.companies.world import Company, accept_path
from tests.service import Service
from tests.tasks.world import until_waiting_for_locks


async def test_a_user_creates_a_company_and_owns_it(service: Service) -> None:
    owner = await service.sign_in()
    key = {"Idempotency-Key": "first"}
    created = await owner.post("/api/companies", {"name": "Acme"}, headers=key)
    assert created.status_code == 201
    account = created.json()["account"]
    assert (account["kind"], account["name"], account["tier"]) == ("company", "Acme", "BASIC")
    assert (account["role"], account["approver"], account["seats"]) == ("owner", True, 10)
    assert account["members"] == 1
    again = await owner.post("/api/companies", {"name": "Acme"}, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == created.json()

    seen = await me(owner, account["id"])
    assert (seen["account"]["name"], seen["effectiveTier"]) == ("Acme", "BASIC")
    company = Company(account["id"], owner)
    assert (await owner.get(company.path)).json() == created.json()
    assert [event["type"] for event in await company.events()] == ["company.created"]


async def test_a_user_can_create_20_companies(service_a: Service) -> None:
    company = await Company.create(service_a)
    owner = company.owner
    responses = await asyncio.gather(
        *[owner.post("/api/companies", {"name": f"Acme {n}"}) for n in range(21)]
    )
    assert sorted(each.status_code for each in responses) == [201] * 19 + [409] * 2
    # A company counts even if its creator has left it.
    other = await company.join(role="owner")
    assert (await company.remove(owner, by=other)).status_code == 200
    assert (await owner.post("/api/companies", {"name": "Acme"})).status_code == 409


async def test_a_company_of_the_lowest_tier_has_10_seats(service: Service) -> None:
    company = await Company.create(service)
    await asyncio.gather(*[company.join() for _ in range(9)])
    full = await company.invite("one-more@example.test")
    assert full.status_code == 409
    assert "All 10 seats" in full.json()["error"]["message"]


async def test_the_selected_account_does_not_matter_for_companies(service_a: Service) -> None:
    company, lost = await Company.create(service_a), await Company.create(service_a)
    member = await lost.join()
    await company.add(member)
    person = await service_a.sign_in()
    await lost.add(person)
    # With two companies, `company` selects none. Then an account that the user has lost.
    for selection in ("company", lost.id):
        headers = {"X-Service-Account": selection}
        assert (await member.get("/api/me", headers=headers)).status_code == (
            403 if selection == "company" else 200
        )
        assert (await member.get(company.path, headers=headers)).status_code == 200
    await lost.remove(person)
    headers = {"X-Service-Account": lost.id}
    assert (await person.get("/api/me", headers=headers)).status_code == 403
    assert (await person.get(lost.path, headers=headers)).status_code == 404
    invited = await company.invite(f"{person.subject}@example.test")
    accepted = await person.request("POST", accept_path(invited), headers=headers)
    assert accepted.status_code == 200, accepted.text
    created = await person.post("/api/companies", {"name": "Mine"}, headers=headers)
    assert created.status_code == 201
    # Nor for the user's sessions.
    sessions = (await person.get("/api/auth/sessions", headers=headers)).json()
    assert sessions["total"] == 1
    assert (await person.post("/api/auth/logout", headers=headers)).status_code == 200
    assert (await person.get("/api/me")).status_code == 401


async def test_the_list_shows_verified_addresses_only(service_a: Service) -> None:
    company = await Company.create(service_a)
    member = await company.join()
    async with service_a.owner() as connection:
        # As after a sign-in with a claim that the issuer has not verified.
        await connection.execute(
            "UPDATE users SET email = 'ceo@example.test' WHERE id = $1", member.user_id
        )
    shown = [each["email"] for each in await company.members()]
    assert shown == [f"{p.subject}@example.test" for p in (company.owner, member)]


async def test_an_admin_renames_the_company_and_a_member_cannot(service: Service) -> None:
    company = await Company.create(service)
    admin, member = await company.join(role="admin"), await company.join()
    renamed = await admin.request("PATCH", company.path, json={"name": "Acme Ltd"})
    assert renamed.json()["account"]["name"] == "Acme Ltd"
    # An object that was read can be sent back. Nothing changes.
    same = await admin.request("PATCH", company.path, json=renamed.json()["account"])
    assert same.json() == renamed.json()
    refused = await member.request("PATCH", company.path, json={"name": "Mine"})
    assert refused.status_code == 403
    assert "Only owners and admins" in refused.json()["error"]["message"]
    blank = await admin.request("PATCH", company.path, json={"name": " "})
    assert blank.status_code == 400
    assert [e["type"] for e in await company.events()].count("company.updated") == 1


async def test_members_see_each_other_and_strangers_see_nothing(service: Service) -> None:
    company = await Company.create(service)
    member, stranger = await company.join(), await service.sign_in()
    listed = await member.get(f"{company.path}/members?limit=1")
    assert listed.json()["total"] == 2
    [first] = listed.json()["members"]
    assert first["email"] == f"{company.owner.subject}@example.test"
    assert (first["role"], first["approver"]) == ("owner", True)
    missing = f"/api/companies/{to_wire('acct', uuid4())}"
    for method, path in (("GET", ""), ("GET", "/members"), ("PATCH", ""), ("GET", "/invitations")):
        answers = [
            await stranger.request(method, base + path, json={} if method == "PATCH" else None)
            for base in (company.path, missing, "/api/companies/company", "/api/companies/x")
        ]
        assert [each.status_code for each in answers] == [404] * 4
        assert len({each.json()["error"]["message"] for each in answers}) == 1
    # The personal account is not a company.
    own = f"/api/companies/{to_wire('acct', stranger.user_id)}"
    assert (await stranger.get(own)).status_code == 404


async def test_roles_and_the_right_to_approve_change_within_a_second(service: Service) -> None:
    company = await Company.create(service)
    member = await company.join()
    task = (await company.owner.post("/api/tasks", WAITING, headers=company.selected)).json()
    path = f"/api/tasks/{task['task']['id']}/approve"
    refused = await member.post(path, headers=company.selected)
    assert refused.status_code == 403
    assert "not an approver" in refused.json()["error"]["message"]
    keys = await member.get("/api/keys", headers=company.selected)
    assert keys.status_code == 403

    changed = await company.change(member, approver=True)
    assert changed.json()["member"]["approver"] is True
    assert (await member.post(path, headers=company.selected)).status_code == 200
    assert (await company.change(member, role="admin")).json()["member"]["role"] == "admin"
    assert (await member.get("/api/keys", headers=company.selected)).status_code == 200
    seen = await me(member, company.id)
    assert (seen["account"]["role"], seen["account"]["approver"]) == ("admin", True)
    # An admin who becomes a member cannot approve any more.
    assert (await company.change(member, role="member")).json()["member"]["approver"] is False
    assert (await member.post(path, headers=company.selected)).status_code == 403
    assert (await company.change(member, role="admin")).status_code == 200
    both = await company.change(member, role="member", approver=True)
    assert both.json()["member"]["approver"] is True
    assert (await member.get("/api/keys", headers=company.selected)).status_code == 403
    updates = [e for e in await company.events() if e["type"] == "member.updated"]
    assert [(e["data"]["role"], e["data"]["approver"]) for e in updates] == [
        ("member", True),
        ("admin", True),
        ("member", False),
        ("admin", True),
        ("member", True),
    ]


async def test_only_an_owner_changes_owners(service_a: Service) -> None:
    company = await Company.create(service_a)
    admin, member = await company.join(role="admin"), await company.join()
    for refused in (
        await company.change(company.owner, by=admin, role="member"),
        await company.change(member, by=admin, role="owner"),
        await company.remove(company.owner, by=admin),
        await admin.post(
            f"{company.path}/invitations", {"email": "a@example.test", "role": "owner"}
        ),
    ):
        assert refused.status_code == 403, refused.text
        assert "Only an owner" in refused.json()["error"]["message"]
    assert (await company.change(member, by=admin, role="admin")).status_code == 200
    assert (await company.change(member, role="owner")).status_code == 200
    assert (await company.change(company.owner, by=member, role="admin")).status_code == 200


async def test_the_last_owner_stays(service_a: Service) -> None:
    company = await Company.create(service_a)
    owner = company.owner
    for refused in (await company.change(owner, role="admin"), await company.remove(owner)):
        assert refused.status_code == 409
        assert "no other owner" in refused.json()["error"]["message"]
    # Two owners who leave at the same time: one of them stays.
    other = await company.join(role="owner")
    left = await asyncio.gather(company.remove(owner), company.remove(other, by=other))
    assert sorted(each.status_code for each in left) in ([200, 403], [200, 409])
    async with service_a.owner() as connection:
        owners = await connection.fetchval(
            "SELECT count(*) FROM members WHERE account_id = $1 AND role = 'owner'",
            company.id.removeprefix("acct_"),
        )
    assert owners == 1


async def test_every_member_can_leave(service: Service) -> None:
    company = await Company.create(service)
    admin, member, other = [await company.join(role=r) for r in ("admin", "member", "member")]
    refused = await company.remove(other, by=member)
    assert refused.status_code == 403
    for person in (member, admin):
        left = await company.remove(person, by=person)
        assert left.json() == {"deleted": True, "id": to_wire("user", person.user_id)}
        assert (await person.get("/api/me", headers=company.selected)).status_code == 403
        assert (await company.remove(person, by=person)).status_code == 404
    assert len(await company.members()) == 2
    removed = (await company.events())[-1]
    assert (removed["type"], removed["data"]["by"]) == (
        "member.removed",
        to_wire("user", admin.user_id),
    )


async def test_owners_and_admins_can_always_approve(service_a: Service) -> None:
    company = await Company.create(service_a)
    admin = await company.join(role="admin")
    refused = await company.change(admin, approver=False)
    assert refused.status_code == 409
    assert (await company.change(admin, role="member", approver=False)).status_code == 200
    by_role = {each["role"]: each["approver"] for each in await company.members()}
    assert by_role == {"owner": True, "member": False}


async def test_an_unknown_member_is_404(service_a: Service) -> None:
    company, stranger = await Company.create(service_a), await service_a.sign_in()
    for path in (company.member_path(stranger), f"{company.path}/members/nobody"):
        assert (await company.owner.delete(path)).status_code == 404
        changed = await company.owner.request("PATCH", path, json={"role": "admin"})
        assert changed.status_code == 404


async def test_an_api_key_cannot_manage_companies(service: Service) -> None:
    company = await Company.create(service)
    key = await company.owner.post("/api/keys", {"name": "ci"}, headers=company.selected)
    auth = {"Authorization": f"Bearer {key.json()['secret']}"}
    for method, path in (
        ("POST", "/api/companies"),
        ("GET", company.path),
        ("GET", f"{company.path}/members"),
        ("POST", f"{company.path}/invitations"),
        ("POST", "/api/invitations/x/accept"),
    ):
        refused = await service.http.request(method, path, headers=auth)
        assert refused.status_code == 403
        assert "API keys cannot" in refused.json()["error"]["message"]


async def test_members_do_not_see_events_about_keys_and_invitations(service_a: Service) -> None:
    company = await Company.create(service_a)
    member = await company.join()
    await company.invite("later@example.test")
    await company.owner.post("/api/keys", {"name": "ci"}, headers=company.selected)
    families = {e["type"].split(".")[0] for e in await company.events()}
    assert families == {"company", "invitation", "member", "key"}
    assert {e["type"].split(".")[0] for e in await company.events(member)} == {"company", "member"}


WAITING = {"name": "A decision", "status": "WAITING_APPROVAL"}


async def test_a_removal_locks_the_keys_before_the_account_as_a_revocation_does(
    service: Service,
) -> None:
    company = await Company.create(service)
    member = await company.join(role="admin")
    created = await member.post("/api/keys", {"name": "k"}, headers=company.selected)
    assert created.status_code == 201
    account_id = UUID(company.id.removeprefix("acct_"))
    async with service.owner() as revocation, service.owner() as other:
        async with revocation.transaction():
            await revocation.execute(
                "SELECT FROM api_keys WHERE account_id = $1 FOR UPDATE", account_id
            )
            removal = asyncio.create_task(company.remove(member))
            await until_waiting_for_locks(service, 1)
            # Else the two would wait for each other.
            await other.execute(
                "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE NOWAIT", account_id
            )
        assert (await removal).status_code == 200
