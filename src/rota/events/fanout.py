"""Wakes live streams and senders of webhooks through Redis when an account has new events, loses a
member or has another webhook.

A message only says that there is something to read. The stream reads the events from the
database, and checks there that its client may still read. So a lost message loses nothing: streams
also poll, and only poll while Redis is down.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from rota.platform import redis as redis_clients
from rota.platform.loops import is_set

log = structlog.get_logger()

_CHANNEL = "events:"
# Users who have lost an account: the account and the user.
_REMOVALS = "removals:"
# Accounts that have a new or changed webhook.
_WEBHOOKS = "webhooks:"
_RECONNECT_S = 1.0
# Short, because a wake-up is optional. A slow Redis must not delay a request.
_ANNOUNCE_TIMEOUT_S = 0.05


Watch = Callable[[UUID], None]


class Woken(asyncio.Event):
    """Set whenever there may be something new to read."""

    def __init__(self) -> None:
        super().__init__()
        # When the account last had an event, and when it lost a member, on the monotonic clock. 0
        # if it did not. A stream can also be woken by a live text.
        self.events_at = self.removed_at = 0.0

    def set(self) -> None:
        self.events_at = time.monotonic()
        super().set()

    def by_removal(self) -> None:
        self.removed_at = time.monotonic()
        self.set()

    def by_text(self) -> None:
        super().set()

    def take(self) -> tuple[float, float]:
        """When the account had an event and lost a member. Resets both."""
        taken = self.events_at, self.removed_at
        self.events_at = self.removed_at = 0.0
        self.clear()
        return taken

    async def wait_until(self, moment: float) -> None:
        """Until it is set, or until a moment of the monotonic clock."""
        await is_set(self, moment - time.monotonic())


class Fanout:
    def __init__(
        self, redis: Redis, *, on_removal: Callable[[UUID, UUID], None] = lambda account, user: None
    ) -> None:
        self._redis = redis
        # Called in every process with streams: with an account, and a user who has lost it.
        self._on_removal = on_removal
        self._waiting: dict[UUID, set[Woken]] = {}
        # Called with every account that has events, and with every one that has another webhook.
        self._watches: list[tuple[Watch, Watch]] = []
        self._listener: asyncio.Task[None] | None = None
        self._unsent: set[UUID] = set()
        self._unsent_removals: list[bytes] = []
        self._unsent_webhooks: set[UUID] = set()
        self._sender: asyncio.Task[None] | None = None

    def announce(self, account_id: UUID) -> None:
        """Wakes the account's streams in this process and in all others."""
        self._wake(account_id)
        self._unsent.add(account_id)
        self._start_sending()

    def announce_removal(self, account_id: UUID, user_id: UUID) -> None:
        """Makes the account's streams check, here and in all other processes, that their clients
        may still read."""
        self._removed(account_id, user_id)
        self._unsent_removals.append(account_id.bytes + user_id.bytes)
        self._start_sending()

    def announce_webhook(self, account_id: UUID) -> None:
        """Tells all workers that the account has a webhook that is new or was changed."""
        self._webhook_changed(account_id)
        self._unsent_webhooks.add(account_id)
        self._start_sending()

    @contextlib.asynccontextmanager
    async def watching(self, on_events: Watch, on_webhook: Watch) -> AsyncIterator[None]:
        """Calls `on_events` with every account that may have new events, and `on_webhook` with
        every one that has another webhook."""
        self._start_listening()
        watch = (on_events, on_webhook)
        self._watches.append(watch)
        try:
            yield
        finally:
            self._watches.remove(watch)

    @contextlib.asynccontextmanager
    async def listening(self, account_id: UUID) -> AsyncIterator[Woken]:
        """Set whenever the account may have new events."""
        self._start_listening()
        woken = Woken()
        self._waiting.setdefault(account_id, set()).add(woken)
        try:
            yield woken
        finally:
            waiting = self._waiting[account_id]
            waiting.discard(woken)
            if not waiting:
                del self._waiting[account_id]

    async def aclose(self) -> None:
        await redis_clients.end((self._sender, self._listener))

    def _wake(self, account_id: UUID) -> None:
        for woken in self._waiting.get(account_id, ()):
            woken.set()
        for on_events, _ in self._watches:
            on_events(account_id)

    def _webhook_changed(self, account_id: UUID) -> None:
        for _, on_webhook in self._watches:
            on_webhook(account_id)

    def _removed(self, account_id: UUID, user_id: UUID) -> None:
        self._on_removal(account_id, user_id)
        for woken in self._waiting.get(account_id, ()):
            woken.by_removal()

    def _start_listening(self) -> None:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())

    def _start_sending(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Publishes one message at a time. Later accounts share the next message."""
        while self._unsent or self._unsent_removals or self._unsent_webhooks:
            accounts, self._unsent = self._unsent, set()
            removals, self._unsent_removals = self._unsent_removals, []
            webhooks, self._unsent_webhooks = self._unsent_webhooks, set()
            for channel, message in (
                (_REMOVALS, b"".join(removals)),
                (_WEBHOOKS, b"".join(account_id.bytes for account_id in webhooks)),
                (_CHANNEL, b"".join(account_id.bytes for account_id in accounts)),
            ):
                if not message:
                    continue
                with contextlib.suppress(RedisError, OSError, TimeoutError):
                    async with asyncio.timeout(_ANNOUNCE_TIMEOUT_S):
                        await self._redis.publish(channel, message)

    async def _listen(self) -> None:
        """Keeps one subscription for all streams of the process."""
        while True:
            try:
                async with self._redis.pubsub() as subscription:
                    await subscription.subscribe(_CHANNEL, _REMOVALS, _WEBHOOKS)
                    async for message in subscription.listen():
                        if message["type"] != "message":
                            continue
                        found = _uuids(message["data"])
                        if message["channel"] == _CHANNEL.encode():
                            for account_id in found:
                                self._wake(account_id)
                        elif message["channel"] == _WEBHOOKS.encode():
                            for account_id in found:
                                self._webhook_changed(account_id)
                        else:
                            for account_id, user_id in zip(found[::2], found[1::2], strict=True):
                                self._removed(account_id, user_id)
            except (RedisError, OSError, ValueError) as error:
                log.warning("event_subscription_failed", error=repr(error))
                await asyncio.sleep(_RECONNECT_S)


def _uuids(message: bytes) -> list[UUID]:
    return [UUID(bytes=message[at : at + 16]) for at in range(0, len(message), 16)]
