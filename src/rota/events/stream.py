"""Server-sent events: a stream that a client can resume after any interruption.

The id of each message is the event's sequence number, which has no gaps. A stream reads one batch
from the database, sends it, and reads the next after the client has received it. So a slow client
costs the memory of one batch and does not slow down others.

The stream of a task also has the texts of its model calls while they are written. These messages
have no id. When a step is finished, the client has its whole text, whatever was lost before.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from uuid import UUID

from fastapi.responses import StreamingResponse
from prometheus_client import Gauge
from starlette.types import Receive, Scope, Send

from rota.events import journal
from rota.events.access import EventVisibility
from rota.events.fanout import Fanout, Woken
from rota.events.journal import Event
from rota.events.live_watch import LiveWatch, Topic, Watcher
from rota.events.messages import Messages, Wanted
from rota.events.reading import JournalReads
from rota.platform.db import AccountReader, Database
from rota.platform.errors import RateLimited, Unavailable

# When a client that has too many streams can try again. Streams stay open for a long time.
RETRY_AFTER_S = 5

OPEN = Gauge("rota_event_streams", "Open event streams.")

# Reads the stored text of a model call: of which task, run and step.
StoredText = Callable[[AccountReader, UUID, int, int], Awaitable[str]]


class EventStream(StreamingResponse):
    """A stream of events. Refused if the account has too many open."""

    media_type = "text/event-stream"

    # Both are entered while the stream is open.
    place: contextlib.AbstractContextManager[None]
    messages: contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.place:
            async with self.messages as self.body_iterator:
                await super().__call__(scope, receive, send)


class Streams:
    def __init__(
        self,
        db: Database,
        fanout: Fanout,
        live: LiveWatch,
        stored_text: StoredText,
        *,
        most: int = 1_000,
        most_per_account: int = 100,
    ) -> None:
        self._db = db
        self._fanout = fanout
        self._live = live
        self._stored_text = stored_text
        # The most open streams in this process.
        self._most = most
        self._most_per_account = most_per_account
        self._open: Counter[UUID] = Counter()
        self._reads = JournalReads(db, most)
        # The next events of an account or of one task, for something that has a place.
        self.read = self._reads.next
        self._closing = False

    def close(self) -> None:
        """Ends every stream at its next poll. The clients reconnect to another process."""
        self._closing = True

    async def last_sequence(self, account_id: UUID) -> int:
        async with self._db.read(account_id) as tx:
            return await journal.last_sequence(tx)

    async def page(
        self,
        account_id: UUID,
        after: int,
        visibility: EventVisibility,
        types: Collection[str],
        limit: int,
    ) -> tuple[list[Event], int, int]:
        """Stored events, how many there are, and the number of the newest event."""
        async with self._db.snapshot(account_id) as tx:
            return await journal.page(tx, after, visibility, types, limit)

    def open(self, wanted: Wanted) -> EventStream:
        stream = EventStream((), headers={"X-Accel-Buffering": "no"})
        stream.place = self.place(wanted.account_id)
        stream.messages = self._messages(wanted)
        return stream

    @property
    def is_closing(self) -> bool:
        return self._closing

    def listening(self, account_id: UUID) -> contextlib.AbstractAsyncContextManager[Woken]:
        """Set whenever the account may have new events."""
        return self._fanout.listening(account_id)

    @contextlib.contextmanager
    def place(self, account_id: UUID) -> Iterator[None]:
        """Counts a stream, or a request that waits for events, while it is open."""
        if self._open[account_id] >= self._most_per_account:
            raise RateLimited(
                f"The account has {self._most_per_account} open event streams, which is the limit. "
                "Close one, or read the events of all tasks from GET /api/events.",
                retry_after_s=RETRY_AFTER_S,
            )
        if self._open.total() >= self._most:
            raise Unavailable(
                "This process has too many open event streams. Try again in a few seconds."
            )
        self._open[account_id] += 1
        OPEN.inc()
        try:
            yield
        finally:
            OPEN.dec()
            self._open[account_id] -= 1
            if not self._open[account_id]:
                del self._open[account_id]
                self._reads.forget(account_id)

    @contextlib.asynccontextmanager
    async def _messages(self, wanted: Wanted) -> AsyncIterator[AsyncIterator[bytes]]:
        async with contextlib.AsyncExitStack() as stack:
            woken = await stack.enter_async_context(self._fanout.listening(wanted.account_id))
            watcher = None
            if wanted.task_id is not None and wanted.follow:
                watcher = await stack.enter_async_context(
                    self._live.watching(wanted.task_id, woken.by_text, resumes=wanted.after > 0)
                )
            elif wanted.task_id is not None:
                watcher = Watcher(Topic(""), resumes=True)
            messages = Messages(
                wanted, woken, watcher, self.read, self._read_text, lambda: self._closing
            )
            yield await stack.enter_async_context(contextlib.aclosing(messages.each()))

    async def _read_text(self, account_id: UUID, task_id: UUID, run: int, step: int) -> str:
        async with self._db.read(account_id) as tx:
            return await self._stored_text(tx, task_id, run, step)
