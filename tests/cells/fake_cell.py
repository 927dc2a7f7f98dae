"""A server that answers as a test says, to see exactly what the router sends and passes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: yes\r\n\r\nok"


@dataclass
class Arrived:
    """A request whose head has arrived."""

    line: str
    headers: list[tuple[str, str]]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each == name), None)

    async def body(self) -> bytes:
        return await self.reader.readexactly(int(self.header("content-length") or 0))

    async def closed(self, deadline_s: float = 20) -> None:
        """Waits until the router has closed the connection."""
        async with asyncio.timeout(deadline_s):
            try:
                while await self.reader.read(65_536):
                    pass
            except ConnectionError:
                pass


Handler = Callable[[Arrived], Awaitable[None]]


async def answer_ok(arrived: Arrived) -> None:
    await arrived.body()
    arrived.writer.write(OK)


@dataclass
class FakeCell:
    url: str = ""
    handle: Handler = answer_ok
    arrived: list[Arrived] = field(default_factory=list)
    connections: int = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["FakeCell"]:
        open_ones: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            open_ones.add(writer)
            try:
                while not writer.is_closing():
                    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                    pairs = [line.partition(": ") for line in head[1:] if line]
                    headers = [(name.lower(), value) for name, _, value in pairs]
                    self.arrived.append(Arrived(head[0], headers, reader, writer))
                    await self.handle(self.arrived[-1])
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                open_ones.discard(writer)
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for writer in list(open_ones):
                writer.transport.abort()
