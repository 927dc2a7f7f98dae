"""The loop of a worker: it is woken for an erasure, and goes on after a failure."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from rota.data import queries
from rota.data import sweep as sweeps
from rota.data.sweep import DataSweep
from tests.data.filled import own_name
from tests.data.world import World
from tests.service import Person


@contextlib.asynccontextmanager
async def running(sweep: DataSweep) -> AsyncIterator[None]:
    loop = asyncio.create_task(sweep.run())
    try:
        yield
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)


async def erased(world: World, person: Person) -> None:
    async with asyncio.timeout(30):
        while True:
            async with world.parts.db.read(person.user_id) as tx:
                found = await queries.find_erasure(tx)
            if found is not None and found.finished_at is not None:
                return
            await asyncio.sleep(0.02)


async def erase(person: Person) -> None:
    name = await own_name(person)
    response = await person.request("DELETE", "/api/account", json={"name": name})
    assert response.status_code == 200, response.text


async def test_a_worker_is_woken_for_an_erasure(world_a: World) -> None:
    person, other = await world_a.service.sign_in(), await world_a.service.sign_in()
    async with running(world_a.sweep()):
        # The first one may come before the worker waits.
        await erase(person)
        await erased(world_a, person)
        await erase(other)
        await erased(world_a, other)


async def test_a_worker_goes_on_after_a_failure(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    await erase(person)
    sweep = world_a.sweep()
    failures = 2
    real = sweep.erase

    async def fails() -> float | None:
        nonlocal failures
        if failures:
            failures -= 1
            raise ConnectionError
        return await real()

    monkeypatch.setattr(sweep, "erase", fails)
    monkeypatch.setattr(sweeps, "RETRY_S", 0.05)
    async with running(sweep):
        await erased(world_a, person)


async def test_an_account_whose_turn_fails_does_not_stop_the_others(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [await world_a.service.sign_in() for _ in range(2)]
    async with world_a.service.owner() as connection:
        await connection.execute(
            "UPDATE retention_turns SET due_at = now() WHERE account_id = ANY($1)",
            [person.user_id for person in people],
        )
        # An account that keeps everything has no turn.
        await connection.execute(
            "UPDATE accounts SET tasks_days = 10 WHERE id = ANY($1)",
            [person.user_id for person in people],
        )
    sweep = world_a.sweep()
    real, seen = sweep._retention.apply, []

    async def fails(account_id: object, renew: object) -> dict[str, int]:
        seen.append(account_id)
        if account_id == people[0].user_id:
            raise ValueError
        return await real(people[1].user_id)

    monkeypatch.setattr(sweep._retention, "apply", fails)
    await sweep.apply_retention()
    assert {person.user_id for person in people} <= set(seen)
    assert len(seen) == len(set(seen))


async def test_accounts_with_nothing_to_delete_share_a_transaction(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [await world_a.service.sign_in() for _ in range(6)]
    with_policy, with_key, *idle = [person.user_id for person in people]
    await people[1].post("/api/keys", {"name": "k"}, headers={"Idempotency-Key": "old"})
    async with world_a.service.owner() as connection:
        await connection.execute("UPDATE accounts SET events_days = 10 WHERE id = $1", with_policy)
        await connection.execute(
            "UPDATE idempotency_keys SET created_at = now() - interval '25 hours' "
            "WHERE account_id = $1",
            with_key,
        )
        await connection.execute(
            "UPDATE retention_turns SET due_at = now() WHERE account_id = ANY($1)",
            [person.user_id for person in people],
        )
    sweep = world_a.sweep()
    real, seen = sweep._retention.apply, []

    async def watched(account_id: UUID, renew: Any) -> dict[str, int]:
        seen.append(account_id)
        return await real(account_id, renew)

    monkeypatch.setattr(sweep._retention, "apply", watched)
    await sweep.apply_retention()
    assert {with_policy, with_key} <= set(seen)
    assert not set(idle) & set(seen)
    async with world_a.service.owner() as connection:
        due = await connection.fetchval(
            "SELECT count(*) FROM retention_turns WHERE due_at <= now() AND account_id = ANY($1)",
            [person.user_id for person in people],
        )
        left = await connection.fetchval(
            "SELECT count(*) FROM idempotency_keys WHERE account_id = $1", with_key
        )
    assert (due, left) == (0, 0)
