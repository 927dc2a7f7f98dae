"""A session with a tool server.

The SDK's context managers must be entered and left by the same task, so each session runs in its
own task. Callers send requests through the session and get failures as `ServerError`.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
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
from rota.mcp.errors import (
    CallRejected,
    InvalidResponse,
    ServerBusy,
    ServerError,
    ServerTimeout,
    ServerUnreachable,
    sentence,
)
from rota.mcp.messages import SPEND, Spend, measured
from rota.mcp.model import ListedDefinition, Transport
from rota.mcp.rounds import final_result
from rota.mcp.transport import (
    REFUSE,
    McpTransport,
    SessionEnded,
    classify_error,
    decode_error,
    not_mcp,
)
from rota.platform.cache import retrieve
from rota.platform.egress import Egress
from rota.platform.errors import RateLimited

# The SDK logs what servers send. That can contain secrets and would let a server fill the log.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

MAX_EVENT_BYTES = 1024 * 1024
BROKEN = "The connection broke."
CLOSE_S = 3.0
# A list in progress that began longer ago is not shared: the server may have changed since.
SHARED_LIST_S = 1.0
# Concurrent requests to one server from one process.
MAX_REQUESTS = 32
# The name of an agent's call in `_meta`. The value stays the same when the call is repeated.
KEY_META = "rota/idempotency-key"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Address:
    """How to connect to a server. The headers contain secrets."""

    url: str
    transport: Transport
    headers: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits for connecting to a server and for one request."""

    connect_s: float = 10
    call_s: float = 60


