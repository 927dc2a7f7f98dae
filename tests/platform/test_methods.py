"""HEAD wherever GET is, and requests from the pages of other origins (CORS)."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.assertions import assert_headers
from tests.platform.test_protocol import GET, exchange
from tests.service import Service

ORIGIN = "https://app.example.test"
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
# These headers differ between two requests.
OWN = ("x-request-id", "ratelimit-remaining", "ratelimit-reset", "date")


@pytest.mark.parametrize(
    "path",
    [
        "/api/me",
        "/api/tasks",
        "/api/agents/catalog",
        "/api/tasks/task_1",
        "/health/live",
        "/docs",
        "/openapi.json",
        "/.well-known/jwks.json",
        "/",
        "/signin",
        "/api/tasks?limit=0",
        "/nothing",
    ],
)
async def test_head_returns_the_headers_of_get_without_the_body(
    service: Service, path: str
) -> None:
    person = await service.sign_in()
    get, head = await person.get(path), await person.request("HEAD", path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert_headers(head)
    assert {name: value for name, value in head.headers.items() if name not in OWN} == {
        name: value for name, value in get.headers.items() if name not in OWN
    }


async def test_head_is_not_allowed_where_get_is_not(service_a: Service) -> None:
    person = await service_a.sign_in()
    response = await person.request("HEAD", "/api/auth/logout")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    response = await person.request("DELETE", "/api/tasks/batch")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    unauthenticated = await service_a.http.head("/api/tasks")
    assert unauthenticated.status_code == 401


async def test_head_of_a_stream_ends(service_a: Service) -> None:
    person = await service_a.sign_in()
    async with asyncio.timeout(10):
        for _ in range(3):
            response = await person.request("HEAD", "/api/events")
            assert response.status_code == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")


@pytest.fixture(scope="module")
async def crossed(stack: Stack) -> AsyncIterator[Service]:
    """A service that the pages of one origin can call."""
    async with Service.start(stack, variant="b", name="cors", cors_origins=(ORIGIN,)) as started:
        yield started


async def test_a_preflight_from_a_configured_origin_is_answered(crossed: Service) -> None:
    headers = PREFLIGHT | {"Access-Control-Request-Headers": "authorization,idempotency-key"}
    remaining = []
    for _ in range(3):
        response = await crossed.http.options("/api/tasks", headers=headers)
        assert (response.status_code, response.content) == (204, b"")
        assert_headers(response)
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "PATCH" in response.headers["Access-Control-Allow-Methods"]
        allowed = response.headers["Access-Control-Allow-Headers"]
        assert {"Authorization", "Idempotency-Key", "Last-Event-ID"} <= set(allowed.split(", "))
        # Cookies are never part of such a request.
        assert "Access-Control-Allow-Credentials" not in response.headers
        remaining.append(response.headers["RateLimit-Remaining"])
    # A browser sends it without credentials, so it does not count toward the address's limit.
    assert len(set(remaining)) == 1


async def test_every_response_to_a_configured_origin_can_be_read(crossed: Service) -> None:
    person = await crossed.sign_in()
    for response in (
        await person.get("/api/me", headers={"Origin": ORIGIN}),
        await person.post("/api/tasks", {}, headers={"Origin": ORIGIN}),
        await crossed.http.get("/api/me", headers={"Origin": ORIGIN}),
        await crossed.http.get("/nothing", headers={"Origin": ORIGIN}),
        await crossed.http.post(
            "/api/tasks", content=b" " * (3 * 1024 * 1024), headers={"Origin": ORIGIN}
        ),
    ):
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        exposed = set(response.headers["Access-Control-Expose-Headers"].split(", "))
        assert exposed >= {
            *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"),
            *("X-Request-Id", "Idempotent-Replayed", "Retry-After", "Api-Version"),
        }
        assert "Origin" in response.headers["Vary"]
    malformed = await exchange(crossed, GET + f"Origin: {ORIGIN}\r\nA: b\r\nbad\r\n\r\n".encode())
    assert malformed is not None
    assert malformed.headers[b"access-control-allow-origin"] == ORIGIN.encode()


@pytest.mark.parametrize(
    "origin", ["https://evil.test", f"{ORIGIN}.evil.test", f"{ORIGIN}:8443", "null", "", "*"]
)
async def test_another_origin_gets_no_permission(crossed: Service, origin: str) -> None:
    response = await crossed.http.options("/api/tasks", headers=PREFLIGHT | {"Origin": origin})
    assert response.status_code == 405
    found = await crossed.http.get("/api/auth/config", headers={"Origin": origin})
    for each in (response, found):
        assert not [name for name in each.headers if name.startswith("access-control-")]
        assert each.headers["Vary"] == "Origin"


async def test_without_origins_nothing_is_added(service: Service) -> None:
    response = await service.http.options("/api/tasks", headers=PREFLIGHT)
    assert response.status_code == 405
    found = await service.http.get("/api/auth/config", headers={"Origin": ORIGIN})
    for each in (response, found):
        assert not [name for name in each.headers if name.startswith("access-control-")]
        assert "Vary" not in each.headers
