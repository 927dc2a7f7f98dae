"""Whether Redis answers. Nobody waits long for the answer, and nobody waits at all once it is no.

What counts as away is silence: something waits, and Redis answers nobody. A
time limit on each call would be simpler and wrong, since a process busy with
hundreds of requests is late to read answers that have long arrived, and would
give up on a Redis that is well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog
from prometheus_client import Gauge
from redis.exceptions import RedisError

DEGRADED = Gauge(
    "rota_limiter_degraded",
    "1 while Redis is away and each process enforces its own share of the rate limits.",
)
# TimeoutError is an OSError.
FAILURES = (RedisError, OSError)
# So many looks in a row that find no answer are an outage. Looks are counted, not seconds, so
# that an event loop that was blocked for long has still read its sockets before it judges.
LOOKS = 4
# One connection may die in silence while others are answered. Its caller waits for so many.
CALL_LOOKS = 100

log = structlog.get_logger(__name__)
T = TypeVar("T")


class RedisAwayError(Exception):
    """Redis did not answer this call. It may have carried it out."""


class Breaker:
    def __init__(
        self, probe: Callable[[], Awaitable[object]], *, timeout_s: float, probe_every_s: float
    ) -> None:
        self.open = False
        self._probe = probe
        self._probe_every_s = probe_every_s
        # An answer may come right after a look, so one more than those that count fits in.
        self._look_every_s = timeout_s / (LOOKS + 1)
        self._looks = 0
        self._silent_looks = 0
        # What waits, and since which look; the longest wait comes first.
        self._waiting: dict[asyncio.Timeout, int] = {}
        self._watch: asyncio.TimerHandle | None = None
        self._recovery: asyncio.Task[None] | None = None

    async def call(self, ask: Awaitable[T]) -> T:
        """Waits for an answer of Redis while there is hope for one, and else trips and raises."""
        try:
            async with asyncio.timeout(None) as wait:
                if not self._waiting:
                    self._silent_looks = 0
                    if self._watch is None:
                        self._look_later()
                self._waiting[wait] = self._looks
                try:
                    answer = await ask
                finally:
                    self._waiting.pop(wait, None)
        except FAILURES as error:
            self._trip(error)
            raise RedisAwayError from error
        # The look to come finds this answer, and counts from one again after it.
        self._silent_looks = -1
        return answer

    async def aclose(self) -> None:
        if self._watch:
            self._watch.cancel()
        if self._recovery:
            self._recovery.cancel()
            await asyncio.wait([self._recovery])

    def _look(self) -> None:
        """Looks after what waits, as long as something does."""
        self._watch = None
        if not self._waiting:
            return
        self._look_later()
        self._looks += 1
        self._silent_looks += 1
        longest, since = next(iter(self._waiting.items()))
        if self._silent_looks == LOOKS:
            self._trip(TimeoutError("Redis is silent"))
            for wait in list(self._waiting):
                self._give_up(wait)
        elif self._looks - since > CALL_LOOKS:
            self._give_up(longest)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(self._look_every_s, self._look)

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
            # Whatever it is that fails, the next try may succeed, and nobody else will make it.
            with suppress(Exception):
                await self.call(self._probe())
                self.open = False
        DEGRADED.set(0)
        log.info("limiter_recovered")
