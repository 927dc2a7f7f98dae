"""A TCP proxy that cuts connections, as a bad network does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

# How many bytes of the next connection's responses get through. None lets everything through.
Limit = Callable[[], int | None]


class CuttingProxy:
    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.limit: Limit = lambda: None
        # A connection with a limit is also cut after so much silence.
        self.silence_s: float | None = None
        self.cuts = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut_next(self, after_bytes: int = 0) -> None:
        """Cuts one connection after so many bytes of a response, and no other."""
        limits = iter([after_bytes])
        self.limit = lambda: next(limits, None)

    @classmethod
    @asynccontextmanager
    async def to(cls, port: int) -> AsyncIterator["CuttingProxy"]:
        proxy = cls(port)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        left = self.limit()
        silence_s = None if left is None else self.silence_s
        requests = asyncio.create_task(_copy(reader, far_writer))
        try:
            piece = await far_reader.read(65536)
            while piece and (left is None or len(piece) <= left):
                left = None if left is None else left - len(piece)
                writer.write(piece)
                await writer.drain()
                async with asyncio.timeout(silence_s):
                    piece = await far_reader.read(65536)
            if not piece:
                writer.close()
                return
            writer.write(piece[:left])
            await writer.drain()
            self._cut(writer)
        except TimeoutError:
            self._cut(writer)
        except OSError:
            writer.transport.abort()
        finally:
            requests.cancel()
            far_writer.transport.abort()

    def _cut(self, writer: asyncio.StreamWriter) -> None:
        self.cuts += 1
        # A reset instead of a clean close.
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()
