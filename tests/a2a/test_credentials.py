"""Which credentials the A2A agent accepts, and how it refuses the others."""

import time
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.utils.errors import InvalidRequestError

from rota.dev.stack import Stack
from tests.a2a.client import Binding, connected, message, refusal, rest, rpc
from tests.assertions import assert_error
from tests.auth.forge import unsigned
from tests.auth.program_realm import Realm, started_realm
from tests.auth.provider import CLIENT_ID
from tests.programs import PROGRAM, assert_challenge, assert_metadata, new_key
from tests.service import Service


@pytest.fixture(scope="module")
async def realm(stack: Stack) -> AsyncIterator[Realm]:
    async with started_realm(stack, "/a2a", variant="b", name="a2a_realm") as started:
        yield started


async def _every_door(
    service: Service, credential: str | None, headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """The answers of both bindings, of the stream and of an agent's card."""
    sent = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}}
    return [
        await rpc(service, credential, headers=headers),
        await rest(service, credential, headers=headers),
        await rest(service, credential, "/message:stream", sent, headers=headers),
        await rest(service, credential, "/writer/tasks", headers=headers),
        await rest(service, credential, "/extendedAgentCard", headers=headers),
        await rest(service, credential, "/writer/.well-known/agent-card.json", headers=headers),
    ]


async def test_an_access_token_for_this_endpoint_acts_for_its_user(
    realm: Realm, binding: Binding
) -> None:
    async with connected(realm.service, realm.mint().token(), binding) as client:
        task = await client.send(message("Hello", "writer", approveFirst=True))
    assert (await realm.person.get(f"/api/tasks/{task.id}")).status_code == 200
    entries = (await realm.person.get("/api/audit")).json()["entries"]
    [created] = [
        each for each in entries if (each["resource"], each["action"]) == (task.id, "task.created")
    ]
    assert created["actor"] == "user"
    assert created["via"].startswith("token_")


REFUSED: dict[str, Callable[[Realm], str]] = {
    "a token for the MCP server": lambda realm: realm.mint(
        aud=f"{realm.service.settings.public_url}/mcp"
    ).token(),
    "an ID token": lambda realm: realm.mint(aud=CLIENT_ID).token({"typ": "JWT"}),
    "the audience without its path": lambda realm: realm.mint(
        aud=realm.service.settings.public_url
    ).token(),
    "the audience with more": lambda realm: realm.mint(aud=f"{realm.audience}/writer").token(),
    "expired": lambda realm: realm.mint(exp=int(time.time()) - 1).token(),
    "without a signature": lambda realm: realm.mint().token({"alg": "none"}, sign=unsigned),
    "bound to a key": lambda realm: realm.mint(cnf={"jkt": "a" * 43}).token(),
    "of a user who never signed in": lambda realm: realm.mint(sub="nobody").token(),
    "a key that does not exist": lambda realm: f"rota_{'a' * 38}",
    "no token": lambda realm: "abc",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_other_credentials_are_refused(realm: Realm, name: str) -> None:
    for answer in await _every_door(realm.service, REFUSED[name](realm)):
        assert_error(answer, 401, "AUTHENTICATION_ERROR")
        assert_challenge(realm, answer)


async def test_requests_without_a_credential_learn_where_to_get_one(realm: Realm) -> None:
    for headers in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
        for answer in await _every_door(realm.service, None, headers):
            assert_error(answer, 401, "AUTHENTICATION_ERROR")
            assert_challenge(realm, answer)


async def test_sessions_and_keys_that_can_approve_are_refused(realm: Realm) -> None:
    refused = {
        realm.person.token: "Session tokens cannot use /a2a",
        await new_key(realm.person, [*PROGRAM, "tasks:approve"]): "tasks:approve cannot use /a2a",
    }
    for credential, words in refused.items():
        for answer in await _every_door(realm.service, credential):
            assert_error(answer, 403, "AUTHORIZATION_ERROR")
            assert words in answer.json()["error"]["message"]
            assert_challenge(realm, answer)
    cookie = {"Cookie": f"rota={realm.person.token}", "Sec-Fetch-Site": "same-origin"}
    for answer in await _every_door(realm.service, None, cookie):
        assert answer.status_code == 403


async def test_an_access_token_works_nowhere_else(realm: Realm) -> None:
    headers = {"Authorization": f"Bearer {realm.mint().token()}"}
    for path in ("/api/me", "/api/tasks", "/api/approvals"):
        assert (await realm.service.http.get(path, headers=headers)).status_code == 401
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert (await realm.service.http.post("/mcp", headers=headers, json=body)).status_code == 401


async def test_the_scopes_of_a_credential_limit_what_it_can_do(
    realm: Realm, binding: Binding
) -> None:
    async with connected(realm.service, realm.mint(scope="tasks:read").token(), binding) as client:
        assert (await client.list()).total_size >= 0
        for attempt in (
            client.send(message("Hello", "writer")),
            client.send(message("Hello", "writer"), wait=False),
            client.cancel("task_x"),
            client.extended_card(),
        ):
            with pytest.raises(InvalidRequestError) as error:
                await attempt
            assert (refusal(error.value)["code"], refusal(error.value)["status"]) == (
                "AUTHORIZATION_ERROR",
                "403",
            )
            assert "This access token lacks the scope" in str(error.value)
    writes = await new_key(realm.person, ["tasks:write"])
    async with connected(realm.service, writes, binding) as client:
        # It can create a task, but not read how it goes on.
        created = await client.send(message("Hello", "writer", approveFirst=True), wait=False)
        assert created.id
        with pytest.raises(InvalidRequestError, match="tasks:read"):
            await client.send(message("Hello", "writer", approveFirst=True))
        # Without the name of an agent, the catalog is read.
        with pytest.raises(InvalidRequestError, match="agents:read"):
            await client.send(message("Hello"), wait=False)


async def test_the_official_client_reports_a_refused_credential(
    realm: Realm, binding: Binding
) -> None:
    async with connected(realm.service, "abc", binding) as client:
        with pytest.raises(A2AClientError, match="401"):
            await client.list()


async def test_the_metadata_and_the_card_name_the_identity_providers(realm: Realm) -> None:
    await assert_metadata(realm, "/a2a")
    card = (await realm.service.http.get("/.well-known/agent-card.json")).json()
    schemes = card["securitySchemes"]
    assert schemes["bearer"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    assert realm.audience in schemes["bearer"]["httpAuthSecurityScheme"]["description"]
    assert schemes["oidc1"]["openIdConnectSecurityScheme"]["openIdConnectUrl"] == (
        f"{realm.provider.issuer.rstrip('/')}/.well-known/openid-configuration"
    )
    assert card["securityRequirements"][1] == {"schemes": {"oidc1": {"list": PROGRAM}}}
