"""Sends one request to a cell and passes the response on while it arrives."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from starlette.types import Receive, Scope, Send

from rota.cells import metrics
from rota.cells.cell import Cell
from rota.cells.connection import CellFailed, Connection, Headers
from rota.platform.cell import ROUTING_HEADER
from rota.platform.errors import PayloadTooLarge
from rota.platform.http.edge import REFUSAL

# Most responses begin sooner. Only the others get a task that watches the client and the time.
WATCH_AFTER_S = 0.2
# The longest calls of a cell wait 300 s for a task, over A2A and MCP.
RESPONSE_S = 330.0
# Between two parts of an event stream. Cells send one at least every 15 s.
STREAM_S = 60.0
# Of a short answer that has begun.
READ_S = 5.0
# A body up to this size is read before a connection to the cell is taken, so that a slow client
# takes none.
SMALL_BODY_BYTES = 64 * 1024

# They concern one connection only, and the router has two. Nobody outside can use the last one.
_OWN_HEADERS = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect", b"x-forwarded-for"),
        ROUTING_HEADER.encode(),
    )
)
# A `Connection` header that names these would change what the request means.
_END_TO_END = frozenset(
    (b"authorization", b"content-length", b"content-type", b"cookie", b"host", b"x-forwarded-for")
)
# The server adds a date to every response.
RESPONSE_HEADERS = frozenset((b"connection", b"keep-alive", b"transfer-encoding", b"date"))
_LENGTH = b"content-length"

log = structlog.get_logger()


@dataclass(slots=True)
class Request:
    """A request of a client, as it is sent to a cell."""

    scope: Scope
    receive: Receive
    headers: Headers = field(init=False)
    chunked: bool = field(init=False)
    # The whole body, if it was read to send it more than once.
    body: bytes | None = None

    def __post_init__(self) -> None:
        sent: Headers = self.scope["headers"]
        own = _OWN_HEADERS
        forwarded = []
        self.chunked = False
        for name, value in sent:
            if name == b"connection" and value.lower() not in (b"keep-alive", b"close"):
                # The others are for the cell, whatever this one says.
                named = {each.strip().lower() for each in value.split(b",")}
                own = own | {each for each in named if each not in _END_TO_END}
            elif name == b"transfer-encoding":
                self.chunked = True
            elif name == b"x-forwarded-for":
                forwarded.append(value)
        self.headers = [each for each in sent if each[0] not in own]
        if self.scope.get("client"):
            forwarded.append(self.scope["client"][0].encode())
        if forwarded:
            self.headers.append((b"x-forwarded-for", b", ".join(forwarded)))

    @property
    def has_body(self) -> bool:
        return self.chunked or any(
            name == _LENGTH and value != b"0" for name, value in self.headers
        )

    @property
    def has_small_body(self) -> bool:
        length = next((value for name, value in self.headers if name == _LENGTH), b"")
        return not self.chunked and length.isdigit() and int(length) <= SMALL_BODY_BYTES

    async def read(self, most: int) -> bytes:
        """The whole body, to send it more than once."""
        parts, size = [], 0
        while True:
            message = await self.receive()
            if REFUSAL in self.scope:
                raise self.scope[REFUSAL]
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise PayloadTooLarge(f"The request body is larger than {most} bytes.")
            if not message.get("more_body"):
                self.body = b"".join(parts)
                return self.body

    def replaced(self, path: str, body: bytes) -> "Request":
        """The same client, and another request."""
        changed = Request(
            {**self.scope, "raw_path": path.encode(), "query_string": b""}, self.receive
        )
        changed.body = body
        return changed

    def unwatched(self, receive: Receive) -> "Request":
        """The same request, without a client that could go away."""
        copy = Request(self.scope, receive)
        copy.body = self.body
        return copy

    def head(self, extra: Headers) -> bytes:
        scope = self.scope
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        lines = [b"%s %s HTTP/1.1" % (scope["method"].encode(), target)]
        if self.body is None:
            lines += [b"%s: %s" % each for each in self.headers]
            if self.chunked:
                lines.append(b"transfer-encoding: chunked")
        else:
            lines += [b"%s: %s" % each for each in self.headers if each[0] != _LENGTH]
            lines.append(b"content-length: %d" % len(self.body))
        lines += [b"%s: %s" % each for each in extra]
        return b"\r\n".join((*lines, b"", b""))


class ClientGone(Exception):
    """The client has disconnected."""


class Exchange:
    """A response that has begun."""

    def __init__(self, cell: Cell, connection: Connection) -> None:
        self.cell = cell
        self._connection = connection
        self.status = connection.status
        self.headers = connection.headers

    @property
    def is_stream(self) -> bool:
        return any(
            name == b"content-type" and value.startswith(b"text/event-stream")
            for name, value in self.headers
        )

    def end(self) -> None:
        """Closes the connection: the client reads no further."""
        self._connection.fail("closed")

    async def read(self, most: int) -> bytes:
        """The body of a short response."""
        found = b""
        while part := await self._part(READ_S):
            found += part
            if len(found) > most:
                raise CellFailed("protocol")
        return found

    async def _part(self, within_s: float) -> bytes:
        try:
            async with asyncio.timeout(within_s):
                return await self._connection.chunk()
        except TimeoutError:
            self._connection.fail("timeout")
            raise CellFailed("timeout") from None

    async def relay(self, send: Send) -> None:
        connection, is_stream = self._connection, self.is_stream
        headers = [each for each in self.headers if each[0] not in RESPONSE_HEADERS]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        more = True
        while more:
            try:
                part = await self._part(STREAM_S if is_stream else RESPONSE_S)
            except CellFailed:
                if not is_stream:
                    raise
                part = b""  # A stream can end at any time. Its client connects again.
            more = bool(part) and not connection.complete
            await send({"type": "http.response.body", "body": part, "more_body": more})


@asynccontextmanager
async def exchange(
    cell: Cell, request: Request, *extra: tuple[bytes, bytes], within_s: float | None = None
) -> AsyncIterator[Exchange]:
    """Sends the request, and yields when the response begins, at most `within_s` later."""
    if request.body is None and request.has_body and request.has_small_body:
        await request.read(SMALL_BODY_BYTES)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(within_s):
            connection, watch = await _begun(cell, request, list(extra))
    except TimeoutError:
        _failed(cell, "timeout")
        raise CellFailed("timeout") from None
    watch.begun = True
    cell.first_byte.observe(time.perf_counter() - started)
    metrics.REQUESTS.labels(cell.name, f"{connection.status // 100}xx").inc()
    try:
        yield Exchange(cell, connection)
    except CellFailed as error:
        if watch.client_gone:
            raise ClientGone from None
        _failed(cell, error.reason)
        raise
    finally:
        watch.stop()
        if watch.is_sending:
            # The rest of the body would be read as the next request.
            connection.fail("closed")
        cell.release(connection)


async def _begun(cell: Cell, request: Request, extra: Headers) -> tuple[Connection, "_Watch"]:
    method = request.scope["method"]
    head = request.head(extra)
    sends_body = request.body is None and request.has_body
    # A cell that stops may close an idle connection just when a request is sent on it.
    repeatable = method in ("GET", "HEAD") and not sends_body
    new = False
    while True:
        try:
            connection, used = await cell.acquire(new=new, uploads=sends_body)
        except CellFailed as error:
            _failed(cell, error.reason)
            raise
        watch = _Watch(request, connection)
        try:
            connection.begin(head, headers_only=method == "HEAD")
            watch.later()
            if request.body:
                await connection.write(request.body)
            if sends_body:
                await watch.send_body()
            await connection.started()
        except CellFailed as error:
            watch.stop()
            cell.release(connection)
            if watch.client_gone:
                raise ClientGone from None
            if used and repeatable and error.reason == "closed":
                new = True
                continue
            _failed(cell, error.reason)
            raise
        except BaseException:
            watch.stop()
            connection.fail("closed")
            cell.release(connection)
            raise
        return connection, watch


def _failed(cell: Cell, reason: str) -> None:
    metrics.FAILURES.labels(cell.name, reason).inc()
    log.warning("cell_failed", cell=cell.name, reason=reason)


class _Watch:
    """Sends the rest of the body. Ends the exchange if the client goes away, or nothing comes."""

    def __init__(self, request: Request, connection: Connection) -> None:
        self._request = request
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.client_gone = self.is_sending = False
        # Whether the response has begun.
        self.begun = False
        self._is_late = False
        # While the first part of the body is sent, nothing else may receive.
        self._is_first = False

    def later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def send_body(self) -> None:
        """Sends the first part. Only a body in several parts needs a task."""
        self._is_first = True
        self.is_sending = await self._send_part()
        self._is_first = False
        if self.is_sending or self._is_late:
            self._watch()

    def _start(self) -> None:
        self._is_late = True
        self._timer = asyncio.get_running_loop().call_later(RESPONSE_S, self._give_up)
        self._watch()

    def _watch(self) -> None:
        if self._task is None and not self._is_first:
            self._task = asyncio.create_task(self._run())

    def _give_up(self) -> None:
        if not self.begun:
            self._connection.fail("timeout")

    async def _run(self) -> None:
        while self.is_sending:
            self.is_sending = await self._send_part()
        while not self.client_gone:
            if (await self._request.receive())["type"] == "http.disconnect":
                self._gone()

    async def _send_part(self) -> bool:
        """Whether there is more."""
        request, connection = self._request, self._connection
        message = await request.receive()
        if REFUSAL in request.scope or message["type"] == "http.disconnect":
            self._gone()
            return False
        data, more = message.get("body", b""), message.get("more_body", False)
        if request.chunked:
            data = (b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (
                b"" if more else b"0\r\n\r\n"
            )
        if data:
            await connection.write(data)
        return bool(more)

    def _gone(self) -> None:
        self.client_gone = True
        self._connection.fail("closed")
