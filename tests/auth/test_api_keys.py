"""API keys: what they look like, who manages them, what they may do."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import uuid4

import httpx
import pytest
from fastapi import APIRouter, Depends

from rota.accounts import service as accounts
from rota.accounts.model import Role
from rota.auth import secrets
from rota.auth.caller import ALL_SCOPES, Caller, Scope
from rota.auth.routing import allowed, caller_of, secured_router
from rota.dev.stack import Stack
from rota.platform.db import Database
from rota.platform.errors import AuthenticationFailed
from rota.platform.ids import new_uuid, to_wire
from tests.auth.waiting import seconds_until
from tests.service import Person, Service

KEY_FIELDS = ["id", "name", "prefix", "scopes", "createdAt", "lastUsedAt", "expiresAt"]
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def scoped_routes() -> APIRouter:
    """A route for every scope, which only that scope opens."""
    router = secured_router("Tests")

    def add(scope: Scope) -> None:
        @router.get(f"/api/needs/{scope}", name=scope)
        async def needs(caller: Annotated[Caller, Depends(allowed(scope))]) -> dict[str, str]:
            return {"account": to_wire("acct", caller.account_id)}

    for scope in ALL_SCOPES:
        add(scope)
    return router


@pytest.fixture(scope="module")
async def scoped(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack, variant="a", name="auth_keys", routers=[scoped_routes()]
    ) as service:
        yield service


@pytest.fixture
async def person(scoped: Service) -> Person:
    return await scoped.sign_in()


async def created(person: Person, /, **body: Any) -> dict[str, Any]:
    answer = await person.post("/api/keys", {"name": "ci"} | body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def with_key(service: Service, secret: str, path: str = "/api/me") -> httpx.Response:
    return await service.http.get(path, headers={"Authorization": f"Bearer {secret}"})


async def company_of(service: Service, owner: Person, **members: Person) -> str:
    """A company with members in the roles that name them; its id."""
    db = Database(service.database_url, pool_size=1)
    await db.open()
    try:
        account_id = await accounts.create_company(db, "Acme", owner.user_id, tier="basic")
        roles: dict[str, Role] = {"admin": "admin", "member": "member"}
        for role, person in members.items():
            await accounts.put_member(db, account_id, person.user_id, roles[role])
    finally:
        await db.close()
    return to_wire("acct", account_id)


async def test_keys_are_made_listed_and_deleted(service: Service) -> None:
    person = await service.sign_in()
    empty = await person.get("/api/keys")
    assert (empty.status_code, empty.json()) == (200, {"keys": [], "total": 0})

    answer = await person.post("/api/keys", {"name": "ci"})
    assert answer.status_code == 201
    assert list(answer.json()) == ["key", "secret"]
    key, secret = answer.json()["key"], answer.json()["secret"]
    assert list(key) == KEY_FIELDS
    assert re.fullmatch(r"key_[0-9a-f]{32}", key["id"])
    assert re.fullmatch(r"rota_[0-9A-Za-z]{38}", secret)
    assert secret.startswith(key["prefix"])
    assert key["name"] == "ci"
    assert key["scopes"] == list(ALL_SCOPES)
    assert MOMENT.fullmatch(key["createdAt"])
    assert (key["lastUsedAt"], key["expiresAt"]) == (None, None)

    later = await created(person, name="deploy", scopes=["mcp:read", "tasks:read", "mcp:read"])
    assert later["key"]["scopes"] == ["tasks:read", "mcp:read"]
    listed = (await person.get("/api/keys")).json()
    assert listed == {"keys": [later["key"], key], "total": 2}
    assert secret not in str(listed)

    deleted = await person.delete(f"/api/keys/{key['id']}")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": True, "id": key["id"]})
    assert (await person.get("/api/keys")).json()["total"] == 1
    assert (await with_key(service, secret)).status_code == 401
    assert (await person.delete(f"/api/keys/{key['id']}")).status_code == 404


async def test_only_the_hash_of_a_secret_is_kept(scoped: Service, person: Person) -> None:
    secret = (await created(person))["secret"]
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
    # Not its random part either, nor anything near it.
    assert not any(secret[len(row["prefix"]) :] in str(text) for text in everything)


@pytest.mark.parametrize("scope", ALL_SCOPES)
async def test_a_scope_opens_its_door_and_no_other(
    scoped: Service, person: Person, scope: Scope
) -> None:
    secret = (await created(person, scopes=[scope]))["secret"]
    answers = {door: await with_key(scoped, secret, f"/api/needs/{door}") for door in ALL_SCOPES}
    opened = [door for door, answer in answers.items() if answer.status_code == 200]
    assert opened == [scope]
    assert {answer.status_code for answer in answers.values()} == {200, 403}
    refused = next(answer for answer in answers.values() if answer.status_code == 403)
    assert refused.json()["error"]["code"] == "AUTHORIZATION_ERROR"


async def test_a_key_has_all_scopes_unless_told_otherwise_and_a_session_has_too(
    scoped: Service, person: Person
) -> None:
    secret = (await created(person, scopes=None))["secret"]
    for door in ALL_SCOPES:
        assert (await with_key(scoped, secret, f"/api/needs/{door}")).status_code == 200
        assert (await person.get(f"/api/needs/{door}")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("DELETE", "/api/keys/key_" + "0" * 32),
        ("POST", "/api/auth/logout"),
    ],
)
async def test_only_a_session_manages_keys_and_sessions(
    service: Service, method: str, path: str
) -> None:
    person = await service.sign_in()
    secret = (await created(person))["secret"]
    answer = await service.http.request(
        method,
        path,
        headers={"Authorization": f"Bearer {secret}"},
        json={"name": "another"} if method == "POST" else None,
    )
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["code"] == "AUTHORIZATION_ERROR"
    assert (await person.get("/api/keys")).json()["total"] == 1


async def test_keys_need_a_caller(scoped: Service) -> None:
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/key_" + "0" * 32)):
        answer = await scoped.http.request(method, f"/api/keys{path}")
        assert answer.status_code == 401
    # Before the body is read.
    answer = await scoped.http.post("/api/keys", content=b"{")
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "n" * 101},
        {"name": 5},
        {"name": None},
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
async def test_a_key_that_cannot_be_is_not_made(person: Person, body: object) -> None:
    answer = await person.post("/api/keys", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert answer.json()["error"]["details"]
    assert (await person.get("/api/keys")).json()["total"] == 0


async def test_unknown_members_of_the_body_set_nothing(person: Person) -> None:
    made = await created(person, id="key_" + "1" * 32, prefix="rota_mine", secret="rota_mine")
    assert made["key"]["id"] != "key_" + "1" * 32
    assert made["key"]["prefix"] != "rota_mine"
    assert made["secret"] != "rota_mine"


async def test_a_key_ends_when_it_was_told_to(scoped: Service, person: Person) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=1)
    made = await created(person, expiresAt=ends.isoformat())
    assert made["key"]["expiresAt"] == ends.isoformat(timespec="milliseconds")[:-6] + "Z"
    assert (await with_key(scoped, made["secret"])).status_code == 200

    async def refused() -> bool:
        return (await with_key(scoped, made["secret"])).status_code == 401

    await seconds_until(refused)
    assert datetime.now(UTC) >= ends
    assert datetime.now(UTC) - ends < timedelta(seconds=1)
    # It is still listed, so that one sees why it does not work.
    assert (await person.get("/api/keys")).json()["total"] == 1


async def test_an_offset_is_turned_into_utc(person: Person) -> None:
    made = await created(person, expiresAt="2999-06-01T12:00:00+02:00")
    assert made["key"]["expiresAt"] == "2999-06-01T10:00:00.000Z"


async def test_the_last_use_of_a_key_is_noted(scoped: Service, person: Person) -> None:
    made = await created(person)

    async def last_used() -> Any:
        return (await person.get("/api/keys")).json()["keys"][0]["lastUsedAt"]

    assert await last_used() is None
    before = datetime.now(UTC)
    assert (await with_key(scoped, made["secret"])).status_code == 200
    noted = await last_used()
    assert MOMENT.fullmatch(noted)
    assert abs(datetime.fromisoformat(noted) - before) < timedelta(seconds=5)

    async with scoped.owner() as connection:

        async def use_after(ago: timedelta) -> timedelta:
            """How far the note is from now, when the last one was that long ago."""
            moved = datetime.now(UTC) - ago
            await connection.execute(
                "UPDATE api_keys SET last_used_at = $2 WHERE account_id = $1",
                person.user_id,
                moved,
            )

            async def looked_up_again() -> bool:
                # What was known of the key is forgotten after half a second.
                await with_key(scoped, made["secret"])
                return datetime.now(UTC) - moved - ago > timedelta(seconds=0.7)

            await seconds_until(looked_up_again)
            return datetime.now(UTC) - datetime.fromisoformat(await last_used())

        assert await use_after(timedelta(seconds=30)) > timedelta(seconds=29)
        assert await use_after(timedelta(seconds=70)) < timedelta(seconds=5)


async def test_an_account_has_at_most_a_hundred_keys_also_when_many_come_at_once(
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
    answers = await asyncio.gather(*(person.post("/api/keys", {"name": "x"}) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [409] * 15
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["error"]["code"] == "CONFLICT"
    listed = (await person.get("/api/keys")).json()
    assert (listed["total"], len(listed["keys"])) == (100, 100)
    assert (await person.delete(f"/api/keys/{listed['keys'][0]['id']}")).status_code == 200
    assert (await person.post("/api/keys", {"name": "x"})).status_code == 201


async def test_a_foreign_key_answers_as_one_that_does_not_exist(service: Service) -> None:
    mine, theirs = await service.sign_in(), await service.sign_in()
    key = (await created(theirs))["key"]["id"]
    answers = [
        await mine.delete(f"/api/keys/{name}")
        for name in (key, "key_" + uuid4().hex, "nonsense", key.upper(), "task_" + key[4:])
    ]
    bodies = []
    for answer in answers:
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error.pop("path") == answer.request.url.path
        assert MOMENT.fullmatch(error.pop("timestamp"))
        bodies.append(error)
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["code"] == "NOT_FOUND"
    assert (await theirs.get("/api/keys")).json()["total"] == 1
    assert (await mine.get("/api/keys")).json()["total"] == 0


async def test_owners_and_admins_manage_a_companys_keys_and_members_do_not(
    scoped: Service,
) -> None:
    owner, admin, member = [await scoped.sign_in() for _ in range(3)]
    company = await company_of(scoped, owner, admin=admin, member=member)
    selected = {"X-Service-Account": company}

    made = []
    for person in (owner, admin):
        answer = await person.post("/api/keys", {"name": "ci"}, headers=selected)
        assert answer.status_code == 201
        made.append(answer.json())
    for answer in (
        await member.get("/api/keys", headers=selected),
        await member.post("/api/keys", {"name": "ci"}, headers=selected),
        await member.delete(f"/api/keys/{made[0]['key']['id']}", headers=selected),
    ):
        assert answer.status_code == 403
    assert (await member.get("/api/keys")).json()["total"] == 0
    assert (await admin.get("/api/keys", headers=selected)).json()["total"] == 2
    assert (await owner.get("/api/keys")).json()["total"] == 0

    # A key of the company's acts for the company, and for it alone.
    used = (await with_key(scoped, made[1]["secret"])).json()
    assert used["account"]["id"] == company
    assert [account["id"] for account in used["accounts"]] == [company]
    opened = await with_key(scoped, made[1]["secret"], "/api/needs/tasks:read")
    assert opened.json() == {"account": company}


async def test_a_key_ends_with_its_makers_membership(scoped: Service) -> None:
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


async def test_a_key_ends_with_its_user(scoped: Service, person: Person) -> None:
    secret = (await created(person))["secret"]
    async with scoped.owner() as connection:
        await connection.execute("DELETE FROM users WHERE id = $1", person.user_id)
    assert (await with_key(scoped, secret)).status_code == 401


async def test_a_key_selects_its_own_account_and_no_other(scoped: Service, person: Person) -> None:
    secret = (await created(person))["secret"]
    own = to_wire("acct", person.user_id)
    for selection, status in (
        (own, 200),
        ("personal", 200),
        ("company", 403),
        (to_wire("acct", new_uuid()), 403),
    ):
        answer = await scoped.http.get(
            "/api/me",
            headers={"Authorization": f"Bearer {secret}", "X-Service-Account": selection},
        )
        assert answer.status_code == status, selection


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
async def test_no_other_secret_is_a_key(scoped: Service, secret: str) -> None:
    headers: Any = {b"Authorization": b"Bearer " + secret.encode("latin-1")}
    answer = await scoped.http.get("/api/me", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "AUTHENTICATION_ERROR"


def test_a_request_that_no_gate_has_seen_has_no_caller() -> None:
    with pytest.raises(AuthenticationFailed):
        caller_of({})
