"""The rolling window. Every limited request asks it once.

A script in Redis decides, with the clock of Redis. Requests that arrive at the same time share a
call of it. While Redis is down, a limiter in this process takes over.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import structlog
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


# How many calls of the script wait for Redis at the same time, and how many requests one of them
# can have. Further requests wait for the next call.
CALLS_AT_ONCE = 2
REQUESTS_OF_A_CALL = 64


log = structlog.get_logger()


class ScriptReply(NamedTuple):
    """The reply of window.lua for one request."""

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


@dataclass(frozen=True, slots=True, eq=False)
class _PendingRequest:
    """A request that waits for its reply. The reply is None in an outage."""

    keys: tuple[str, ...]
    arguments: tuple[int, ...]
    reply: "asyncio.Future[ScriptReply | None]"

    def answer(self, reply: ScriptReply | None) -> None:
        # It may have been cancelled.
        if not self.reply.done():
            self.reply.set_result(reply)


class Window:
    def __init__(
        self,
        redis: Redis,
        *,
        processes: int,
        timeout_s: float = 0.04,
        probe_every_s: float = 0.25,
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
        self._questions: deque[_PendingRequest] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        # Whether a call was started that has not taken its questions yet.
        self._is_starting = False
        self._is_closed = False

    async def admit(
        self,
        key: str,
        ceilings: Ceilings,
        *,
        ai: bool,
        cost: int = 1,
        replaces: LimitResult | None = None,
    ) -> LimitResult:
        """Counts a request of `key` (`acct:<id>` or `ip:<address>`) if it is within the limits.

        `cost` is the number of requests that it counts as. `replaces` is an earlier result, which
        then no longer counts, whatever the result of this call is.
        """
        if not self._breaker.open and not self._is_closed:
            question = _question(key, ceilings, ai, cost, replaces)
            self._questions.append(question)
            self._start_call()
            reply = await question.reply
            if reply is not None:
                limits = (ceilings.all, ceilings.ai) if ai else (ceilings.all,)
                return LimitResult(
                    allowed=reply.admitted == 1,
                    limit=limits[reply.described - 1],
                    remaining=reply.remaining,
                    reset_s=reply.reset_s,
                    policy=policy(*limits),
                    at=reply.at_us,
                    counted=len(limits),
                )
        return self._fallback.admit(key, ceilings, ai=ai, cost=cost, replaces=replaces)

    async def run_script(
        self, key: str, ceilings: Ceilings, *, ai: bool, cost: int = 1
    ) -> ScriptReply:
        """Runs the script in Redis for one request, without a timeout."""
        (reply,) = await self._run_script([_question(key, ceilings, ai, cost, None)])
        return reply

    async def aclose(self) -> None:
        """Stops the background work. The caller closes the Redis client."""
        self._is_closed = True
        await redis_clients.end(self._calls)
        for question in self._questions:
            question.answer(None)
        await self._breaker.aclose()

    def _start_call(self) -> None:
        """Unless one starts anyway, or enough of them wait for Redis."""
        if not self._is_starting and len(self._calls) < CALLS_AT_ONCE:
            self._is_starting = True
            call = asyncio.create_task(self._call())
            self._calls.add(call)
            call.add_done_callback(self._end_call)

    def _end_call(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        if call.cancelled():
            return
        if (error := call.exception()) is not None:
            log.error("limiter_failed", exc_info=error)
        if self._questions:
            self._start_call()

    async def _call(self) -> None:
        """Asks Redis about all requests that wait."""
        self._is_starting = False
        questions: list[_PendingRequest] = []
        while self._questions and len(questions) < REQUESTS_OF_A_CALL:
            question = self._questions.popleft()
            # A request that was cancelled does not count.
            if not question.reply.done():
                questions.append(question)
        replies: Sequence[ScriptReply | None] = [None] * len(questions)
        try:
            # The breaker may have opened while they waited.
            if questions and not self._breaker.open:
                with suppress(RedisUnavailable):
                    replies = await self._breaker.call(self._run_script(questions))
        finally:
            for question, reply in zip(questions, replies, strict=True):
                question.answer(reply)

    async def _run_script(self, questions: Sequence[_PendingRequest]) -> list[ScriptReply]:
        keys = [key for question in questions for key in question.keys]
        arguments: list[str | int] = [*keys, self._window_us]
        for question in questions:
            arguments += question.arguments
        try:
            replies = await self._redis.evalsha(SCRIPT_SHA, len(keys), *arguments)
        except NoScriptError:
            replies = await self._redis.eval(SCRIPT, len(keys), *arguments)
        return [ScriptReply(*reply) for reply in replies]


def _question(
    key: str, ceilings: Ceilings, ai: bool, cost: int, replaces: LimitResult | None
) -> _PendingRequest:
    log = f"limits:{{{key}}}"
    keys = (log, f"{log}:ai") if ai else (log,)
    replaced = (replaces.at, replaces.counted) if replaces else (0, 0)
    arguments = (len(keys), ceilings.all, ceilings.ai, cost, *replaced)
    return _PendingRequest(keys, arguments, asyncio.get_running_loop().create_future())
