"""The development identity provider over HTTP, as browsers and the service use it."""

import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from rota.dev.idp import challenge_of
from rota.dev.stack import Stack

REDIRECT = "http://127.0.0.1:5173/callback"


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("idp") / "data", components=("idp",)) as stack:
        yield stack


@pytest.fixture(scope="module")
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.endpoints.issuer_url) as client:
        yield client


class Login:
    """One sign-in with its own verifier."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.verifier = secrets.token_urlsafe(48)
        self.params = {
            "client_id": "rota-dev",
            "redirect_uri": REDIRECT,
            "response_type": "code",
            "scope": "openid email",
            "state": secrets.token_urlsafe(8),
            "nonce": "n-0S6_WzA2Mj",
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        }

    async def choose(self, email: str = "ada@example.test") -> dict[str, str]:
        """The parameters that the client gets after a user was chosen on the page."""
        response = await self.client.post("/authorize", params=self.params, data={"email": email})
        return redirect_params(response)

    async def exchange(self, code: str, **changes: str) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "client_id": "rota-dev",
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": self.verifier,
        }
        return await self.client.post("/token", data=form | changes)


def redirect_params(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 303, response.text
    assert response.headers["location"].startswith(f"{REDIRECT}?")
    query = parse_qs(urlsplit(response.headers["location"]).query)
    return {name: value for name, (value,) in query.items()}


@pytest.fixture
def login(client: httpx.AsyncClient) -> Login:
    return Login(client)


async def verified(client: httpx.AsyncClient, token: str) -> dict[str, Any]:
    metadata = (await client.get("/.well-known/openid-configuration")).json()
    keys = KeySet.import_key_set((await client.get(metadata["jwks_uri"])).json())
    decoded = jwt.decode(token, keys, algorithms=["RS256"])
    assert decoded.header["kid"] == keys.keys[0].kid
    jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": metadata["issuer"]},
        aud={"essential": True, "value": "rota-dev"},
        exp={"essential": True},
    ).validate(decoded.claims)
    return decoded.claims


async def test_a_user_signs_in_with_code_and_pkce(client: httpx.AsyncClient, login: Login) -> None:
    page = await client.get("/authorize", params=login.params)
    assert page.status_code == 200
    assert "Grace Hopper" in page.text

    response = await login.choose("grace@example.test")
    assert response["state"] == login.params["state"]
    tokens = (await login.exchange(response["code"])).json()

    claims = await verified(client, tokens["id_token"])
    assert claims["sub"] == "grace"
    assert claims["email"] == "grace@example.test"
    assert claims["email_verified"] is True
    assert claims["name"] == "Grace Hopper"
    assert claims["azp"] == "rota-dev"
    assert claims["nonce"] == login.params["nonce"]
    assert claims["exp"] - claims["iat"] == 600
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert (await client.get("/userinfo", headers=bearer)).json()["sub"] == "grace"


async def test_a_user_can_enter_any_email_address(client: httpx.AsyncClient, login: Login) -> None:
    response = await client.post(
        "/authorize", params=login.params, data={"other": "Someone@Elsewhere.example"}
    )
    tokens = (await login.exchange(redirect_params(response)["code"])).json()
    claims = await verified(client, tokens["id_token"])
    assert claims["sub"] == claims["email"] == "someone@elsewhere.example"


async def test_a_wrong_verifier_is_refused_and_uses_up_the_code(login: Login) -> None:
    code = (await login.choose())["code"]
    refused = await login.exchange(code, code_verifier="x" * 43)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert (await login.exchange(code)).status_code == 400


async def test_a_code_works_once(login: Login) -> None:
    code = (await login.choose())["code"]
    assert (await login.exchange(code)).status_code == 200
    again = await login.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


async def test_a_code_works_only_with_its_redirect_uri(login: Login) -> None:
    code = (await login.choose())["code"]
    refused = await login.exchange(code, redirect_uri="http://127.0.0.1:9999/")
    assert refused.json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("code_challenge", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("scope", "email", "invalid_scope"),
    ],
)
async def test_an_invalid_request_gets_an_error_at_the_redirect_uri(
    client: httpx.AsyncClient, login: Login, field: str, value: str, error: str
) -> None:
    response = await client.get("/authorize", params=login.params | {field: value})
    assert redirect_params(response) | {"error_description": ""} == {
        "error": error,
        "error_description": "",
        "state": login.params["state"],
        "iss": str(client.base_url).rstrip("/"),
    }


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.1@evil.example/cb",
        "http://evil.example\\@127.0.0.1/cb",
        "http://127.0.0.1:5173/cb#fragment",
        "javascript:alert(1)",
        "",
    ],
)
async def test_a_redirect_to_another_machine_is_refused(
    client: httpx.AsyncClient, login: Login, uri: str
) -> None:
    response = await client.get("/authorize", params=login.params | {"redirect_uri": uri})
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_an_unknown_client_and_grant_are_refused(login: Login) -> None:
    unknown = await login.exchange("x", client_id="unknown")
    assert (unknown.status_code, unknown.json()["error"]) == (401, "invalid_client")
    grant = await login.exchange("x", grant_type="password")
    assert grant.json()["error"] == "unsupported_grant_type"


async def test_a_script_gets_a_token_that_the_published_keys_verify(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post("/dev/token", json={"sub": "ada"})
    claims = await verified(client, response.json()["idToken"])
    assert (claims["sub"], claims["email"]) == ("ada", "ada@example.test")

    named = {"sub": "u1", "email": "me@example.org", "name": "Me"}
    response = await client.post("/dev/token", json=named)
    claims = await verified(client, response.json()["idToken"])
    assert {name: claims[name] for name in named} == named


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"sub": 7}'])
async def test_a_token_request_without_a_subject_is_refused(
    client: httpx.AsyncClient, body: str
) -> None:
    response = await client.post("/dev/token", content=body)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_the_page_has_no_scripts_and_its_form_leads_to_the_client_only(
    client: httpx.AsyncClient, login: Login
) -> None:
    page = await client.get("/authorize", params=login.params)
    assert "<script" not in page.text
    assert 'href="http' not in page.text
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in page.headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "form-action": "'self' http://127.0.0.1:5173",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    assert (await client.get("/")).status_code == 200


async def test_a_form_can_lead_to_an_ipv6_address(client: httpx.AsyncClient, login: Login) -> None:
    params = login.params | {"redirect_uri": "http://[::1]:5173/callback"}
    page = await client.get("/authorize", params=params)
    assert "form-action 'self' http:" in page.headers["content-security-policy"]
    assert "[" not in page.headers["content-security-policy"]


async def test_the_page_says_what_is_missing(client: httpx.AsyncClient, login: Login) -> None:
    page = await client.post("/authorize", params=login.params, data={"other": "<b>no address"})
    assert page.status_code == 400
    assert 'role="alert">Choose a user or enter an email address.' in page.text
    assert "<b>no" not in page.text


@pytest.mark.parametrize("path", ["/", "/jwks", "/dev/token", "/authorize"])
async def test_a_name_of_another_machine_is_refused(client: httpx.AsyncClient, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", ""):
        response = await client.post(path, headers={"Host": host}, json={"sub": "ada"})
        assert response.status_code == 421, host
        assert "idToken" not in response.text


async def test_cors_allows_origins_of_this_machine_only(
    client: httpx.AsyncClient,
) -> None:
    for origin, allowed in (("http://localhost:5173", True), ("https://evil.example", False)):
        response = await client.get("/jwks", headers={"Origin": origin})
        assert ("access-control-allow-origin" in response.headers) is allowed


async def test_a_restart_keeps_the_keys(client: httpx.AsyncClient, stack: Stack) -> None:
    before = (await client.get("/jwks")).json()
    await stack.idp.restart()
    assert (await client.get("/jwks")).json() == before
    assert "d" not in before["keys"][0]


def test_it_does_not_start_in_production(stack: Stack) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "rota.dev.idp", "--port", "1", "--data", "/nowhere"],
        env=os.environ | {"ROTA_ENV": "production"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "ROTA_ENV is production" in ended.stderr
