"""The loop of a worker: it is woken for an erasure, and goes on after a failure."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from rota.data import queries
from rota.data import sweep as sweeps
from rota.data.sweep import DataSweep
from tests.data.test_erasure import own_name
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
