"""A server that means harm costs a bounded time and a bounded memory, and nobody else anything."""

import asyncio
import time
from collections.abc import AsyncIterator
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

import psutil
import pytest

from rota.mcp.errors import CallRejected, ServerError
from rota.mcp.sessions import Address, Sessions, Timeouts
from rota.mcp.transport import SessionEnded
from rota.platform.egress import Bounds, Egress
from tests.mcp import hostile
from tests.mcp.conftest import connect, invoke, try_to_connect
from tests.mcp.peers import Peer
from tests.service import Person
from tests.tasks.world import newcomer

MAX_GROWTH = 64 * 1024 * 1024
WITHIN_S = 30


@pytest.fixture(scope="module")
async def sessions() -> AsyncIterator[Sessions]:
    egress = Egress(allow=["127.0.0.0/8"], bounds=Bounds(connect_s=1, read_s=0.7, total_s=0.9))
    pool = Sessions(egress, Timeouts(connect_s=1.5, call_s=0.9))
    yield pool
    await pool.aclose()


PHASES = [
    *((name, phase) for name in hostile.BEHAVIOURS for phase in ("initialize", "call")),
    *((name, "list") for name in ("hang", "hang_after_head", "half_closed", "gigabyte")),
    *((name, "list") for name in hostile.LISTINGS),
]


async def call_once(sessions: Sessions, url: str) -> None:
    session = await sessions.open(Address(url, "streamable-http"))
    try:
        await session.call("t", {})
    finally:
        await session.close()


async def test_each_ends_in_time_and_in_little_memory(sessions: Sessions) -> None:
    process = psutil.Process()
    hostile.compressed_spaces()
    async with hostile.served(hostile.speaking()) as url:
        # What everything needs once.
        (await sessions.open(Address(url, "streamable-http"))).closed = True
    for name, phase in PHASES:
        behaviour = (hostile.BEHAVIOURS | hostile.LISTINGS)[name]
        before = process.memory_info().rss
        began = time.monotonic()
        async with hostile.served(hostile.speaking(**{phase: behaviour})) as url:
            with pytest.raises((ServerError, CallRejected)) as failure:
                await call_once(sessions, url)
        took = time.monotonic() - began
        grown = process.memory_info().rss - before
        assert took < WITHIN_S / 3, (name, phase, took)
        assert grown < MAX_GROWTH, (name, phase, grown)
        assert str(failure.value), (name, phase)


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_a_server_that_only_listens(sessions: Sessions, transport: str) -> None:
    async with hostile.served(hostile.silent) as url:
        with pytest.raises(ServerError):
            await sessions.open(Address(url, transport))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["endless_event", "hang_after_head", "gigabyte"])
async def test_an_event_stream_that_never_says_where(sessions: Sessions, name: str) -> None:
    async def handle(reader: hostile.Reader, writer: hostile.Writer) -> None:
        await hostile.read_request(reader)
        await hostile.BEHAVIOURS[name]({"id": 1}, writer)

    began = time.monotonic()
    async with hostile.served(handle) as url:
        with pytest.raises(ServerError):
            await sessions.open(Address(url, "sse"))
    assert time.monotonic() - began < WITHIN_S


async def test_a_failed_request_is_told_to_its_own_caller_only(sessions: Sessions) -> None:
    """A call that breaks does not take the session's other calls with it."""
    async with Peer().serve() as peer:
        session = await sessions.open(Address(peer.url, "streamable-http"))

        async def explode(_: dict[str, object]) -> str:
            raise RuntimeError("boom")

        peer.answers["note"] = explode
        slow = asyncio.create_task(session.call("wait", {"seconds": 0.5}))
        with pytest.raises((ServerError, CallRejected)):
            await session.call("note", {})
        assert (await slow).content
        await session.close()


async def test_whether_a_call_left_is_known(sessions: Sessions) -> None:
    async with Peer().serve() as peer:
        session = await sessions.open(Address(peer.url, "streamable-http"))
    # The server is gone: nobody takes the connection.
    with pytest.raises(ServerError) as failure:
        await session.call("add", {"a": 1, "b": 2})
    assert not failure.value.sent or "broke" in failure.value.message
    await session.close()
    async with hostile.served(hostile.speaking(call=hostile.hang_up)) as url:
        session = await sessions.open(Address(url, "streamable-http"))
        with pytest.raises(ServerError) as failure:
            await session.call("t", {})
        assert failure.value.sent
        await session.close()


