"""An endpoint for webhooks that a test controls. It speaks just enough HTTP to misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def response(status: int, *headers: str, body: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body.encode())}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def event(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received], "bytes | Awaitable[bytes]"]


def accept(_: Received) -> bytes:
    return OK


@dataclass
class Receiver:
    """Records what arrives. `answers` says for a path what to respond; otherwise it is 200."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    connections: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def at(self, path: str) -> list[Received]:
        return [each for each in self.received if each.path == path]

    def sequences(self, path: str = "/") -> list[int]:
        return [each.event["sequence"] for each in self.at(path)]

    async def until(self, reached: Callable[[], bool], deadline_s: float = 30) -> None:
        """Waits until the condition holds. It is checked whenever something arrives."""
        async with asyncio.timeout(deadline_s):
            while not reached():
                self._arrived.clear()
                await self._arrived.wait()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Receiver"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for writer in list(self._open):
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = head[0].split(" ")[1]
                now = asyncio.get_running_loop().time()
                received = Received(path, headers, body, now)
                self.received.append(received)
                self._arrived.set()
                answer = self.answers.get(path, accept)(received)
                writer.write(answer if isinstance(answer, bytes) else await answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


async def hang(_: Received) -> bytes:
    await asyncio.Event().wait()
    return b""
