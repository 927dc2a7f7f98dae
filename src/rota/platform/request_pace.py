"""Spreads the expensive requests of an account over time.

Rate limits count requests, but some need a hundred times as much of the event loop as others. So
what each request uses is measured. While other accounts use the process, an account's requests may
use only a share of the event loop, and those beyond it wait. An account that is alone never waits.
"""

import asyncio
import time
import types
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

from rota.platform.cache import ExpiringCache
from rota.platform.pace import Pace
from rota.platform.top_accounts import TopAccounts

T = TypeVar("T")

# Of the event loop. An account of the highest tier that sends as much as it may uses less.
SHARE = 0.25
# What an account can use at once, for example for a page that needs ten requests.
BURST_S = 0.1
# How long a request waits before it is refused.
WAIT_S = 10.0
# How long none of an account's requests can begin, at most.
MAX_DEBT_S = 20.0
# An account is alone if no other one has sent a request for this long.
ALONE_S = 10.0
# Time beyond what was expected is counted in pieces of this size.
PIECE_S = 0.001
# What is expected of a request is at most this.
MAX_EXPECTED_S = 0.05
# How much a cheaper request lowers what is expected of the next.
NEWEST = 0.03
# For how long a charge can be given back.
REFUND_S = 1.0

# The time of a read that is always free, and the most that one read counts: if the database
# hangs, the waiting account is not the cause.
LEAST_FREE_S = 0.005
MAX_READ_S = 0.25

TOP_PROCESSOR_TIME = TopAccounts(
    "rota_top_account_request_cpu_seconds_total",
    "Processor time of the requests of the accounts that use the most, with what they read.",
)

_TOO_MUCH = (
    "This account's requests have used too much processing time, for example for large bodies, "
    "large pages or searches. Try again in a few seconds, with fewer or smaller requests."
)


class Use:
    """What one request has used: time of the event loop, and of the database for long reads."""

    __slots__ = ("_pace", "_step", "account", "began", "counted", "is_over", "used")

    def __init__(self, pace: "RequestPace", account: str, expected: float = 0.0) -> None:
        self._pace = pace
        self.account = account
        self.began = time.monotonic()
        # When the step in progress began.
        self._step: float | None = None
        self.used = 0.0
        # What the account has been charged.
        self.counted = expected
        # What comes later does not count.
        self.is_over = False

    def add(self, seconds: float) -> None:
        if not self.is_over:
            self.used += seconds
            if self.used - self.counted > PIECE_S:
                self._pace.count(self)

    def end(self) -> None:
        """Settles what was used. What comes later, such as a stream of events, can go on for hours,
        and would keep the account's requests waiting."""
        if not self.is_over:
            self._end_step()
            self._pace.settle(self)
            self.is_over = True

    def _end_step(self) -> None:
        if self._step is not None:
            self.add(time.thread_time() - self._step)
            self._step = None

    @types.coroutine
    def measured(self, work: Awaitable[T]) -> Generator[Any, Any, T]:
        """Takes the steps of the work. What runs while it waits does not count."""
        steps = work.__await__()
        proceed: Callable[[Any], Any] = steps.send
        value: Any = None
        while True:
            self._step = time.thread_time()
            try:
                waits_for = proceed(value)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                # An exception that was passed on refers to this frame.
                value = None
                self._end_step()
            try:
                value = yield waits_for
                proceed = steps.send
            except BaseException as error:
                proceed, value = steps.throw, error

    async def part(self, work: Awaitable[T]) -> T:
        """Work in a task of its own, all of which counts."""
        use = Use(self._pace, self.account)
        CURRENT.set((use, asyncio.current_task()))
        try:
            return await use.measured(work)
        finally:
            use.end()


# The request of a task, with the task: others that it starts inherit the variable only.
CURRENT: ContextVar[tuple[Use, object] | None] = ContextVar("CURRENT", default=None)


def current() -> Use | None:
    found = CURRENT.get()
    return found[0] if found is not None and found[1] is asyncio.current_task() else None


async def measured(work: Awaitable[T]) -> T:
    """Counts what a task of its own does toward the request that started the task."""
    found = CURRENT.get()
    return await (work if found is None else found[0].part(work))


class RequestPace:
    def __init__(self) -> None:
        self._pace = Pace(
            "requests",
            _TOO_MUCH,
            share=SHARE,
            wait_s=WAIT_S,
            burst_s=BURST_S,
            max_debt_s=MAX_DEBT_S,
        )
        self._others = _OtherAccounts()
        # What the requests of an account usually use.
        self._usual: ExpiringCache[str, float] = ExpiringCache(max_items=10_000, max_age_s=600)

    async def run(self, account: str, respond: Callable[[Use], Awaitable[None]]) -> None:
        """Responds when the account may begin a request. What that uses counts until `Use.end`."""
        self._others.seen(account)
        expected = 0.0
        if not self._others.is_alone(account):
            expected = self._usual.get(account) or 0.0
            await self._pace.wait(account, expected)
        use = Use(self, account, expected)
        CURRENT.set((use, asyncio.current_task()))
        try:
            await use.measured(respond(use))
        finally:
            use.end()

    def count(self, use: Use) -> None:
        """Charges what has been used beyond what was expected."""
        if not self._others.is_alone(use.account):
            self._pace.spend(use.account, use.used - use.counted)
        use.counted = use.used

    def settle(self, use: Use) -> None:
        # An overestimate is given back only soon: later, the account has paid it off by waiting.
        if use.used > use.counted or time.monotonic() - use.began < REFUND_S:
            self.count(use)
        TOP_PROCESSOR_TIME.add(use.account, use.used)
        usual = self._usual.get(use.account) or 0.0
        # Up at once and down slowly: expensive requests must not hide behind cheap ones.
        usual = max(use.used, usual + NEWEST * (use.used - usual))
        self._usual.put(use.account, min(usual, MAX_EXPECTED_S))


class LongReads:
    """How much of the time of a read counts: what it takes beyond twice the usual time. If the
    database is slow for everybody, nobody has to wait for that."""

    def __init__(self) -> None:
        self._usual_s = LEAST_FREE_S / 2
        self._last = ""

    def excess(self, account: str, took_s: float) -> float:
        free_s = max(2 * self._usual_s, LEAST_FREE_S)
        if account != self._last:
            # Follows the median. An account counts at most every other time, so that no single one
            # decides what is usual.
            self._last = account
            self._usual_s *= 1.05 if took_s > self._usual_s else 0.95
            self._usual_s = min(max(self._usual_s, LEAST_FREE_S / 2), MAX_READ_S)
        return max(0.0, min(took_s, MAX_READ_S) - free_s)


class _OtherAccounts:
    """Whether other accounts use the process, from the latest request of the account that came last
    and the latest request of all others."""

    def __init__(self) -> None:
        self._last = ""
        self._last_at = self._others_at = -ALONE_S

    def seen(self, account: str) -> None:
        if account != self._last:
            self._last, self._others_at = account, self._last_at
        self._last_at = time.monotonic()

    def is_alone(self, account: str) -> bool:
        others_at = self._others_at if account == self._last else self._last_at
        return time.monotonic() - others_at > ALONE_S
