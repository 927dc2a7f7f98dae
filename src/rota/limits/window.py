"""The rolling window. Every limited request asks it once.

A script in Redis decides, with the clock of Redis. While Redis is down, a limiter in this process
takes over.
"""

import asyncio
from hashlib import sha1
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from rota.limits.breaker import CircuitBreaker, RedisUnavailable
from rota.limits.fallback import FallbackLimiter
from rota.limits.result import WINDOW_S, Ceilings, LimitResult, policy
from rota.platform import redis as redis_clients

SCRIPT = files(__package__).joinpath("window.lua").read_text()
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()

# The probe has to write: a read-only replica, or a Redis without memory, still responds to a ping.
PROBE_KEY = "probe"
PROBE_CEILINGS = Ceilings(all=1_000_000, ai=1_000_000)


class ScriptReply(NamedTuple):
    """The reply of window.lua."""

    admitted: int
    # Which ceiling the other values describe, from 1.
    described: int
    remaining: int
    reset_s: int
    at_us: int


def connect(url: str, ca_file: Path | None = None) -> Redis:
    """A Redis client with the settings that the window needs. Other code uses its own client.

    - No socket timeout: redis-py would wrap every write in `asyncio.wait_for`, which on Python 3.11
      costs a task and can lose a cancellation. The circuit breaker limits all waiting instead.
    - One immediate retry, for a pooled connection that the server has closed.
    - RESP2: with RESP3, redis-py expects server messages at any time and no longer checks whether a
      pooled connection is closed or has an unread reply.
    """
    retry = Retry(NoBackoff(), 1)
    return redis_clients.connect(url, ca_file, socket_timeout=None, retry=retry, protocol=2)


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
        self._fallback = FallbackLimiter(processes=processes)
        self._breaker = CircuitBreaker(
            lambda: self.run_script(PROBE_KEY, PROBE_CEILINGS, ai=False),
            timeout_s=timeout_s,
            probe_every_s=probe_every_s,
        )
        # Requests above this number wait here in order. The pool would open a connection for each
        # of them up to its maximum, and then fail.
        self._connections = asyncio.Semaphore(connections)

    async def admit(
        self, key: str, ceilings: Ceilings, *, ai: bool, cost: int = 1, replaces: int = 0
    ) -> LimitResult:
        """Counts a request of `key` (`acct:<id>` or `ip:<address>`) if it is within the limits.

        `cost` is the number of requests that it counts as. `replaces` is the `at` of an earlier
        result, which then no longer counts, whatever the result of this call is.
        """
        if not self._breaker.open:
            await self._connections.acquire()
            try:
                # The breaker may have opened while this request waited for a connection.
                if not self._breaker.open:
                    reply = await self._breaker.call(
                        self.run_script(key, ceilings, ai=ai, cost=cost, replaces=replaces)
                    )
                    limits = (ceilings.all, ceilings.ai) if ai else (ceilings.all,)
                    return LimitResult(
                        allowed=reply.admitted == 1,
                        limit=limits[reply.described - 1],
                        remaining=reply.remaining,
                        reset_s=reply.reset_s,
                        policy=policy(*limits),
                        at=reply.at_us,
                    )
            except RedisUnavailable:
                pass
            finally:
                self._connections.release()
        return self._fallback.admit(key, ceilings, ai=ai, cost=cost, replaces=replaces)

    async def run_script(
        self, key: str, ceilings: Ceilings, *, ai: bool, cost: int = 1, replaces: int = 0
    ) -> ScriptReply:
        """Runs the script in Redis, without a timeout."""
        # The braces put both logs of a key on the same node of a Redis Cluster.
        log = f"limits:{{{key}}}"
        keys = (log, f"{log}:ai") if ai else (log,)
        arguments = (*keys, self._window_us, ceilings.all, ceilings.ai, cost, replaces)
        try:
            reply = await self._redis.evalsha(SCRIPT_SHA, len(keys), *arguments)
        except NoScriptError:
            reply = await self._redis.eval(SCRIPT, len(keys), *arguments)
        return ScriptReply(*reply)

    async def aclose(self) -> None:
        """Stops the background work. The caller closes the Redis client."""
        await self._breaker.aclose()
