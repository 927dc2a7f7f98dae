"""Which credentials the MCP server accepts, and how it refuses the others."""

import time
from collections.abc import AsyncIterator, Callable

import pytest

from rota.dev.stack import Stack
from tests.assertions import assert_error
from tests.auth.forge import WITHOUT, Mint, by, unsigned
from tests.auth.program_realm import Realm, started_realm
from tests.auth.provider import CLIENT_ID
from tests.mcp_server.clients import Generation, call, connected, post, refusal
from tests.programs import PROGRAM, assert_challenge, assert_metadata, new_key


@pytest.fixture(scope="module")
async def realm(stack: Stack) -> AsyncIterator[Realm]:
    async with started_realm(stack, "/mcp", variant="a", name="mcp_realm") as started:
        yield started


async def test_an_access_token_for_this_endpoint_acts_for_its_user(
    realm: Realm, generation: Generation
) -> None:
    for header in ({}, {"typ": "JWT"}, {"typ": "application/at+jwt"}, {"typ": WITHOUT}):
        token = realm.mint().token(header)
        async with connected(realm.service, token, generation) as client:
            wanted = {"agent": "writer", "input": "Hello", "approveFirst": True}
            task = (await call(client, "create_task", **wanted))["task"]
    assert (await realm.person.get(f"/api/tasks/{task['id']}")).json()["task"] == task
    entries = (await realm.person.get("/api/audit")).json()["entries"]
    [created] = [
        each
        for each in entries
        if (each["resource"], each["action"]) == (task["id"], "task.created")
    ]
    assert created["actor"] == "user"
    assert created["via"].startswith("token_")


async def test_the_audience_can_be_one_of_several(realm: Realm) -> None:
    token = realm.mint(aud=["https://other.example", realm.audience]).token()
    assert (await post(realm.service, token)).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": "openid tasks:read"},
        {"scope": ["tasks:read"]},
        {"scp": "tasks:read email"},
        {"scp": ["tasks:read", "billing:read"]},
    ],
    ids=str,
)
async def test_a_token_with_scopes_has_only_those(
    realm: Realm, generation: Generation, claims: dict[str, object]
) -> None:
    token = realm.mint(**claims).token()
    async with connected(realm.service, token, generation) as client:
        assert (await call(client, "list_tasks"))["total"] >= 0
        error = await refusal(client, "create_task", agent="writer", input="Hello")
        assert (error["code"], error["status"]) == ("AUTHORIZATION_ERROR", 403)
        assert (await refusal(client, "find_agents"))["status"] == 403
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert not [name for name in names if name.startswith("agent_")]


@pytest.mark.parametrize("scope", ["billing:read", "read-only"])
async def test_a_token_with_other_scopes_only_can_do_nothing(
    realm: Realm, generation: Generation, scope: str
) -> None:
    token = realm.mint(scope=scope).token()
    async with connected(realm.service, token, generation) as client:
        assert (await refusal(client, "list_tasks"))["status"] == 403
        error = await refusal(client, "create_task", agent="writer", input="Hello")
        assert error["status"] == 403


async def test_scopes_of_another_form_are_refused(realm: Realm) -> None:
    assert (await post(realm.service, realm.mint(scope={"all": True}).token())).status_code == 401


def _hmac_free(mint: Mint) -> str:
    return mint.token({"alg": "none"}, sign=unsigned)


REFUSED_TOKENS: dict[str, Callable[[Realm], str]] = {
    "an ID token": lambda realm: realm.mint(aud=CLIENT_ID).token({"typ": "JWT"}),
    "another audience": lambda realm: realm.mint(aud="https://other.example/mcp").token(),
    "the audience without its path": lambda realm: realm.mint(
        aud=realm.service.settings.public_url
    ).token(),
    "no audience": lambda realm: realm.mint().token({}, {"aud": WITHOUT}),
    "an unknown issuer": lambda realm: realm.mint(iss="https://other.example").token(),
    "expired": lambda realm: realm.mint(exp=int(time.time()) - 1).token(),
    "without an expiry": lambda realm: realm.mint().token({}, {"exp": WITHOUT}),
    "valid for too long": lambda realm: realm.mint(exp=int(time.time()) + 90_000).token(),
    "issued in the future": lambda realm: realm.mint(iat=int(time.time()) + 3600).token(),
    "not valid yet": lambda realm: realm.mint(nbf=int(time.time()) + 3600).token(),
    "a subject that is too long": lambda realm: realm.mint(sub="x" * 256).token(),
    "without a signature": lambda realm: _hmac_free(realm.mint()),
    "signed with another key": lambda realm: realm.mint().token(
        sign=by("RS256", realm.mint().untrusted)
    ),
    "another type": lambda realm: realm.mint().token({"typ": "logout+jwt"}),
    "not a token": lambda realm: "abc",
}


