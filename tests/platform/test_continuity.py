"""A process notices that its database was restored, and does not mistake a failover for it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from rota import worker
from rota.app import create_app
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform.continuity import Continuity, Row
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from tests.service import prepared_settings


@pytest.fixture
async def settings(stack: Stack) -> Settings:
    return await prepared_settings(stack, "a", "continuity")


@pytest.fixture
async def parts(settings: Settings) -> AsyncIterator[Composition]:
    async with Composition(settings, pool_size=2) as built:
        yield built
        await built.redis.flushdb()


async def change(parts: Composition, assignment: str) -> None:
    async with parts.db.relay() as connection:
        await connection.execute(f"UPDATE installation SET {assignment}")


def lost() -> float | None:
    return REGISTRY.get_sample_value("rota_database_restored")


def another(parts: Composition) -> Continuity:
    """That of another process."""
    return Continuity(parts.db, parts.redis)


async def test_a_database_that_continues_is_accepted(parts: Composition) -> None:
    await parts.continuity.check()
    for number in (1, 2, 3):
        await parts.continuity.beat()
        assert (await parts.continuity.read()).beat == number
    await another(parts).check()


async def test_a_worker_that_counts_during_a_check_is_not_mistaken_for_a_restore(
    parts: Composition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await parts.continuity.beat()
    starting, restoring = another(parts), another(parts)
    await starting.check()
    read = Continuity.read

    async def overtaken(continuity: Continuity) -> Row:
        """A worker counts while the answer is on its way."""
        row = await read(continuity)
        await parts.continuity.beat()
        return row

    monkeypatch.setattr(Continuity, "read", overtaken)
    await another(parts).check()
    await restoring.finish(lost=False)

    async def overtaken_by_a_check(continuity: Continuity) -> Row:
        row = await read(continuity)
        await parts.continuity.beat()
        monkeypatch.setattr(Continuity, "read", read)
        await continuity.check_again()
        return row

    monkeypatch.setattr(Continuity, "read", overtaken_by_a_check)
    await starting.check_again()
    # What the other check saw still counts.
    await change(parts, "beat = beat - 1")
    with pytest.raises(StartRefused):
        await starting.check_again()


async def test_a_database_that_is_older_than_it_was_is_refused(parts: Composition) -> None:
    for _ in range(3):
        await parts.continuity.beat()
    await change(parts, "beat = 1")
    with pytest.raises(
        StartRefused, match=r"restored to an earlier state.*rota admin restore finish"
    ):
        await another(parts).check()
    # A service that runs reports it. So does a worker, and does not hide it.
    with pytest.raises(StartRefused, match="restored to an earlier state"):
        await parts.check_database()
    assert lost() == 1
    assert not await parts.continuity.beat()
    assert lost() == 1
    # Nobody can say that nothing was lost.
    with pytest.raises(StartRefused, match="counted to 3, and the database has 1"):
        await another(parts).finish(lost=False)
    assert (await parts.continuity.read()).beat == 1
    with pytest.raises(StartRefused):
        await another(parts).check()

    await another(parts).finish(lost=True)
    await another(parts).check()
    row = await parts.continuity.read()
    assert (row.restores, row.beat) == (1, 4)
    await parts.check_database()
    assert lost() == 0
    assert await parts.continuity.beat()
    assert lost() == 0


async def test_another_timeline_is_a_failover_only_if_redis_knows_the_newest_number(
    parts: Composition,
) -> None:
    await parts.continuity.beat()
    await change(parts, "timeline = timeline + 1")
    await another(parts).check()
    # A worker that runs accepts the new server.
    await parts.continuity.beat()
    assert not (await parts.continuity.read()).has_moved

    await change(parts, "timeline = timeline + 1")
    await parts.redis.flushdb()
    with pytest.raises(StartRefused, match="--nothing-lost"):
        await another(parts).check()
    await another(parts).finish(lost=False)
    await another(parts).check()
    assert (await parts.continuity.read()).restores == 0


async def test_without_redis_the_server_alone_decides(parts: Composition) -> None:
    nowhere = Continuity(parts.db, Redis.from_url("redis://127.0.0.1:1"))
    await nowhere.check()
    await nowhere.beat()
    await change(parts, "cluster = '1'")
    with pytest.raises(StartRefused):
        await nowhere.check()


async def test_a_replica_is_refused(parts: Composition, monkeypatch: pytest.MonkeyPatch) -> None:
    # What pg_current_wal_lsn does during recovery.
    statement = """
        DO $$ BEGIN RAISE 'recovery is in progress'
            USING ERRCODE = 'object_not_in_prerequisite_state'; END $$
    """
    monkeypatch.setattr("rota.platform.continuity._READ", statement)
    with pytest.raises(StartRefused, match="replica or is still recovering"):
        await parts.continuity.check()


async def test_the_service_does_not_start_on_a_restored_database(
    parts: Composition, settings: Settings
) -> None:
    for _ in range(2):
        await parts.continuity.beat()
    await change(parts, "beat = 0")
    app = create_app(settings)
    with pytest.raises(StartRefused, match="restored to an earlier state"):
        async with app.router.lifespan_context(app):
            pass


async def test_a_copy_on_the_same_server_is_refused_until_it_is_finished(
    parts: Composition,
) -> None:
    # What a dump contains that was restored into another database.
    await change(parts, "database = '1'")
    with pytest.raises(StartRefused, match=r"copy of another one.*--nothing-lost"):
        await another(parts).check()
    assert not await parts.continuity.beat()
    # Redis knows the number of the database that it was copied from.
    row = await parts.continuity.read()
    await parts.redis.set(f"beat:{row.cluster}.1", 7)
    with pytest.raises(StartRefused, match="restored to an earlier state"):
        await another(parts).check()
    with pytest.raises(StartRefused, match="counted to 7"):
        await another(parts).finish(lost=False)
    await another(parts).finish(lost=True)
    await another(parts).check()


@pytest.mark.parametrize("has_temporal", [True, False])
async def test_a_worker_stops_when_its_database_was_restored(
    parts: Composition, settings: Settings, monkeypatch: pytest.MonkeyPatch, has_temporal: bool
) -> None:
    if not has_temporal:
        settings = settings.model_copy(update={"temporal_address": "127.0.0.1:1"})
    monkeypatch.setattr(worker, "BEAT_EVERY_S", 0.05)
    running = asyncio.create_task(worker.run_worker(settings, asyncio.Event()))
    async with asyncio.timeout(60):
        while (await parts.continuity.read()).beat < 2 and not running.done():
            await asyncio.sleep(0.01)
        await change(parts, "beat = 0")
        with pytest.raises(StartRefused, match="restored to an earlier state"):
            await running
