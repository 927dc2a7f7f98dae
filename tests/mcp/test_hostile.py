"""A hostile server costs limited time and memory, and does not slow down other accounts."""

import asyncio
import time
from collections.abc import AsyncIterator
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

import psutil
import pytest

from rota.mcp.errors import CallRejected, ServerError
from rota.mcp.session import Address, Timeouts
from rota.mcp.sessions import Limits, Sessions
from rota.mcp.transport import SessionEnded
from rota.platform.egress import Egress, ServerBounds
from rota.platform.errors import RateLimited
from tests.mcp import hostile
from tests.mcp.conftest import connect, invoke, try_to_connect
from tests.mcp.peers import Peer
from tests.service import Person
from tests.tasks.world import newcomer

MAX_GROWTH = 64 * 1024 * 1024
MAX_S = 30
ACCOUNT = uuid4()


@pytest.fixture(scope="module")
async def sessions() -> AsyncIterator[Sessions]:
    egress = Egress(
        allow=["127.0.0.0/8"], bounds=ServerBounds(connect_s=1, read_s=0.7, total_s=0.9)
    )
    pool = Sessions(egress, Timeouts(connect_s=1.5, call_s=0.9))
    yield pool
    await pool.aclose()


PHASES = [
    *((name, phase) for name in hostile.BEHAVIOURS for phase in ("initialize", "call")),
    *((name, "list") for name in ("hang", "hang_after_head", "half_closed", "gigabyte")),
    *((name, "list") for name in hostile.LISTINGS),
]


async def call_once(sessions: Sessions, url: str) -> None:
    session = await sessions.open(ACCOUNT, Address(url, "streamable-http"))
    try:
        await session.call("t", {})
    finally:
        await session.close()


@pytest.mark.timed
async def test_each_hostile_server_fails_within_limits(sessions: Sessions) -> None:
    process = psutil.Process()
    hostile.compressed_spaces()
    async with hostile.served(hostile.mcp_handler()) as url:
        # Load everything that is loaded only once.
        (await sessions.open(ACCOUNT, Address(url, "streamable-http"))).closed = True
    for name, phase in PHASES:
        behaviour = (hostile.BEHAVIOURS | hostile.LISTINGS)[name]
        before = process.memory_info().rss
        started = time.monotonic()
        async with hostile.served(hostile.mcp_handler(**{phase: behaviour})) as url:
            with pytest.raises((ServerError, CallRejected)) as failure:
                await call_once(sessions, url)
        took_s = time.monotonic() - started
        grown = process.memory_info().rss - before
        assert took_s < MAX_S / 3, (name, phase, took_s)
        assert grown < MAX_GROWTH, (name, phase, grown)
        assert str(failure.value), (name, phase)


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_a_server_that_never_responds(sessions: Sessions, transport: str) -> None:
    async with hostile.served(hostile.silent) as url:
        with pytest.raises(ServerError):
            await sessions.open(ACCOUNT, Address(url, transport))  # type: ignore[arg-type]


@pytest.mark.timed
@pytest.mark.parametrize("name", ["endless_event", "hang_after_head", "gigabyte"])
async def test_an_event_stream_without_an_endpoint_event(sessions: Sessions, name: str) -> None:
    async def handle(reader: hostile.Reader, writer: hostile.Writer) -> None:
        await hostile.read_request(reader)
        await hostile.BEHAVIOURS[name]({"id": 1}, writer)

    started = time.monotonic()
    async with hostile.served(handle) as url:
        with pytest.raises(ServerError):
            await sessions.open(ACCOUNT, Address(url, "sse"))
    assert time.monotonic() - started < MAX_S


async def test_a_failed_request_fails_only_its_own_call(sessions: Sessions) -> None:
    """The other calls of the session continue."""
    async with Peer().serve() as peer:
        session = await sessions.open(ACCOUNT, Address(peer.url, "streamable-http"))

        async def explode(_: dict[str, object]) -> str:
            raise RuntimeError("boom")

        peer.answers["note"] = explode
        slow = asyncio.create_task(session.call("wait", {"seconds": 0.5}))
        with pytest.raises((ServerError, CallRejected)):
            await session.call("note", {})
        assert (await slow).content
        await session.close()