@pytest.mark.parametrize("name", REFUSED_TOKENS)
async def test_other_tokens_are_refused(realm: Realm, name: str) -> None:
    answer = await post(realm.service, REFUSED_TOKENS[name](realm))
    assert_error(answer, 401, "AUTHENTICATION_ERROR")
    assert realm.audience in answer.json()["error"]["message"]
    assert_challenge(realm, answer)


@pytest.mark.parametrize("proof", [{"jkt": "a" * 43}, {"x5t#S256": "b" * 43}, {}, None])
async def test_tokens_that_are_bound_to_a_key_are_refused(realm: Realm, proof: object) -> None:
    answer = await post(realm.service, realm.mint(cnf=proof).token())
    assert_error(answer, 401, "AUTHENTICATION_ERROR")
    assert "bound to a key" in answer.json()["error"]["message"]


async def test_a_user_who_never_signed_in_is_told_to_do_so(realm: Realm) -> None:
    answer = await post(realm.service, realm.mint(sub="nobody").token())
    assert_error(answer, 401, "AUTHENTICATION_ERROR")
    assert "Sign in to the dashboard once" in answer.json()["error"]["message"]


async def test_a_token_selects_accounts_of_its_user_only(realm: Realm) -> None:
    token = realm.mint().token()
    company = (await realm.person.post("/api/companies", {"name": "Ours"})).json()["account"]["id"]
    for selection in (company, "company", "personal"):
        headers = {"X-Service-Account": selection}
        assert (await post(realm.service, token, headers=headers)).status_code == 200
    foreign = {"X-Service-Account": "acct_01a10b2f60dd7b6b9e34a193239c3a44"}
    assert_error(await post(realm.service, token, headers=foreign), 403, "AUTHORIZATION_ERROR")


async def test_an_access_token_works_nowhere_else(realm: Realm) -> None:
    headers = {"Authorization": f"Bearer {realm.mint().token()}"}
    for path in ("/api/me", "/api/tasks", "/api/approvals"):
        assert (await realm.service.http.get(path, headers=headers)).status_code == 401


async def test_sessions_and_keys_that_can_approve_are_refused(
    realm: Realm, generation: Generation
) -> None:
    every = [*PROGRAM, "tasks:approve"]
    refused = {
        realm.person.token: "Session tokens cannot use /mcp",
        await new_key(realm.person, every): "tasks:approve cannot use /mcp",
    }
    for credential, words in refused.items():
        answer = await post(realm.service, credential, generation=generation)
        assert_error(answer, 403, "AUTHORIZATION_ERROR")
        assert words in answer.json()["error"]["message"]
        assert_challenge(realm, answer)


async def test_the_session_cookie_is_refused(realm: Realm) -> None:
    headers = {"Cookie": f"rota={realm.person.token}", "Sec-Fetch-Site": "same-origin"}
    assert_error(await post(realm.service, None, headers=headers), 403, "AUTHORIZATION_ERROR")


@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer", "Basic eDp5", "DPoP abc", "Bearer rota_wrong", f"Bearer rota_{'a' * 38}"],
)
async def test_requests_without_a_valid_credential_learn_where_to_get_one(
    realm: Realm, authorization: str | None, generation: Generation
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = await post(realm.service, None, headers=headers, generation=generation)
    assert_error(answer, 401, "AUTHENTICATION_ERROR")
    assert_challenge(realm, answer)


async def test_the_metadata_names_the_identity_providers(realm: Realm) -> None:
    for path in ("/mcp", ""):
        await assert_metadata(realm, path)


async def test_the_default_scopes_of_a_key_are_enough(realm: Realm, generation: Generation) -> None:
    key = await new_key(realm.person, None)
    async with connected(realm.service, key, generation) as client:
        assert (await call(client, "find_agents"))["total"] > 0
