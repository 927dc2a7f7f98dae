"""Signing in with an authorization code, from the page of the identity provider to the cookie."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.auth.browser import Browser
from tests.service import Service


@pytest.fixture
async def browser(service: Service) -> AsyncIterator[Browser]:
    async with Browser(service) as opened:
        yield opened


async def test_a_user_signs_in_with_a_code_and_gets_a_cookie(
    service: Service, browser: Browser
) -> None:
    response = await browser.sign_in()
    assert response.json() == {"token": None}
    assert browser.cookie
    me = await browser.me()
    assert me.status_code == 200
    assert me.json()["user"]["email"] == "ada@example.test"
    assert me.json()["variant"] == service.variant.upper()
    sessions = (await browser.http.get("/api/auth/sessions")).json()["sessions"]
    assert [session["current"] for session in sessions].count(True) == 1


async def test_without_cookie_the_response_has_the_token(browser: Browser) -> None:
    response = await browser.exchange(
        await browser.code(), headers={"Sec-Fetch-Site": "none"}, cookie=False
    )
    assert response.status_code == 200
    assert "set-cookie" not in response.headers
    bearer = {"Authorization": f"Bearer {response.json()['token']}"}
    assert (await browser.me(bearer)).status_code == 200


@pytest.mark.parametrize("nonce", ["forged", "", None])
async def test_a_forged_or_missing_nonce_is_refused(browser: Browser, nonce: str | None) -> None:
    response = await browser.exchange(await browser.code(), nonce=nonce)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers


async def test_a_wrong_verifier_is_refused_and_uses_up_the_code(browser: Browser) -> None:
    code = await browser.code()
    wrong = await browser.exchange(code, codeVerifier="x" * 43)
    assert wrong.status_code == 401
    assert "refused the authorization code" in wrong.json()["error"]["message"]
    again = await browser.exchange(code)
    assert again.status_code == 401
    assert "already used" in again.json()["error"]["message"]
    assert browser.cookie is None


async def test_a_code_works_once(browser: Browser) -> None:
    code = await browser.code()
    assert (await browser.exchange(code)).status_code == 200
    again = await browser.exchange(code)
    assert again.status_code == 401
    assert "already used" in again.json()["error"]["message"]


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://evil.example/signin/callback",
        "{own}/signin/callback/",
        "{own}/signin/callback?next=/",
        "{own}/elsewhere",
        "{own}1/signin/callback",
        "{own}@evil.example/signin/callback",
        "http://localhost:1/signin/callback",
        "",
    ],
)
async def test_the_redirect_uri_must_be_the_page_of_this_service(
    browser: Browser, redirect_uri: str
) -> None:
    own = browser.redirect_uri.removesuffix("/signin/callback")
    response = await browser.exchange("code", redirectUri=redirect_uri.replace("{own}", own))
    assert response.status_code == 400
    (problem,) = response.json()["error"]["details"]
    assert problem == {"field": "redirectUri", "message": f"must be {own}/signin/callback"}


async def test_on_a_loopback_address_the_host_of_the_request_is_the_own_origin(
    service: Service, browser: Browser
) -> None:
    host = f"localhost:{service.settings.port}"
    browser.redirect_uri = f"http://{host}/signin/callback"
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert (await browser.exchange(await browser.code(), headers=headers)).status_code == 200
    # The name of another machine never becomes the own origin.
    browser.redirect_uri = "http://evil.example/signin/callback"
    foreign = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert (await browser.exchange("code", headers=foreign)).status_code == 401
    assert (await browser.exchange("code", headers=foreign, cookie=False)).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": ""},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
    ],
)
async def test_another_site_cannot_sign_a_browser_in(
    browser: Browser, headers: dict[str, str]
) -> None:
    code = await browser.code()
    refused = await browser.exchange(code, headers=headers)
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers
    # The code was not used.
    assert (await browser.exchange(code)).status_code == 200


async def test_an_unknown_issuer_is_refused(browser: Browser) -> None:
    response = await browser.exchange("code", issuer="https://evil.example")
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "issuer"


@pytest.mark.parametrize(
    ("field", "value"),
    [("codeVerifier", "short"), ("codeVerifier", "x" * 42 + "é"), ("code", ""), ("code", 5)],
)
async def test_an_invalid_field_is_named(browser: Browser, field: str, value: Any) -> None:
    response = await browser.exchange("code", **{field: value})
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == field
