"""A client that sends or reads too slowly is cut off, and a slow one that makes progress is not."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from prometheus_client import REGISTRY

from rota.platform.http import edge
from rota.platform.http.server import ClientTimeouts, Protocol
from tests.platform.probe import LARGE, short_timeouts
from tests.platform.test_process import PROBE
from tests.platform.test_protocol import GET, POST, Raw, assert_common_headers, read_response
from tests.service import Service

SHORT_S = 0.3
BODY = b'{"subject": "a"}'


@pytest.fixture(autouse=True)
def timeouts(monkeypatch: pytest.MonkeyPatch) -> ClientTimeouts:
    short = short_timeouts(SHORT_S)
    monkeypatch.setattr(Protocol, "timeouts", short)
    monkeypatch.setattr(edge, "LINGER_S", 0.1)
    return short


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def response(self) -> Raw:
        async with asyncio.timeout(20):
            response = await read_response(self.reader)
        assert response is not None
        return response

    async def until_closed(self) -> bytes:
        """Everything that arrives until the server ends the connection."""
        received = b""
        async with asyncio.timeout(20):
            with suppress(ConnectionError):
                while piece := await self.reader.read(2**20):
                    received += piece
        return received


@asynccontextmanager
async def connected(service: Service, buffer: int | None = None) -> AsyncIterator[Client]:
    sock = socket.socket()
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", service.settings.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**16)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


def cut_off(phase: str) -> float:
    return REGISTRY.get_sample_value("rota_http_slow_clients_total", {"phase": phase}) or 0


async def until_cut_off(phase: str, count: float) -> None:
    async with asyncio.timeout(20):
        while cut_off(phase) < count:
            await asyncio.sleep(0.01)


def assert_timed_out(response: Raw, path: str) -> None:
    assert response.status == 408
    error = response.body["error"]
    assert error.keys() == {"message", "code", "timestamp", "path"}
    assert (error["code"], error["path"]) == ("REQUEST_TIMEOUT", path)
    assert response.headers[b"connection"] == b"close"
    assert_common_headers(response)


async def test_half_sent_headers_get_408_and_the_connection_closes(probed: Service) -> None:
    before = cut_off("headers")
    async with connected(probed) as client:
        await client.send(GET + b"X-Half: se")
        assert_timed_out(await client.response(), "/api/auth/config")
        assert await client.until_closed() == b""
    assert cut_off("headers") == before + 1


async def test_headers_that_keep_dripping_get_408(probed: Service) -> None:
    async with connected(probed) as client:
        await client.send(GET)
        response = asyncio.create_task(client.response())
        while not response.done():
            with suppress(ConnectionError):
                await client.send(b"X: y\r\n")
            await asyncio.sleep(SHORT_S / 10)
        assert_timed_out(await response, "/api/auth/config")


async def test_every_request_of_a_connection_has_the_whole_time(probed: Service) -> None:
    async with connected(probed) as client, connected(probed) as clock:
        await clock.send(GET)
        # Each piece ends one request and begins another.
        await client.send(GET)
        for _ in range(4):
            await asyncio.sleep(SHORT_S / 3)
            await client.send(b"\r\n" + GET)
            assert (await client.response()).status == 200
        assert_timed_out(await clock.response(), "/api/auth/config")
        assert_timed_out(await client.response(), "/api/auth/config")


async def test_a_half_sent_body_gets_408_and_the_connection_closes(probed: Service) -> None:
    before = cut_off("body")
    async with connected(probed) as client:
        await client.send(POST + b"Content-Length: 16\r\n\r\n" + BODY[:8])
        assert_timed_out(await client.response(), "/api/probe/letters")
        assert await client.until_closed() == b""
    assert cut_off("body") == before + 1


async def test_a_body_has_more_time_the_more_of_it_has_arrived(
    probed: Service, monkeypatch: pytest.MonkeyPatch, timeouts: ClientTimeouts
) -> None:
    # Ten seconds more for what is sent first.
    monkeypatch.setattr(Protocol, "timeouts", replace(timeouts, body_bytes_per_s=2_000))
    body = BODY.ljust(20_001)
    async with connected(probed) as client, connected(probed) as clock:
        await client.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1])
        await clock.send(POST + b"Content-Length: 16\r\n\r\n" + BODY[:8])
        assert_timed_out(await clock.response(), "/api/probe/letters")
        await client.send(body[-1:])
        assert (await client.response()).status == 201


async def test_the_rest_of_a_body_that_was_refused_is_not_awaited_for_long(
    probed: Service,
) -> None:
    async with connected(probed) as client:
        head = POST.replace(b"/api/probe/letters", b"/api/keys")
        await client.send(head + b"Content-Length: 16\r\n\r\n" + BODY[:8])
        assert (await client.response()).status == 401
        assert await client.until_closed() == b""


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_a_connection_without_a_request_is_closed(
    probed: Service, monkeypatch: pytest.MonkeyPatch, timeouts: ClientTimeouts, sent: bytes
) -> None:
    monkeypatch.setattr(Protocol, "timeouts", replace(timeouts, idle_s=1))
    async with connected(probed) as client:
        await client.send(sent)
        assert await client.until_closed() == b""


async def test_a_line_break_after_a_request_does_not_end_it(
    probed: Service, tmp_path: Path
) -> None:
    file = tmp_path / "finish"
    async with connected(probed) as client, connected(probed) as clock:
        line = f"GET /api/probe/until?file={file} HTTP/1.1\r\n"
        await client.send(line.encode() + b"Host: x\r\n\r\n")
        assert b"begun," in await client.reader.readuntil(b"begun,")
        await client.send(b"\r\n")
        await clock.send(GET)
        assert_timed_out(await clock.response(), "/api/auth/config")
        file.touch()
        assert await client.reader.readuntil(b"0\r\n\r\n") == b"\r\n4\r\ndone\r\n0\r\n\r\n"


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
async def test_a_client_that_does_not_read_is_cut_off(probed: Service, last: bytes) -> None:
    before = cut_off("response")
    async with connected(probed, buffer=4096) as client:
        await client.send(b"GET /api/probe/large HTTP/1.1\r\nHost: x\r\n%b\r\n" % last)
        await until_cut_off("response", before + 1)
        assert 0 < len(await client.until_closed()) < LARGE


async def test_a_client_that_reads_slowly_gets_its_whole_response(probed: Service) -> None:
    before = cut_off("response")
    async with connected(probed) as client:
        await client.send(b"GET /api/probe/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        received = 0
        # Several times as long as a client that reads nothing.
        for _ in range(40):
            received += len(await client.reader.read(64 * 1024))
            await asyncio.sleep(SHORT_S / 10)
        received += len(await client.until_closed())
    assert received == LARGE
    assert cut_off("response") == before


async def test_what_a_client_does_not_read_takes_no_memory_afterwards(
    probed: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, which has the event loop of production."""
    monkeypatch.setenv("CLIENT_TIMEOUT_S", "1")
    async with probed.process(fresh=True, command=PROBE) as service:
        assert service.running is not None
        process = psutil.Process(service.running.pid)
        assert len((await service.http.get("/api/probe/large")).content) == LARGE
        before = process.memory_info().rss
        large = b"GET /api/probe/large HTTP/1.1\r\nHost: x\r\n\r\n"
        async with asyncio.timeout(30), asyncio.TaskGroup() as readers:

            async def never_read() -> None:
                async with connected(service, buffer=4096) as client:
                    await client.send(large)
                    while True:
                        text = (await service.http.get("/metrics")).text
                        if 'slow_clients_total{phase="response"} 8.0' in text:
                            return
                        await asyncio.sleep(0.05)

            for _ in range(8):
                readers.create_task(never_read())
        async with asyncio.timeout(10):
            while process.memory_info().rss > before + 2 * LARGE:
                await asyncio.sleep(0.05)
        # The same process cuts off half-sent requests too.
        async with connected(service) as client:
            await client.send(GET)
            assert_timed_out(await client.response(), "/api/auth/config")
        async with connected(service) as client:
            await client.send(POST + b"Content-Length: 16\r\n\r\n")
            assert_timed_out(await client.response(), "/api/probe/letters")
