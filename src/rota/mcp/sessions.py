"""Sessions with tool servers: opened when needed, shared, and closed when nobody uses them.

The SDK's contexts have to be entered and left by one task, so each session has
a task of its own that does nothing else. Whoever wants something of the server
asks through it, and sees failures as `ServerTrouble`.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from rota.mcp import listing
from rota.mcp.errors import BadServer, CallRefused, ServerTrouble, TooSlow, Unreachable
from rota.mcp.model import Definition, Transport, hash_of
from rota.mcp.transport import McpTransport, SessionEnded, classify_error, decode_error
from rota.platform.egress import Egress

# What strangers' servers send does not belong in our log, and it would be theirs to fill.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

MAX_EVENT_BYTES = 1024 * 1024
CLOSE_S = 3.0
# Calls to one server under way at once in one process.
MAX_CALLS = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Address:
    """All it takes to connect. The headers are secrets."""

    url: str
    transport: Transport
    headers: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a server may take: to be connected to, and to answer a call."""

    connect_s: float = 10
    call_s: float = 60


class Session:
    def __init__(self, egress: Egress, address: Address, timeouts: Timeouts) -> None:
        self._egress = egress
        self._address = address
        self._timeouts = timeouts
        self._client: Client | None = None
        self._wire: McpTransport | None = None
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self.closed = False
        # What the server last said of its tools, and when, on the monotonic clock.
        self.listed: dict[str, Definition] = {}
        self.hashes: dict[str, str] = {}
        self.listed_at = float("-inf")

    async def open(self) -> None:
        """Connects, agrees on a protocol and reads the tools."""
        self._owner = asyncio.create_task(self._own())
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                await asyncio.shield(self._opened)
                await self.list()
        except TimeoutError:
            await self.end()
            raise TooSlow("It could not be connected to in time.", sent=False) from None
        except ServerTrouble as trouble:
            await self.end()
            trouble.sent = False
            raise
        except CallRefused as refused:
            await self.end()
            raise BadServer(f"It does not list its tools: {refused.message}", sent=False) from None
        except BaseException:
            await self.end()
            raise

    async def _own(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = Client(
                    await self._enter(stack),
                    read_timeout_seconds=self._timeouts.call_s,
                    client_info=types.Implementation(name="rota", version="1"),
                    cache=None,
                    mode="auto",
                )
                self._client = await stack.enter_async_context(client)
                if not self._opened.done():
                    self._opened.set_result(None)
                await self._closing.wait()
        except asyncio.CancelledError:
            self._fail(TooSlow("The connection was given up.", sent=False))
        except BaseException as error:
            self._fail(self._trouble_of(error))
        finally:
            self.closed = True

    async def _enter(self, stack: contextlib.AsyncExitStack) -> Any:
        address, egress = self._address, self._egress
        egress.check_url(address.url)

        def client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            def wrap(inner: httpx2.AsyncBaseTransport) -> McpTransport:
                total_s = egress.bounds.total_s
                self._wire = McpTransport(inner, address.transport, total_s, self._on_trouble)
                return self._wire

            made = egress.client(address.headers, wrap)
            if timeout is not None:
                made.timeout = timeout
            return made

        if address.transport == "sse":
            return sse_client(
                address.url,
                timeout=self._timeouts.connect_s,
                sse_read_timeout=egress.bounds.read_s * 10,
                httpx_client_factory=client,
            )
        http = await stack.enter_async_context(client())
        return streamable_http_client(
            address.url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES
        )

    def _on_trouble(self, trouble: ServerTrouble) -> None:
        """A message to a server with an event stream was lost: nobody would hear of it."""
        if not self._opened.done():
            self._fail(trouble)
            if self._owner is not None:
                self._owner.cancel()
        self.closed = True
        self._closing.set()

    def _fail(self, trouble: ServerTrouble) -> None:
        if not self._opened.done():
            self._opened.set_exception(trouble)
            # Whoever waited may have gone.
            self._opened.exception()

    def _trouble_of(self, error: BaseException) -> ServerTrouble:
        if isinstance(error, MCPError):
            return self._trouble_in(error) or BadServer(f"It says: {error.message[:200]}")
        seen = self._wire.trouble if self._wire else None
        return seen or classify_error(error)

    def _trouble_in(self, error: MCPError) -> ServerTrouble | None:
        told = decode_error(error.code, error.message, error.error.data)
        if told is not None:
            return told
        if error.code == types.REQUEST_TIMEOUT:
            return TooSlow("It took too long to answer.")
        if error.code == types.CONNECTION_CLOSED:
            seen = self._wire.trouble if self._wire else None
            # Which request it was about is not known, so none is called unsent.
            return type(seen)(seen.message) if seen else Unreachable("The connection broke.")
        if error.code == types.PARSE_ERROR:
            return BadServer("What it sends cannot be understood.")
        return None

    async def _ask(self, work: Callable[[ClientSession], Awaitable[T]]) -> T:
        if self.closed or self._client is None:
            raise SessionEnded("The session has ended.", sent=False)
        try:
            async with asyncio.timeout(self._timeouts.call_s + CLOSE_S), self._calls:
                return await work(self._client.session)
        except MCPError as error:
            trouble = self._trouble_in(error)
            if trouble is None:
                raise CallRefused(error.message[:500]) from None
            if isinstance(trouble, SessionEnded):
                self.closed = True
            raise trouble from None
        except TimeoutError:
            raise TooSlow("It took too long to answer.") from None
        except (ValidationError, RuntimeError, ValueError) as error:
            raise classify_error(error) from None

    async def list(self) -> dict[str, Definition]:
        """What the server says of its tools now."""

        async def pages(session: ClientSession) -> list[types.Tool]:
            found: list[types.Tool] = []
            cursor: str | None = None
            for _ in range(listing.MAX_PAGES):
                page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) > listing.MAX_TOOLS:
                    return found
            raise BadServer("The list of its tools does not end.")

        self.listed = listing.definitions(await self._ask(pages))
        self.hashes = {name: hash_of(definition) for name, definition in self.listed.items()}
        self.listed_at = time.monotonic()
        return self.listed

    async def ping(self) -> None:
        async def ping(session: ClientSession) -> None:
            version = session.protocol_version
            if version in MODERN_PROTOCOL_VERSIONS:
                await session.send_discover(version)
            else:
                await session.send_ping()

        await self._ask(ping)

    async def call(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        # Not `call_tool`: that checks the answer against the server's own schema, and a
        # schema can be made to keep this process busy for ever.
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool, arguments=arguments)
        )
        return await self._ask(lambda session: session.send_request(request, types.CallToolResult))

    async def end(self) -> None:
        """Leaves in order, and otherwise."""
        self.closed = True
        self._closing.set()
        owner = self._owner
        if owner is None:
            return
        if self._client is None:
            owner.cancel()
        _, late = await asyncio.wait({owner}, timeout=CLOSE_S)
        if late:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_S)


