"""What a page of another origin can read of the answers that the router makes itself."""

from collections.abc import AsyncIterator

import httpx
import pytest

from rota.auth import secrets
from rota.dev.stack import Stack
from tests.cells.fake_cell import Arrived, FakeCell
from tests.cells.world import assert_refused, started_router

PAGE = "https://app.example.com"
# Its cell is down.
OF_WEST = {"Authorization": f"Bearer {secrets.new_secret('west')}"}
KEYS = b'{"keys": [{"kid": "1"}]}'


@pytest.fixture
async def http(stack: Stack, cell: FakeCell) -> AsyncIterator[httpx.AsyncClient]:
    """One cell works, and the other one is down."""
    cells = {"east": cell.url, "west": "http://127.0.0.1:1"}
    async with started_router(stack, cells, cors_origins=(PAGE,)) as (router, _):
        yield router.http


async def test_a_page_can_read_the_errors_of_the_router(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/tasks", headers={**OF_WEST, "Origin": PAGE})
    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert "Retry-After" in answer.headers["access-control-expose-headers"].split(", ")


async def test_a_page_of_another_origin_cannot(http: httpx.AsyncClient) -> None:
    other = {**OF_WEST, "Origin": "https://evil.example.com"}
    answer = await http.get("/api/tasks", headers=other)
    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"


async def test_the_router_answers_a_preflight_without_a_cell(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    for path in ("/api/tasks", "/.well-known/jwks.json"):
        answer = await http.options(path, headers=asked)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "Authorization" in answer.headers["access-control-allow-headers"]
    assert cell.arrived == []
    # A cell refuses what is no preflight of a configured origin.
    await http.options("/api/tasks")
    assert [each.line for each in cell.arrived] == ["OPTIONS /api/tasks HTTP/1.1"]


async def test_lists_of_keys_and_health_are_readable(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    async def answer_keys(arrived: Arrived) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(KEYS)}\r\n\r\n"
        arrived.writer.write(head.encode() + KEYS)

    cell.handle = answer_keys
    for path in ("/.well-known/jwks.json", "/health/ready"):
        answer = await http.get(path, headers={"Origin": PAGE})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == PAGE


async def test_a_response_of_a_cell_keeps_its_own_headers(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    async def answer(arrived: Arrived) -> None:
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nAccess-Control-Allow-Origin: {PAGE}\r\n\r\n"
        )
        arrived.writer.write(head.encode())

    cell.handle = answer
    found = await http.get("/api/plans", headers={"Origin": PAGE})
    assert found.headers.get_list("access-control-allow-origin") == [PAGE]
