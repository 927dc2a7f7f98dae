"""Signing in like a browser, with authorization code and PKCE, at a certified provider."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from rota.dev.stack import Stack
from rota.platform.issuer import Issuer
from tests.auth.certified import certified_provider, next_page
from tests.auth.forge import b64, claims_of
from tests.service import Service

CLIENT_ID = "spa"
REDIRECT_URI = "http://127.0.0.1:5173/callback"


@dataclass
class Peer:
    issuer: str
    service: Service


@pytest.fixture(scope="module")
async def peer(stack: Stack) -> AsyncIterator[Peer]:
    async with certified_provider() as issuer:
        setting = Issuer(issuer=issuer, client_id=CLIENT_ID, name="Certified")
        async with Service.start(
            stack, variant="b", name="auth_sign_in", oidc_issuers=(setting,)
        ) as service:
            yield Peer(issuer, service)


async def browse(http: httpx.AsyncClient, login: str, query: dict[str, str]) -> str:
    """Submits every page until the provider redirects to the client. Returns that URL."""
    page = await http.get("/auth", params=query)
    for _ in range(20):
        if page.is_redirect:
            location = urljoin(str(page.url), page.headers["location"])
            if location.startswith(REDIRECT_URI):
                return location
        page = await next_page(http, page, login)
    raise AssertionError("the provider did not redirect to the client")


async def id_token_of(peer: Peer, login: str) -> str:
    verifier = secrets.token_urlsafe(32)
    state, nonce = secrets.token_urlsafe(8), secrets.token_urlsafe(8)
    async with httpx.AsyncClient(base_url=peer.issuer) as http:
        address = await browse(
            http,
            login,
            {
                "client_id": CLIENT_ID,
                "redirect_uri": REDIRECT_URI,
                "response_type": "code",
                "scope": "openid email profile",
                "code_challenge": b64(hashlib.sha256(verifier.encode()).digest()),
                "code_challenge_method": "S256",
                "state": state,
                "nonce": nonce,
            },
        )
        response: dict[str, Any] = parse_qs(urlsplit(address).query)
        assert response["state"] == [state], address
        redeemed = await http.post(
            "/token",
            data={
                "grant_type": "authorization_code",
                "client_id": CLIENT_ID,
                "redirect_uri": REDIRECT_URI,
                "code": response["code"][0],
                "code_verifier": verifier,
            },
        )
    token: str = redeemed.json()["id_token"]
    assert claims_of(token)["nonce"] == nonce
    return token


async def test_a_user_signs_in_at_a_certified_provider(peer: Peer) -> None:
    http = peer.service.http
    config = (await http.get("/api/auth/config")).json()
    assert config == {
        "variant": "B",
        "issuers": [
            {
                "issuer": peer.issuer,
                "clientId": CLIENT_ID,
                "cliClientId": CLIENT_ID,
                "cliRedirectUri": None,
                "name": "Certified",
                "authorizationEndpoint": f"{peer.issuer}/auth",
            }
        ],
    }

    id_token = await id_token_of(peer, "grace")
    response = await http.post("/api/auth/session", json={"idToken": id_token})
    assert response.status_code == 200, response.text
    session = {"Authorization": f"Bearer {response.json()['token']}"}
    me = (await http.get("/api/me", headers=session)).json()
    assert me["user"]["email"] == "grace@example.test"
    assert me["user"]["name"] == "grace"
    assert me["account"]["kind"] == "personal"

    again = await http.post("/api/auth/session", json={"idToken": id_token})
    assert again.status_code == 401

    second = await http.post(
        "/api/auth/session", json={"idToken": await id_token_of(peer, "grace")}
    )
    headers = {"Authorization": f"Bearer {second.json()['token']}"}
    assert (await http.get("/api/me", headers=headers)).json()["user"] == me["user"]
