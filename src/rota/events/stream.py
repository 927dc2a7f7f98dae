"""Server-sent events: a stream that a client can resume after any interruption.

The id of each message is the event's sequence number, which has no gaps. A stream reads one batch
from the database, sends it, and reads the next after the client has received it. So a slow client
costs the memory of one batch and does not slow down others.

The stream of a task also has the texts of its model calls while they are written. These messages
have no id. When a step is finished, the client has its whole text, whatever was lost before.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from uuid import UUID

from fastapi.responses import StreamingResponse
from prometheus_client import Gauge
from starlette.types import Receive, Scope, Send

from rota.auth.authenticator import CACHE_S
from rota.events import journal, schemas
from rota.events.access import Sight
from rota.events.fanout import Fanout, Woken
from rota.events.journal import Event
from rota.events.live_watch import LiveWatch, Topic, Watcher
from rota.events.reading import NOTHING, JournalReads
from rota.platform.db import AccountReader, Database
from rota.platform.errors import RateLimited, Unavailable

# How often a stream polls the database and checks there that its client may still read. A client
# that may not is cut off within a second, also while Redis is down.
POLL_EVERY_S = 0.9
# A batch with long texts is sent in pieces of about this size.
SEND_BYTES = 65_536
HEARTBEAT_EVERY_S = 15.0

# When a client that has too many streams can try again. Streams stay open for a long time.
RETRY_AFTER_S = 5

OPEN = Gauge("rota_event_streams", "Open event streams.")

# Whether the client may still read. With a moment of the monotonic clock, no look-up from before it
# counts.
StillAllowed = Callable[[float | None], Awaitable[bool]]
Sees = Callable[[Event], bool]
# Reads the stored text of a model call: of which task, run and step.
StoredText = Callable[[AccountReader, UUID, int, int], Awaitable[str]]


def encode(event: Event) -> bytes:
    body = schemas.Event.of(event).model_dump_json(by_alias=True)
    return f"id: {event.sequence}\nevent: {event.type}\ndata: {body}\n\n".encode()


def next_poll(account_id: UUID) -> float:
    """When the streams of an account poll next. All of them poll at the same moment and share what
    they read. Other accounts poll at other moments."""
    shift = account_id.int % 1_000 / 1_000 * POLL_EVERY_S
    now = time.monotonic()
    return now + POLL_EVERY_S - (now - shift) % POLL_EVERY_S


class EventStream(StreamingResponse):
    """A stream of events. Refused if the account has too many open."""

    media_type = "text/event-stream"
    # Entered while the stream is open.
    place: contextlib.AbstractContextManager[None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.place:
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
        self, account_id: UUID, after: int, sight: Sight, types: Collection[str], limit: int
    ) -> tuple[list[Event], int, int]:
        """Stored events, how many there are, and the number of the newest event."""
        async with self._db.snapshot(account_id) as tx:
            return await journal.page(tx, after, sight, types, limit)

    def open(
        self,
        account_id: UUID,
        after: int,
        still_allowed: StillAllowed,
        *,
        task_id: UUID | None = None,
        ends_with: frozenset[str] = frozenset(),
        follow: bool = True,
        sees: Sees = lambda event: True,
    ) -> EventStream:
        """Streams the events after number `after`, of the account or of one task.

        Only events that the client `sees` are sent. The stream ends after an event with a status
        in `ends_with`. Without `follow`, it ends after the last stored event.
        """
        stream = EventStream(
            self._messages(account_id, after, still_allowed, task_id, ends_with, follow, sees),
            headers={"X-Accel-Buffering": "no"},
        )
        stream.place = self.place(account_id)
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

    async def _messages(
        self,
        account_id: UUID,
        after: int,
        still_allowed: StillAllowed,
        task_id: UUID | None,
        ends_with: frozenset[str],
        follow: bool,
        sees: Sees,
    ) -> AsyncIterator[bytes]:
        async with contextlib.AsyncExitStack() as stack:
            woken = await stack.enter_async_context(self._fanout.listening(account_id))
            watcher = None
            if task_id is not None and follow:
                watcher = await stack.enter_async_context(
                    self._live.watching(task_id, woken.by_text, resumes=after > 0)
                )
            elif task_id is not None:
                watcher = Watcher(Topic(""), resumes=True)
            # Sent immediately, so that the client knows that the stream is open.
            yield b": open\n\n"
            sent_at = time.monotonic()
            # The request itself was just checked, with a caller that can be half a second old.
            poll_at = min(next_poll(account_id), sent_at + POLL_EVERY_S - CACHE_S)
            # Of the task, as of the last event.
            status: str | None = None
            # If this is a moment, events are read, by a read that began later.
            read_since: float | None = sent_at
            while True:
                # A stream that is late uses no look-up from before the latest poll.
                latest = next_poll(account_id) - POLL_EVERY_S
                polled_at = max(poll_at, latest) if time.monotonic() >= poll_at else None
                # Only look-ups of the client that began after this count.
                since = max(polled_at or 0, woken.removed_at or 0) or None
                read_since = max(read_since or 0, polled_at or 0, woken.events_at or 0) or None
                if polled_at is not None:
                    poll_at = next_poll(account_id)
                woken.clear()
                messages = b""
                has_more = False
                # Whether the account uses its whole share of the database. Then nothing is sent
                # until the client is checked at the next poll.
                is_busy = False
                try:
                    batch = NOTHING
                    if read_since is not None:
                        batch = await self.read(account_id, after, task_id, read_since)
                    # After the read, so that the client sees no event after its own removal.
                    if any(event.type == journal.MEMBER_REMOVED for event in batch.events):
                        since = time.monotonic()
                    if (batch.events or since is not None) and not await still_allowed(since):
                        return
                    has_more = batch.has_more
                    # The next batch comes from a later read.
                    read_since = batch.read_at if has_more else None
                    for event in batch.events:
                        if sees(event):
                            messages += await self._text_before(account_id, event, watcher)
                            messages += encode(event)
                        after = event.sequence
                        # Events of steps have no status, and can come after the end of the task.
                        status = event.data.get("status", status)
                        if len(messages) >= SEND_BYTES:
                            yield messages
                            messages, sent_at = b"", time.monotonic()
                            if sent_at >= poll_at:
                                # The client read slowly. It is checked before it gets the rest.
                                has_more = True
                                break
                    else:
                        after = max(after, batch.upto)
                except RateLimited:
                    is_busy = True
                follows = follow and status not in ends_with
                if not has_more and not is_busy and watcher is not None:
                    messages += watcher.take()
                if messages:
                    yield messages
                    sent_at = time.monotonic()
                if is_busy:
                    await asyncio.sleep(poll_at - time.monotonic())
                    poll_at = time.monotonic()
                elif not has_more and not follows:
                    return
                elif not has_more:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(poll_at - time.monotonic()):
                            await woken.wait()
                if self._closing:
                    return
                if time.monotonic() - sent_at >= HEARTBEAT_EVERY_S:
                    yield b": still here\n\n"
                    sent_at = time.monotonic()

    async def _text_before(self, account_id: UUID, event: Event, watcher: Watcher | None) -> bytes:
        """What is missing of the text of the step that has finished."""
        task_id = event.task_id
        if watcher is None or task_id is None or event.type != journal.STEP_FINISHED:
            return b""
        if event.data["kind"] != "model":
            return b""
        run, step = event.data["run"], event.data["step"]

        async def read() -> str:
            async with self._db.read(account_id) as tx:
                return await self._stored_text(tx, task_id, run, step)

        return await watcher.finish((run, step), read)
