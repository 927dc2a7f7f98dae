"""API keys: their format, who can manage them, and their scopes."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from rota.auth import secrets
from rota.auth.caller import ALL_SCOPES, DEFAULT_SCOPES, Scope
from rota.auth.routing import caller_of
from rota.dev.stack import Stack
from rota.platform.errors import AuthenticationFailed
from rota.platform.ids import new_uuid, to_wire
from tests.assertions import MOMENT
from tests.auth.key_requests import company_of, create_key, scoped_routes, with_key
from tests.auth.waiting import seconds_until
from tests.service import Person, Service

KEY_FIELDS = [
    *("id", "name", "prefix", "scopes", "createdAt", "lastUsedAt", "expiresAt", "createdBy")
]


@pytest.fixture(scope="module")
async def scoped(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack, variant="a", name="auth_keys", routers=[scoped_routes()]
    ) as service:
        yield service


@pytest.fixture
async def person(scoped: Service) -> Person:
    return await scoped.sign_in()


async def test_keys_are_created_listed_and_deleted(service: Service) -> None:
    person = await service.sign_in()
    empty = await person.get("/api/keys")
    assert (empty.status_code, empty.json()) == (200, {"keys": [], "total": 0})

    response = await person.post("/api/keys", {"name": "ci"})
    assert response.status_code == 201
    assert list(response.json()) == ["key", "secret"]
    key, secret = response.json()["key"], response.json()["secret"]
    assert list(key) == KEY_FIELDS
    assert re.fullmatch(r"key_[0-9a-f]{32}", key["id"])
    assert re.fullmatch(r"rota_[0-9A-Za-z]{38}", secret)
    assert secret.startswith(key["prefix"])
    assert key["name"] == "ci"
    assert key["scopes"] == list(DEFAULT_SCOPES)
    assert MOMENT.fullmatch(key["createdAt"])
    assert (key["lastUsedAt"], key["expiresAt"]) == (None, None)
    creator = (to_wire("user", person.user_id), person.subject.title(), "session", None, None)
    assert tuple(key["createdBy"].values()) == creator

    later = await create_key(person, name="deploy", scopes=["mcp:read", "tasks:read", "mcp:read"])
    assert later["key"]["scopes"] == ["tasks:read", "mcp:read"]
    listed = (await person.get("/api/keys")).json()
    assert listed == {"keys": [later["key"], key], "total": 2}
    assert secret not in str(listed)

    deleted = await person.delete(f"/api/keys/{key['id']}")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": True, "id": key["id"]})
    assert (await person.get("/api/keys")).json()["total"] == 1
    assert (await with_key(service, secret)).status_code == 401
    assert (await person.delete(f"/api/keys/{key['id']}")).status_code == 404


async def test_only_the_hash_of_a_secret_is_stored(scoped: Service, person: Person) -> None:
    secret = (await create_key(person))["secret"]
    async with scoped.owner() as connection:
        row = await connection.fetchrow(
            "SELECT * FROM api_keys WHERE account_id = $1", person.user_id
        )
        assert row["secret_hash"] == hashlib.sha256(secret.encode()).digest()
        everything = await connection.fetch(
            """
            SELECT row_to_json(k)::text FROM api_keys k
            UNION ALL SELECT row_to_json(h)::text FROM api_key_hashes h
            """
        )
    # Nor is the part of the secret after the visible prefix.
    assert not any(secret[len(row["prefix"]) :] in str(text) for text in everything)


@pytest.mark.parametrize("scope", ALL_SCOPES)
async def test_a_scope_allows_only_its_own_route(
    scoped: Service, person: Person, scope: Scope
) -> None:
    secret = (await create_key(person, scopes=[scope]))["secret"]
    responses = {
        needed: await with_key(scoped, secret, f"/api/needs/{needed}") for needed in ALL_SCOPES
    }
    opened = [needed for needed, response in responses.items() if response.status_code == 200]
    assert opened == [scope]
    assert {response.status_code for response in responses.values()} == {200, 403}
    refused = next(response for response in responses.values() if response.status_code == 403)
    assert refused.json()["error"]["code"] == "AUTHORIZATION_ERROR"


async def test_a_session_has_all_scopes_and_a_key_must_ask_for_some(
    scoped: Service, person: Person
) -> None:
    secret = (await create_key(person, scopes=None))["secret"]
    approver = (await create_key(person, scopes=["tasks:approve"]))["secret"]
    for needed in ALL_SCOPES:
        path = f"/api/needs/{needed}"
        expected = 403 if needed in ("tasks:approve", "audit:read", "webhooks:write") else 200
        assert (await with_key(scoped, secret, path)).status_code == expected
        assert (await person.get(path)).status_code == 200
    opened = await with_key(scoped, approver, "/api/needs/tasks:approve")
    assert opened.status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("DELETE", "/api/keys/key_" + "0" * 32),
        ("POST", "/api/auth/logout"),
        ("GET", "/api/auth/sessions"),
        ("DELETE", "/api/auth/sessions/sess_" + "0" * 32),
    ],
)
async def test_only_a_session_can_manage_keys_and_sessions(
    service: Service, method: str, path: str
) -> None:
    person = await service.sign_in()
    secret = (await create_key(person))["secret"]
    response = await service.http.request(
        method,
        path,
        headers={"Authorization": f"Bearer {secret}"},
        json={"name": "another"} if method == "POST" else None,
    )
    assert response.status_code == 403, response.text
    assert response.json()["error"]["code"] == "AUTHORIZATION_ERROR"
    assert (await person.get("/api/keys")).json()["total"] == 1


async def test_key_routes_need_authentication(scoped: Service) -> None:
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/key_" + "0" * 32)):
        response = await scoped.http.request(method, f"/api/keys{path}")
        assert response.status_code == 401
    # Before the body is read.
    response = await scoped.http.post("/api/keys", content=b"{")
    assert response.status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "n" * 101},
        {"name": 5},
        {"name": None},
        {"name": " \u200b"},
        {"name": "ci", "scope": ["tasks:read"]},
        {"name": "ci", "scopes": []},
        {"name": "ci", "scopes": ["tasks:everything"]},
        {"name": "ci", "scopes": ["TASKS:READ"]},
        {"name": "ci", "scopes": "tasks:read"},
        {"name": "ci", "scopes": [None]},
        {"name": "ci", "expiresAt": "tomorrow"},
        {"name": "ci", "expiresAt": "2999-01-01"},
        {"name": "ci", "expiresAt": "2999-01-01T00:00:00"},
        {"name": "ci", "expiresAt": 32_503_680_000},
        {"name": "ci", "expiresAt": "2020-01-01T00:00:00Z"},
        {"name": "ci", "expiresAt": "0001-01-01T00:00:00+14:00"},
        {"name": "ci", "expiresAt": "9999-12-31T23:59:59-14:00"},
        [],
    ],
)
async def test_an_invalid_key_is_not_created(person: Person, body: object) -> None:
    response = await person.post("/api/keys", body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "VALIDATION_ERROR"
    assert response.json()["error"]["details"]
    assert (await person.get("/api/keys")).json()["total"] == 0


async def test_fields_that_cannot_be_set_are_ignored_and_a_secret_cannot_be_chosen(
    person: Person,
) -> None:
    created = await create_key(person, id="key_" + "1" * 32, prefix="rota_mine")
    assert created["key"]["id"] != "key_" + "1" * 32
    assert created["key"]["prefix"] != "rota_mine"
    again = await create_key(person, **created["key"])
    assert again["key"]["scopes"] == created["key"]["scopes"]
    refused = await person.post("/api/keys", {"name": "ci", "secret": "rota_mine"})
    assert refused.status_code == 400
    assert refused.json()["error"]["details"] == [{"field": "secret", "message": "Unknown field."}]


async def test_a_key_stops_working_when_it_expires(scoped: Service, person: Person) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=1)
    created = await create_key(person, expiresAt=ends.isoformat())
    assert created["key"]["expiresAt"] == ends.isoformat(timespec="milliseconds")[:-6] + "Z"
    assert (await with_key(scoped, created["secret"])).status_code == 200

    async def refused() -> bool:
        return (await with_key(scoped, created["secret"])).status_code == 401

    await seconds_until(refused)
    assert datetime.now(UTC) >= ends
    assert datetime.now(UTC) - ends < timedelta(seconds=1)
    # It is still listed, so that the user can see why it does not work.
    assert (await person.get("/api/keys")).json()["total"] == 1


async def test_an_expiry_with_an_offset_is_returned_in_utc(person: Person) -> None:
    created = await create_key(person, expiresAt="2999-06-01T12:00:00+02:00")
    assert created["key"]["expiresAt"] == "2999-06-01T10:00:00.000Z"


async def test_the_last_use_of_a_key_is_recorded(scoped: Service, person: Person) -> None:
    created = await create_key(person)

    async def last_used() -> Any:
        return (await person.get("/api/keys")).json()["keys"][0]["lastUsedAt"]

    assert await last_used() is None
    before = datetime.now(UTC)
    assert (await with_key(scoped, created["secret"])).status_code == 200
    recorded = await last_used()
    assert MOMENT.fullmatch(recorded)
    assert abs(datetime.fromisoformat(recorded) - before) < timedelta(seconds=5)

    async with scoped.owner() as connection:

        async def use_after(ago: timedelta) -> timedelta:
            """The age of `lastUsedAt` after a request, if it had this age before."""
            moved = datetime.now(UTC) - ago
            await connection.execute(
                "UPDATE api_keys SET last_used_at = $2 WHERE account_id = $1",
                person.user_id,
                moved,
            )

            async def looked_up_again() -> bool:
                # The cached caller expires after half a second.
                await with_key(scoped, created["secret"])
                return datetime.now(UTC) - moved - ago > timedelta(seconds=0.7)

            await seconds_until(looked_up_again)
            return datetime.now(UTC) - datetime.fromisoformat(await last_used())

        assert await use_after(timedelta(seconds=30)) > timedelta(seconds=29)
        assert await use_after(timedelta(seconds=70)) < timedelta(seconds=5)


async def test_concurrent_requests_cannot_create_more_than_a_hundred_keys(
    scoped: Service, person: Person
) -> None:
    async with scoped.owner() as connection:
        await connection.executemany(
            """
            INSERT INTO api_keys (account_id, id, user_id, name, prefix, secret_hash, scopes)
            VALUES ($1, $2, $1, 'old', 'rota_000000', $3, '{}')
            """,
            [(person.user_id, new_uuid(), bytes([n]) * 32) for n in range(95)],
        )
    responses = await asyncio.gather(*[person.post("/api/keys", {"name": "x"}) for _ in range(20)])
    assert sorted(response.status_code for response in responses) == [201] * 5 + [409] * 15
    refused = next(response for response in responses if response.status_code == 409)
    assert refused.json()["error"]["code"] == "CONFLICT"
    listed = (await person.get("/api/keys")).json()
    assert (listed["total"], len(listed["keys"])) == (100, 100)
    assert (await person.delete(f"/api/keys/{listed['keys'][0]['id']}")).status_code == 200
    assert (await person.post("/api/keys", {"name": "x"})).status_code == 201


async def test_a_key_of_another_account_looks_like_one_that_does_not_exist(
    service: Service,
) -> None:
    mine, theirs = await service.sign_in(), await service.sign_in()
    key = (await create_key(theirs))["key"]["id"]
    responses = [
        await mine.delete(f"/api/keys/{name}")
        for name in (key, "key_" + uuid4().hex, "nonsense", key.upper(), "task_" + key[4:])
    ]
    bodies = []
    for response in responses:
        assert response.status_code == 404
        error = response.json()["error"]
        assert error.pop("path") == response.request.url.path
        assert MOMENT.fullmatch(error.pop("timestamp"))
        bodies.append(error)
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["code"] == "NOT_FOUND"
    assert (await theirs.get("/api/keys")).json()["total"] == 1
    assert (await mine.get("/api/keys")).json()["total"] == 0


async def test_owners_and_admins_can_manage_a_companys_keys_and_members_cannot(
    scoped: Service,
) -> None:
    owner, admin, member = [await scoped.sign_in() for _ in range(3)]
    company = await company_of(scoped, owner, admin=admin, member=member)
    selected = {"X-Service-Account": company}

    created = []
    for person in (owner, admin):
        response = await person.post("/api/keys", {"name": "ci"}, headers=selected)
        assert response.status_code == 201
        created.append(response.json())
    for response in (
        await member.get("/api/keys", headers=selected),
        await member.post("/api/keys", {"name": "ci"}, headers=selected),
        await member.delete(f"/api/keys/{created[0]['key']['id']}", headers=selected),
    ):
        assert response.status_code == 403
    assert (await member.get("/api/keys")).json()["total"] == 0
    listed = (await admin.get("/api/keys", headers=selected)).json()
    assert listed["total"] == 2
    # Each admin sees who created the keys of the others.
    names = [key["createdBy"]["name"] for key in listed["keys"]]
    assert names == [admin.subject.title(), owner.subject.title()]
    assert (await owner.get("/api/keys")).json()["total"] == 0

    # A company's key works for the company only.
    used = (await with_key(scoped, created[1]["secret"])).json()
    assert used["account"]["id"] == company
    assert [account["id"] for account in used["accounts"]] == [company]
    opened = await with_key(scoped, created[1]["secret"], "/api/needs/tasks:read")
    assert opened.json() == {"account": company}


@pytest.mark.timed
async def test_a_key_stops_working_when_its_creator_leaves_the_company(scoped: Service) -> None:
    owner, admin = await scoped.sign_in(), await scoped.sign_in()
    company = await company_of(scoped, owner, admin=admin)
    selected = {"X-Service-Account": company}
    secret = (await admin.post("/api/keys", {"name": "ci"}, headers=selected)).json()["secret"]
    assert (await with_key(scoped, secret)).status_code == 200
    async with scoped.owner() as connection:
        await connection.execute("DELETE FROM members WHERE user_id = $1", admin.user_id)

    async def refused() -> bool:
        return (await with_key(scoped, secret)).status_code == 401

    assert await seconds_until(refused) < 1


async def test_a_key_stops_working_when_its_user_is_deleted(
    scoped: Service, person: Person
) -> None:
    secret = (await create_key(person))["secret"]
    async with scoped.owner() as connection:
        await connection.execute("DELETE FROM users WHERE id = $1", person.user_id)
    assert (await with_key(scoped, secret)).status_code == 401


async def test_a_key_can_select_only_its_own_account(scoped: Service, person: Person) -> None:
    secret = (await create_key(person))["secret"]
    own = to_wire("acct", person.user_id)
    for selection, status in (
        (own, 200),
        ("personal", 200),
        ("company", 403),
        (to_wire("acct", new_uuid()), 403),
    ):
        response = await scoped.http.get(
            "/api/me",
            headers={"Authorization": f"Bearer {secret}", "X-Service-Account": selection},
        )
        assert response.status_code == status, selection


@pytest.mark.parametrize(
    "secret",
    [
        "rota_",
        "rota_" + "0" * 38,
        "rota_" + "é" * 38,
        "ROTA_" + "0" * 38,
        secrets.new_secret(),
        secrets.new_secret() + "0",
        secrets.new_secret()[:-1],
        " " + secrets.new_secret(),
    ],
)
async def test_an_unknown_or_malformed_secret_is_refused(scoped: Service, secret: str) -> None:
    headers: Any = {b"Authorization": b"Bearer " + secret.encode("latin-1")}
    response = await scoped.http.get("/api/me", headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "AUTHENTICATION_ERROR"


def test_a_request_that_bypassed_the_guard_has_no_caller() -> None:
    with pytest.raises(AuthenticationFailed):
        caller_of({})
