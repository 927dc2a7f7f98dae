"""Wakes a relay through Redis when an instruction was committed.

A process that commits pushes a token onto a Redis list, and relays that have nothing to do wait
for one. Redis gives each token to the relay that has waited longest, so a commit costs one look
at the outbox, however many workers there are. A lost token loses nothing, because relays poll.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from rota.platform import clock
from rota.platform.db import DATABASE_ERRORS
from rota.platform.loops import is_set

log = structlog.get_logger()

_ERRORS = (RedisError, TimeoutError, *DATABASE_ERRORS)
# Short, because a wake-up is optional.
_SEND_TIMEOUT_S = 0.1
# Shorter than the client's own timeout for an answer.
_BLOCK_S = 3
_RECONNECT_S = 1.0
# More tokens than this would wake relays for instructions that are handled already.
_MAX_TOKENS = 16


class Wakeable(Protocol):
    """A relay that can be woken."""

    @property
    def lane(self) -> str: ...
    @property
    def has_room(self) -> bool: ...
    async def room(self) -> None: ...
    def wake(self) -> None: ...


class WakeSignal:
    """Woken like a relay, for work that stays in the database until there is room for it."""

    has_room = True

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self._woken = asyncio.Event()

    async def room(self) -> None:
        """Always has room."""

    def wake(self) -> None:
        self._woken.set()

    def clear(self) -> None:
        self._woken.clear()

    async def wait(self, seconds: float) -> None:
        """Until it is woken, at most so long."""
        await is_set(self._woken, seconds)


class Wakes:
    def __init__(self, redis: Redis, database_id: Callable[[], Awaitable[str]]) -> None:
        self._redis = redis
        self._database_id = database_id
        # Only relays of the same database share tokens, also if several services share a Redis.
        self._prefix: str | None = None
        self._here: dict[str, Wakeable] = {}
        self._unsent: set[str] = set()
        self._sender: asyncio.Task[None] | None = None

    def announce(self, lanes: Iterable[str]) -> None:
        """Wakes one relay of each lane: that of this process if it has room, or another."""
        for lane in lanes:
            here = self._here.get(lane)
            if here is not None and here.has_room:
                here.wake()
            else:
                self.wake_others(lane)

    def wake_others(self, lane: str) -> None:
        self._unsent.add(lane)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def listen(self, relay: Wakeable) -> None:
        """Wakes the relay until cancelled. It takes no token while the relay has no room."""
        self._here[relay.lane] = relay
        try:
            while True:
                await relay.room()
                try:
                    key = await self._key(relay.lane)
                    async with asyncio.timeout(2 * _BLOCK_S):
                        token = await self._redis.blpop([key], timeout=_BLOCK_S)
                    if token is not None:
                        relay.wake()
                except Exception as error:
                    log.warning("wake_up_failed", lane=relay.lane, error=repr(error))
                    await asyncio.sleep(clock.about(_RECONNECT_S))
        finally:
            del self._here[relay.lane]

    async def aclose(self) -> None:
        if self._sender is not None:
            # The last commits of a process that stops.
            await asyncio.gather(self._sender, return_exceptions=True)

    async def _send(self) -> None:
        """Sends one token at a time for each lane. Later commits share the next one."""
        while self._unsent:
            lanes, self._unsent = self._unsent, set()
            with contextlib.suppress(*_ERRORS):
                keys = [await self._key(lane) for lane in lanes]
                async with asyncio.timeout(_SEND_TIMEOUT_S):
                    for key in keys:
                        if await self._redis.lpush(key, b"") > _MAX_TOKENS:
                            await self._redis.ltrim(key, 0, _MAX_TOKENS - 1)

    async def _key(self, lane: str) -> str:
        if self._prefix is None:
            self._prefix = f"wake:{await self._database_id()}:"
        return self._prefix + lane