@dataclass(slots=True)
class _Entry:
    session: Session | None = None
    users: int = 0
    used_at: float = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The sessions of one process, by server."""

    def __init__(
        self, egress: Egress, timeouts: Timeouts, *, limit: int = 200, idle_s: float = 300
    ) -> None:
        self._egress = egress
        self._timeouts = timeouts
        self._limit = limit
        self._idle_s = idle_s
        self._entries: dict[UUID, _Entry] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    async def try_out(self, address: Address) -> Session:
        """A session that belongs to nobody yet."""
        session = Session(self._egress, address, self._timeouts)
        await session.open()
        return session

    def keep(self, server_id: UUID, session: Session) -> None:
        """Makes a session that was tried out the server's."""
        if self._make_room(server_id):
            self._entries[server_id] = _Entry(session, used_at=time.monotonic())
            self._watch()
        else:
            self.give_up(session)

    @contextlib.asynccontextmanager
    async def use(self, server_id: UUID, address: Callable[[], Address]) -> AsyncIterator[Session]:
        """The server's session, opened now if there is none."""
        entry = self._entries.get(server_id)
        if entry is None:
            if not self._make_room(server_id):
                raise Unreachable("Too many tool servers are in use at once.", sent=False)
            entry = self._entries[server_id] = _Entry()
            self._watch()
        entry.users += 1
        try:
            async with entry.opening:
                if entry.session is None or entry.session.closed:
                    if entry.session is not None:
                        self.give_up(entry.session)
                    entry.session = None
                    entry.session = await self.try_out(address())
            yield entry.session
        finally:
            entry.users -= 1
            entry.used_at = time.monotonic()
            failed = entry.session is None and entry.users == 0
            if failed and self._entries.get(server_id) is entry:
                del self._entries[server_id]

    def drop(self, server_id: UUID) -> None:
        entry = self._entries.pop(server_id, None)
        if entry is not None and entry.session is not None:
            self.give_up(entry.session)

    def give_up(self, session: Session) -> None:
        """Ends a session without anybody waiting for it."""
        task = asyncio.create_task(session.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for server_id in list(self._entries):
            self.drop(server_id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _make_room(self, server_id: UUID) -> bool:
        if server_id in self._entries:
            self.drop(server_id)
        if len(self._entries) < self._limit:
            return True
        unused = [(entry.used_at, key) for key, entry in self._entries.items() if not entry.users]
        if not unused:
            return False
        self.drop(min(unused)[1])
        return True

    def _watch(self) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Closes what nobody has used for a while."""
        while self._entries:
            await asyncio.sleep(self._idle_s / 4)
            oldest = time.monotonic() - self._idle_s
            for server_id, entry in list(self._entries.items()):
                if not entry.users and entry.used_at < oldest:
                    self.drop(server_id)
