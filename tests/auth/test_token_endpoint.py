"""Exchanging codes at the token endpoints of identity providers: secrets, outages, bad answers."""

import asyncio
import base64
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.responses import JSONResponse, RedirectResponse, StreamingResponse
from joserfc.jwk import ECKey
from pydantic import SecretStr

from rota.auth import codes, discovery
from rota.auth.issuers import Issuers
from rota.dev.stack import Stack
from rota.platform.issuer import Issuer
from tests.auth.conftest import random_address
from tests.auth.provider import CLIENT_ID, Provider
from tests.service import Service

CLI_REDIRECT_URI = "http://localhost:8400/callback"
SECRET = "s3cret:with/reserved+characters"


def key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "only", "alg": "ES256"})


class Desk:
    """A service that trusts three providers: with a secret, without one, and one that is away."""

    def __init__(self) -> None:
        self.confidential, self.public, self.away = (Provider(key()) for _ in range(3))
        for provider in (self.confidential, self.public):
            provider.discovery |= {
                "authorization_endpoint": f"{provider.issuer}/login",
                "token_endpoint": f"{provider.issuer}/token",
            }
        self.service: Service

    @property
    def settings(self) -> tuple[Issuer, ...]:
        with_secret = self.confidential.setting.model_copy(
            update={"client_secret": SecretStr(SECRET)}
        )
        cli = {
            "cli_client_id": "cli",
            "cli_client_secret": SecretStr("desktop"),
            "cli_redirect_uri": CLI_REDIRECT_URI,
        }
        return with_secret, self.public.setting.model_copy(update=cli), self.away.setting

    async def exchange(self, provider: Provider, **changes: Any) -> httpx.Response:
        body = {
            "code": f"code-{time.monotonic_ns()}",
            "codeVerifier": "v" * 43,
            "redirectUri": f"{self.service.settings.public_url}/signin/callback",
            "issuer": provider.issuer,
            "nonce": "n",
        } | changes
        return await self.service.http.post("/api/auth/code", json=body, headers=random_address())


@pytest.fixture(scope="module")
async def desk(stack: Stack) -> AsyncIterator[Desk]:
    made = Desk()
    async with (
        made.confidential.serve(),
        made.public.serve(),
        Service.start(
            stack,
            variant="a",
            name="auth_desk",
            oidc_issuers=made.settings,
            trusted_proxies=("127.0.0.1",),
        ) as service,
    ):
        made.service = service
        yield made


def answer(provider: Provider, **claims: Any) -> None:
    token = provider.mint("only", **({"nonce": "n"} | claims)).token()
    provider.tokens = {"id_token": token, "access_token": "x", "token_type": "Bearer"}


async def test_a_client_without_a_secret_names_itself_in_the_form(desk: Desk) -> None:
    answer(desk.public)
    response = await desk.exchange(desk.public, code="splx")
    assert response.status_code == 200, response.text
    assert response.json()["token"]
    headers, form = desk.public.token_requests[-1]
    assert "authorization" not in headers
    assert form == {
        "grant_type": "authorization_code",
        "code": "splx",
        "redirect_uri": f"{desk.service.settings.public_url}/signin/callback",
        "code_verifier": "v" * 43,
        "client_id": CLIENT_ID,
    }


async def test_a_code_of_the_command_line_is_exchanged_with_its_own_client(desk: Desk) -> None:
    answer(desk.public, aud="cli")
    response = await desk.exchange(desk.public, redirectUri=CLI_REDIRECT_URI)
    assert response.status_code == 200, response.text
    assert response.json()["token"]
    headers, form = desk.public.token_requests[-1]
    assert headers["authorization"] == f"Basic {base64.b64encode(b'cli:desktop').decode()}"
    assert form["redirect_uri"] == CLI_REDIRECT_URI


async def test_without_a_client_of_its_own_the_command_line_uses_the_same_one(desk: Desk) -> None:
    answer(desk.confidential)
    response = await desk.exchange(desk.confidential, redirectUri="http://127.0.0.1:53211/callback")
    assert response.status_code == 200, response.text
    config = (await desk.service.http.get("/api/auth/config")).json()["issuers"]
    shown = [(issuer["cliClientId"], issuer["cliRedirectUri"]) for issuer in config]
    assert shown == [(CLIENT_ID, None), ("cli", CLI_REDIRECT_URI), (CLIENT_ID, None)]
    assert "desktop" not in str(config)


