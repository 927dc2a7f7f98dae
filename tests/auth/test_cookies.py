"""Sessions by cookie: who may send it, how it is renewed, and how it ends."""

import asyncio
import time
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any

import pytest

from rota.dev.stack import Stack
from tests.auth.browser import SAME_ORIGIN, Browser
from tests.auth.conftest import session_mint
from tests.auth.forge import claims_of
from tests.auth.waiting import seconds_until
from tests.service import Person, Service

DAY_S = 86_400
PARTNER = "https://partner.example"


@pytest.fixture(scope="module")
async def crossed(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack, variant="b", name="auth_cookies", cors_origins=(PARTNER,)
    ) as started:
        yield started


@pytest.fixture
async def browser(crossed: Service) -> AsyncIterator[Browser]:
    async with Browser(crossed) as opened:
        opened.http.headers.update(SAME_ORIGIN)
        await opened.sign_in()
        yield opened


def attributes(header: str) -> tuple[str, str, dict[str, Any]]:
    (morsel,) = SimpleCookie(header).values()
    return morsel.key, morsel.value, {k: v for k, v in morsel.items() if v}


async def test_on_http_and_a_loopback_address_the_cookie_has_no_prefix(browser: Browser) -> None:
    response = await browser.sign_in()
    name, value, found = attributes(response.headers["set-cookie"])
    assert name == "rota"
    assert claims_of(value)["sub"].startswith("user_")
    assert found == {
        "max-age": str(30 * DAY_S),
        "path": "/",
        "httponly": True,
        "samesite": "strict",
    }


async def test_elsewhere_the_cookie_is_bound_to_the_host_and_https(stack: Stack) -> None:
    async with Service.start(
        stack,
        variant="a",
        name="auth_https",
        env="production",
        metrics_port=1,
        public_url="https://Rota.example:443",
    ) as service:
        body = {"idToken": await service.id_token("ada"), "cookie": True}
        own = {"Host": "rota.example", "Origin": "https://rota.example"}
        response = await service.http.post("/api/auth/session", json=body, headers=own)
        assert response.json() == {"token": None}
        name, value, found = attributes(response.headers["set-cookie"])
        assert name == "__Host-rota"
        assert found == {
            "max-age": str(30 * DAY_S),
            "path": "/",
            "secure": True,
            "httponly": True,
            "samesite": "strict",
        }
        sent = {"Cookie": f"other=1; __Host-rota={value}"}
        for origin, status in (
            ({"Origin": "https://rota.example"}, 200),
            (SAME_ORIGIN, 200),
            ({"Origin": f"http://127.0.0.1:{service.settings.port}"}, 401),
            ({"Origin": "http://rota.example"}, 401),
            ({"Origin": "https://rota.example.evil.example"}, 401),
        ):
            me = await service.http.get("/api/me", headers=sent | origin)
            assert me.status_code == status, origin
        unprefixed = {"Cookie": f"rota={value}"} | SAME_ORIGIN
        assert (await service.http.get("/api/me", headers=unprefixed)).status_code == 401


@pytest.mark.parametrize("cookie", [True, False])
async def test_an_id_token_also_starts_a_session_by_cookie(crossed: Service, cookie: bool) -> None:
    async with Browser(crossed) as browser:
        body = {"idToken": await crossed.id_token("grace"), "cookie": cookie}
        foreign = await browser.http.post(
            "/api/auth/session", json=body | {"cookie": True}, headers={"Origin": PARTNER}
        )
        assert foreign.status_code == 401
        response = await browser.http.post("/api/auth/session", json=body)
        assert response.status_code == 200
        assert (response.json()["token"] is None) is cookie
        assert (await browser.me()).status_code == (200 if cookie else 401)


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "", "Origin": "{own}"}, True),
        ({"Origin": "null"}, True),
        ({"Sec-Fetch-Site": ""}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "null"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": PARTNER}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": PARTNER}, False),
        ({"Origin": "{own}0"}, False),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/me"), ("HEAD", "/api/me"), ("POST", "/api/auth/refresh"), ("GET", "/api/tasks")],
)
async def test_only_pages_of_this_service_can_use_the_cookie(
    browser: Browser, method: str, path: str, headers: dict[str, str], accepted: bool
) -> None:
    own = browser.service.settings.public_url
    sent = {name: value.replace("{own}", own) for name, value in headers.items()}
    response = await browser.http.request(method, path, headers=sent)
    assert response.status_code == (200 if accepted else 401)
    assert "access-control-allow-credentials" not in response.headers


