"""Streams of an account share reads of its journal, and none of them misses an event."""

import asyncio
import random
import time
from uuid import UUID

import pytest

from rota.events import journal, reading
from rota.events.reading import JournalReads
from rota.platform.db import AccountReader, Database
from rota.platform.ids import new_uuid
from tests.service import Service

EVENT = "task.test"


@pytest.fixture
def reads(db: Database) -> JournalReads:
    return JournalReads(db, 10)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number after which each query of the journal begins."""
    made: list[int] = []
    real = journal.after

    async def after(tx: AccountReader, sequence: int, **rest: object) -> list[journal.Event]:
        made.append(sequence)
        return await real(tx, sequence, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(journal, "after", after)
    return made


async def append(db: Database, account_id: UUID, *tasks: UUID) -> None:
    async with db.write(account_id) as tx:
        for task_id in tasks:
            await journal.append(tx, EVENT, {}, task_id)


async def account(board: Service) -> UUID:
    return (await board.sign_in()).user_id


async def test_streams_at_the_same_place_share_one_read_whatever_task_they_show(
    board: Service, db: Database, reads: JournalReads, queries: list[int]
) -> None:
    account_id, tasks = await account(board), [new_uuid() for _ in range(20)]
    begun = [await reads.next(account_id, 0, task, time.monotonic()) for task in tasks]
    # Each has its own past.
    assert queries == [0] * 20
    assert {batch.upto for batch in begun} == {begun[0].upto}
    queries.clear()
    await append(db, account_id, tasks[0], tasks[1])
    since = time.monotonic()
    batches = await asyncio.gather(
        *[reads.next(account_id, begun[0].upto, task, since) for task in tasks]
    )
    assert queries == [begun[0].upto]
    assert [len(batch.events) for batch in batches] == [1, 1, *[0] * 18]
    assert {batch.upto for batch in batches} == {begun[0].upto + 2}


async def test_a_read_from_before_the_event_is_not_shared(
    board: Service, db: Database, reads: JournalReads
) -> None:
    account_id, task = await account(board), new_uuid()
    first = await reads.next(account_id, 0, task, time.monotonic())
    empty = await reads.next(account_id, first.upto, task, time.monotonic())
    assert empty.events == []
    await append(db, account_id, task)
    found = await reads.next(account_id, first.upto, task, time.monotonic())
    assert [event.task_id for event in found.events] == [task]


async def test_a_number_that_does_not_exist_yet_hides_no_event_from_others(
    board: Service, db: Database, reads: JournalReads
) -> None:
    account_id, task = await account(board), new_uuid()
    await reads.next(account_id, 1_000_000, None, time.monotonic())
    known = (await reads.next(account_id, 0, task, time.monotonic())).upto
    await append(db, account_id, task)
    since = time.monotonic()
    future = await reads.next(account_id, 1_000_000, None, since)
    assert (future.events, future.upto) == ([], 1_000_000)
    assert len((await reads.next(account_id, known, task, since)).events) == 1


async def test_readers_at_any_place_get_every_event_of_their_task_once_and_in_order(
    board: Service, db: Database, reads: JournalReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 5)
    account_id, tasks = await account(board), [new_uuid() for _ in range(4)]
    chance, written = random.Random(7), asyncio.Event()
    seen: dict[int, list[int]] = {}

    async def write() -> None:
        for _ in range(60):
            await append(db, account_id, *chance.choices(tasks, k=chance.randint(1, 9)))
            await asyncio.sleep(0)
        written.set()

    async def follow(number: int, task_id: UUID | None) -> None:
        mine, pause, after = seen.setdefault(number, []), random.Random(number), 0
        while True:
            is_last = written.is_set()
            batch = await reads.next(account_id, after, task_id, time.monotonic())
            mine += [event.sequence for event in batch.events]
            after = batch.upto
            if is_last and not batch.has_more:
                return
            # Some are slow.
            await asyncio.sleep(pause.choice((0, 0, 0.01, 0.05)))

    shown = [*tasks, *tasks, None, None]
    await asyncio.gather(write(), *[follow(n, task) for n, task in enumerate(shown)])
    async with db.read(account_id) as tx:
        for number, task_id in enumerate(shown):
            events = await journal.after(tx, 0, task_id=task_id, limit=10_000)
            assert seen[number] == [event.sequence for event in events]
    assert len(seen[8]) > 60


async def test_what_nobody_follows_is_forgotten(
    board: Service, reads: JournalReads, queries: list[int]
) -> None:
    account_id = await account(board)
    upto = (await reads.next(account_id, 0, None, time.monotonic())).upto
    await reads.next(account_id, upto, None, since := time.monotonic())
    reads.forget(account_id)
    queries.clear()
    await reads.next(account_id, upto, None, since)
    assert queries == [upto]
