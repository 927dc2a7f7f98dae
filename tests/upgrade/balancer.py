"""A load balancer for connections: it sends each to a process that is ready, in turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self

CHECK_EVERY_S = 0.2
CHECK_WITHIN_S = 2.0


class Balancer:
    """It knows of a process only what a request to /health/ready says."""

    def __init__(self, port: int) -> None:
        self.port = port
        # The ports of processes, and whether each is ready.
        self._ready: dict[int, bool] = {}
        self._turn = 0
        self._open: set[asyncio.Task[None]] = set()
        self.connections: dict[int, int] = {}
        # Connections that no process took.
        self.refused = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, port: int) -> AsyncIterator[Self]:
        balancer = cls(port)
        server = await asyncio.start_server(balancer._accept, "127.0.0.1", port)
        watching = asyncio.create_task(balancer._watch())
        try:
            yield balancer
        finally:
            server.close()
            for task in (watching, *balancer._open):
                task.cancel()
            await asyncio.wait([watching, *balancer._open])

    def add(self, port: int) -> None:
        self._ready[port] = False

    def remove(self, port: int) -> None:
        del self._ready[port]

    def is_ready(self, port: int) -> bool:
        return self._ready.get(port, False)

    async def until_ready(self, port: int, deadline_s: float = 60) -> None:
        async with asyncio.timeout(deadline_s):
            while not self.is_ready(port):
                await asyncio.sleep(0.02)

    async def _watch(self) -> None:
        while True:
            for port in list(self._ready):
                ready = await _answers(port)
                if port in self._ready:
                    self._ready[port] = ready
            await asyncio.sleep(CHECK_EVERY_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._forward(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port, found = await self._connect()
        if found is None:
            self.refused += 1
            return
        self.connections[port] = self.connections.get(port, 0) + 1
        answers, requests = found
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, requests))
                await _copy(answers, writer)
                # The process has closed the connection, so the client's end closes, too.
                writer.close()
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            requests.close()

    async def _connect(
        self,
    ) -> tuple[int, tuple[asyncio.StreamReader, asyncio.StreamWriter] | None]:
        ready = [port for port, is_ready in self._ready.items() if is_ready]
        self._turn += 1
        for number in range(len(ready)):
            port = ready[(self._turn + number) % len(ready)]
            try:
                return port, await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                self._ready[port] = False
        return 0, None


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        target.write(data)
        await target.drain()
    with contextlib.suppress(OSError, RuntimeError):
        target.write_eof()


async def _answers(port: int) -> bool:
    """Whether /health/ready returns 200."""
    writer = None
    try:
        async with asyncio.timeout(CHECK_WITHIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            )
            return b" 200 " in await reader.readline()
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()
