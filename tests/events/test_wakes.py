"""A commit wakes one relay at once. Without Redis, polling finds the instruction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.events import relay as relay_module
from rota.events.outbox import Instruction
from rota.events.relay import Relay
from rota.events.wakes import Wakes
from rota.platform.db import Database
from tests.events.relaying import put, running
from tests.limits.server import RedisServer
from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, uuid_of


@asynccontextmanager
async def wakes_of(db: Database, redis_url: str) -> AsyncIterator[Wakes]:
    redis = Redis.from_url(redis_url)
    wakes = Wakes(redis, db.identity)
    yield wakes
    await wakes.aclose()
    await redis.aclose()


class Counting(Relay):
    """Counts how often it looks at the outbox."""

    looks = 0

    async def _look(self) -> float:
        self.looks += 1
        return await super()._look()


def taker(taken: "asyncio.Queue[Instruction]") -> Any:
    async def take(instruction: Instruction) -> None:
        taken.put_nowait(instruction)

    return take


async def until_idle(*relays: Counting) -> None:
    async with asyncio.timeout(10):
        while not all(relay.looks for relay in relays):
            await asyncio.sleep(0.01)
        # They have looked once; now they wait for tokens.
        await asyncio.sleep(0.2)


@pytest.fixture
def redis(tmp_path: Path) -> Any:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_a_commit_in_another_process_wakes_one_relay_at_once(
    stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only a message through Redis can be in time.
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 60)
    async with Service.start(stack, variant="b", name="events_wakes") as service:
        await sync(service.database_url, catalog_folder())
        db = Database(service.database_url, pool_size=5)
        await db.open()
        url = service.settings.redis_url.get_secret_value()
        taken: asyncio.Queue[Instruction] = asyncio.Queue()
        async with wakes_of(db, url) as first, wakes_of(db, url) as second:
            relays = [Counting(db, {"run.start": taker(taken)}, w) for w in (first, second)]
            async with running(*relays), service.process() as other:
                await until_idle(*relays)
                before = sum(relay.looks for relay in relays)
                person = await newcomer(service)
                person.service = other
                for _ in range(5):
                    task = await create(person, agent=AGENT)
                    async with asyncio.timeout(10):
                        assert (await taken.get()).task_id == uuid_of(task)
                looks = sum(relay.looks for relay in relays) - before
        await db.close()
    # One look per commit, although two relays wait.
    assert looks == 5
    assert min(relay.looks for relay in relays) > 1, "they take turns"


async def test_instructions_are_handled_while_redis_is_down_and_woken_when_it_is_back(
    stack: Any, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 1.0)
    async with Service.start(
        stack, variant="a", name="events_no_redis", redis_url=SecretStr(redis.url)
    ) as service:
        db = Database(service.database_url, pool_size=5)
        await db.open()
        taken: asyncio.Queue[Instruction] = asyncio.Queue()
        async with wakes_of(db, redis.url) as wakes, wakes_of(db, redis.url) as sender:
            sending = Database(service.database_url, pool_size=2, wake=sender.announce)
            await sending.open()
            async with running(Counting(db, {"x.y": taker(taken)}, wakes)):
                redis.kill()
                await put(sending, "x.y")
                async with asyncio.timeout(10):
                    await taken.get()
                redis.start()
                monkeypatch.setattr(relay_module, "POLL_EVERY_S", 60)
                # Until the relay listens again, tokens may get lost.
                async with asyncio.timeout(30):
                    while taken.empty():
                        await put(sending, "x.y")
                        await asyncio.sleep(0.5)
            await sending.close()
        await db.close()


async def test_a_commit_in_the_relays_own_process_needs_no_redis(
    board: Service, kind: str, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 60)
    taken: asyncio.Queue[Instruction] = asyncio.Queue()
    reading = Database(board.database_url, pool_size=2)
    await reading.open()
    async with wakes_of(reading, redis.url) as wakes:
        db = Database(board.database_url, pool_size=2, wake=wakes.announce)
        await db.open()
        relay = Counting(db, {kind: taker(taken)}, wakes)
        async with running(relay):
            await until_idle(relay)
            redis.kill()
            await put(db, kind)
            async with asyncio.timeout(5):
                await taken.get()
        await db.close()
    await reading.close()


async def test_tokens_that_nobody_takes_are_limited(board: Service, db: Database) -> None:
    redis = Redis.from_url(board.settings.redis_url.get_secret_value())
    async with wakes_of(db, board.settings.redis_url.get_secret_value()) as wakes:
        lane = f"t{uuid4().hex}"
        for _ in range(100):
            wakes.announce([lane])
            await wakes.aclose()
    [key] = [key async for key in redis.scan_iter(f"wake:*:{lane}")]
    assert await redis.llen(key) <= 16
    await redis.aclose()


async def test_services_that_share_a_redis_do_not_take_each_others_tokens(
    stack: Any, board: Service, db: Database
) -> None:
    async with Service.start(stack, variant="a", name="events_neighbour") as service:
        neighbour = Database(service.database_url, pool_size=1)
        await neighbour.open()
        assert await neighbour.identity() != await db.identity()
        await neighbour.close()
