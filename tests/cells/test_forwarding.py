"""What the router does to requests and responses on their way: as little as possible."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rota.cells import exchange
from rota.cells.router import Router
from rota.dev.stack import Stack
from tests.cells.fake_cell import OK, Arrived, FakeCell
from tests.cells.world import assert_refused, started_router
from tests.service import Service

pytestmark = pytest.mark.usefixtures("cell")


async def test_a_request_arrives_as_it_was_sent(http: httpx.AsyncClient, cell: FakeCell) -> None:
    answer = await http.post(
        "/api/tasks%2F1?a=1&b=%20",
        content=b"hello",
        headers={
            "X-Forwarded-For": "192.0.2.1",
            "Rota-Routing": "known-only",
            "Connection": "keep-alive, X-Hop, Content-Length, Cookie",
            "Cookie": "a=b",
            "X-Hop": "1",
            "TE": "trailers",
            "X-Other": "kept",
        },
    )
    assert (answer.status_code, answer.text, answer.headers["x-own"]) == (200, "ok", "yes")
    assert len(answer.headers.get_list("date")) == 1
    [arrived] = cell.arrived
    assert arrived.line == "POST /api/tasks%2F1?a=1&b=%20 HTTP/1.1"
    assert arrived.header("x-forwarded-for") == "192.0.2.1, 127.0.0.1"
    assert arrived.header("x-other") == "kept"
    # A client cannot take away what the request means.
    assert (arrived.header("content-length"), arrived.header("cookie")) == ("5", "a=b")
    for name in ("rota-routing", "x-hop", "te", "connection"):
        assert arrived.header(name) is None
    # The next request uses the same connection.
    await http.get("/api/plans")
    assert cell.connections == 1


async def test_a_response_passes_while_it_is_written(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    more = asyncio.Event()

    async def in_parts(arrived: Arrived) -> None:
        arrived.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await more.wait()
        arrived.writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    cell.handle = in_parts
    async with asyncio.timeout(20), http.stream("GET", "/api/plans") as answer:
        parts = answer.aiter_raw()
        assert await anext(parts) == b"one"
        more.set()
        assert await anext(parts) == b"two"


async def test_a_body_passes_while_it_is_sent(http: httpx.AsyncClient, cell: FakeCell) -> None:
    first_arrived = asyncio.Event()
    seen: list[bytes] = []

    async def read(arrived: Arrived) -> None:
        assert arrived.header("transfer-encoding") == "chunked"
        seen.append(await arrived.reader.readexactly(8))
        first_arrived.set()
        seen.append(await arrived.reader.readuntil(b"0\r\n\r\n"))
        arrived.writer.write(OK)

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        await first_arrived.wait()
        yield b"two"

    cell.handle = read
    async with asyncio.timeout(20):
        answer = await http.post("/api/tasks", content=body())
    assert answer.status_code == 200
    assert seen == [b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"]


async def test_a_refusal_passes_while_the_body_is_still_sent(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    refused = asyncio.Event()

    async def refuse(arrived: Arrived) -> None:
        arrived.writer.write(OK.replace(b"200 OK", b"413 Too Large"))
        await arrived.writer.drain()
        refused.set()
        await arrived.closed()

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        await refused.wait()
        yield b"two"

    cell.handle = refuse
    answer = await http.post("/api/tasks", content=body())
    assert answer.status_code == 413
    cell.handle = FakeCell().handle
    assert (await http.get("/api/plans")).status_code == 200


async def test_a_client_that_does_not_read_stops_the_cell(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    """The router stores only a little of a response that nobody reads."""
    most, block = 64 * 1024 * 1024, 64 * 1024
    written = 0
    stuck, ended = asyncio.Event(), asyncio.Event()

    async def write(arrived: Arrived) -> None:
        nonlocal written
        arrived.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % most)
        try:
            while written < most:
                arrived.writer.write(b"x" * block)
                try:
                    async with asyncio.timeout(1):
                        await arrived.writer.drain()
                except TimeoutError:
                    stuck.set()
                    await arrived.writer.drain()
                written += block
        finally:
            ended.set()

    cell.handle = write
    async with asyncio.timeout(30):
        async with http.stream("GET", "/api/export"):
            await stuck.wait()
        await ended.wait()
    assert written < most // 2


async def test_a_client_that_goes_away_ends_the_request_in_the_cell(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    waiting, closed = asyncio.Event(), asyncio.Event()

    async def hang(arrived: Arrived) -> None:
        await arrived.body()
        waiting.set()
        await arrived.closed()
        closed.set()

    cell.handle = hang
    for method, content in (("GET", None), ("POST", b"{}")):
        task = asyncio.create_task(http.request(method, "/api/tasks", content=content))
        async with asyncio.timeout(20):
            await waiting.wait()
            task.cancel()
            await closed.wait()
        waiting.clear()
        closed.clear()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_get_is_repeated_if_the_cell_has_just_closed_the_connection(
    http: httpx.AsyncClient, cell: FakeCell, method: str
) -> None:
    await http.get("/api/plans")

    async def close(arrived: Arrived) -> None:
        cell.handle = FakeCell().handle
        arrived.writer.close()

    cell.handle = close
    assert (await http.request(method, "/api/plans")).status_code == 200
    assert (len(cell.arrived), cell.connections) == (3, 2)


async def test_a_post_is_never_repeated(http: httpx.AsyncClient, cell: FakeCell) -> None:
    await http.get("/api/plans")

    async def close(arrived: Arrived) -> None:
        arrived.writer.close()

    cell.handle = close
    answer = await http.post("/api/tasks", content=b"{}")
    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
    assert len(cell.arrived) == 2


@pytest.mark.parametrize(
    "response",
    [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b""],
)
async def test_what_is_no_response_is_an_outage(
    http: httpx.AsyncClient, cell: FakeCell, response: bytes
) -> None:
    async def answer(arrived: Arrived) -> None:
        arrived.writer.write(response)
        arrived.writer.close()

    cell.handle = answer
    assert_refused(await http.get("/api/plans"), 503, "SERVICE_UNAVAILABLE")


async def test_a_response_that_breaks_off_is_seen_as_broken(
    http: httpx.AsyncClient, cell: FakeCell
) -> None:
    async def half(arrived: Arrived) -> None:
        arrived.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await arrived.writer.drain()
        arrived.writer.close()

    cell.handle = half
    with pytest.raises(httpx.RemoteProtocolError):
        await http.get("/api/plans")


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it", "all of it"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', ""),
    ],
)
async def test_every_kind_of_response_passes(
    http: httpx.AsyncClient, cell: FakeCell, response: bytes, text: str
) -> None:
    async def answer(arrived: Arrived) -> None:
        arrived.writer.write(response)
        if b"close" in response:
            await arrived.writer.drain()
            arrived.writer.close()

    cell.handle = answer
    async with asyncio.timeout(20):
        for _ in range(2):
            assert (await http.get("/api/plans")).text == text


async def test_a_cell_that_hangs_is_given_up(
    http: httpx.AsyncClient, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "RESPONSE_S", 0.2)

    async def hang(arrived: Arrived) -> None:
        await arrived.closed()

    cell.handle = hang
    async with asyncio.timeout(20):
        assert_refused(await http.get("/api/plans"), 503, "SERVICE_UNAVAILABLE")


async def test_a_stream_on_which_nothing_arrives_is_given_up(
    http: httpx.AsyncClient, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "STREAM_S", 0.2)

    async def stream(arrived: Arrived) -> None:
        arrived.writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"
        )
        await arrived.closed()

    cell.handle = stream
    async with asyncio.timeout(20), http.stream("GET", "/api/events") as answer:
        assert [part async for part in answer.aiter_raw()] == [b"data: 1\n\n"]


async def test_a_stream_ends_when_the_router_stops(
    running: tuple[Service, Router], cell: FakeCell
) -> None:
    service, app = running

    async def stream(arrived: Arrived) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        arrived.writer.write(head + b"\r\n\r\n3\r\n:\n\n\r\n")
        await arrived.closed()

    cell.handle = stream
    async with asyncio.timeout(20), service.http.stream("GET", "/api/events") as answer:
        parts = answer.aiter_raw()
        assert await anext(parts) == b":\n\n"
        app.end_streams()
        assert [part async for part in parts] == []


@pytest.mark.parametrize(
    "head",
    [
        b"POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000,
    ],
)
async def test_what_the_server_cannot_read_is_refused_by_the_router(
    running: tuple[Service, Router], cell: FakeCell, head: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running[0].settings.port)
    writer.write(head)
    async with asyncio.timeout(20):
        line = await reader.readline()
    assert line.split()[1] in (b"400", b"431")
    assert cell.arrived == []
    writer.close()


async def test_a_path_can_name_the_cell(http: httpx.AsyncClient, cell: FakeCell) -> None:
    answer = await http.post("/cells/east/webhooks/stripe", content=b"{}")
    assert answer.status_code == 200
    assert cell.arrived[0].line == "POST /webhooks/stripe HTTP/1.1"
    assert_refused(await http.post("/cells/moon/webhooks/stripe"), 404, "NOT_FOUND")
    # The path passes as it was sent.
    await http.post("/cells/east/webhooks/a%20HTTP/1.1%0dX:y".replace(":", "%3A"), content=b"{}")
    assert cell.arrived[-1].line == "POST /webhooks/a%20HTTP/1.1%0dX%3Ay HTTP/1.1"
    # The API has no such paths.
    await http.get("/cells/east/api/tasks")
    assert cell.arrived[-1].line == "GET /cells/east/api/tasks HTTP/1.1"


async def test_no_cell_is_an_outage(stack: Stack) -> None:
    down: Any = {"east": "http://127.0.0.1:1"}
    async with started_router(stack, down) as (router, _):
        assert_refused(await router.http.get("/"), 503, "SERVICE_UNAVAILABLE")
        ready = await router.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
        assert_refused(await router.http.get("/.well-known/jwks.json"), 503, "SERVICE_UNAVAILABLE")
        for path in ("/api/auth/code", "/api/auth/session"):
            assert_refused(await router.http.post(path, json={}), 503, "SERVICE_UNAVAILABLE")