async def test_a_running_call_is_not_repeated_when_its_session_ends(sessions: Sessions) -> None:
    """Another call finds out that the session has ended. The running call may have taken effect."""
    running = asyncio.Event()

    async def initialize(message: dict[str, Any], writer: hostile.Writer) -> None:
        body = hostile.result(message, hostile.INITIALIZED)
        length = f"Content-Length: {len(body)}"
        writer.write(hostile.head("application/json", "Mcp-Session-Id: one", length) + body)
        await writer.drain()

    async def call(message: dict[str, Any], writer: hostile.Writer) -> None:
        if message["params"]["name"] == "slow":
            running.set()
            await hostile.hang(message, writer)
        writer.write(hostile.head(status="404 Not Found"))
        await writer.drain()

    async with hostile.served(hostile.speaking(initialize=initialize, call=call)) as url:
        session = await sessions.open(Address(url, "streamable-http"))
        slow = asyncio.create_task(session.call("slow", {}))
        await running.wait()
        with pytest.raises(SessionEnded):
            await session.call("t", {})
        await session.close()
        with pytest.raises(ServerError) as failure:
            await slow
        assert failure.value.sent
        assert not isinstance(failure.value, SessionEnded)


async def test_sessions_are_bounded_and_unused_ones_go() -> None:
    egress = Egress(allow=["127.0.0.0/8"])
    pool = Sessions(egress, Timeouts(5, 5), limit=3, idle_s=0.4)
    async with Peer().serve() as peer:
        address = Address(peer.url, "streamable-http")
        ids = [uuid4() for _ in range(6)]
        for each in ids:
            async with pool.use(each, lambda: address) as session:
                assert not session.closed
        assert len(pool) == 3
        # The same one again, not a new one.
        async with pool.use(ids[-1], lambda: address) as again:
            assert again is session
        async with (
            pool.use(ids[0], lambda: address),
            pool.use(ids[1], lambda: address),
            pool.use(ids[2], lambda: address),
        ):
            with pytest.raises(ServerError, match="Too many"):
                await pool.use(ids[3], lambda: address).__aenter__()
        async with asyncio.timeout(5):
            while len(pool):
                await asyncio.sleep(0.05)
    await pool.aclose()


async def test_others_do_not_wait(person: Person) -> None:
    """While hostile servers are being called, somebody else's calls take as long as before."""
    other = await newcomer(person.service)

    async def times(seconds: float) -> list[float]:
        found: list[float] = []
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            began = time.perf_counter()
            assert (await invoke(other, server, "add", {"a": 1, "b": 2})).status_code == 200
            found.append(time.perf_counter() - began)
        return found

    async with Peer().serve() as peer, hostile.served(hostile.speaking(call=hostile.hang)) as bad:
        server = await connect(other, peer.url)
        held = await connect(person, bad)
        await times(0.3)
        seen: list[tuple[float, float]] = []
        for _ in range(3):
            alone = await times(1.2)
            calls = [asyncio.create_task(invoke(person, held, "t")) for _ in range(20)]
            await asyncio.sleep(0.5)
            beside = await times(1.2)
            answers = await asyncio.gather(*calls)
            assert {answer.status_code for answer in answers} == {504}
            # The 99th in a hundred, and on a busy machine the one in the middle: the best of
            # three tells what the hostile ones cost.
            p99 = quantiles(beside, n=100)[98] / quantiles(alone, n=100)[98]
            seen.append((p99, median(beside) / median(alone)))
            if p99 <= 1.2 or seen[-1][1] <= 1.2:
                return
        raise AssertionError(seen)


async def test_a_hostile_server_is_refused_with_a_reason(person: Person) -> None:
    for name in ("too_many_tools", "twins", "huge_definition", "huge_number"):
        async with hostile.served(hostile.speaking(list=hostile.LISTINGS[name])) as url:
            answer = await try_to_connect(person, url)
            assert answer.status_code == 400
            assert "Could not connect" in answer.json()["error"]["message"]
    assert (await person.get("/api/mcp")).json()["total"] == 0
