"""One account cannot hold all database connections of a process."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from prometheus_client import REGISTRY

from rota.auth import authenticator
from rota.dev.stack import Stack
from rota.platform import connection_shares
from rota.platform.connection_shares import ConnectionShares, ShareExceeded
from rota.runs.call_protection import retry_database
from tests.assertions import assert_error
from tests.platform.test_database_timeouts import account_locked
from tests.service import Person, Service
from tests.tasks.world import newcomer, until_waiting_for_locks

POOL = 10
WRITES = 15


@pytest.fixture(scope="module", params=["a", "b"])
async def shared(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"shares_{request.param}"
    with pytest.MonkeyPatch.context() as patched:
        # So that a key that was used once needs no connection, however slow the machine is.
        patched.setattr(authenticator, "CACHE_S", 60)
        async with Service.start(
            stack, variant=request.param, name=name, database_pool_size=POOL
        ) as started:
            yield started


def metric(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0


async def seconds(person: Person, count: int = 30) -> list[float]:
    """How long requests of this person take, one after the other."""
    took = []
    for _ in range(count):
        started = time.perf_counter()
        assert (await person.get("/api/me")).status_code == 200
        took.append(time.perf_counter() - started)
    return took


@pytest.mark.timed
async def test_writes_behind_their_own_lock_do_not_delay_another_account(shared: Service) -> None:
    writer, other = await newcomer(shared), await newcomer(shared)
    await seconds(other)
    alone = statistics.median(await seconds(other))
    async with account_locked(shared, writer):
        writes = [
            asyncio.create_task(writer.post("/api/tasks", {"name": "x"})) for _ in range(WRITES)
        ]
        await until_waiting_for_locks(shared, POOL // 2)
        async with asyncio.timeout(20):
            while metric("rota_database_share_waiting") < WRITES - POOL // 2:
                await asyncio.sleep(0.01)
            beside = await seconds(other)
            ready = await shared.http.get("/health/ready")
    assert ready.json()["checks"]["postgres"] == "ok"
    assert statistics.median(beside) <= 2 * alone + 0.005
    assert max(beside) < 1
    assert [each.status_code for each in await asyncio.gather(*writes)] == [201] * WRITES
    assert metric("rota_database_share_waiting") == 0


async def test_more_requests_than_can_wait_are_refused_for_this_account_only(
    shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_shares, "MAX_WAITING", 3)
    writer, other = await newcomer(shared), await newcomer(shared)
    # So that the key is known, and authentication needs no connection.
    assert (await writer.get("/api/me")).status_code == 200
    before = metric("rota_database_share_refused_total")
    refused: list[httpx.Response] = []

    async def write() -> int:
        response = await writer.post("/api/tasks", {"name": "x"})
        if response.status_code == 429:
            refused.append(response)
        return response.status_code

    async with account_locked(shared, writer), asyncio.timeout(20):
        writes = [asyncio.create_task(write()) for _ in range(WRITES)]
        while len(refused) < WRITES - POOL // 2 - 3:
            await asyncio.sleep(0.01)
        assert (await other.post("/api/tasks", {"name": "x"})).status_code == 201
    assert sorted(await asyncio.gather(*writes)) == [201] * 8 + [429] * 7
    for response in refused:
        assert_error(response, 429, "RATE_LIMITED")
        assert response.headers["Retry-After"] == "1"
    assert metric("rota_database_share_refused_total") == before + 7
    assert (await writer.post("/api/tasks", {"name": "x"})).status_code == 201


async def test_a_request_that_waits_too_long_for_its_share_is_refused(stack: Stack) -> None:
    async with Service.start(
        stack,
        variant="a",
        name="hasty_shares",
        database_pool_size=2,
        database_pool_timeout_s=0.3,
    ) as hasty:
        writer, other = await newcomer(hasty), await newcomer(hasty)
        async with account_locked(hasty, writer), asyncio.timeout(20):
            first = asyncio.create_task(writer.post("/api/tasks", {"name": "x"}))
            await until_waiting_for_locks(hasty, 1)
            assert_error(await writer.get("/api/tasks"), 429, "RATE_LIMITED")
            assert (await other.get("/api/tasks")).status_code == 200
        assert (await first).status_code == 201


async def test_no_request_needs_two_connections_at_the_same_time(stack: Stack) -> None:
    """Otherwise requests that hold one connection could wait for each other for ever."""
    async with Service.start(
        stack, variant="a", name="one_connection", database_pool_size=1, database_pool_timeout_s=5
    ) as small:
        person = await small.sign_in()
        task = (await person.post("/api/tasks", {"name": "x", "status": "WAITING_APPROVAL"})).json()
        path = f"/api/tasks/{task['task']['id']}"
        for method, target, body in (
            ("GET", "/api/tasks?q=x", None),
            ("GET", "/api/approvals", None),
            ("GET", f"{path}/review", None),
            ("POST", f"{path}/approve", {}),
            ("PATCH", path, {"status": "FAILED"}),
            ("GET", f"{path}/retry", None),
            ("POST", f"{path}/retry", {}),
            ("GET", f"{path}/timeline", None),
            ("PATCH", path, {"status": "CANCELLED"}),
            ("GET", f"{path}/events", None),
            ("GET", "/api/agents", None),
            ("GET", "/api/mcp", None),
            ("GET", "/api/keys", None),
            ("POST", "/api/keys", {"name": "x"}),
            ("GET", "/api/auth/sessions", None),
            ("GET", "/api/credits/balance", None),
            ("GET", "/api/credits/forecast", None),
            ("GET", "/api/credits/transactions", None),
            ("GET", "/api/subscriptions", None),
            ("POST", "/api/auth/refresh", {}),
        ):
            options = {"json": body} if body is not None else {}
            response = await person.request(method, target, **options)
            assert response.status_code in (200, 201), (method, target, response.text)


async def test_transactions_wait_in_order_and_a_cancelled_one_gives_up_its_place() -> None:
    shares, account_id = ConnectionShares(1, timeout_s=5), uuid4()
    order: list[int] = []
    done = asyncio.Event()

    async def hold(number: int) -> None:
        await shares.enter(account_id)
        order.append(number)
        await done.wait()
        shares.leave(account_id)

    tasks = []
    for number in range(4):
        tasks.append(asyncio.create_task(hold(number)))
        await asyncio.sleep(0)
    other = uuid4()
    await shares.enter(other)
    assert order == [0]
    shares.leave(other)
    tasks[1].cancel()
    done.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3]
    assert not shares._shares


async def test_a_worker_tries_again_when_the_share_of_an_account_is_used_up() -> None:
    attempts = 0

    async def work() -> str:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ShareExceeded
        return "done"

    assert await retry_database(work) == "done"
