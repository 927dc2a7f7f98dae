"""Fetching the keys of identity providers: how often, during outages, and invalid documents."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.responses import RedirectResponse, StreamingResponse
from joserfc.jwk import ECKey, OctKey, OKPKey

from rota.auth import issuers
from rota.auth.compact import BadToken
from rota.auth.discovery import MAX_DOCUMENT_BYTES
from rota.auth.errors import IssuerUnavailable
from rota.auth.issuers import Issuers
from rota.dev.stack import Stack
from tests.auth.conftest import random_address, trusting
from tests.auth.forge import Mint
from tests.auth.provider import Provider
from tests.auth.waiting import seconds_until
from tests.service import Service


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=5) as client:
        yield client


@pytest.fixture
def provider() -> Provider:
    return Provider(OKPKey.generate_key("Ed25519", {"kid": "first", "alg": "Ed25519"}))


def unknown(mint: Mint) -> str:
    """A token with an unknown kid. Its signature is never checked."""
    return mint.token({"kid": secrets.token_hex(8)}, sign=lambda _: bytes(64))


def publish_key(provider: Provider, kid: str) -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": kid, "alg": "Ed25519"})
    provider.keys[kid] = key
    provider.jwks["keys"].append(key.as_dict(private=False))


async def test_ten_thousand_unknown_kids_cause_one_fetch(
    provider: Provider, http: httpx.AsyncClient
) -> None:
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        mint = provider.mint("first")
        for _ in range(100):
            results = await asyncio.gather(
                *[trusted.verify(unknown(mint)) for _ in range(100)], return_exceptions=True
            )
            assert all(isinstance(result, BadToken) for result in results)
        assert provider.visits == {"discovery": 1, "jwks": 1}
        # A valid token is still accepted and causes no fetch.
        assert (await trusted.verify(mint.token())).profile.issuer == provider.issuer
        assert provider.visits["jwks"] == 1


async def test_unknown_kids_over_http_cause_one_fetch(stack: Stack, provider: Provider) -> None:
    async with (
        provider.serve(),
        Service.start(stack, variant="a", name="auth_kids", **trusting(stack, provider)) as service,
    ):
        mint = provider.mint("first")

        async def send() -> int:
            body = {"idToken": unknown(mint)}
            headers = random_address()
            response = await service.http.post("/api/auth/session", json=body, headers=headers)
            return response.status_code

        for _ in range(15):
            assert await asyncio.gather(*[send() for _ in range(20)]) == [401] * 20
        assert provider.visits == {"discovery": 1, "jwks": 1}


async def test_known_keys_work_while_the_provider_is_down(
    provider: Provider, http: httpx.AsyncClient
) -> None:
    trusted = Issuers([provider.setting], http)
    async with provider.serve():
        await trusted.verify(provider.mint("first").token())
    for _ in range(5):
        assert await trusted.verify(provider.mint("first").token())
        with pytest.raises(BadToken):
            await trusted.verify(unknown(provider.mint("first")))
    assert provider.visits["jwks"] == 1


async def test_users_can_sign_in_while_the_provider_is_down(
    stack: Stack, provider: Provider
) -> None:
    async with Service.start(
        stack, variant="a", name="auth_down", **trusting(stack, provider)
    ) as service:

        async def start(token: str) -> int:
            return (
                await service.http.post("/api/auth/session", json={"idToken": token})
            ).status_code

        # The provider was never available, so there are no keys.
        never = await service.http.post(
            "/api/auth/session", json={"idToken": provider.mint("first").token()}
        )
        assert never.status_code == 503
        assert never.json()["error"]["code"] == "SERVICE_UNAVAILABLE"
        async with provider.serve():

            async def signed_in() -> bool:
                return await start(provider.mint("first").token()) == 200

            # Sign-in works soon after the provider is available.
            assert await seconds_until(signed_in) < 3
        for _ in range(3):
            assert await start(provider.mint("first").token()) == 200


async def test_a_token_with_a_new_kid_causes_a_fetch(
    provider: Provider, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        await trusted.verify(provider.mint("first").token())
        publish_key(provider, "second")
        with pytest.raises(BadToken):
            await trusted.verify(provider.mint("second").token())
        assert provider.visits["jwks"] == 1
        monkeypatch.setattr(issuers, "MIN_REFETCH_S", 0)
        assert await trusted.verify(provider.mint("second").token())
        assert provider.visits["jwks"] == 2


async def test_stale_keys_are_refreshed_in_the_background(
    provider: Provider, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "STALE_AFTER_S", 0)
    monkeypatch.setattr(issuers, "MIN_REFETCH_S", 0)
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        await trusted.verify(provider.mint("first").token())
        publish_key(provider, "second")
        provider.jwks["keys"].pop(0)
        assert await trusted.verify(provider.mint("first").token())

        async def refetched() -> bool:
            return provider.visits["jwks"] == 2

        await seconds_until(refetched)

        async def withdrawn() -> bool:
            try:
                await trusted.verify(provider.mint("first").token())
            except BadToken:
                return True
            return False

        await seconds_until(withdrawn)


async def test_known_keys_stay_valid_when_the_provider_publishes_none(
    provider: Provider, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "MIN_REFETCH_S", 0)
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        await trusted.verify(provider.mint("first").token())
        provider.jwks = {"keys": []}
        with pytest.raises(BadToken):
            await trusted.verify(unknown(provider.mint("first")))
        assert await trusted.verify(provider.mint("first").token())


SYMMETRIC = OctKey.generate_key(256, {"kid": "first", "alg": "HS256"}).as_dict()
FOR_ENCRYPTION = ECKey.generate_key("P-256", {"kid": "first", "use": "enc"}).as_dict(private=False)


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.02)


DISCOVERIES: dict[str, Any] = {
    "another issuer": {"issuer": "http://127.0.0.1:1", "jwks_uri": "{issuer}/jwks"},
    "the issuer with a slash": {"issuer": "{issuer}/", "jwks_uri": "{issuer}/jwks"},
    "no issuer": {"jwks_uri": "{issuer}/jwks"},
    "no jwks_uri": {"issuer": "{issuer}"},
    "an invalid jwks_uri": {"issuer": "{issuer}", "jwks_uri": "http://["},
    "a file as jwks_uri": {"issuer": "{issuer}", "jwks_uri": "file:///etc/passwd"},
    "a number as jwks_uri": {"issuer": "{issuer}", "jwks_uri": 5},
    "an unreachable jwks_uri": {
        "issuer": "{issuer}",
        "jwks_uri": "http://127.0.0.1:1/jwks",
    },
    "a list": [],
    "not JSON": b"<html>",
    "duplicate names": b'{"issuer":"{issuer}","issuer":"{issuer}","jwks_uri":"{issuer}/jwks"}',
    "too large": b"[" + b" " * MAX_DOCUMENT_BYTES + b"]",
    "a redirect": lambda: RedirectResponse("/elsewhere"),
    "endless": lambda: StreamingResponse(endless()),
}
KEY_SETS: dict[str, Any] = {
    "symmetric keys": {"keys": [SYMMETRIC]},
    "keys for encryption": {"keys": [FOR_ENCRYPTION]},
    "no keys": {"keys": []},
    "keys that are not objects": {"keys": ["first", 5, None, []]},
    "keys of unknown types": {"keys": [{"kty": "AKP", "kid": "first"}, {"kty": []}]},
    "an object instead of a list": {"keys": {}},
    "a list": [],
    "no list of keys": {},
    "not JSON": b"-----BEGIN PUBLIC KEY-----",
    "too large": b'{"keys":[' + b" " * MAX_DOCUMENT_BYTES + b"]}",
}


def filled(document: Any, issuer: str) -> Any:
    if callable(document):
        return document()
    if isinstance(document, bytes):
        return document.replace(b"{issuer}", issuer.encode())
    if isinstance(document, dict):
        return {
            k: v.replace("{issuer}", issuer) if isinstance(v, str) else v
            for k, v in document.items()
        }
    return document


@pytest.mark.parametrize(
    ("document", "name"),
    [*(("discovery", name) for name in DISCOVERIES), *(("jwks", name) for name in KEY_SETS)],
)
async def test_an_invalid_document_makes_the_provider_unavailable(
    provider: Provider,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    document: str,
    name: str,
) -> None:
    monkeypatch.setattr(issuers, "FETCH_TIMEOUT_S", 0.5)
    content = filled((DISCOVERIES if document == "discovery" else KEY_SETS)[name], provider.issuer)
    setattr(provider, document, content)
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        with pytest.raises(IssuerUnavailable):
            await trusted.verify(provider.mint("first").token())


async def test_a_document_of_the_maximum_size_is_accepted(
    provider: Provider, http: httpx.AsyncClient
) -> None:
    text = httpx.Request("POST", "http://x", json=provider.jwks).read()
    provider.jwks = text + b" " * (MAX_DOCUMENT_BYTES - len(text))
    async with provider.serve():
        assert await Issuers([provider.setting], http).verify(provider.mint("first").token())


async def test_a_failing_provider_gets_at_most_one_request_per_second(
    provider: Provider, http: httpx.AsyncClient
) -> None:
    provider.discovery = b"nonsense"
    async with provider.serve():
        trusted = Issuers([provider.setting], http)
        for _ in range(20):
            with pytest.raises(IssuerUnavailable):
                await trusted.verify(provider.mint("first").token())
        assert provider.visits["discovery"] <= 2
