"""A request that cannot get a connection or a lock fails soon, with DATABASE_ERROR."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY

from rota.dev.stack import Stack
from rota.platform import ids, membership
from rota.platform.db import Database, DatabaseTimeouts, PoolExhausted
from tests.assertions import assert_error
from tests.service import Person, Service


@pytest.fixture(scope="module")
async def hasty(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(
        stack,
        variant="a",
        name="hasty",
        database_pool_size=2,
        database_pool_timeout_s=0.3,
        database_lock_timeout_s=0.5,
    ) as started:
        yield started


@asynccontextmanager
async def account_locked(service: Service, person: Person) -> AsyncIterator[None]:
    async with service.owner() as owner, owner.transaction():
        await owner.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", person.user_id
        )
        yield


def timeouts(kind: str) -> float:
    return REGISTRY.get_sample_value("rota_database_timeouts_total", {"kind": kind}) or 0


async def test_a_lock_that_is_not_free_in_time_is_a_database_error(hasty: Service) -> None:
    person = await hasty.sign_in()
    assert (await person.post("/api/tasks", {"name": "first"})).status_code == 201
    before = timeouts("lock")
    async with account_locked(hasty, person):
        response = await person.post("/api/tasks", {"name": "second"})
        assert_error(response, 500, "DATABASE_ERROR")
    assert timeouts("lock") == before + 1
    assert (await person.post("/api/tasks", {"name": "third"})).status_code == 201


async def test_a_pool_that_several_accounts_exhaust_is_a_database_error(hasty: Service) -> None:
    people = [await hasty.sign_in() for _ in range(3)]
    for person in people:
        assert (await person.post("/api/tasks", {"name": "first"})).status_code == 201
    *busy, other = people
    before = timeouts("pool")
    exhausted = asyncio.Event()

    async def write(person: Person) -> None:
        while not exhausted.is_set():
            response = await person.post("/api/tasks", {"name": "x"})
            assert response.status_code in (429, 500), response.text

    async with (
        account_locked(hasty, busy[0]),
        account_locked(hasty, busy[1]),
        asyncio.timeout(60),
        asyncio.TaskGroup() as group,
    ):
        for person in busy:
            group.create_task(write(person))
        while timeouts("pool") == before:
            await other.get("/api/me")
        exhausted.set()
    assert (await other.get("/api/me")).status_code == 200


async def test_a_pool_without_a_free_connection_raises_in_time(service_a: Service) -> None:
    database = Database(service_a.database_url, pool_size=1, timeouts=DatabaseTimeouts(pool_s=0.05))
    await database.open()
    async with database.directory():
        with pytest.raises(PoolExhausted, match=r"within 0\.05 s"):
            async with database.directory():
                pass
    await database.close()


async def test_a_transaction_that_cannot_begin_in_time_raises_that(service_a: Service) -> None:
    person = await service_a.sign_in()
    # As a member, so that the beginning takes a lock on the membership.
    account_id, user_id = ids.new_uuid(), person.user_id
    limits = DatabaseTimeouts(pool_s=0.3, lock_s=20)
    database = Database(service_a.database_url, pool_size=1, timeouts=limits)
    await database.open()
    before = timeouts("pool")
    async with service_a.owner() as owner, owner.transaction():
        number = membership.lock_number(account_id, user_id)
        await owner.execute(f"SELECT pg_advisory_xact_lock({number})")
        with pytest.raises(PoolExhausted, match=r"within 0\.3 s"):
            async with database.write(account_id, user_id):
                pass
    assert timeouts("pool") == before + 1
    async with database.directory() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()


@asynccontextmanager
async def opened(service: Service, pool_size: int) -> AsyncIterator[Database]:
    database = Database(service.database_url, pool_size=pool_size)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def test_an_error_is_not_replaced_if_the_connection_was_lost(service_a: Service) -> None:
    async with opened(service_a, 1) as database:

        async def lose_and_fail() -> None:
            async with database.directory() as tx:
                connection: Any = tx._connection
                connection.terminate()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await lose_and_fail()
        async with database.directory() as tx:
            assert await tx.fetchval("SELECT 1") == 1


async def test_a_transaction_cannot_begin_twice(service_a: Service) -> None:
    async with opened(service_a, 2) as database:
        transaction = database.directory()
        async with transaction as tx:
            with pytest.raises(RuntimeError, match="already begun"):
                await transaction.__aenter__()
            assert await tx.fetchval("SELECT 1") == 1


async def test_a_statement_and_an_idle_transaction_have_a_longest_time(service_a: Service) -> None:
    limits = DatabaseTimeouts(statement_s=0.05, idle_s=0.05)
    database = Database(service_a.database_url, pool_size=1, timeouts=limits)
    await database.open()
    with pytest.raises(asyncpg.QueryCanceledError):
        async with database.directory() as connection:
            await connection.fetchval("SELECT pg_sleep(5)")

    async def idle() -> None:
        async with database.directory() as connection, asyncio.timeout(20):
            while not connection._connection.is_closed():
                await asyncio.sleep(0.01)
            await connection.fetchval("SELECT 1")

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await idle()
    async with database.directory() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()


async def test_a_cancellation_during_a_rollback_is_not_lost(hasty: Service) -> None:
    database = Database(hasty.database_url, pool_size=1)
    await database.open()
    account_id = ids.new_uuid()

    async def fail() -> None:
        async with database.write(account_id):
            task = asyncio.current_task()
            assert task is not None
            # It takes effect where the task waits next: for the rollback.
            task.cancel()
            raise ValueError

    failing = asyncio.create_task(fail())
    await asyncio.wait([failing])
    assert failing.cancelled()
    # The connection was not used again.
    async with database.read(account_id) as tx:
        assert await tx.fetchval("SELECT 1") == 1
    await database.close()
