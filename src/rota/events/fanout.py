"""Live fan-out: who waits for an account's events is woken through Redis.

A message says only that there is something to read; what, is read from the
database. So a lost message loses nothing: whoever waits also looks by itself
now and then, and works on at that pace while Redis is away.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

log = structlog.get_logger()

_CHANNEL = "events:"
_RECONNECT_S = 1.0
# A wake-up is a kindness; nobody's request waits for a slow Redis because of it.
_ANNOUNCE_TIMEOUT_S = 0.05


class Fanout:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: dict[UUID, set[asyncio.Event]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._unsent: set[UUID] = set()
        self._sender: asyncio.Task[None] | None = None

    def announce(self, account_id: UUID) -> None:
        """Tells everyone, here and in other processes, that the account has new events."""
        self._wake(account_id)
        self._unsent.add(account_id)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    @contextlib.asynccontextmanager
    async def listening(self, account_id: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever there may be something new to read."""
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())
        woken = asyncio.Event()
        self._waiting.setdefault(account_id, set()).add(woken)
        try:
            yield woken
        finally:
            waiting = self._waiting[account_id]
            waiting.discard(woken)
            if not waiting:
                del self._waiting[account_id]

    async def aclose(self) -> None:
        tasks = [task for task in (self._sender, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wake(self, account_id: UUID) -> None:
        for woken in self._waiting.get(account_id, ()):
            woken.set()

    async def _send(self) -> None:
        """One message at a time: what comes up while it is on its way shares the next."""
        while self._unsent:
            accounts, self._unsent = self._unsent, set()
            message = b"".join(account_id.bytes for account_id in accounts)
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(_ANNOUNCE_TIMEOUT_S):
                    await self._redis.publish(_CHANNEL, message)

    async def _listen(self) -> None:
        """One subscription for the process, however many streams it serves."""
        while True:
            try:
                async with self._redis.pubsub() as subscription:
                    await subscription.subscribe(_CHANNEL)
                    async for message in subscription.listen():
                        if message["type"] == "message":
                            for account_id in _accounts(message["data"]):
                                self._wake(account_id)
            except (RedisError, OSError, ValueError) as error:
                log.warning("live events fall back to looking", reason=type(error).__name__)
                await asyncio.sleep(_RECONNECT_S)


def _accounts(message: bytes) -> list[UUID]:
    return [UUID(bytes=message[at : at + 16]) for at in range(0, len(message), 16)]
