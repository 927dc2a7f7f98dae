"""Invitations: single use, seven days, and only for a verified address."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from joserfc.jwk import OKPKey
from structlog.testing import capture_logs

from rota.auth.issuers import Issuers
from rota.platform import clock
from tests.auth.provider import Provider
from tests.companies.world import Company, accept_path
from tests.service import Service


async def test_an_invited_person_becomes_a_member_once(service: Service) -> None:
    company = await Company.create(service)
    invited = await company.invite("Grace@Example.test", approver=True)
    assert invited.status_code == 201
    invitation = invited.json()["invitation"]
    assert (invitation["role"], invitation["approver"]) == ("member", True)
    assert invited.json()["url"].startswith(f"{service.settings.public_url}/invitation#invite_")
    grace = await service.sign_in("grace")
    accepted = await grace.post(accept_path(invited))
    assert accepted.status_code == 200
    account = accepted.json()["account"]
    assert (account["id"], account["role"], account["members"]) == (company.id, "member", 2)
    assert (await grace.get("/api/me", headers=company.selected)).status_code == 200
    again = await grace.post(accept_path(invited))
    assert again.status_code == 409
    assert "already a member" in again.json()["error"]["message"]
    left = await company.owner.get(f"{company.path}/invitations")
    assert left.json() == {"invitations": [], "total": 0}
    added = (await company.events())[-1]
    assert (added["type"], added["data"]["invitationId"]) == ("member.added", invitation["id"])
    assert (await company.remove(grace)).status_code == 200


async def test_the_person_with_the_link_sees_what_it_is_for(service: Service) -> None:
    company, person = await Company.create(service, "Fernhill"), await service.sign_in()
    invited = await company.invite(f"{person.subject}@example.test", role="admin")
    path = accept_path(invited).removesuffix("/accept")
    # Whoever has the link can be somebody else, so it does not show the address.
    for reader in (person, await service.sign_in()):
        seen = await reader.get(path, headers={"X-Service-Account": "acct_lost"})
        assert seen.json() == {
            "invitation": {
                "accountId": company.id,
                "accountName": "Fernhill",
                "role": "admin",
                "approver": True,
                "invitedBy": (await company.members())[0]["name"],
                "expiresAt": invited.json()["invitation"]["expiresAt"],
            }
        }
    assert (await service.http.get(path)).status_code == 401
    assert len(await company.members()) == 1
    assert (await person.post(f"{path}/accept")).status_code == 200
    assert (await person.get(path)).status_code == 404
    assert (await person.get("/api/invitations/x")).status_code == 404


async def test_only_the_hash_of_a_token_is_stored(service_a: Service) -> None:
    company = await Company.create(service_a)
    key = {"Idempotency-Key": "k"}
    body = {"email": "grace@example.test", "role": "member"}
    invited = await company.owner.post(f"{company.path}/invitations", body, headers=key)
    token = invited.json()["url"].rpartition("#")[2]
    # 32 random bytes.
    assert len(token) == len(f"invite_{company.id[5:]}_") + 43
    async with service_a.owner() as connection:
        row = await connection.fetchrow(
            "SELECT i::text AS row, token_hash FROM invitations i WHERE account_id = $1",
            company.id.removeprefix("acct_"),
        )
    assert token not in row["row"]
    assert row["token_hash"] == hashlib.sha256(token.encode()).digest()
    again = await company.owner.post(f"{company.path}/invitations", body, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.json()["invitation"], again.json()["url"]) == (invited.json()["invitation"], None)


async def test_a_token_is_not_logged(service_a: Service) -> None:
    company, person = await Company.create(service_a), await service_a.sign_in()
    path = accept_path(await company.invite("somebody@example.test"))
    with capture_logs() as lines:
        await person.post(path)
        await person.post("/api/tasks", {"name": "x"})
        # Requests that no route handles.
        await person.post(path, headers={"Api-Version": "1999-01-01"})
        await person.post(f"{path}/")
        await person.get(path.replace("/invitations/", "/invitation/"))
        await service_a.http.post(path.replace("/invitations/", "//invitations//"))
    requests = [line for line in lines if line["event"] == "request"]
    assert [line["path"] for line in requests[:3]] == [
        "/api/invitations/{token}/accept",
        "/api/tasks",
        "/api/invitations/{token}/accept",
    ]
    assert len(requests) == 6
    assert path.split("/")[3] not in str(lines)


async def test_one_of_several_requests_at_once_uses_the_invitation(service_a: Service) -> None:
    company = await Company.create(service_a)
    person = await service_a.sign_in()
    invited = await company.invite(f"{person.subject}@example.test")
    answers = await asyncio.gather(*[person.post(accept_path(invited)) for _ in range(5)])
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409, 409]
    assert len(await company.members()) == 2


async def test_an_invitation_is_for_one_address(service: Service) -> None:
    company = await Company.create(service)
    invited, other = await company.invite("somebody@example.test"), await service.sign_in()
    refused = await other.post(accept_path(invited))
    assert refused.status_code == 403
    assert f"not {other.subject}@example.test" in refused.json()["error"]["message"]
    assert "somebody" not in refused.text
    assert len(await company.members()) == 1


async def test_an_invitation_expires_and_can_be_deleted(
    service_a: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    company, person = await Company.create(service_a), await service_a.sign_in()
    email = f"{person.subject}@example.test"
    invited = await company.invite(email)
    twice = await company.invite(email.upper())
    assert twice.status_code == 409
    assert "already invited" in twice.json()["error"]["message"]
    week = timedelta(days=7)
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + week)
    assert (await person.post(accept_path(invited))).status_code == 404
    assert (await company.owner.get(f"{company.path}/invitations")).json()["total"] == 0
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + week + timedelta(seconds=5))
    assert (await company.invite(email)).status_code == 201
    monkeypatch.undo()

    [open_one] = (await company.owner.get(f"{company.path}/invitations")).json()["invitations"]
    path = f"{company.path}/invitations/{open_one['id']}"
    assert (await company.owner.delete(path)).json() == {"deleted": True, "id": open_one["id"]}
    assert (await company.owner.delete(path)).status_code == 404
    assert (await company.owner.delete(f"{company.path}/invitations/x")).status_code == 404


async def test_tokens_that_nobody_issued_are_404(service_a: Service) -> None:
    company, person = await Company.create(service_a), await service_a.sign_in()
    token = accept_path(await company.invite("a@example.test")).split("/")[3]
    account, random = token[7:39], token[40:]
    for wrong in (
        "x",
        f"invite_{account}_{random[::-1]}",
        f"invite_{person.user_id.hex}_{random}",
        f"invite_{'0' * 32}_{random}",
    ):
        response = await person.post(f"/api/invitations/{wrong}/accept")
        assert response.status_code == 404, wrong


async def test_an_invitation_needs_a_member_who_could_still_create_it(service_a: Service) -> None:
    company = await Company.create(service_a)
    admin, person = await company.join(role="admin"), await service_a.sign_in()
    invited = await admin.post(
        f"{company.path}/invitations",
        {"email": f"{person.subject}@example.test", "role": "admin"},
    )
    await company.change(admin, role="member")
    assert (await person.get(accept_path(invited).removesuffix("/accept"))).status_code == 404
    assert (await person.post(accept_path(invited))).status_code == 404
    await company.remove(admin)
    left = await company.owner.get(f"{company.path}/invitations")
    assert left.json()["total"] == 0


async def test_an_owner_or_admin_cannot_be_invited_without_the_right_to_approve(
    service_a: Service,
) -> None:
    company = await Company.create(service_a)
    refused = await company.invite("grace@example.test", role="admin", approver=False)
    assert refused.status_code == 409
    assert "always approve" in refused.json()["error"]["message"]
    assert (await company.invite("grace@example.test", role="admin")).status_code == 201


async def test_wrong_invitations_are_refused(service_a: Service) -> None:
    company = await Company.create(service_a)
    for body in (
        {"email": "no address", "role": "member"},
        {"email": "a@example.test", "role": "boss"},
        {"email": "a@example.test"},
        {"email": f"{'a' * 320}@example.test", "role": "member"},
    ):
        response = await company.owner.post(f"{company.path}/invitations", body)
        assert response.status_code == 400, body
    member = await company.join()
    refused = await member.post(
        f"{company.path}/invitations", {"email": "a@example.test", "role": "member"}
    )
    assert refused.status_code == 403
    joined = await company.invite(f"{member.subject}@Example.test")
    assert joined.status_code == 409
    assert "already belongs to a member" in joined.json()["error"]["message"]


async def test_a_removed_member_cannot_come_back_with_an_old_invitation(service: Service) -> None:
    company = await Company.create(service)
    first, second = await company.join(), await company.join()
    async with service.owner() as connection:
        # They have signed in with another address since.
        await connection.execute(
            "UPDATE users SET verified_email = id::text WHERE id = ANY($1)",
            [first.user_id, second.user_id],
        )
    leftovers = [await company.invite(f"{p.subject}@example.test") for p in (first, second)]
    assert [each.status_code for each in leftovers] == [201, 201]
    # A member who tries to use one has used it.
    assert (await first.post(accept_path(leftovers[0]))).status_code == 409
    left = await company.owner.get(f"{company.path}/invitations")
    assert left.json()["total"] == 1
    for person, leftover in zip((first, second), leftovers, strict=True):
        assert (await company.remove(person)).status_code == 200
        assert (await person.post(accept_path(leftover))).status_code == 404
    assert len(await company.members()) == 1


async def test_a_removed_member_does_not_get_the_response_again(service_a: Service) -> None:
    company, person = await Company.create(service_a), await service_a.sign_in()
    path = accept_path(await company.invite(f"{person.subject}@example.test"))
    key = {"Idempotency-Key": "k"}
    assert (await person.post(path, headers=key)).status_code == 200
    again = await person.post(path, headers=key)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    await company.remove(person)
    assert (await person.post(path, headers=key)).status_code == 404


async def test_an_invented_token_does_not_wait_for_the_company(service_a: Service) -> None:
    company, person = await Company.create(service_a), await service_a.sign_in()
    token = f"invite_{company.id.removeprefix('acct_')}_{'x' * 43}"
    async with service_a.owner() as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM accounts WHERE id = $1 FOR UPDATE", company.id.removeprefix("acct_")
        )
        for headers in ({}, {"Idempotency-Key": "k"}):
            response = await person.post(f"/api/invitations/{token}/accept", headers=headers)
            assert response.status_code == 404


async def test_letters_that_only_look_alike_are_different_addresses(service_a: Service) -> None:
    company, kim = await Company.create(service_a), await service_a.sign_in(f"kim-{uuid4().hex}")
    # The Kelvin sign is k in lower case.
    invited = await company.invite(f"\u212aim{kim.subject[3:]}@example.test")
    assert invited.status_code == 201
    assert (await kim.post(accept_path(invited))).status_code == 403
    assert (await company.invite(f"{kim.subject.upper()}@EXAMPLE.test")).status_code == 201


async def test_an_address_that_the_issuer_did_not_verify_does_not_count(
    service: Service,
) -> None:
    company, person = await Company.create(service), await service.sign_in()
    invited = await company.invite(f"{person.subject}@example.test")
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE sessions SET verified_email = NULL WHERE user_id = $1", person.user_id
        )
    refused = await person.post(accept_path(invited))
    assert refused.status_code == 403
    assert "did not confirm your email address" in refused.json()["error"]["message"]
    again = await service.sign_in(person.subject)
    assert (await again.post(accept_path(invited))).status_code == 200


@pytest.mark.parametrize(
    ("claims", "trusted", "counts"),
    [
        ({"email_verified": True}, False, True),
        ({"email_verified": "true"}, False, True),
        ({"email_verified": False}, False, False),
        ({"email_verified": "false"}, False, False),
        ({"email_verified": "yes"}, False, False),
        ({}, False, False),
        ({}, True, True),
        ({"email_verified": False}, True, False),
    ],
)
async def test_an_address_counts_if_the_issuer_or_the_operator_vouches_for_it(
    claims: dict[str, Any], trusted: bool, counts: bool
) -> None:
    provider = Provider(OKPKey.generate_key("Ed25519", {"kid": "first", "alg": "Ed25519"}))
    async with provider.serve(), httpx.AsyncClient() as http:
        setting = provider.setting.model_copy(update={"trust_email": trusted})
        token = provider.mint("first", email="ada@example.test", **claims).token()
        identity = await Issuers([setting], http).verify(token)
    assert identity.verified_email == ("ada@example.test" if counts else None)
