"""Signing in from the command line with a code that is typed on another device."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey

from rota.cli.device import DeviceSignIn
from rota.platform.issuer import Issuer
from tests.auth.certified import certified_provider, next_page
from tests.auth.provider import Provider
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.service import Service

ENDPOINTS = {"token_endpoint": "token", "device_authorization_endpoint": "device"}


def test_a_failure_of_the_provider_does_not_end_the_wait_for_a_code() -> None:
    answers: list[httpx.Response | httpx.ConnectError] = [
        httpx.ConnectError("refused"),
        httpx.Response(502, text="<html>"),
        httpx.Response(503, json={"error": "temporarily_unavailable"}),
        httpx.Response(200, json={"id_token": "token"}),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/device":
            device = {"user_code": "W", "device_code": "d", "verification_uri": "https://l/"}
            return httpx.Response(200, json={**device, "interval": -3})
        if request.url.path != "/token":
            endpoints = {name: f"https://l/{path}" for name, path in ENDPOINTS.items()}
            return httpx.Response(200, json={"issuer": "https://l", **endpoints})
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    waits: list[float] = []
    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        sign_in = DeviceSignIn("https://l", "cli", http)
        assert sign_in.id_token(sign_in.begin(), waits.append) == "token"
    assert waits == [1, 6, 11, 16]


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[Provider]:
    key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": "rsa"})
    async with Provider(key).serve() as started:
        yield started


@pytest.fixture(scope="module")
async def with_device(service_a: Service, provider: Provider) -> AsyncIterator[Service]:
    """A service whose identity provider can sign in people on other devices."""
    setting = Issuer(issuer=provider.issuer, client_id="web", cli_client_id="cli", name="Devices")
    async with service_a.process(oidc_issuers=(setting,)) as service:
        yield service


@pytest.fixture
def issuer(provider: Provider) -> Provider:
    provider.discovery = {
        "issuer": provider.issuer,
        "jwks_uri": f"{provider.issuer}/jwks",
        "token_endpoint": f"{provider.issuer}/token",
        "device_authorization_endpoint": f"{provider.issuer}/device",
    }
    return provider


async def test_a_person_signs_in_with_a_code_on_another_device(
    with_device: Service, issuer: Provider, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    answers: list[Any] = [
        {"error": "authorization_pending"},
        {"error": "slow_down"},
        {"id_token": issuer.mint("rsa", aud="cli", email="eve@example.test").token()},
    ]
    issuer.device = {
        "user_code": "WDJB-MJHT",
        "device_code": "secret",
        "verification_uri": "https://login.example/device",
        "verification_uri_complete": "https://login.example/device?code=WDJB-MJHT",
        "interval": 7,
    }

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        issuer.tokens = answers.pop(0)

    monkeypatch.setattr(DeviceSignIn.id_token, "__defaults__", (sleep,))
    done = await terminal.ok("login", url_of(with_device), "--device")
    assert done.out == f"Signed in at {url_of(with_device)} as eve@example.test.\n"
    assert "Open https://login.example/device on any device and enter the code:  WDJB" in done.err
    # RFC 8628: five seconds more after `slow_down`.
    assert waits == [7, 7, 12]
    forms = [form for _, form in issuer.token_requests]
    assert {(form["client_id"], form["device_code"]) for form in forms} == {("cli", "secret")}


async def test_a_person_signs_in_with_a_code_at_a_certified_provider(
    service_a: Service, terminal: Terminal
) -> None:
    async with certified_provider() as issuer:
        setting = Issuer(issuer=issuer, client_id="spa", cli_client_id="cli", name="Certified")
        async with service_a.process(oidc_issuers=(setting,)) as service:
            program = await asyncio.create_subprocess_exec(
                Path(sys.executable).with_name("rota"),
                "login",
                url_of(service),
                "--device",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ | {"XDG_CONFIG_HOME": str(terminal.home)},
            )
            assert program.stderr is not None
            async with asyncio.timeout(60), httpx.AsyncClient() as phone:
                shown = ""
                while not (link := re.search(r"Or open: (\S+)\n", shown)):
                    assert not program.stderr.at_eof(), shown
                    shown += (await program.stderr.readline()).decode()
                page = await phone.get(link[1])
                while page.is_redirect or "<form" in page.text:
                    page = await next_page(phone, page, "grace")
                out, _ = await program.communicate()
            assert out.decode() == f"Signed in at {url_of(service)} as grace@example.test.\n"
            me = (await terminal.ok("whoami", "--json")).json
            assert me["user"]["email"] == "grace@example.test"


@pytest.mark.parametrize(
    ("discovery", "device", "tokens", "reason"),
    [
        ({"device_authorization_endpoint": None}, {}, {}, "does not support sign-in with a code"),
        ({"issuer": "https://evil.example"}, {}, {}, "has no valid discovery document"),
        (
            {},
            {},
            {"error": "access_denied"},
            "The identity provider refused the sign-in: access_denied",
        ),
        ({}, {"expires_in": 0.2}, b"<html>", "Sign-in timed out. The answer of "),
        ({}, {"expires_in": 0}, {}, "Sign-in timed out"),
        ({"token_endpoint": None}, {}, {}, "has no valid discovery document"),
        ({"token_endpoint": "http://evil.example/"}, {}, {}, "is not encrypted"),
        ({"device_authorization_endpoint": "http://[/"}, {}, {}, "is not encrypted"),
        ({"device_authorization_endpoint": "https://x/\x01"}, {}, {}, "Cannot reach"),
        ({}, {"user_code": None, "expires_in": "soon"}, {}, "is not complete"),
        ({}, {"interval": None}, {}, "is not complete"),
        ({}, {"device_code": ...}, {}, "is not complete"),
    ],
)
async def test_a_refused_code_on_another_device_is_one_line(
    with_device: Service,
    issuer: Provider,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    discovery: dict[str, Any],
    device: dict[str, Any],
    tokens: Any,
    reason: str,
) -> None:
    monkeypatch.setattr(DeviceSignIn.id_token, "__defaults__", (lambda _: None,))
    issuer.discovery |= discovery
    issuer.device = {
        "user_code": "W",
        "device_code": "d",
        "verification_uri": "https://login.example/device",
        **device,
    }
    issuer.device = {name: value for name, value in issuer.device.items() if value is not ...}
    issuer.tokens = tokens
    done = await terminal("login", url_of(with_device), "--device")
    assert done.code == 1
    assert reason in done.err.splitlines()[-1]