@pytest.mark.parametrize(
    "changes",
    [
        # Another place than the registered one, and places that are not on the user's machine.
        {"redirectUri": "http://127.0.0.1:8400/callback"},
        {"redirectUri": "http://localhost:8401/callback"},
        {"redirectUri": "https://localhost:8400/callback"},
        {"redirectUri": "http://localhost:99999/callback"},
        {"redirectUri": "http://localhost.evil.example:8400/callback"},
        {"redirectUri": "http://localhost:8400/callback/"},
        {"redirectUri": "http://localhost:8400/callback\n"},
    ],
)
async def test_the_command_line_must_wait_where_it_is_registered(
    desk: Desk, changes: dict[str, Any]
) -> None:
    response = await desk.exchange(desk.public, **changes)
    assert response.status_code == 400
    (problem,) = response.json()["error"]["details"]
    assert problem["field"] == "redirectUri"
    # What is on the user's machine, but elsewhere, is told the registered place.
    is_there = re.fullmatch(r"http://(127.0.0.1|localhost):84../callback", changes["redirectUri"])
    assert (problem["message"] == f"must be {CLI_REDIRECT_URI}") == bool(is_there)


async def test_a_page_cannot_use_the_client_of_the_command_line(desk: Desk) -> None:
    body = {
        "code": "c",
        "codeVerifier": "v" * 43,
        "redirectUri": CLI_REDIRECT_URI,
        "issuer": desk.public.issuer,
        "cookie": True,
    }
    headers = random_address() | {"Sec-Fetch-Site": "same-origin"}
    response = await desk.service.http.post("/api/auth/code", json=body, headers=headers)
    assert response.status_code == 400
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("methods", "in_the_form"),
    [
        (None, False),
        (["client_secret_basic"], False),
        (["client_secret_post", "client_secret_basic"], False),
        (["client_secret_post"], True),
        (["private_key_jwt", "client_secret_post"], True),
    ],
)
async def test_the_secret_is_sent_as_the_provider_wants_it(
    desk: Desk, methods: list[str] | None, in_the_form: bool
) -> None:
    provider = desk.confidential
    answer(provider)
    provider.discovery["token_endpoint_auth_methods_supported"] = methods
    # A provider changes this rarely, so the service has to forget what it knows.
    async with httpx.AsyncClient() as http:
        issuers = Issuers(desk.settings, http)
        exchange = codes.CodeExchange(issuers, http)
        await exchange.id_token(codes.Code("c", "v" * 43, "http://x/", provider.issuer))
    headers, form = provider.token_requests[-1]
    if in_the_form:
        assert (form["client_id"], form["client_secret"]) == (CLIENT_ID, SECRET)
        assert "authorization" not in headers
    else:
        encoded = headers["authorization"].removeprefix("Basic ")
        pair = base64.b64decode(encoded).decode()
        assert pair == f"{CLIENT_ID}:s3cret%3Awith%2Freserved%2Bcharacters"
        assert not {"client_id", "client_secret"} & form.keys()


async def test_the_configuration_shows_endpoints_and_no_secret(desk: Desk) -> None:
    response = await desk.service.http.get("/api/auth/config")
    assert "s3cret" not in response.text
    found = response.json()["issuers"]
    assert [issuer["authorizationEndpoint"] for issuer in found] == [
        f"{desk.confidential.issuer}/login",
        f"{desk.public.issuer}/login",
        None,
    ]
    assert {tuple(issuer) for issuer in found} == {
        (
            *("issuer", "clientId", "cliClientId", "cliRedirectUri", "name"),
            "authorizationEndpoint",
        )
    }


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.05)


