"""The watchers of live texts in one process.

The process subscribes once to each task that somebody watches, and keeps the text so far. Each
watcher has a position in it and takes what is new when its client is ready. So a slow client costs
no memory of its own, and gets fewer and longer pieces.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from rota.events.live_text import OFFSET_BYTES, Version, key_of
from rota.platform import json
from rota.platform import redis as redis_clients

log = structlog.get_logger()

Place = tuple[int, int]
Read = Callable[[], Awaitable[str]]

_RECONNECT_S = 1.0
# Keeps the subscription open while nobody watches.
_IDLE_CHANNEL = "live"
_READS_AT_ONCE = 4
# Stored texts that the watchers of a task share.
_SHARED_TEXTS = 4


@dataclass(slots=True, eq=False)
class Text:
    """One version of a text. A watcher that has read all of it goes on to the next."""

    version: Version
    data: bytearray
    # It has begun before the process subscribed.
    begun_before: bool = False
    next: "Text | None" = None


@dataclass(slots=True, eq=False)
class Topic:
    """A task that is watched."""

    key: str
    newest: Text = field(default_factory=lambda: Text(Version(), bytearray()))
    waking: dict["Watcher", Callable[[], None]] = field(default_factory=dict)
    stored: dict[Place, "asyncio.Future[str]"] = field(default_factory=dict)

    def add(self, version: Version, offset: int, added: bytes, *, snapshot: bool = False) -> bool:
        """Adds what Redis says. False if something before it is missing."""
        newest = self.newest
        if version < newest.version:
            return True
        if version > newest.version:
            if offset > 0:
                return False
            self.newest = newest.next = Text(version, bytearray(added), snapshot)
        elif offset > len(newest.data):
            return False
        else:
            # What is known is skipped.
            newest.data += added[len(newest.data) - offset :]
        for wake in self.waking.values():
            wake()
        return True


class Watcher:
    """What one client has seen of a task's texts."""

    def __init__(self, topic: Topic, *, resumes: bool) -> None:
        self._topic = topic
        self._text = topic.newest
        self._taken = 0
        # The client may already have a part of the first text that it gets.
        self._replaces = resumes or bool(topic.newest.data)
        # The newest version of each step that the client has seen and that is not finished.
        self._seen: dict[Place, Text] = {}
        self._finished: Place = (0, 0)
        # The client may have a part of the step that finishes next, even if it was not seen here.
        self._may_have_part = resumes

    def take(self, last: Place | None = None) -> bytes:
        """The messages that the client has not got yet, up to this step."""
        messages = b""
        while last is None or self._text.version.place <= last:
            messages += self._piece()
            if self._text.next is None:
                break
            self._text, self._taken = self._text.next, 0
        return messages

    def _piece(self) -> bytes:
        text, place = self._text, self._text.version.place
        earlier = self._seen.get(place)
        restarts = earlier is not None and earlier is not text
        if place <= self._finished or not (restarts or len(text.data) > self._taken):
            return b""
        added = bytes(text.data[self._taken :])
        self._taken = len(text.data)
        self._seen[place] = text
        whole = restarts or (earlier is None and (self._replaces or text.begun_before))
        self._replaces = False
        return encode("text" if whole else "delta", place, added)

    async def finish(self, place: Place, read: Read) -> bytes:
        """The messages after which the client has the whole text of a finished step.

        `read` reads the text from the database.
        """
        whole = (await self._stored(place, read)).encode()
        messages = self.take(place)
        seen = self._seen.pop(place, None)
        self._finished = max(self._finished, place)
        shown = bytes(seen.data) if seen else b""
        may_have_part, self._may_have_part = self._may_have_part and not seen, False
        if shown == whole and not may_have_part:
            return messages
        if shown and whole.startswith(shown):
            return messages + encode("delta", place, whole[len(shown) :])
        return messages + encode("text", place, whole)

    async def _stored(self, place: Place, read: Read) -> str:
        stored = self._topic.stored
        if place not in stored:
            if len(stored) >= _SHARED_TEXTS:
                # The one that was read first.
                del stored[next(iter(stored))]
            stored[place] = asyncio.ensure_future(read())
        found = stored[place]
        try:
            return await asyncio.shield(found)
        except BaseException:
            if found.done():
                stored.pop(place, None)
            raise


def encode(event: str, place: Place, text: bytes) -> bytes:
    """Without an ID: a client that reconnects resumes after the last numbered event."""
    body = json.dumps({"run": place[0], "step": place[1], "text": text.decode()})
    return b"event: %s\ndata: %s\n\n" % (event.encode(), body)


class LiveWatch:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._topics: dict[str, Topic] = {}
        self._subscription: Any = None
        self._listener: asyncio.Task[None] | None = None
        self._changes: set[asyncio.Task[None]] = set()
        # The order of subscriptions and their ends matters.
        self._changing = asyncio.Lock()
        # After a reconnection, all topics are read.
        self._reading = asyncio.Semaphore(_READS_AT_ONCE)

    @contextlib.asynccontextmanager
    async def watching(
        self, task_id: UUID, wake: Callable[[], None], *, resumes: bool
    ) -> AsyncIterator[Watcher]:
        """`wake` is called when the watcher has something to take."""
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())
        key = key_of(task_id)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = Topic(key)
            self._start(self._subscribe(key))
        watcher = Watcher(topic, resumes=resumes)
        topic.waking[watcher] = wake
        try:
            yield watcher
        finally:
            del topic.waking[watcher]
            if not topic.waking:
                del self._topics[key]
                self._start(self._unsubscribe(key))

    async def aclose(self) -> None:
        # The listener first: it starts changes.
        await redis_clients.end((self._listener,))
        await redis_clients.end(self._changes)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _subscribe(self, key: str) -> None:
        # Without a connection, the listener subscribes to all topics when it has one.
        async with self._changing:
            if self._subscription is not None:
                with contextlib.suppress(RedisError, OSError):
                    await self._subscription.subscribe(key)

    async def _unsubscribe(self, key: str) -> None:
        async with self._changing:
            if self._subscription is not None and key not in self._topics:
                with contextlib.suppress(RedisError, OSError):
                    await self._subscription.unsubscribe(key)

    async def _listen(self) -> None:
        """Keeps one connection for all watchers of the process."""
        while True:
            try:
                async with self._redis.pubsub() as subscription:
                    async with self._changing:
                        await subscription.subscribe(_IDLE_CHANNEL, *self._topics)
                        self._subscription = subscription
                    async for message in subscription.listen():
                        self._receive(message)
            except (RedisError, OSError, ValueError) as error:
                log.warning("live_subscription_failed", error=repr(error))
                self._subscription = None
                await asyncio.sleep(_RECONNECT_S)

    def _receive(self, message: dict[str, Any]) -> None:
        topic = self._topics.get(message["channel"].decode())
        if topic is None:
            return
        if message["type"] == "subscribe":
            # From now on nothing is missed. This reads what was written before.
            self._start(self._catch_up(topic))
        elif message["type"] == "message":
            data: bytes = message["data"]
            start = Version.BYTES + OFFSET_BYTES
            version = Version.decode(data[: Version.BYTES])
            if not topic.add(version, int(data[Version.BYTES : start]), data[start:]):
                self._start(self._catch_up(topic))

    async def _catch_up(self, topic: Topic) -> None:
        """Reads the text so far."""
        with contextlib.suppress(RedisError, OSError):
            async with self._reading:
                stored = await self._redis.get(topic.key)
            if isinstance(stored, bytes):
                version, text = stored[: Version.BYTES], stored[Version.BYTES :]
                topic.add(Version.decode(version), 0, text, snapshot=True)
