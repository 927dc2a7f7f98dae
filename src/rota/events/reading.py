"""Reads the event journal for everything in a process that follows an account.

An event wakes all streams of its account, whichever task they show. Most of them know the journal
up to the same number, so one read of the account's next events serves all of them. A stream that
is behind the others reads the events of its task by itself.
"""

import asyncio
import time
from dataclasses import dataclass
from uuid import UUID

from rota.events import journal
from rota.events.journal import Event
from rota.platform.cache import ExpiringCache, RecentCalls
from rota.platform.db import Database

BATCH = 100


@dataclass(frozen=True, slots=True)
class Batch:
    """The events after one sequence number, up to another."""

    after: int
    upto: int
    events: list[Event]
    # Whether there may be more after them.
    has_more: bool
    # When the read began, on the monotonic clock.
    read_at: float

    def of(self, after: int, task_id: UUID | None) -> "Batch":
        """What is new to a reader that knows all events up to `after`."""
        events = [
            event
            for event in self.events
            if event.sequence > after and (task_id is None or event.task_id == task_id)
        ]
        return Batch(after, max(after, self.upto), events, self.has_more, self.read_at)


NOTHING = Batch(0, 0, [], False, 0)


class JournalReads:
    def __init__(self, db: Database, most_accounts: int) -> None:
        self._db = db
        # Where the next shared read of an account begins.
        self._known: ExpiringCache[UUID, int] = ExpiringCache(max_items=most_accounts, max_age_s=60)
        self._shared: RecentCalls[UUID, Batch] = RecentCalls(max_items=most_accounts, max_age_s=1)
        # Reads of those that are behind, as long as others can join them.
        self._own: dict[tuple[UUID, int, UUID | None], asyncio.Task[Batch]] = {}

    async def next(self, account_id: UUID, after: int, task_id: UUID | None, since: float) -> Batch:
        """The next events of an account or of one task, at most `BATCH`. No read that began before
        `since`, a moment of the monotonic clock, is shared."""
        known = self._known.get(account_id)
        # One that is a little behind can still use what the others have just read.
        if known is not None and (after >= known or self._shared.has(account_id, since)):
            shared = await self._shared.run(
                account_id, since, lambda: self._read_next(account_id, known)
            )
            if after >= shared.after:
                return shared.of(after, task_id)
        place = (account_id, after, task_id)
        reading = self._own.get(place)
        if reading is None:
            reading = self._own[place] = asyncio.create_task(self._catch_up(*place))
        return await asyncio.shield(reading)

    def forget(self, account_id: UUID) -> None:
        """Nobody follows the account any more."""
        self._known.drop(account_id)
        self._shared.drop(account_id)

    async def _read_next(self, account_id: UUID, after: int) -> Batch:
        read_at = time.monotonic()
        async with self._db.read(account_id) as tx:
            events = await journal.after(tx, after, limit=BATCH)
        batch = _batch(after, events, read_at)
        self._known.put(account_id, max(self._known.get(account_id) or 0, batch.upto))
        return batch

    async def _catch_up(self, account_id: UUID, after: int, task_id: UUID | None) -> Batch:
        # The others that are woken now join first. A read that has begun can miss the event that
        # woke a stream, so nobody joins it.
        await asyncio.sleep(0)
        del self._own[account_id, after, task_id]
        read_at = time.monotonic()
        async with self._db.read(account_id) as tx:
            # First, so that the next query finds all events up to this number.
            newest = await journal.last_sequence(tx)
            events = await journal.after(tx, after, task_id=task_id, limit=BATCH)
        batch = _batch(after, events, read_at, newest)
        known = self._known.get(account_id)
        # Shared reads go on from `known`. If that is a whole batch behind, they skip to the newest
        # event, and streams that know less read by themselves.
        if known is None or newest - known >= BATCH:
            self._known.put(account_id, newest)
        return batch


def _batch(after: int, events: list[Event], read_at: float, newest: int = 0) -> Batch:
    has_more = len(events) == BATCH
    upto = events[-1].sequence if events else after
    return Batch(after, upto if has_more else max(upto, newest), events, has_more, read_at)
