"""Server-sent events: a stream that a client can resume after any interruption.

The id of each message is the event's sequence number, which has no gaps. A stream reads one batch
from the database, sends it, and reads the next after the client has received it. So a slow client
costs the memory of one batch and does not slow down others.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

from fastapi.responses import StreamingResponse

from rota.events import journal, schemas
from rota.events.fanout import Fanout
from rota.events.journal import Event
from rota.platform.db import Database

BATCH = 100
# How often a stream polls the database and checks that its client may still read.
POLL_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 15.0

StillAllowed = Callable[[], Awaitable[bool]]
Sees = Callable[[Event], bool]


def encode(event: Event) -> bytes:
    body = schemas.Event.of(event).model_dump_json(by_alias=True)
    return f"id: {event.sequence}\nevent: {event.type}\ndata: {body}\n\n".encode()


class Streams:
    def __init__(self, db: Database, fanout: Fanout) -> None:
        self._db = db
        self._fanout = fanout
        self._closing = False

    def close(self) -> None:
        """Ends every stream at its next poll. The clients reconnect to another process."""
        self._closing = True

    async def last_sequence(self, account_id: UUID) -> int:
        async with self._db.read(account_id) as tx:
            return await journal.last_sequence(tx)

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
    ) -> StreamingResponse:
        """Streams the events after number `after`, of the account or of one task.

        Only events that the client `sees` are sent. The stream ends after an event with a status
        in `ends_with`. Without `follow`, it ends after the last stored event.
        """
        return StreamingResponse(
            self._messages(account_id, after, still_allowed, task_id, ends_with, follow, sees),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

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
        loop = asyncio.get_running_loop()
        async with self._fanout.listening(account_id) as woken:
            # Sent immediately, so that the client knows that the stream is open.
            yield b": open\n\n"
            sent_at = loop.time()
            while True:
                woken.clear()
                events = await self._read(account_id, after, task_id)
                if events:
                    after = events[-1].sequence
                    if shown := [event for event in events if sees(event)]:
                        sent_at = loop.time()
                        yield b"".join(map(encode, shown))
                    follow = follow and events[-1].data.get("status") not in ends_with
                if len(events) < BATCH:
                    if not follow:
                        return
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_EVERY_S):
                            await woken.wait()
                if self._closing or not await still_allowed():
                    return
                if loop.time() - sent_at >= HEARTBEAT_EVERY_S:
                    sent_at = loop.time()
                    yield b": still here\n\n"

    async def _read(self, account_id: UUID, after: int, task_id: UUID | None) -> list[Event]:
        async with self._db.read(account_id) as tx:
            return await journal.after(tx, after, task_id=task_id, limit=BATCH)
