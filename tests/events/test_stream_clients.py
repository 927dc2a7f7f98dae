"""Live streams while Redis is down, for idle clients, and for clients that never read."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
from pydantic import SecretStr

from rota.events import journal, messages
from rota.events.fanout import Fanout
from rota.platform.db import Database
from tests.events.reader import Reader
from tests.limits.server import RedisServer
from tests.service import Person, Service
from tests.tasks.world import create, newcomer


@pytest.fixture
def redis(tmp_path: Path) -> Any:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_events_arrive_while_redis_is_down_and_after_it_is_back(
    stack: Any, redis: RedisServer
) -> None:
    async with Service.start(
        stack, variant="a", name="events_redis", redis_url=SecretStr(redis.url)
    ) as service:
        person = await newcomer(service)
        async with Reader.open(service.settings.port, person.token, "/api/events") as reader:
            await reader.read()
            await create(person)
            await reader.until(1)
            redis.kill()
            await create(person)
            async with asyncio.timeout(5):
                await reader.until(2)
            redis.start()
            await create(person)
            async with asyncio.timeout(5):
                await reader.until(3)
    assert [m.id for m in reader.messages] == [1, 2, 3]


async def test_an_event_written_by_another_process_wakes_the_stream(
    board: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only a message through Redis can arrive in time.
    monkeypatch.setattr(messages, "POLL_EVERY_S", 60)
    monkeypatch.setattr(messages, "next_poll", lambda _: math.inf)
    person = await newcomer(board)
    async with board.process() as elsewhere:
        path = "/api/events"
        async with Reader.open(board.settings.port, person.token, path) as reader:
            await reader.read()
            there = Person(elsewhere, person.subject, person.token, person.user_id)
            await create(there)
            async with asyncio.timeout(5):
                await reader.until(1)


async def test_an_idle_stream_sends_heartbeats(
    board: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "POLL_EVERY_S", 0.01)
    monkeypatch.setattr(messages, "HEARTBEAT_EVERY_S", 0.05)
    person = await newcomer(board)
    async with Reader.open(board.settings.port, person.token, "/api/events") as reader:
        async with asyncio.timeout(5):
            while reader.comments.count("still here") < 2:
                await reader.read()


async def test_disconnected_readers_leave_nothing_behind(
    board: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    fanouts: set[Fanout] = set()
    listening = Fanout.listening

    def noted(self: Fanout, account_id: UUID) -> AbstractAsyncContextManager[asyncio.Event]:
        fanouts.add(self)
        return listening(self, account_id)

    monkeypatch.setattr(Fanout, "listening", noted)
    person = await newcomer(board)
    async with AsyncExitStack() as readers:
        for _ in range(20):
            reader = await readers.enter_async_context(
                Reader.open(board.settings.port, person.token, "/api/events")
            )
            await reader.read()
        [fanout] = fanouts
        assert len(fanout._waiting[person.user_id]) == 20
    async with asyncio.timeout(5):
        while person.user_id in fanout._waiting:
            await asyncio.sleep(0.01)


LARGE = "x" * 10_000
SLOW = 10


@pytest.fixture
async def measured(board: Service) -> AsyncIterator[tuple[Service, psutil.Process]]:
    async with board.process(fresh=True) as service:
        [process] = [
            child
            for child in psutil.Process().children()
            if any(c.laddr.port == service.settings.port for c in child.net_connections("tcp"))
        ]
        yield service, process


@pytest.mark.timed
async def test_readers_that_never_read_do_not_slow_down_others_and_use_little_memory(
    measured: tuple[Service, psutil.Process], db: Database
) -> None:
    service, process = measured
    person = await newcomer(service)
    port, path = service.settings.port, "/api/events?after=0"

    async def write(count: int) -> None:
        async with db.write(person.user_id) as tx:
            for _ in range(count):
                await journal.append(tx, "task.test", {"text": LARGE})

    await write(100)
    async with AsyncExitStack() as stack:
        async with Reader.open(port, person.token, path) as warm:
            await warm.until(100)
        before = process.memory_info().rss
        for _ in range(SLOW):
            slow = await stack.enter_async_context(
                Reader.open(port, person.token, path, buffer=4096)
            )
            await slow.head()
        for _ in range(15):
            await write(100)
        async with Reader.open(port, person.token, path) as reader, asyncio.timeout(20):
            await reader.until(1600)
            started = time.monotonic()
            assert (await person.get("/api/tasks")).status_code == 200
            assert time.monotonic() - started < 1
        grown = process.memory_info().rss - before
    assert [m.id for m in reader.messages] == list(range(1, 1601))
    # All events for each reader would take 160 MB. One batch each takes 10 MB.
    assert grown < 60 * 1024 * 1024