class Session:
    def __init__(
        self,
        egress: Egress,
        account_id: UUID,
        address: Address,
        timeouts: Timeouts,
        spend: Spend,
    ) -> None:
        self._egress = egress
        # Called with the processor time that messages of the server take.
        self._spend = spend
        self._account_id = account_id
        self._address = address
        self._timeouts = timeouts
        self._client: Client | None = None
        self._wire: McpTransport | None = None
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(MAX_REQUESTS)
        self.closed = False
        # The newest list in progress, and when it began.
        self._listing: tuple[float, asyncio.Task[None] | None] = (float("-inf"), None)
        # The last list of tools, and its time on the monotonic clock.
        self.listed: dict[str, ListedDefinition] = {}
        self.listed_at = float("-inf")

    async def open(self) -> None:
        """Connects, negotiates the protocol version and lists the tools."""
        self._owner = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                await asyncio.shield(self._opened)
                await self.list()
        except TimeoutError:
            await self.close()
            raise ServerTimeout(
                f"The connection took longer than {self._timeouts.connect_s:g} s.", sent=False
            ) from None
        except ServerBusy as error:
            await self.close()
            raise RateLimited(error.message) from None
        except ServerError as error:
            await self.close()
            error.sent = False
            raise
        except CallRejected as rejected:
            await self.close()
            raise not_listed(rejected) from None
        except BaseException:
            await self.close()
            raise

    async def _run(self) -> None:
        SPEND.set(self._spend)
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = Client(
                    await self._open_transport(stack),
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
            self._fail(ServerTimeout("The connection was cancelled.", sent=False))
        except BaseException as error:
            self._fail(self._error_from(error))
        finally:
            self.closed = True

    async def _open_transport(self, stack: contextlib.AsyncExitStack) -> Any:
        address, egress = self._address, self._egress
        egress.check_url(address.url)

        def create_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            def wrap(inner: httpx2.AsyncBaseTransport) -> McpTransport:
                total_s = egress.bounds.total_s
                self._wire = McpTransport(
                    inner, address.transport, total_s, self._on_error, self._on_end
                )
                return self._wire

            client = egress.client(self._account_id, address.headers, wrap)
            if timeout is not None:
                client.timeout = timeout
            return client

        if address.transport == "sse":
            return sse_client(
                address.url,
                timeout=self._timeouts.connect_s,
                sse_read_timeout=egress.bounds.read_s * 10,
                httpx_client_factory=create_client,
            )
        http = await stack.enter_async_context(create_client())
        return streamable_http_client(
            address.url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES
        )

    def _on_error(self, error: ServerError) -> None:
        """The next request needs another session. Other requests of this one can still finish."""
        if not self._opened.done():
            self._fail(error)
            if self._owner is not None:
                self._owner.cancel()
        self.closed = True

    def _on_end(self) -> None:
        """The next request needs another session. What has arrived in this one is still read."""
        self.closed = True

    def _fail(self, error: ServerError) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)
            # Mark it as retrieved. The caller of `open` may have been cancelled.
            self._opened.exception()

    def _error_from(self, error: BaseException) -> ServerError:
        if isinstance(error, MCPError):
            return self._decode(error) or InvalidResponse(
                f"The server responded with an error: {sentence(error.message[:200])}"
            )
        return self._last_error or classify_error(error, self._last_response)

    @property
    def _last_response(self) -> str | None:
        return self._wire.last_response if self._wire else None

    @property
    def _last_error(self) -> ServerError | None:
        return self._wire.last_error if self._wire else None

    def _decode(self, error: MCPError) -> ServerError | None:
        """The failure behind an SDK error, or None if the server itself sent the error."""
        decoded = decode_error(error.code, error.message, error.error.data)
        if decoded is not None:
            return decoded
        if error.code == types.REQUEST_TIMEOUT:
            return self._timeout()
        if error.code == types.CONNECTION_CLOSED:
            last = self._last_error
            # It is unknown which request failed, so this one may have been sent. It must not look
            # like SessionEnded either, because the client repeats such calls.
            if last is None or isinstance(last, SessionEnded | ServerBusy):
                return ServerUnreachable(BROKEN)
            return type(last)(last.message)
        if error.code == types.PARSE_ERROR:
            return not_mcp(self._last_response)
        return None

    def _timeout(self) -> ServerTimeout:
        return ServerTimeout(f"The response took longer than {self._timeouts.call_s:g} s.")

    async def _request(self, send: Callable[[ClientSession], Awaitable[T]]) -> T:
        if self.closed or self._client is None:
            raise SessionEnded
        refusals: list[ServerError] = []

        def refuse(error: ServerError) -> None:
            # The request can have ended meanwhile.
            if not ended and not limit.expired():
                refusals.append(error)
                limit.reschedule(0)

        ended = False
        try:
            async with asyncio.timeout(self._timeouts.call_s + CLOSE_S) as limit, self._slots:
                REFUSE.set(refuse)
                try:
                    return await send(self._client.session)
                finally:
                    ended = True
        except MCPError as error:
            decoded = self._decode(error)
            if decoded is None:
                raise self._rejected(error) from None
            failure = decoded
        except TimeoutError:
            failure = refusals[0] if refusals else self._timeout()
        except (ValidationError, RuntimeError, ValueError) as error:
            failure = classify_error(error, self._last_response)
        if isinstance(failure, SessionEnded):
            self.closed = True
        if isinstance(failure, ServerBusy):
            raise RateLimited(failure.message)
        raise failure

    async def _ask(self, send: Callable[[ClientSession], Awaitable[T]]) -> T:
        """Sends a request that runs no tool."""
        try:
            return await self._request(send)
        except (ServerTimeout, ServerUnreachable) as error:
            if self._address.transport == "sse":
                # The stream that carries all responses can be lost without an end.
                self.closed = True
                if isinstance(error, ServerUnreachable):
                    # Unlike a call, it can be repeated in another session.
                    raise SessionEnded(error.message) from None
            raise

    def _rejected(self, error: MCPError) -> CallRejected:
        assert self._client is not None
        is_modern = self._client.session.protocol_version in MODERN_PROTOCOL_VERSIONS
        return CallRejected(error.message[:500], error.code, is_modern=is_modern)

    async def list(self) -> None:
        """Fetches the current definitions of the server's tools. Calls that are made at the same
        time share one list."""
        began, listing = self._listing
        if listing is None or listing.done() or time.monotonic() - began > SHARED_LIST_S:
            listing = asyncio.create_task(self._list())
            # Every caller may have been cancelled.
            listing.add_done_callback(retrieve)
            self._listing = time.monotonic(), listing
        await asyncio.shield(listing)

    async def _list(self) -> None:
        async def pages(session: ClientSession) -> list[types.Tool]:
            found: list[types.Tool] = []
            cursor: str | None = None
            for _ in range(listing.MAX_PAGES):
                page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) > listing.MAX_TOOLS:
                    return found
            raise InvalidResponse(f"The list of tools has more than {listing.MAX_PAGES} pages.")

        tools = await self._ask(pages)
        with measured(self._spend):
            self.listed = {
                name: self._listed(name, raw) for name, raw in listing.definitions(tools).items()
            }
        self.listed_at = time.monotonic()

    def _listed(self, name: str, raw: bytes) -> ListedDefinition:
        """Most definitions are the same as in the last list."""
        before = self.listed.get(name)
        return before if before and before.json == raw else ListedDefinition.of(raw)

    async def ping(self) -> None:
        async def ping(session: ClientSession) -> None:
            version = session.protocol_version
            if version in MODERN_PROTOCOL_VERSIONS:
                await session.send_discover(version)
            else:
                await session.send_ping()

        await self._ask(ping)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        key: str | None = None,
        before_send: Callable[[], Awaitable[None]] | None = None,
    ) -> types.CallToolResult:
        # Not `call_tool`, because it validates the result against the server's schema, and a
        # hostile schema could keep this process busy forever.
        meta = cast(types.RequestParamsMeta, {KEY_META: key}) if key is not None else None
        params = types.CallToolRequestParams(name=tool, arguments=arguments, _meta=meta)
        rounds, sent = 0, False

        async def before_round() -> None:
            nonlocal rounds, sent
            rounds += 1
            if before_send is not None:
                await before_send()
            sent = True

        try:
            return await self._request(lambda session: final_result(session, params, before_round))
        except Exception as error:
            failure = error
            if rounds > 1 and not (isinstance(error, ServerTimeout) and error.sent):
                # The server has begun the call, so it must not count as one that was not made.
                reason = "Rota stopped it."
                if isinstance(error, ServerError | CallRejected | RateLimited):
                    reason = sentence(error.message[:200])
                failure = InvalidResponse(f"The server did not finish the call: {reason}")
            if isinstance(failure, ServerError):
                # The time can also end while the call waits for others.
                failure.sent = failure.sent and sent
                failure.of_call = sent
            raise failure from None

    async def close(self) -> None:
        """Closes the session, and cancels its task if that takes too long."""
        self.closed = True
        self._closing.set()
        owner = self._owner
        if owner is None:
            return
        if self._client is None:
            owner.cancel()
        _, pending = await asyncio.wait({owner}, timeout=CLOSE_S)
        if pending:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_S)


def not_listed(rejected: CallRejected) -> InvalidResponse:
    return InvalidResponse(
        f"The server did not list its tools: {sentence(rejected.message)}", sent=False
    )
