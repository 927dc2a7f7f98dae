"""Error responses of tool servers: what each means for the session, and that none takes a
connection away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from rota.mcp.errors import CredentialsRejected, ServerError
from rota.mcp.session import Address, Session, Timeouts
from rota.mcp.sessions import Sessions
from rota.mcp.transport import SessionEnded
from rota.platform.egress import Egress, ServerBounds
from tests.mcp import hostile
from tests.mcp.peers import Peer

ACCOUNT = uuid4()
BOUNDS = ServerBounds(connections=4)


@pytest.fixture
async def sessions() -> AsyncIterator[Sessions]:
    pool = Sessions(Egress(allow=["127.0.0.0/8"], bounds=BOUNDS), Timeouts(connect_s=10, call_s=10))
    yield pool
    await pool.aclose()


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_server_that_responded_with_errors_can_be_used_again(
    sessions: Sessions, status: int
) -> None:
    async with Peer().serve() as peer:
        session = await sessions.open(ACCOUNT, Address(peer.url, "streamable-http"))
        peer.status = status
        for _ in range(BOUNDS.connections + 1):
            with pytest.raises(ServerError, match=str(status)):
                await session.call("add", {"a": 1, "b": 2})
        peer.status = None
        assert (await session.call("add", {"a": 1, "b": 2})).content
        await session.close()


@pytest.mark.parametrize(
    ("message", "ended"),
    [
        ("Bad Request: No valid session ID provided", True),
        ("Invalid session ID", True),
        ("Session not found", True),
        ("session id is unknown", True),
        ("session_id is required", False),
        ("The checkout session has expired", False),
        ("checkout session not found", False),
        ("This session was completed", False),
    ],
)
async def test_only_a_400_about_the_mcp_session_means_that_the_call_was_not_made(
    sessions: Sessions, message: str, ended: bool
) -> None:
    async def initialize(message: dict[str, Any], writer: hostile.Writer) -> None:
        body = hostile.result(message, hostile.INITIALIZED)
        length = f"Content-Length: {len(body)}"
        writer.write(hostile.head("application/json", "Mcp-Session-Id: one", length) + body)
        await writer.drain()

    async def refuse(_: dict[str, Any], writer: hostile.Writer) -> None:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}
        body = json.dumps(error).encode()
        length = f"Content-Length: {len(body)}"
        writer.write(hostile.head("application/json", length, status="400 Bad Request") + body)
        await writer.drain()

    async with hostile.served(hostile.mcp_handler(initialize=initialize, call=refuse)) as url:
        session = await sessions.open(ACCOUNT, Address(url, "streamable-http"))
        with pytest.raises(Exception) as failure:
            await session.call("t", {})
        assert isinstance(failure.value, SessionEnded) == ended
        assert getattr(failure.value, "sent", True) != ended
        await session.close()


async def test_a_session_whose_stream_has_ended_is_replaced() -> None:
    egress = Egress(allow=["127.0.0.0/8"], bounds=ServerBounds(stream_bytes=20_000))
    pool = Sessions(egress, Timeouts(connect_s=10, call_s=10))

    async def long(_: dict[str, Any]) -> str:
        return "x" * 4_000

    async with Peer().serve("sse") as peer:
        peer.answers["note"] = long
        address = Address(peer.url, "sse")
        key = uuid4(), 1
        ended: Session | None = None
        for _ in range(8):
            async with pool.use(ACCOUNT, key, lambda: address) as session:
                if ended is not None:
                    assert session is not ended
                    await session.list()
                    break
                with contextlib.suppress(ServerError):
                    await session.call("note", {})
                    continue
                ended = session
        assert ended is not None
        assert session is not ended
    await pool.aclose()


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_that_refuses_a_message_of_an_event_stream_gets_a_new_session(
    sessions: Sessions, status: int
) -> None:
    async with Peer().serve("sse") as peer:
        address = Address(peer.url, "sse")
        key = uuid4(), 1
        async with sessions.use(ACCOUNT, key, lambda: address) as session:
            peer.status = status
            with pytest.raises(SessionEnded):
                await session.list()
            peer.status = None
        async with sessions.use(ACCOUNT, key, lambda: address) as session:
            peer.status = status
            # The server may have begun the call before it refused the message.
            with pytest.raises(ServerError) as failure:
                await session.call("note", {})
            assert failure.value.sent
            assert not isinstance(failure.value, SessionEnded)
            peer.status = None
        async with sessions.use(ACCOUNT, key, lambda: address) as session:
            assert (await session.call("add", {"a": 1, "b": 2})).content


@pytest.mark.parametrize(
    ("status", "error", "sent"), [(400, ServerError, True), (403, CredentialsRejected, False)]
)
async def test_a_refused_message_of_an_event_stream_fails_alone(
    sessions: Sessions, status: int, error: type[ServerError], sent: bool
) -> None:
    called, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_: dict[str, Any]) -> str:
        called.set()
        await go_on.wait()
        return "noted"

    async with Peer().serve("sse") as peer:
        peer.answers["note"] = wait
        address = Address(peer.url, "sse")
        key = uuid4(), 1

        async def note() -> Any:
            async with sessions.use(ACCOUNT, key, lambda: address) as session:
                return await session.call("note", {})

        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            noted = group.create_task(note())
            await called.wait()
            async with sessions.use(ACCOUNT, key, lambda: address) as old:
                peer.status = status
                with pytest.raises(error) as failure:
                    await old.call("add", {"a": 1, "b": 2})
                assert failure.value.sent == sent
                peer.status = None
            async with sessions.use(ACCOUNT, key, lambda: address) as session:
                assert session is not old
                assert (await session.call("add", {"a": 1, "b": 2})).content
            go_on.set()
        assert noted.result().content[0].text == "noted"
        assert old._owner is not None
        # Its last user has closed it.
        await asyncio.wait_for(asyncio.shield(old._owner), 10)


async def test_a_message_without_a_response_can_be_redirected(sessions: Sessions) -> None:
    """For example the notification that ends the handshake."""
    answers = hostile.mcp_handler()

    async def redirecting(reader: hostile.Reader, writer: hostile.Writer) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if request.startswith(b"POST /mcp "):
            length = int(request.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            location = ("Location: /mcp/", "Content-Length: 0")
            writer.write(hostile.head("text/plain", *location, status="307 Go on"))
            await writer.drain()
            return
        again = asyncio.StreamReader()
        again.feed_data(request)
        if b"content-length:" in request.lower():
            length = int(request.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            again.feed_data(await reader.readexactly(length))
        await answers(again, writer)

    async with hostile.served(redirecting) as url:
        session = await sessions.open(ACCOUNT, Address(url, "streamable-http"))
        assert (await session.call("t", {})).content
        assert session._last_error is None
        await session.close()
