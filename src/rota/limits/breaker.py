"""A circuit breaker around Redis: calls wait briefly for an outage, and not at all during one.

An outage is silence: at least one call waits, and Redis responds to none. A timeout per call would
be simpler but wrong. A process that is busy with hundreds of requests reads replies late and would
time out although Redis is healthy.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog
from prometheus_client import Gauge
from redis.exceptions import RedisError

from rota.platform import redis as redis_clients

DEGRADED = Gauge(
    "rota_limiter_degraded",
    "1 while Redis is down and each process enforces its own share of the rate limits.",
)
# TimeoutError is an OSError.
FAILURES = (RedisError, OSError)
# This many ticks in a row without a reply are an outage. Ticks are counted instead of seconds, so
# that an event loop that was blocked reads its sockets before the breaker trips.
SILENT_TICKS = 4
# A single connection can fail silently while others work. Its call is given up after this many.
CALL_TICKS = 25

log = structlog.get_logger(__name__)
T = TypeVar("T")


class RedisUnavailable(Exception):
    """Redis did not respond to this call. It may have run the command."""


class CircuitBreaker:
    def __init__(
        self, probe: Callable[[], Awaitable[object]], *, timeout_s: float, probe_every_s: float
    ) -> None:
        self.open = False
        self._probe = probe
        self._probe_every_s = probe_every_s
        # A call can start just before a tick, so the timeout holds one tick more than it counts.
        self._tick_s = timeout_s / (SILENT_TICKS + 1)
        self._ticks = 0
        self._silent_ticks = 0
        # The waiting calls and the tick at which each started, the oldest first.
        self._waiting: dict[asyncio.Timeout, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._recovery: asyncio.Task[None] | None = None

    async def call(self, command: Awaitable[T]) -> T:
        """Waits for the reply to a command. Raises `RedisUnavailable` in an outage."""
        try:
            async with asyncio.timeout(None) as wait:
                if not self._waiting:
                    self._silent_ticks = 0
                    if self._timer is None:
                        self._schedule_tick()
                self._waiting[wait] = self._ticks
                try:
                    reply = await command
                finally:
                    self._waiting.pop(wait, None)
        except FAILURES as error:
            self._trip(error)
            raise RedisUnavailable from error
        # The next tick sets this to 0 and the count of silent ticks starts again.
        self._silent_ticks = -1
        return reply

    async def aclose(self) -> None:
        if self._timer:
            self._timer.cancel()
        await redis_clients.end((self._recovery,))

    def _tick(self) -> None:
        """Detects silence. Runs only while a call waits."""
        self._timer = None
        if not self._waiting:
            return
        self._schedule_tick()
        self._ticks += 1
        self._silent_ticks += 1
        oldest, since = next(iter(self._waiting.items()))
        if self._silent_ticks == SILENT_TICKS:
            self._trip(TimeoutError("Redis does not respond"))
            for wait in list(self._waiting):
                self._give_up(wait)
        elif self._ticks - since > CALL_TICKS:
            self._give_up(oldest)

    def _schedule_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._tick_s, self._tick)

    def _give_up(self, wait: asyncio.Timeout) -> None:
        """Makes a waiting call raise TimeoutError."""
        del self._waiting[wait]
        wait.reschedule(0)

    def _trip(self, error: Exception) -> None:
        if self.open:
            return
        self.open = True
        DEGRADED.set(1)
        log.warning("limiter_degraded", error=f"{type(error).__name__}: {error}")
        self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        while self.open:
            await asyncio.sleep(self._probe_every_s)
            # Any failure is retried: this task is the only one that closes the breaker.
            with suppress(Exception):
                await self.call(self._probe())
                self.open = False
        DEGRADED.set(0)
        log.info("limiter_recovered")
