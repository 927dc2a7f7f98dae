"""Expensive requests of an account are spread over time while other accounts use the process."""

import asyncio
import time
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY

from rota.platform import ids, request_pace
from rota.platform.db import Database
from rota.platform.errors import RateLimited
from rota.platform.request_pace import BURST_S, SHARE, RequestPace, current, measured
from rota.platform.shares import REFUSED
from tests.service import Service
from tests.tasks.world import newcomer


def compute(cpu_s: float) -> None:
    ends = time.thread_time() + cpu_s
    while time.thread_time() < ends:
        pass


async def send(pace: RequestPace, account: str, cpu_s: float = 0.0) -> bool:
    """A request that needs this much processor time, and whether requests waited."""

    async def work() -> None:
        await asyncio.sleep(0)
        compute(cpu_s)

    before = waits()
    await pace.run(account, work, bool)
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
    with pytest.raises(RateLimited, match="too much time of the service") as refused:
        await send(pace, "busy")
    assert refused.value.headers in ({"Retry-After": "1"}, {"Retry-After": "2"})
    assert REFUSED.labels("requests")._value.get() == before + 1
    assert not await send(pace, "other")


async def test_cheap_requests_that_wait_for_something_else_cost_nothing() -> None:
    pace = RequestPace()
    await send(pace, "other")
    before = waits()
    await asyncio.gather(*[pace.run("calm", lambda: asyncio.sleep(0.5), bool) for _ in range(50)])
    assert waits() == before
    assert not await send(pace, "calm")


async def test_what_follows_the_beginning_of_a_response_is_not_counted() -> None:
    pace, began = RequestPace(), asyncio.Event()
    await send(pace, "other")

    async def stream() -> None:
        compute(0.05)
        began.set()
        for _ in range(5):
            await asyncio.sleep(0)
            compute(0.1)
            use = current()
            assert use is not None
            assert use.is_over()

    await pace.run("streams", stream, began.is_set)
    assert not await send(pace, "streams")


async def test_reads_count_and_their_number_at_once_is_limited(service: Service) -> None:
    pace, account = RequestPace(), uuid4()
    db = Database(service.database_url, pool_size=10)
    await db.open()
    await send(pace, "other")
    reading = most = 0

    async def read() -> None:
        nonlocal reading, most
        async with db.read(account) as tx:
            reading += 1
            most = max(most, reading)
            await tx.fetchval("SELECT pg_sleep(0.1)")
            reading -= 1

    async def write() -> None:
        async with db.write(account) as tx:
            await tx.fetchval("SELECT pg_sleep(0.3)")

    for _ in range(2):
        await pace.run("writes", write, bool)
    assert not await send(pace, "writes")
    await asyncio.gather(*[pace.run("reads", read, bool) for _ in range(4)])
    assert most == 2
    assert await send(pace, "reads")
    await db.close()


async def test_tasks_of_the_work_count_if_it_says_so() -> None:
    pace = RequestPace()
    await send(pace, "other")

    async def part() -> None:
        await asyncio.sleep(0)
        compute(0.2)

    async def work() -> None:
        await asyncio.create_task(measured(part()))

    await pace.run("parts", work, bool)
    assert await send(pace, "parts")


async def test_tasks_that_the_work_starts_do_not_belong_to_it() -> None:
    pace, found = RequestPace(), []

    async def part() -> None:
        found.append(current())

    async def work() -> None:
        found.append(current())
        await asyncio.create_task(part())

    await pace.run("starts", work, bool)
    assert found[0] is not None
    assert found[1:] == [None]


async def test_what_was_expected_of_a_stream_is_given_back_when_it_begins() -> None:
    pace, began, end = RequestPace(), asyncio.Event(), asyncio.Event()
    await send(pace, "other")
    await send(pace, "streams", 0.05)

    async def stream() -> None:
        began.set()
        await end.wait()

    streams = [asyncio.create_task(pace.run("streams", stream, began.is_set)) for _ in range(20)]
    await asyncio.sleep(0.1)
    assert not await send(pace, "streams")
    end.set()
    await asyncio.gather(*streams)


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

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            # It can still wait, as for a rollback.
            await asyncio.sleep(0)
            seen.append("waited")
            raise

    request = asyncio.create_task(pace.run("account", work, bool))
    await asyncio.sleep(0.01)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert seen == ["cancelled", "waited"]

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await pace.run("account", fail, bool)


async def test_the_service_counts_what_the_requests_of_an_account_use(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[str, float] = {}
    monkeypatch.setattr(request_pace.TOP_PROCESSOR_TIME, "add", used.__setitem__)
    person = await newcomer(service)
    assert (await person.get("/api/tasks")).status_code == 200
    assert 0 < used[ids.to_wire("acct", person.user_id)] < 1
