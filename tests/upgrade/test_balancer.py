"""The load balancer of the upgrade test sends connections to ready processes only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.service import free_port
from tests.upgrade.balancer import Balancer


class Process:
    """A server that says its name, and whether it is ready."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = True
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Process"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        status = "200 OK"
        if b"/health/ready" in asked and not self.ready:
            status = "503 Service Unavailable"
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(self.name)}\r\nConnection: close"
        writer.write(f"{head}\r\n\r\n{self.name}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def balanced(*processes: Process) -> AsyncIterator[tuple[Balancer, httpx.AsyncClient]]:
    async with Balancer.start(free_port()) as balancer:
        for process in processes:
            balancer.add(process.port)
            await balancer.until_ready(process.port)
        url = f"http://127.0.0.1:{balancer.port}"
        async with httpx.AsyncClient(base_url=url, timeout=10) as http:
            yield balancer, http


async def until_not_ready(balancer: Balancer, process: Process) -> None:
    async with asyncio.timeout(10):
        while balancer.is_ready(process.port):
            await asyncio.sleep(0.02)


async def test_connections_go_to_the_ready_processes_in_turns() -> None:
    async with (
        Process("one").serving() as one,
        Process("two").serving() as two,
        balanced(one, two) as (_, http),
    ):
        assert {(await http.get("/")).text for _ in range(4)} == {"one", "two"}


async def test_a_process_that_is_not_ready_gets_no_connections() -> None:
    async with (
        Process("one").serving() as one,
        Process("two").serving() as two,
        balanced(one, two) as (balancer, http),
    ):
        one.ready = False
        await until_not_ready(balancer, one)
        assert {(await http.get("/")).text for _ in range(4)} == {"two"}
        one.ready = True
        await balancer.until_ready(one.port)
        assert {(await http.get("/")).text for _ in range(4)} == {"one", "two"}


async def test_a_process_that_ended_since_the_last_check_costs_no_request() -> None:
    async with Process("one").serving() as one, balanced(one) as (balancer, http):
        # Nobody listens at this port, and the balancer does not know it yet.
        nobody = free_port()
        balancer._ready = {nobody: True, **balancer._ready}
        assert {(await http.get("/")).text for _ in range(4)} == {"one"}


async def test_without_a_ready_process_connections_are_refused_and_counted() -> None:
    async with Process("one").serving() as one, balanced(one) as (balancer, http):
        one.ready = False
        await until_not_ready(balancer, one)
        try:
            await http.get("/")
        except httpx.TransportError:
            pass
        else:
            raise AssertionError("the request was answered")
        assert balancer.refused == 1
