"""How many connections a cell gets, and when the router gives one up."""

import asyncio
from contextlib import ExitStack

import httpx
import pytest
from prometheus_client import REGISTRY

from rota.cells import exchange
from rota.cells.cell import MAX_CONNECTIONS, STREAMS_SHARE, Cell
from rota.cells.connection import CellFailed
from rota.cells.router import Router
from tests.cells.fake_cell import Arrived, FakeCell
from tests.cells.world import assert_refused
from tests.service import Service


async def test_a_cell_has_a_limit_of_connections(cell: FakeCell) -> None:
    limited = Cell("limited", cell.url, most=1)
    connection, used = await limited.acquire()
    assert not used
    with pytest.raises(CellFailed, match="busy"):
        await limited.acquire()
    limited.release(connection)  # It was not used, so it is closed.
    again, _ = await limited.acquire()
    assert again is not connection
    limited.release(again)


async def test_streams_and_long_bodies_leave_connections_for_others(cell: FakeCell) -> None:
    limited = Cell("limited", cell.url, most=4)
    upload, _ = await limited.acquire(uploads=True)
    with pytest.raises(CellFailed, match="busy"):
        await limited.acquire(uploads=True)
    limited.release(upload)
    limited.release((await limited.acquire(uploads=True))[0])
    with ExitStack() as streams:
        for _ in range(3):
            streams.enter_context(limited.streaming())
        with pytest.raises(CellFailed, match="busy"), limited.streaming():
            pass
    with limited.streaming():
        pass


async def test_a_stream_too_many_is_counted_as_busy(
    running: tuple[Service, Router], cell: FakeCell
) -> None:
    async def stream(arrived: Arrived) -> None:
        arrived.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")

    def refused() -> float:
        labels = {"cell": "east", "reason": "busy"}
        return REGISTRY.get_sample_value("rota_router_failures_total", labels) or 0

    cell.handle = stream
    service, router = running
    before = refused()
    with ExitStack() as streams:
        for _ in range(int(MAX_CONNECTIONS * STREAMS_SHARE)):
            streams.enter_context(router.cells["east"].streaming())
        assert_refused(await service.http.get("/api/events"), 503, "SERVICE_UNAVAILABLE")
    assert refused() == before + 1


async def test_a_slow_sender_takes_no_connection_to_the_cell(
    running: tuple[Service, Router], cell: FakeCell
) -> None:
    service, _ = running
    reader, writer = await asyncio.open_connection("127.0.0.1", service.settings.port)
    writer.write(b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell")
    await writer.drain()
    for _ in range(3):
        assert (await service.http.get("/api/plans")).status_code == 200
    assert (cell.connections, len(cell.arrived)) == (1, 3)
    writer.write(b"o")
    async with asyncio.timeout(20):
        assert b"200" in await reader.readline()
    assert (cell.connections, len(cell.arrived)) == (1, 4)
    writer.close()


async def test_a_cell_that_does_not_read_is_given_up(
    http: httpx.AsyncClient, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "RESPONSE_S", 0.3)
    stuck = asyncio.Event()

    async def ignore(arrived: Arrived) -> None:
        arrived.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await stuck.wait()

    cell.handle = ignore
    try:
        async with asyncio.timeout(20):
            answer = await http.post("/api/tasks", content=b"x" * 32 * 1024 * 1024)
        assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
    finally:
        stuck.set()


async def test_a_body_that_stops_is_given_up(
    http: httpx.AsyncClient, cell: FakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "RESPONSE_S", 0.3)

    async def half(arrived: Arrived) -> None:
        arrived.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await arrived.closed()

    cell.handle = half
    async with asyncio.timeout(20):
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("/api/plans")
