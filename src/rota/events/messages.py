"""The messages of one event stream, and how often its client is checked.

The client is checked when the stream polls the database, and gets live text only for a second after
the moment of its last check. While the stream reads events and checks its client, it goes on
sending text, so a slow database does not delay the text.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rota.events import journal, schemas
from rota.events.fanout import Woken
from rota.events.journal import Event
from rota.events.live_watch import Watcher
from rota.events.reading import NOTHING, Batch
from rota.platform.errors import RateLimited

# How often a stream polls the database and checks there that its client may still read.
POLL_EVERY_S = 0.8
# A client that may not read is cut off within this time, also while Redis is down.
CHECKED_FOR_S = 1.0
# A client that takes longer than this to receive a text is checked before it gets events.
SLOW_CLIENT_S = 0.1
# After a read that took longer than this, a check from before it would soon be too old.
SLOW_READ_S = 0.2
# A batch with long texts is sent in pieces of about this size.
SEND_BYTES = 65_536
HEARTBEAT_EVERY_S = 15.0

# Whether the client may still read. With a moment of the monotonic clock, no look-up from before it
# counts.
StillAllowed = Callable[[float | None], Awaitable[bool]]
Sees = Callable[[Event], bool]
# The next events: of an account, after a number, of one task, with a read that began after a moment
# of the monotonic clock.
Read = Callable[[UUID, int, UUID | None, float], Awaitable[Batch]]
# Reads the stored text of a model call: of which account, task, run and step.
StoredText = Callable[[UUID, UUID, int, int], Awaitable[str]]


def encode(event: Event) -> bytes:
    body = schemas.Event.of(event).model_dump_json(by_alias=True)
    return f"id: {event.sequence}\nevent: {event.type}\ndata: {body}\n\n".encode()


def next_poll(account_id: UUID) -> float:
    """When the streams of an account poll next. All of them poll at the same moment and share what
    they read. Other accounts poll at other moments."""
    shift = account_id.int % 1_000 / 1_000 * POLL_EVERY_S
    now = time.monotonic()
    return now + POLL_EVERY_S - (now - shift) % POLL_EVERY_S


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client wants to see, and what it may see."""

    account_id: UUID
    # The number of the last event that it has.
    after: int
    still_allowed: StillAllowed
    # Only this task, or all of the account.
    task_id: UUID | None = None
    # The stream ends after an event with one of these statuses.
    ends_with: frozenset[str] = frozenset()
    # Otherwise it ends after the last stored event.
    follow: bool = True
    sees: Sees = lambda event: True


class NotAllowed(Exception):
    """The client may no longer read."""


