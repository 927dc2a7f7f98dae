"""Expensive requests of an account are spread over time while other accounts use the process."""

import asyncio
import time
from collections import Counter
from functools import partial
from itertools import cycle
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from prometheus_client import REGISTRY

from rota.platform import ids, request_pace
from rota.platform.db import Database
from rota.platform.errors import RateLimited
from rota.platform.request_pace import (
    BURST_S,
    MAX_READ_S,
    SHARE,
    LongReads,
    RequestPace,
    Use,
    current,
    measured,
)
from rota.platform.shares import REFUSED
from tests.service import Service
from tests.tasks.world import newcomer


def compute(cpu_s: float) -> None:
    ends = time.thread_time() + cpu_s
    while time.thread_time() < ends:
        pass


async def send(pace: RequestPace, account: str, cpu_s: float = 0.0) -> bool:
    """A request that needs this much processor time, and whether requests waited."""

    async def respond(_: Use) -> None:
        await asyncio.sleep(0)
        compute(cpu_s)

    before = waits()
    await pace.run(account, respond)
    return waits() > before


def waits() -> float:
    labels = {"share": "requests"}
    return REGISTRY.get_sample_value("rota_share_wait_seconds_count", labels) or 0


async def test_expensive_requests_wait_and_those_of_other_accounts_do_not() -> None:
    pace = RequestPace()
    await send(pace, "other")
    started = time.monotonic()
    for _ in range(6):
        await send(pace, "busy", 0.05)
    # All but the last one must be a share of the time that has passed.
    assert time.monotonic() - started >= (5 * 0.05 - BURST_S) / SHARE
    assert not await send(pace, "other")


async def test_requests_at_the_same_time_wait_too_once_it_is_known_what_they_cost() -> None:
    pace = RequestPace()
    await send(pace, "other")
    await send(pace, "busy", 0.1)
    started = time.monotonic()
    await asyncio.gather(*[send(pace, "busy", 0.05) for _ in range(4)])
    assert time.monotonic() - started >= 3 * 0.03 / SHARE


async def test_an_account_that_is_alone_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_pace, "ALONE_S", 0.05)
    pace = RequestPace()
    await send(pace, "other")
    await asyncio.sleep(0.1)
    assert not any([await send(pace, "busy", 0.1) for _ in range(5)])
    # It owes nothing when the other account is back.
    await send(pace, "other")
    assert not await send(pace, "busy")


async def test_an_account_that_would_wait_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_pace, "WAIT_S", 0.2)
    pace = RequestPace()
    before = REFUSED.labels("requests")._value.get()
    await send(pace, "other")
    await send(pace, "busy", 0.5)
    with pytest.raises(RateLimited, match="too much processing time") as refused:
        await send(pace, "busy")
    assert refused.value.headers in ({"Retry-After": "1"}, {"Retry-After": "2"})
    assert REFUSED.labels("requests")._value.get() == before + 1
    assert not await send(pace, "other")


async def test_cheap_requests_that_wait_for_something_else_cost_nothing() -> None:
    pace = RequestPace()
    await send(pace, "other")
    before = waits()
    await asyncio.gather(*[pace.run("calm", lambda _: asyncio.sleep(0.5)) for _ in range(50)])
    assert waits() == before
    assert not await send(pace, "calm")


async def test_what_follows_the_beginning_of_a_response_does_not_count() -> None:
    pace = RequestPace()
    await send(pace, "other")

    async def stream(use: Use) -> None:
        compute(0.05)
        use.end()
        for _ in range(5):
            compute(0.1)
            await asyncio.sleep(0)

    await pace.run("streams", stream)
    assert not await send(pace, "streams")

    async def respond_slowly(use: Use) -> None:
        compute(0.4)
        use.end()

    await pace.run("streams", respond_slowly)
    assert await send(pace, "streams")


async def test_what_was_expected_of_a_stream_is_given_back_when_it_begins() -> None:
    pace, end = RequestPace(), asyncio.Event()
    begun: list[Use] = []
    await send(pace, "other")
    await send(pace, "streams", 0.05)

    async def stream(use: Use) -> None:
        # Like the server's streams, which send their responses in tasks of their own.
        await asyncio.create_task(begin(use))

    async def begin(use: Use) -> None:
        use.end()
        begun.append(use)
        await end.wait()

    streams = [asyncio.create_task(pace.run("streams", stream)) for _ in range(20)]
    async with asyncio.timeout(20):
        while len(begun) < len(streams):
            await asyncio.sleep(0.01)
    assert not await send(pace, "streams")
    end.set()
    await asyncio.gather(*streams)


async def test_what_was_expected_too_much_is_not_given_back_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_pace, "REFUND_S", 0.2)
    pace, end = RequestPace(), asyncio.Event()
    await send(pace, "other")
    await send(pace, "holds", 0.05)

    async def hold(_: Use) -> None:
        await end.wait()

    holds = [asyncio.create_task(pace.run("holds", hold)) for _ in range(8)]
    await asyncio.sleep(2)
    end.set()
    await asyncio.gather(*holds)
    # Time has paid for what was expected of them, so it is no credit for others.
    await send(pace, "holds", 0.2)
    assert await send(pace, "holds")