CLIENT_ERROR = {"error": "invalid_client", "error_description": SECRET}
ANSWERS: dict[str, tuple[Any, int, str]] = {
    "the code is refused": (
        lambda: JSONResponse({"error": "invalid_grant"}, 400),
        401,
        "Sign in again.",
    ),
    "the client is refused": (lambda: JSONResponse(CLIENT_ERROR, 401), 503, "ROTA_OIDC_ISSUERS"),
    "an error": (lambda: JSONResponse({}, 500), 503, "Sign in again in a moment."),
    "a redirect": (lambda: RedirectResponse("/elsewhere"), 503, "Sign in again in a moment."),
    "no ID token": ({"access_token": "x"}, 503, "Sign in again in a moment."),
    "an ID token that is no text": ({"id_token": 5}, 503, "Sign in again in a moment."),
    "an ID token that is none": ({"id_token": "x.y.z"}, 401, "The ID token is not valid."),
    "not JSON": (b"<html>", 503, "Sign in again in a moment."),
    "a list": ([], 503, "Sign in again in a moment."),
    "too large": (b"[" + b" " * discovery.MAX_DOCUMENT_BYTES + b"]", 503, "in a moment."),
    "endless": (lambda: StreamingResponse(endless()), 503, "Sign in again in a moment."),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_bad_answer_gets_an_error_that_says_what_to_do(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(codes, "FETCH_TIMEOUT_S", 0.5)
    content, status, message = ANSWERS[case]
    desk.public.tokens = content() if callable(content) else content
    before = desk.public.visits["token"]
    response = await desk.exchange(desk.public)
    assert response.status_code == status
    assert message in response.json()["error"]["message"]
    assert SECRET not in response.text
    # A code is sent once, also if the answer is bad.
    assert desk.public.visits["token"] == before + 1


async def test_the_id_token_of_another_issuer_is_refused(desk: Desk) -> None:
    answer(desk.confidential)
    desk.public.tokens = desk.confidential.tokens
    assert (await desk.exchange(desk.public)).status_code == 401


async def test_both_nonces_can_be_missing(desk: Desk) -> None:
    answer(desk.public, nonce=None)
    assert (await desk.exchange(desk.public, nonce=None)).status_code == 200
    answer(desk.public, nonce=None)
    assert (await desk.exchange(desk.public)).status_code == 401


async def test_a_provider_that_is_away_makes_the_exchange_unavailable(desk: Desk) -> None:
    response = await desk.exchange(desk.away)
    assert response.status_code == 503
    assert desk.away.issuer in response.json()["error"]["message"]


async def test_two_requests_with_one_code_cause_one_exchange(desk: Desk) -> None:
    answer(desk.public)
    before = desk.public.visits["token"]
    found = await asyncio.gather(*[desk.exchange(desk.public, code="twice") for _ in range(8)])
    assert sorted(each.status_code for each in found) == [200] + [401] * 7
    assert desk.public.visits["token"] == before + 1


@pytest.mark.parametrize("endpoint", ["javascript:alert(1)", "ftp://x/", 5, None])
async def test_an_unsafe_endpoint_is_not_used(endpoint: object) -> None:
    provider = Provider(key())
    provider.discovery |= {"authorization_endpoint": endpoint, "token_endpoint": endpoint}
    async with provider.serve(), httpx.AsyncClient() as http:
        found = await discovery.Discovery(provider.issuer, http).current(10)
    assert found is not None
    assert (found.authorization_endpoint, found.token_endpoint) == (None, None)


def test_a_secure_issuer_needs_secure_endpoints() -> None:
    secure = discovery.Discovery("https://login.example", httpx.AsyncClient())
    assert secure._safe("http://login.example/token") is None
    assert secure._safe("https://login.example/token")


@pytest.mark.timed
async def test_a_provider_that_hangs_delays_the_configuration_by_a_second_at_most(
    stack: Stack,
) -> None:
    provider = Provider(key())
    provider.discovery = StreamingResponse(endless())
    async with (
        provider.serve(),
        Service.start(
            stack, variant="a", name="auth_hangs", oidc_issuers=(provider.setting,)
        ) as service,
    ):
        started = time.monotonic()
        found = await asyncio.gather(*[service.http.get("/api/auth/config") for _ in range(5)])
        assert time.monotonic() - started < 2
        for each in found:
            assert each.json()["issuers"][0]["authorizationEndpoint"] is None
        assert provider.visits["discovery"] == 1
