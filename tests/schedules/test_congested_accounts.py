"""An account with many due schedules, or one that is locked, does not stop those of others."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from rota.composition import Composition
from rota.platform import clock, connection_shares
from rota.schedules import sweep as sweeps
from rota.schedules.sweep import Sweep
from tests.schedules.world import create, make_due
from tests.service import Service
from tests.tasks.world import newcomer


async def test_an_account_without_a_free_connection_does_not_stop_the_schedules_of_others(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, other = await newcomer(board), await newcomer(board)
    for _ in range(2):
        await make_due(board, await create(busy), timedelta(seconds=3))
    await make_due(board, await create(other))
    sweep = Sweep(parts.db, parts.task_creation)
    # The transaction over the share is refused at once.
    monkeypatch.setattr(connection_shares, "MAX_WAITING", 0)
    async with AsyncExitStack() as held:
        for _ in range(4):
            await held.enter_async_context(parts.db.read(busy.user_id))
        before = connection_shares.REFUSED._value.get()
        assert await sweep.handle_due() == 1
        # One for the time and one for putting it off. Then the account is left alone.
        assert connection_shares.REFUSED._value.get() - before == 2
    assert (await other.get("/api/tasks")).json()["total"] == 1
    assert await sweep.handle_due() == 2
    assert (await busy.get("/api/tasks")).json()["total"] == 2


async def test_what_becomes_due_waits_for_few_schedules_of_another_account(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, other = await newcomer(board), await newcomer(board)
    for _ in range(8):
        await make_due(board, await create(busy), timedelta(minutes=1))
    later = await create(other)
    sweep, order = Sweep(parts.db, parts.task_creation), list[UUID]()
    handle = sweep._handle

    async def handling(account_id: UUID, schedule_id: UUID) -> bool:
        order.append(account_id)
        if len(order) == 1:
            await make_due(board, later)
        return await handle(account_id, schedule_id)

    monkeypatch.setattr(sweep, "_handle", handling)
    assert await sweep.handle_due() == 9
    assert order.index(other.user_id) <= 3


async def test_an_account_that_is_locked_costs_the_others_one_time_limit(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "LIMIT_S", 0.5)
    monkeypatch.setattr(sweeps, "PAGE", 1)
    locked, other = await newcomer(board), await newcomer(board)
    for _ in range(3):
        await make_due(board, await create(locked), timedelta(minutes=1))
    await make_due(board, await create(other))
    sweep, tried = Sweep(parts.db, parts.task_creation), list[UUID]()
    handle = sweep._handle

    async def handling(account_id: UUID, schedule_id: UUID) -> bool:
        tried.append(account_id)
        return await handle(account_id, schedule_id)

    monkeypatch.setattr(sweep, "_handle", handling)
    async with board.owner() as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM account_heads WHERE account_id = $1 FOR UPDATE", locked.user_id
        )
        await sweep.handle_due()
    assert tried == [locked.user_id, other.user_id]
    assert (await other.get("/api/tasks")).json()["total"] == 1
    # The one that was tried is put off.
    assert await sweep.handle_due() == 2
    again = Sweep(parts.db, parts.task_creation, now=lambda: clock.now() + sweeps.RECOVER)
    assert await again.handle_due() == 1
    assert (await locked.get("/api/tasks")).json()["total"] == 3


async def test_a_lock_timeout_that_is_shorter_than_the_time_limit_leaves_the_account_alone_too(
    board: Service, parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "PAGE", 1)
    monkeypatch.setattr(sweeps, "LEAVE_ALONE_S", 0.2)
    locked, other = await newcomer(board), await newcomer(board)
    for _ in range(2):
        await make_due(board, await create(locked), timedelta(minutes=1))
    await make_due(board, await create(other))
    sweep, tried = Sweep(parts.db, parts.task_creation), list[UUID]()
    handle = sweep._handle

    async def handling(account_id: UUID, schedule_id: UUID) -> bool:
        tried.append(account_id)
        if len(tried) == 1:
            raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout")
        done = await handle(account_id, schedule_id)
        await asyncio.sleep(0.3)
        return done

    monkeypatch.setattr(sweep, "_handle", handling)
    # The others are not kept waiting for it, and it is not left alone for ever.
    assert await sweep.handle_due() == 3
    assert tried == [locked.user_id, other.user_id, locked.user_id]