async def test_long_reads_count_and_their_number_at_once_is_limited(service: Service) -> None:
    pace, account = RequestPace(), uuid4()
    db = Database(service.database_url, pool_size=10)
    await db.open()
    await send(pace, "other")
    reading = most = 0

    def request(begin: Any, seconds: float, *, fails: bool = False) -> Any:
        async def respond(_: Use) -> None:
            nonlocal reading, most
            async with begin(account) as tx:
                reading += 1
                most = max(most, reading)
                try:
                    await tx.fetchval("SELECT pg_sleep($1)", seconds)
                    if fails:
                        await tx.fetchval("SELECT 1 / 0")
                finally:
                    reading -= 1

        return respond

    unlimited = partial(db.snapshot, limited=False)
    for _ in range(3):
        await pace.run("writes", request(db.write, 0.3))
        await pace.run("exports", request(unlimited, 0.3))
        with pytest.raises(asyncpg.DivisionByZeroError):
            await pace.run("fails", request(db.read, 0.3, fails=True))
    for account_name in ("writes", "exports", "fails"):
        assert not await send(pace, account_name)
    most = 0
    await asyncio.gather(*[pace.run("exports", request(unlimited, 0.3)) for _ in range(4)])
    assert most > 2
    most = 0
    await asyncio.gather(*[pace.run("reads", request(db.read, 0.3)) for _ in range(4)])
    assert most == 2
    assert await send(pace, "reads")
    await db.close()


def test_a_database_that_is_slow_for_everybody_delays_nobody() -> None:
    reads = LongReads()
    assert reads.excess("busy", 0.03) > 0.02
    accounts = cycle(("first", "second", "third"))
    for seconds in (0.02, 0.5):
        for _ in range(500):
            reads.excess(next(accounts), seconds)
        assert reads.excess("busy", 1.5 * seconds) == 0
    for _ in range(500):
        reads.excess(next(accounts), 0.001)
    assert reads.excess("busy", 0.03) > 0.02
    assert 0.1 < reads.excess("busy", 60) <= MAX_READ_S


def test_no_account_decides_what_reads_usually_take() -> None:
    reads = LongReads()
    for number in range(1_000):
        reads.excess("busy", 0.05)
        if number % 10 == 0:
            reads.excess("other", 0.002)
    assert reads.excess("busy", 0.05) > 0.04


async def test_tasks_of_a_request_count_if_they_say_so() -> None:
    pace = RequestPace()
    await send(pace, "other")

    async def part() -> None:
        await asyncio.sleep(0)
        compute(0.2)

    async def respond(use: Use) -> None:
        use.end()
        await asyncio.create_task(measured(part()))

    await pace.run("parts", respond)
    assert await send(pace, "parts")


async def test_tasks_that_a_request_starts_do_not_belong_to_it() -> None:
    pace, found = RequestPace(), []

    async def part() -> None:
        found.append(current())

    async def respond(use: Use) -> None:
        assert current() is use
        await asyncio.create_task(part())

    await pace.run("starts", respond)
    assert found == [None]


async def test_an_account_never_owes_more_than_a_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_pace, "MAX_DEBT_S", 0.5)
    pace = RequestPace()
    await send(pace, "other")
    await send(pace, "busy", 1.0)
    started = time.monotonic()
    await send(pace, "busy")
    assert time.monotonic() - started < 1.0 / SHARE / 2


async def test_errors_and_cancellation_reach_the_request() -> None:
    pace, seen = RequestPace(), []

    async def respond(_: Use) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            # It can still wait, as for a rollback.
            await asyncio.sleep(0)
            seen.append("waited")
            raise

    request = asyncio.create_task(pace.run("account", respond))
    await asyncio.sleep(0.01)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert seen == ["cancelled", "waited"]

    async def fail(_: Use) -> None:
        await asyncio.sleep(0)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await pace.run("account", fail)


async def test_the_service_counts_what_the_requests_of_an_account_use(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: Counter[str] = Counter()
    monkeypatch.setattr(
        request_pace.TOP_PROCESSOR_TIME,
        "add",
        lambda account, seconds: used.update({account: seconds}),
    )
    person = await newcomer(service)
    account = ids.to_wire("acct", person.user_id)
    assert (await person.get("/api/tasks")).status_code == 200
    assert 0 < used[account] < 1
    before = used[account]
    # What is refused at once neither counts nor waits.
    refused = await person.get("/api/tasks", headers={"Api-Version": "1999-01-01"})
    assert refused.status_code == 400
    assert used[account] == before
    # The events of a stream do not count, but its beginning does.
    async with service.http.stream("GET", "/api/events", headers=person.auth) as stream:
        assert stream.status_code == 200
        async with asyncio.timeout(20):
            while used[account] == before:
                await asyncio.sleep(0.01)