async def test_a_failure_says_whether_the_call_was_sent(sessions: Sessions) -> None:
    async with Peer().serve() as peer:
        session = await sessions.open(ACCOUNT, Address(peer.url, "streamable-http"))
    # The server has stopped, so the connection is refused.
    with pytest.raises(ServerError) as failure:
        await session.call("add", {"a": 1, "b": 2})
    assert not failure.value.sent or "broke" in failure.value.message
    await session.close()
    async with hostile.served(hostile.mcp_handler(call=hostile.disconnect)) as url:
        session = await sessions.open(ACCOUNT, Address(url, "streamable-http"))
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

    async with hostile.served(hostile.mcp_handler(initialize=initialize, call=call)) as url:
        session = await sessions.open(ACCOUNT, Address(url, "streamable-http"))
        slow = asyncio.create_task(session.call("slow", {}))
        await running.wait()
        with pytest.raises(SessionEnded):
            await session.call("t", {})
        await session.close()
        with pytest.raises(ServerError) as failure:
            await slow
        assert failure.value.sent
        assert not isinstance(failure.value, SessionEnded)


async def test_sessions_are_limited() -> None:
    egress = Egress(allow=["127.0.0.0/8"])
    pool = Sessions(egress, Timeouts(5, 5), Limits(sessions=3, wait_s=0.2, idle_s=60))
    async with Peer().serve() as peer:
        address = Address(peer.url, "streamable-http")
        ids = [uuid4() for _ in range(6)]
        for each in ids:
            async with pool.use(ACCOUNT, (each, 1), lambda: address) as session:
                assert not session.closed
        assert len(pool) == 3
        # The open session is used again.
        async with pool.use(ACCOUNT, (ids[-1], 1), lambda: address) as again:
            assert again is session
        async with (
            pool.use(ACCOUNT, (ids[0], 1), lambda: address),
            pool.use(ACCOUNT, (ids[1], 1), lambda: address),
            pool.use(ACCOUNT, (ids[2], 1), lambda: address),
        ):
            with pytest.raises(RateLimited, match="too many"):
                await pool.use(ACCOUNT, (ids[3], 1), lambda: address).__aenter__()
    await pool.aclose()


async def test_idle_sessions_are_closed() -> None:
    egress = Egress(allow=["127.0.0.0/8"])
    pool = Sessions(egress, Timeouts(5, 5), Limits(sessions=3, wait_s=0.2, idle_s=0.1))
    async with Peer().serve() as peer:
        address = Address(peer.url, "streamable-http")
        async with pool.use(ACCOUNT, (uuid4(), 1), lambda: address) as session:
            assert not session.closed
        # It is closed in the background, after it was removed.
        async with asyncio.timeout(20):
            while len(pool) or not session.closed:
                await asyncio.sleep(0.05)
    await pool.aclose()


@pytest.mark.timed
async def test_hostile_servers_do_not_slow_down_other_accounts(person: Person) -> None:
    """Calls of one account take as long as before while another account calls hostile servers."""
    other = await newcomer(person.service)

    async def times(seconds: float) -> list[float]:
        found: list[float] = []
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            started = time.perf_counter()
            assert (await invoke(other, server, "add", {"a": 1, "b": 2})).status_code == 200
            found.append(time.perf_counter() - started)
        return found

    async with (
        Peer().serve() as peer,
        hostile.served(hostile.mcp_handler(call=hostile.hang)) as bad,
    ):
        server = await connect(other, peer.url)
        hanging = await connect(person, bad)
        await times(0.3)
        seen: list[tuple[float, float]] = []
        for _ in range(3):
            alone = await times(1.2)
            calls = [asyncio.create_task(invoke(person, hanging, "t")) for _ in range(20)]
            await asyncio.sleep(0.5)
            beside = await times(1.2)
            answers = await asyncio.gather(*calls)
            assert {answer.status_code for answer in answers} == {504}
            # Other programs can disturb a round, so the best of three rounds counts, by its p99
            # or its median.
            p99 = quantiles(beside, n=100)[98] / quantiles(alone, n=100)[98]
            seen.append((p99, median(beside) / median(alone)))
            if p99 <= 1.2 or seen[-1][1] <= 1.2:
                return
        raise AssertionError(seen)


async def test_the_error_says_why_a_hostile_server_is_rejected(person: Person) -> None:
    for name in ("too_many_tools", "duplicate_names", "huge_definition", "huge_number"):
        async with hostile.served(hostile.mcp_handler(list=hostile.LISTINGS[name])) as url:
            answer = await try_to_connect(person, url)
            assert answer.status_code == 400
            assert "Could not connect" in answer.json()["error"]["message"]
    assert (await person.get("/api/mcp")).json()["total"] == 0