async def test_a_preflight_never_allows_cookies(browser: Browser) -> None:
    asked = {"Origin": PARTNER, "Access-Control-Request-Method": "POST"}
    response = await browser.http.options("/api/tasks", headers=asked)
    assert response.status_code == 204
    assert "access-control-allow-credentials" not in response.headers


async def test_an_authorization_header_wins_over_the_cookie(
    crossed: Service, browser: Browser
) -> None:
    other = await crossed.sign_in()
    me = await browser.me(other.auth)
    assert me.json()["user"]["email"] == f"{other.subject}@example.test"
    assert (await browser.me({"Authorization": "Bearer nonsense"})).status_code == 401
    # The page keeps its cookie when a script signs out with a token.
    left = await browser.http.post("/api/auth/logout", headers=other.auth)
    assert left.status_code == 200
    assert "set-cookie" not in left.headers
    assert (await browser.me()).status_code == 200


async def test_a_cookie_session_is_a_session(browser: Browser) -> None:
    created = await browser.http.post("/api/keys", json={"name": "ci"})
    assert created.status_code == 201
    secret = created.json()["secret"]
    # An API key is no session, so it does not work as a cookie.
    headers = SAME_ORIGIN | {"Cookie": f"rota={secret}"}
    assert (await browser.service.http.get("/api/me", headers=headers)).status_code == 401


async def test_requests_by_cookie_count_toward_the_account(browser: Browser) -> None:
    bearer = {"Authorization": f"Bearer {browser.cookie}"}
    by_cookie = int((await browser.me()).headers["RateLimit-Remaining"])
    by_token = int((await browser.me(bearer)).headers["RateLimit-Remaining"])
    assert by_token == by_cookie - 1


async def test_no_cache_keeps_responses(browser: Browser) -> None:
    assert (await browser.me()).headers["Cache-Control"] == "no-store"
    bearer = {"Authorization": f"Bearer {browser.cookie}"}
    assert (await browser.me(bearer)).headers["Cache-Control"] == "no-store"


async def test_refreshing_by_cookie_sets_a_new_cookie(browser: Browser) -> None:
    before = browser.cookie
    response = await browser.http.post("/api/auth/refresh")
    assert (response.status_code, response.json()) == (200, {"token": None})
    assert browser.cookie not in (None, before)
    assert (await browser.me()).status_code == 200


async def test_an_expired_token_is_refreshed_by_cookie(crossed: Service, browser: Browser) -> None:
    assert browser.cookie is not None
    mint = await session_mint(crossed, Person(crossed, "ada", browser.cookie))
    issued = int(time.time() - 8 * DAY_S)
    browser.http.cookies.set(
        "rota", mint.token(claims={"iat": issued, "exp": issued + 7 * DAY_S}), domain="127.0.0.1"
    )
    assert (await browser.me()).status_code == 401
    assert (await browser.http.post("/api/auth/refresh")).json() == {"token": None}
    assert (await browser.me()).status_code == 200


async def test_signing_out_clears_the_cookie(browser: Browser) -> None:
    token = browser.cookie
    response = await browser.http.post("/api/auth/logout")
    assert response.json() == {"loggedOut": True}
    _, value, found = attributes(response.headers["set-cookie"])
    assert (value, found["max-age"], found["path"]) == ("", "0", "/")
    assert browser.cookie is None
    headers = SAME_ORIGIN | {"Cookie": f"rota={token}"}
    assert (await browser.service.http.get("/api/me", headers=headers)).status_code == 401


async def test_a_session_that_is_ended_elsewhere_ends_requests_and_streams(
    browser: Browser,
) -> None:
    async with Browser(browser.service) as elsewhere:
        await elsewhere.sign_in()
        ended = asyncio.Event()

        async def follow() -> None:
            async with browser.http.stream("GET", "/api/events") as stream:
                assert stream.status_code == 200
                opened.set()
                async for _ in stream.aiter_bytes():
                    pass
            ended.set()

        opened = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            async with asyncio.timeout(10):
                await opened.wait()
            own = (await browser.http.get("/api/auth/sessions")).json()["sessions"]
            (session,) = [each["id"] for each in own if each["current"]]
            deleted = await elsewhere.http.delete(f"/api/auth/sessions/{session}")
            assert deleted.status_code == 200
            async with asyncio.timeout(10):
                await ended.wait()

        async def refused() -> bool:
            return (await browser.me()).status_code == 401

        await seconds_until(refused)
        assert (await browser.http.post("/api/auth/refresh")).status_code == 401
        assert (await elsewhere.me()).status_code == 200


async def test_a_stream_by_cookie_needs_a_page_of_this_service(browser: Browser) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with browser.http.stream("GET", "/api/events", headers=headers) as stream:
        assert stream.status_code == 401
