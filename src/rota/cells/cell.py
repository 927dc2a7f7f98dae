"""A cell as the router sees it: an address, and connections that are kept for the next request."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from rota.cells import metrics
from rota.cells.addresses import Addresses
from rota.cells.connection import CellFailed, Connection

CONNECT_S = 2.0
# Shorter than a cell keeps an idle connection (75 s), so that it does not close one in use.
IDLE_S = 30.0
# Requests and streams at the same time. A cell that hangs must not use up the router.
MAX_CONNECTIONS = 4_096
# Of these, for event streams, and for bodies that are passed on while they arrive. The rest is left
# for requests that end soon.
STREAMS_SHARE = 0.75
UPLOADS_SHARE = 0.25
# How long a cell that failed is asked last, where any cell can answer.
SUSPECT_S = 15.0


class Cell:
    def __init__(self, name: str, url: str, most: int = MAX_CONNECTIONS) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.name = name
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._addresses = Addresses(self._host, self._port)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._idle: deque[Connection] = deque()
        self._open = 0
        self._most = most
        self._uploads: set[Connection] = set()
        self._streams = 0
        self._suspect_until = 0.0
        self._gauge = metrics.CONNECTIONS.labels(name)
        self.first_byte = metrics.FIRST_BYTE_SECONDS.labels(name)
        metrics.announce(name)

    @property
    def is_suspect(self) -> bool:
        """Whether it failed a moment ago."""
        return time.monotonic() < self._suspect_until

    def suspect(self, *, failed: bool = True) -> None:
        self._suspect_until = time.monotonic() + SUSPECT_S if failed else 0.0

    async def acquire(self, *, new: bool = False, uploads: bool = False) -> tuple[Connection, bool]:
        """A connection, and whether it was used before. `uploads` if a client sends a body through
        it, which may take long."""
        if uploads and len(self._uploads) >= self._most * UPLOADS_SHARE:
            raise CellFailed("busy")
        connection, used = await self._acquired(new=new)
        if uploads:
            self._uploads.add(connection)
        return connection, used

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Counts an event stream until its end."""
        if self._streams >= self._most * STREAMS_SHARE:
            raise CellFailed("busy")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def _acquired(self, *, new: bool) -> tuple[Connection, bool]:
        while self._idle and not new:
            connection = self._idle.pop()
            if connection.is_open and time.monotonic() - connection.idle_since < IDLE_S:
                return connection, True
            self._close(connection)
        if self._open >= self._most:
            raise CellFailed("busy")
        self._open += 1
        self._gauge.set(self._open)
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._connect(await self._addresses.find())
        except BaseException as error:
            self._opened(-1)
            if isinstance(error, OSError):  # A timeout is one.
                self.suspect()
                raise CellFailed("connect") from None
            raise
        return connection, False

    async def _connect(self, addresses: list[str]) -> Connection:
        """To the first address that accepts it."""
        loop = asyncio.get_running_loop()
        name = self._host if self._tls else None
        failed: OSError | None = None
        for address in addresses:
            try:
                _, connection = await loop.create_connection(
                    Connection, address, self._port, ssl=self._tls, server_hostname=name
                )
            except OSError as error:
                failed = error
            else:
                return connection
        raise failed or OSError("The host name has no address.")

    def release(self, connection: Connection) -> None:
        """Keeps the connection for the next request, if its exchange is over."""
        self._uploads.discard(connection)
        if not connection.is_usable:
            self._close(connection)
            return
        connection.idle_since = now = time.monotonic()
        self._idle.append(connection)
        # The oldest are at the front, because the newest is used first.
        while self._idle and now - self._idle[0].idle_since >= IDLE_S:
            self._close(self._idle.popleft())

    def close(self) -> None:
        while self._idle:
            self._close(self._idle.pop())
        self._addresses.close()

    def _close(self, connection: Connection) -> None:
        connection.fail("closed")
        self._opened(-1)

    def _opened(self, change: int) -> None:
        self._open += change
        self._gauge.set(self._open)


def healthy_first(cells: Iterable[Cell]) -> list[Cell]:
    """In their order, but those that failed a moment ago at the end."""
    return sorted(cells, key=lambda cell: cell.is_suspect)
