"""Redis goes away under load and comes back: nobody fails, and hardly anyone notices.

`ROTA_TEST_REDIS_OUTAGE_S` says for how long: 5 seconds here, 20 in `make chaos`.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from rota.dev.stack import Stack
from tests.assertions import assert_headers
from tests.service import Person, Service

OUTAGE_S = float(os.environ.get("ROTA_TEST_REDIS_OUTAGE_S", "5"))
CALLERS = 4
PAUSE_S = 0.02


@dataclass
class Load:
    """Callers who ask again and again, and note what they get and how long it took."""

    people: list[Person]
    times_s: list[float] = field(default_factory=list)
    # Of requests that never ask Redis: what the machine itself makes them wait.
    control_s: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self._ask(person))

    async def _ask(self, person: Person) -> None:
        while True:
            for path, times_s in (("/api/me", self.times_s), ("/health/live", self.control_s)):
                started = time.perf_counter()
                answer = await person.get(path)
                times_s.append(time.perf_counter() - started)
                self.statuses.add(answer.status_code)
                assert_headers(answer)
            await asyncio.sleep(PAUSE_S)

    def start_over(self) -> None:
        self.times_s.clear()
        self.control_s.clear()


def p99_s(times_s: list[float]) -> float:
    return sorted(times_s)[int(len(times_s) * 0.99)]


async def status(service: Service) -> str:
    answer = await service.http.get("/health/ready")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


async def until_status(service: Service, wanted: str) -> None:
    async with asyncio.timeout(10):
        while await status(service) != wanted:
            await asyncio.sleep(0.02)


async def degraded(service: Service) -> bool:
    return "rota_limiter_degraded 1.0" in (await service.http.get("/metrics")).text


async def until_degraded(service: Service, wanted: bool) -> None:
    async with asyncio.timeout(10):
        while await degraded(service) is not wanted:
            await asyncio.sleep(0.02)


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[Stack]:
    async with Stack(tmp_path, parts=("redis",), durable=False) as started:
        yield started


async def test_redis_away_costs_no_answer_and_little_time(
    stack: Stack, own_redis: Stack, tmp_path: Path
) -> None:
    log = tmp_path / "service.log"
    async with (
        Service.start(
            stack,
            variant="a",
            name="outage",
            redis_url=SecretStr(own_redis.endpoints.redis_url),
            log_level="INFO",
        ) as first,
        # A process of its own, because the callers' work must not slow down the service.
        first.process(output=log) as service,
    ):
        people = [await first.sign_in() for _ in range(CALLERS)]
        async with first.owner() as connection:
            await connection.execute("UPDATE accounts SET tier = 'enterprise'")
        await until_status(service, "ready")
        load = Load([Person(service, person.subject, person.token) for person in people])
        callers = asyncio.create_task(load.run())

        async def go_on(seconds: float) -> None:
            await asyncio.wait([callers], timeout=seconds)
            if callers.done():
                callers.result()

        # The first answers come from a process that is still cold.
        await go_on(0.5)
        load.start_over()
        await go_on(2)
        normal_s = p99_s(load.times_s)
        load.start_over()
        await own_redis.redis.kill()
        await until_degraded(service, True)
        await until_status(service, "degraded")
        await go_on(OUTAGE_S)
        away_s, control_s = p99_s(load.times_s), p99_s(load.control_s)
        assert len(load.times_s) > OUTAGE_S * CALLERS
        assert await degraded(service)
        await own_redis.redis.start()
        await until_degraded(service, False)
        await until_status(service, "ready")
        await go_on(0.5)
        callers.cancel()
        await asyncio.wait([callers])

    assert load.statuses == {200}
    assert away_s < max(normal_s, control_s) + 0.05, (away_s, normal_s, control_s)
    events = [json.loads(line)["event"] for line in log.read_bytes().splitlines()]
    # A line each way, however many requests there were. On a machine with too much to do, Redis
    # may be silent for a moment once more, which is an outage of its own.
    changes = [event for event in events if event.startswith("limiter_")]
    outages = len(changes) // 2
    assert changes == ["limiter_degraded", "limiter_recovered"] * outages
    assert 1 <= outages <= 3
    assert "request_failed" not in events


async def test_limits_hold_in_each_process_while_redis_is_away(
    stack: Stack, own_redis: Stack
) -> None:
    async with Service.start(
        stack,
        variant="a",
        name="outage_limits",
        redis_url=SecretStr(own_redis.endpoints.redis_url),
        processes=2,
    ) as service:
        await own_redis.redis.kill()
        ada = await service.sign_in()
        await until_status(service, "degraded")
        answers = await asyncio.gather(*(ada.get("/api/me") for _ in range(400)))
        passed = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code == 429]
        # This process' half of 600, less the look at signing in.
        assert (len(passed), len(refused)) == (299, 101)
        for answer in (*passed, *refused):
            assert_headers(answer)
            assert answer.headers["RateLimit-Limit"] == "600"
        await own_redis.redis.start()
        await until_degraded(service, False)
        assert (await ada.get("/api/me")).status_code == 200
