"""HEAD wherever GET is."""

import asyncio

import pytest

from tests.assertions import assert_headers
from tests.service import Service

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
        "/billing",
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
    unauthenticated = await service_a.http.head("/api/tasks")
    assert unauthenticated.status_code == 401


async def test_head_of_a_stream_ends(service_a: Service) -> None:
    person = await service_a.sign_in()
    async with asyncio.timeout(10):
        for _ in range(3):
            response = await person.request("HEAD", "/api/events")
            assert response.status_code == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")
