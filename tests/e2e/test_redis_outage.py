"""Redis stops under load and starts again: no request fails, and few become slower.

`ROTA_TEST_REDIS_OUTAGE_S` sets the length of the outage: 5 seconds here, 20 in `make chaos`.
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
    """Clients that send requests in a loop and record the statuses and times."""

    people: list[Person]
    times_s: list[float] = field(default_factory=list)
    # Times of requests that do not use Redis, to measure the load of the machine itself.
    control_s: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self._send(person))

    async def _send(self, person: Person) -> None:
        while True:
            for path, times_s in (("/api/me", self.times_s), ("/health/live", self.control_s)):
                started = time.perf_counter()
                response = await person.get(path)
                times_s.append(time.perf_counter() - started)
                self.statuses.add(response.status_code)
                assert_headers(response)
            await asyncio.sleep(PAUSE_S)

    def reset(self) -> None:
        self.times_s.clear()
        self.control_s.clear()


def p99_s(times_s: list[float]) -> float:
    return sorted(times_s)[int(len(times_s) * 0.99)]


async def status(service: Service) -> str:
    response = await service.http.get("/health/ready")
    assert response.status_code == 200, response.text
    return str(response.json()["status"])


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
    async with Stack(tmp_path, components=("redis",), durable=False) as started:
        yield started


@pytest.mark.timed
async def test_without_redis_no_request_fails_and_few_take_longer(
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
        # In a separate process, so that the clients do not slow down the service.
        first.process(fresh=True, output=log) as service,
    ):
        people = [await first.sign_in() for _ in range(CALLERS)]
        async with first.owner() as connection:
            await connection.execute("UPDATE accounts SET tier = 'enterprise'")
        await until_status(service, "ready")
        load = Load([Person(service, person.subject, person.token) for person in people])
        callers = asyncio.create_task(load.run())

        async def keep_sending(seconds: float) -> None:
            await asyncio.wait([callers], timeout=seconds)
            if callers.done():
                callers.result()

        # Warm up the process first.
        await keep_sending(0.5)
        load.reset()
        await keep_sending(2)
        normal_s = p99_s(load.times_s)
        load.reset()
        await own_redis.redis.kill()
        await until_degraded(service, True)
        await until_status(service, "degraded")
        await keep_sending(OUTAGE_S)
        outage_s, control_s = p99_s(load.times_s), p99_s(load.control_s)
        assert len(load.times_s) > OUTAGE_S * CALLERS
        assert await degraded(service)
        await own_redis.redis.start()
        await until_degraded(service, False)
        await until_status(service, "ready")
        await keep_sending(0.5)
        callers.cancel()
        await asyncio.wait([callers])

    assert load.statuses == {200}
    assert outage_s < max(normal_s, control_s) + 0.05, (outage_s, normal_s, control_s)
    events = [json.loads(line)["event"] for line in log.read_bytes().splitlines()]
    # One log line per change, for any number of requests. On an overloaded machine Redis can be
    # slow for a moment, which counts as another outage.
    changes = [event for event in events if event.startswith("limiter_")]
    outages = len(changes) // 2
    assert changes == ["limiter_degraded", "limiter_recovered"] * outages
    assert 1 <= outages <= 3
    assert "request_failed" not in events


@pytest.mark.timed
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
        responses = await asyncio.gather(*[ada.get("/api/me") for _ in range(400)])
        passed = [response for response in responses if response.status_code == 200]
        refused = [response for response in responses if response.status_code == 429]
        # This process has half of the 600 requests, and signing in used one.
        assert (len(passed), len(refused)) == (299, 101)
        for response in (*passed, *refused):
            assert_headers(response)
            assert response.headers["RateLimit-Limit"] == "600"
        await own_redis.redis.start()
        await until_degraded(service, False)
        assert (await ada.get("/api/me")).status_code == 200
