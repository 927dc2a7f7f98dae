"""One HTTP/1.1 connection to a cell. It carries one request at a time, and nothing is buffered that
the other side does not read."""

import asyncio
from collections import deque
from typing import cast

import httptools

# How much of a response may wait here for a slow client before the cell has to wait as well.
MAX_BUFFERED_BYTES = 64 * 1024

Headers = list[tuple[bytes, bytes]]


class CellFailed(Exception):
    """The cell did not answer. `reason` is for metrics and logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        # Whether the whole response has arrived, or none is expected.
        self.complete = True
        # When it was put aside, for the one who keeps it.
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._failure: CellFailed | None = None
        self._reusable = False
        self._waiter: asyncio.Future[None] | None = None
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._headers_only = self._until_close = False
        self._parser = httptools.HttpResponseParser(self)

    # The request.

    def begin(self, head: bytes, *, headers_only: bool) -> None:
        """Sends the head of a request. The response to HEAD has no body."""
        assert self._transport is not None
        self.status, self.headers, self.complete = 0, [], False
        self._headers_only, self._reusable = headers_only, False
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(head)

    async def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            await self._writable.wait()

    # The response.

    async def started(self) -> None:
        """Waits for the head of the response."""
        while not self.status:
            await self._wait()

    async def chunk(self) -> bytes:
        """What has arrived of the body. Empty at its end."""
        while not self._chunks:
            if self.complete:
                return b""
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    @property
    def is_usable(self) -> bool:
        """Whether another request can use it."""
        return self._reusable and self._failure is None and not self._chunks

    @property
    def is_open(self) -> bool:
        return self._failure is None

    def fail(self, reason: str) -> None:
        """Gives the exchange up: whoever waits for the response gets the error."""
        if self._failure is None:
            self._failure = CellFailed(reason)
        self._until_close = False
        self._wake()
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are not derived from this class.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._until_close and self.status and exc is None:
            self.complete = True
        if self._failure is None:
            self._failure = CellFailed("closed")
        self._writable.set()
        self._wake()

    def data_received(self, data: bytes) -> None:
        if self.complete:
            # Nobody has asked for it.
            self.fail("protocol")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.complete:
                self.fail("protocol")
        if self._buffered > MAX_BUFFERED_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by the parser.

    def on_message_begin(self) -> None:
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return  # The response follows.
        names = {name for name, _ in self.headers}
        self._until_close = not names & {b"content-length", b"transfer-encoding"}
        self.status = status
        # The parser would wait for the body that its length announces.
        self.complete = self._headers_only
        self._wake()

    def on_body(self, data: bytes) -> None:
        self._chunks.append(data)
        self._buffered += len(data)
        self._wake()

    def on_message_complete(self) -> None:
        if self.status and not self._headers_only:
            self.complete = True
            self._reusable = self._parser.should_keep_alive()
            self._wake()
