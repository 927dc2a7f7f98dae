"""Redis is killed, hangs and returns, and requests stay fast."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
from prometheus_client import REGISTRY
from redis.exceptions import ReadOnlyError

from rota.limits import breaker
from rota.limits.breaker import CircuitBreaker, RedisUnavailable
from rota.limits.result import Ceilings
from rota.limits.window import Window, connect

from .server import RedisServer

PROCESSES = 4
CEILINGS = Ceilings(all=200, ai=80)

Logs = list[MutableMapping[str, Any]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def window(server: RedisServer) -> AsyncIterator[Window]:
    redis = connect(server.url)
    # Longer than in the service, so that a stall of a busy machine does not count as an outage.
    window = Window(redis, processes=PROCESSES, timeout_s=0.3)
    await window.admit("warm", CEILINGS, ai=False)
    yield window
    await window.aclose()
    await redis.aclose()


@pytest.fixture
def logs() -> Iterator[Logs]:
    with structlog.testing.capture_logs() as logs:
        yield logs


def degraded() -> bool:
    return REGISTRY.get_sample_value("rota_limiter_degraded") == 1


async def until_degraded(wanted: bool, *, within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while degraded() is not wanted:
            await asyncio.sleep(0.01)


def p99(times_s: list[float]) -> float:
    return sorted(times_s)[int(len(times_s) * 0.99)]


@pytest.mark.timed
async def test_requests_stay_fast_while_redis_is_killed_and_restarted(
    server: RedisServer, window: Window, logs: Logs
) -> None:
    phase = "before"
    times_s: dict[str, list[float]] = {"before": [], "down": [], "returning": [], "after": []}
    admitted: Counter[tuple[str, bool]] = Counter()

    async def load(worker: int) -> None:
        while phase != "over":
            key, ai, asked_in = f"acct:{worker % 4}", worker % 2 == 0, phase
            start = time.perf_counter()
            result = await window.admit(key, CEILINGS, ai=ai)
            times_s[asked_in].append(time.perf_counter() - start)
            if asked_in == "down" and result.allowed:
                admitted[key, False] += 1
                admitted[key, True] += ai
            await asyncio.sleep(0.002)

    async with asyncio.TaskGroup() as group:
        for worker in range(16):
            group.create_task(load(worker))
        await asyncio.sleep(1)
        server.kill()
        phase = "down"
        await asyncio.sleep(1)
        assert degraded()
        phase = "returning"
        server.start()
        await until_degraded(False, within_s=1.5)
        phase = "after"
        await asyncio.sleep(0.5)
        phase = "over"

    assert not degraded()
    assert [line["event"] for line in logs] == ["limiter_degraded", "limiter_recovered"]
    assert len(times_s["before"]) > 200
    for later in ("down", "returning", "after"):
        assert p99(times_s[later]) < p99(times_s["before"]) + 0.05
    # Every key got its share and no more. Workers with even numbers send AI requests. Each of a
    # key's four workers may have been waiting when Redis died, and that request is not counted.
    for key, ai in (("acct:1", False), ("acct:3", False), ("acct:0", True), ("acct:2", True)):
        share = (CEILINGS.ai if ai else CEILINGS.all) // PROCESSES
        assert share - 4 <= admitted[key, ai] <= share


@pytest.mark.timed
async def test_requests_wait_once_and_briefly_for_a_redis_that_hangs(
    server: RedisServer, logs: Logs
) -> None:
    redis = connect(server.url)
    window = Window(redis, processes=PROCESSES)
    await window.admit("warm", CEILINGS, ai=False)

    async def timed() -> float:
        start = time.perf_counter()
        assert (await window.admit("acct:hang", CEILINGS, ai=False)).allowed
        return time.perf_counter() - start

    server.signal(signal.SIGSTOP)
    first = await asyncio.gather(*[timed() for _ in range(40)])
    then = [await timed() for _ in range(5)]
    server.signal(signal.SIGCONT)
    await until_degraded(False, within_s=1.5)

    assert sorted(first)[20] < 0.06
    assert max(then) < 0.02
    assert [line["event"] for line in logs] == ["limiter_degraded", "limiter_recovered"]
    # With Redis back, the whole ceiling applies instead of the share of this process.
    assert (await window.admit("acct:later", CEILINGS, ai=False)).remaining == CEILINGS.all - 1
    await window.aclose()
    await redis.aclose()


@pytest.mark.timed
async def test_a_restart_between_requests_is_not_an_outage(
    server: RedisServer, window: Window, logs: Logs
) -> None:
    server.kill()
    server.start()
    assert (await window.admit("acct:idle", CEILINGS, ai=False)).remaining == CEILINGS.all - 1
    assert logs == []


@pytest.mark.timed
async def test_a_redis_that_cannot_write_counts_as_down(
    server: RedisServer, window: Window, logs: Logs
) -> None:
    redis = connect(server.url)
    # A replica without a master answers pings and refuses writes.
    await redis.replicaof("127.0.0.1", "1")
    with pytest.raises(ReadOnlyError):
        await redis.set("a", "b")
    share = CEILINGS.all // PROCESSES
    assert (await window.admit("acct:replica", CEILINGS, ai=False)).remaining == share - 1
    await asyncio.sleep(0.6)
    assert degraded()
    await redis.replicaof("NO", "ONE")
    await until_degraded(False, within_s=1.5)
    await redis.aclose()
    assert [line["event"] for line in logs] == ["limiter_degraded", "limiter_recovered"]


@pytest.mark.timed
async def test_closing_stops_the_recovery_task(server: RedisServer, window: Window) -> None:
    server.kill()
    await window.admit("acct:close", CEILINGS, ai=False)
    assert degraded()
    tasks = asyncio.all_tasks()
    await window.aclose()
    assert len(asyncio.all_tasks()) == len(tasks) - 1
    breaker.DEGRADED.set(0)


@pytest.mark.timed
async def test_a_call_on_a_silent_connection_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(breaker, "CALL_TICKS", 10)

    async def reply() -> None:
        await asyncio.sleep(0.005)

    async def others() -> None:
        while True:
            with suppress(RedisUnavailable):
                await subject.call(reply())

    subject = CircuitBreaker(reply, timeout_s=0.04, probe_every_s=0.01)
    silence: Awaitable[None] = asyncio.Future()
    traffic = asyncio.create_task(others())
    start = time.perf_counter()
    with pytest.raises(RedisUnavailable):
        await subject.call(silence)
    assert 0.08 < time.perf_counter() - start < 0.5
    await until_degraded(False, within_s=1)
    traffic.cancel()
    await subject.aclose()
