"""The rolling window: every request of the service asks it once whether it may pass.

Redis decides, in one script, on its own clock. While Redis is away a smaller
limiter in this process does.
"""

import asyncio
from hashlib import sha1
from importlib.resources import files
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from rota.limits.breaker import Breaker, RedisAwayError
from rota.limits.fallback import Fallback
from rota.limits.verdict import WINDOW_S, Ceilings, Verdict, headers, policy, untouched

__all__ = ["WINDOW_S", "Ceilings", "Verdict", "Window", "connect", "headers", "untouched"]

SCRIPT = files(__package__).joinpath("window.lua").read_text()
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()

# The probe must write, since a Redis that has become a read-only replica or has
# run out of memory still answers a ping.
PROBE_KEY = "probe"
PROBE_CEILINGS = Ceilings(all=1_000_000, ai=1_000_000)

# The script's answer: admitted, which ceiling the headers describe (from 1), requests
# remaining, seconds until one is given back, and when it was decided in microseconds.
Decision = tuple[int, int, int, int, int]


def connect(url: str) -> Redis:
    """A client with the settings that the window wants, for the window alone.

    - No socket timeout: redis-py would wrap every write in `asyncio.wait_for`,
      which on Python 3.11 costs a task and can swallow a cancellation. The
      breaker bounds all waiting instead.
    - One retry, at once: for a connection that the server has closed meanwhile.
    - RESP2: with RESP3 redis-py expects notices from the server at any time,
      and so no longer looks whether a pooled connection is closed or has an
      answer left over in it.
    """
    return Redis.from_url(url, socket_timeout=None, retry=Retry(NoBackoff(), 1), protocol=2)


class Window:
    def __init__(
        self,
        redis: Redis,
        *,
        processes: int,
        timeout_s: float = 0.04,
        probe_every_s: float = 0.25,
        connections: int = 16,
        window_s: float = WINDOW_S,
    ) -> None:
        self._redis = redis
        self._window_us = int(window_s * 1_000_000)
        self._fallback = Fallback(processes=processes)
        self._breaker = Breaker(
            lambda: self.decide(PROBE_KEY, PROBE_CEILINGS, ai=False),
            timeout_s=timeout_s,
            probe_every_s=probe_every_s,
        )
        # Requests beyond these queue here, in order. Left to the pool, a burst would open
        # a connection for each, up to the pool's limit, and fail beyond it.
        self._connections = asyncio.Semaphore(connections)

    async def admit(self, key: str, ceilings: Ceilings, *, ai: bool) -> Verdict:
        """Counts a request of `key` (`acct:<id>` or `ip:<address>`) if it may pass."""
        if not self._breaker.open:
            await self._connections.acquire()
            try:
                # Redis may have been found away while this request queued.
                if not self._breaker.open:
                    admitted, described, remaining, reset_s, _ = await self._breaker.call(
                        self.decide(key, ceilings, ai=ai)
                    )
                    limits = (ceilings.all, ceilings.ai) if ai else (ceilings.all,)
                    limit = limits[described - 1]
                    return Verdict(admitted == 1, limit, remaining, reset_s, policy(*limits))
            except RedisAwayError:
                pass
            finally:
                self._connections.release()
        return self._fallback.admit(key, ceilings, ai=ai)

    async def decide(self, key: str, ceilings: Ceilings, *, ai: bool) -> Decision:
        """Asks Redis itself, however long that takes."""
        # The braces put both logs of a key on the same node of a Redis Cluster.
        log = f"limits:{{{key}}}"
        keys = (log, f"{log}:ai") if ai else (log,)
        arguments = (*keys, self._window_us, ceilings.all, ceilings.ai)
        try:
            answer = await self._redis.evalsha(SCRIPT_SHA, len(keys), *arguments)
        except NoScriptError:
            answer = await self._redis.eval(SCRIPT, len(keys), *arguments)
        return cast("Decision", answer)

    async def aclose(self) -> None:
        """Ends what runs in the background. The client stays its owner's to close."""
        await self._breaker.aclose()