class Messages:
    """The messages of one stream, while it is open."""

    def __init__(
        self,
        wanted: Wanted,
        woken: Woken,
        watcher: Watcher | None,
        read: Read,
        stored_text: StoredText,
        is_closing: Callable[[], bool],
    ) -> None:
        self._wanted = wanted
        self._woken = woken
        self._watcher = watcher
        self._read = read
        self._stored_text = stored_text
        self._is_closing = is_closing
        self._after = wanted.after
        # Of the task, as of the last event.
        self._status: str | None = None
        # If this is a moment, events are read, by a read that began later.
        self._read_since: float | None = time.monotonic()
        # Nothing is sent before the first check, because the request may have waited long since it
        # was authenticated.
        self._checked_at = self._poll_at = 0.0

    async def each(self) -> AsyncGenerator[bytes]:
        # Sent immediately, so that the client knows that the stream is open.
        yield b": open\n\n"
        sent_at = time.monotonic()
        while not self._is_closing():
            messages = b""
            try:
                batch = NOTHING
                if look := self._look():
                    looking = asyncio.create_task(look)
                    looking.add_done_callback(self._looked)
                    is_old = False
                    try:
                        while self._sends_meanwhile(looking):
                            self._woken.clear()
                            if text := self._text():
                                began = time.monotonic()
                                yield text
                                sent_at = time.monotonic()
                                is_old = is_old or sent_at - began > SLOW_CLIENT_S
                            await self._woken.wait_until(self._checked_at + CHECKED_FOR_S)
                        batch = await looking
                    finally:
                        looking.cancel()
                    if is_old or self._woken.removed_at:
                        # The client may have lost its rights since it was checked.
                        self._read_since = time.monotonic()
                        self._check_now()
                        continue
                has_more = batch.has_more
                for event in batch.events:
                    messages += await self._message(event)
                    if len(messages) >= SEND_BYTES:
                        yield messages
                        messages, sent_at = b"", time.monotonic()
                        if sent_at >= self._poll_at or self._woken.removed_at:
                            # The client read slowly, or may have lost its rights. It is checked
                            # before it gets the rest.
                            has_more = True
                            break
                else:
                    self._after = max(self._after, batch.upto)
                # The next batch comes from a later read.
                self._read_since = batch.read_at if has_more else None
                if not has_more:
                    messages += self._text()
                if messages:
                    yield messages
                    sent_at = time.monotonic()
                if not has_more:
                    if not self._wanted.follow or self._status in self._wanted.ends_with:
                        return
                    await self._woken.wait_until(self._poll_at)
            except NotAllowed:
                return
            except RateLimited:
                # The account uses its whole share of the database. Nothing more is sent until the
                # client is checked at the next poll.
                if messages:
                    yield messages
                    sent_at = time.monotonic()
                await asyncio.sleep(self._poll_at - time.monotonic())
                self._poll_at = min(self._poll_at, time.monotonic())
            if time.monotonic() - sent_at >= HEARTBEAT_EVERY_S:
                yield b": still here\n\n"
                sent_at = time.monotonic()

    def _look(self) -> Coroutine[Any, Any, Batch] | None:
        """Reads and checks what is due now."""
        polled_at = 0.0
        if time.monotonic() >= self._poll_at:
            next_at = next_poll(self._wanted.account_id)
            # A stream that is late uses no look-up from before the latest poll.
            polled_at = max(self._poll_at, next_at - POLL_EVERY_S)
            self._poll_at = next_at
        events_at, removed_at = self._woken.take()
        if removed_at:
            # It may be this client, which gets nothing before it is checked.
            self._checked_at = 0.0
        # Only look-ups that began after these moments count.
        read_since = max(self._read_since or 0, polled_at, events_at)
        check_since = max(polled_at, removed_at)
        return self._read_and_check(read_since, check_since or None) if read_since else None

    def _check_now(self) -> None:
        """The client gets nothing before it is checked."""
        self._checked_at = self._poll_at = 0.0

    def _looked(self, looking: asyncio.Task[Batch]) -> None:
        # Also for events that the stream has not taken yet.
        self._woken.by_text()
        if not looking.cancelled():
            # Marks the error as retrieved. The client may have gone.
            looking.exception()

    async def _read_and_check(self, read_since: float, check_since: float | None) -> Batch:
        wanted, began = self._wanted, time.monotonic()
        batch = await self._read(wanted.account_id, self._after, wanted.task_id, read_since)
        # After the read, so that the client sees no event after its own removal.
        now = time.monotonic()
        is_removal = any(event.type == journal.MEMBER_REMOVED for event in batch.events)
        if is_removal or (check_since is not None and now - began > SLOW_READ_S):
            check_since = now
        if batch.events or check_since is not None:
            if not await wanted.still_allowed(check_since):
                raise NotAllowed
            self._checked_at = max(self._checked_at, check_since or 0)
        return batch

    def _sends_meanwhile(self, looking: asyncio.Task[Batch]) -> bool:
        """Whether the client gets text while events are read and it is checked."""
        return (
            self._watcher is not None
            and not looking.done()
            and not self._woken.removed_at
            and time.monotonic() < self._checked_at + CHECKED_FOR_S
        )

    def _text(self) -> bytes:
        is_checked = time.monotonic() < self._checked_at + CHECKED_FOR_S
        if self._watcher is None or not is_checked or self._woken.removed_at:
            return b""
        return self._watcher.take()

    async def _message(self, event: Event) -> bytes:
        message = b""
        if self._wanted.sees(event):
            message = await self._text_before(event) + encode(event)
        self._after = event.sequence
        # Events of steps have no status, and can come after the end of the task.
        self._status = event.data.get("status", self._status)
        return message

    async def _text_before(self, event: Event) -> bytes:
        """What is missing of the text of the step that has finished."""
        task_id = event.task_id
        if self._watcher is None or task_id is None or event.type != journal.STEP_FINISHED:
            return b""
        if event.data["kind"] != "model":
            return b""
        run, step = event.data["run"], event.data["step"]
        return await self._watcher.finish(
            (run, step), lambda: self._stored_text(self._wanted.account_id, task_id, run, step)
        )
