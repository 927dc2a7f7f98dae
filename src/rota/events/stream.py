"""Server-sent events: a stream that can break anywhere and be taken up where it broke.

The id of each message is the event's number, which has no gaps. A stream reads
a batch from the database, sends it, and reads the next when the client has
taken it, so a slow reader costs a batch of memory and nobody else anything.
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
# How often a stream looks by itself, and makes sure that its reader is still allowed to read.
LOOK_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 15.0

StillAllowed = Callable[[], Awaitable[bool]]


def encode(event: Event) -> bytes:
    body = schemas.Event.of(event).model_dump_json(by_alias=True)
    return f"id: {event.sequence}\nevent: {event.type}\ndata: {body}\n\n".encode()


class Streams:
    def __init__(self, db: Database, fanout: Fanout) -> None:
        self._db = db
        self._fanout = fanout
        self._closing = False

    def close(self) -> None:
        """Ends every stream at its next look. Its readers come back, to another process."""
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
    ) -> StreamingResponse:
        """A stream of the account's events, or one task's, that follow number `after`.

        It ends after an event that leads to a state in `ends_with`, and, where
        there is nothing more to `follow`, after the last event that there is.
        """
        return StreamingResponse(
            self._messages(account_id, after, still_allowed, task_id, ends_with, follow),
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
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        async with self._fanout.listening(account_id) as woken:
            # Sent at once, so that the client knows the stream is open.
            yield b": open\n\n"
            spoke_at = loop.time()
            while True:
                woken.clear()
                events = await self._read(account_id, after, task_id)
                if events:
                    after = events[-1].sequence
                    spoke_at = loop.time()
                    yield b"".join(map(encode, events))
                    follow = follow and events[-1].data.get("status") not in ends_with
                if len(events) < BATCH:
                    if not follow:
                        return
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_EVERY_S):
                            await woken.wait()
                if self._closing or not await still_allowed():
                    return
                if loop.time() - spoke_at >= HEARTBEAT_EVERY_S:
                    spoke_at = loop.time()
                    yield b": still here\n\n"

    async def _read(self, account_id: UUID, after: int, task_id: UUID | None) -> list[Event]:
        async with self._db.read(account_id) as tx:
            return await journal.after(tx, after, task_id=task_id, limit=BATCH)
