"""Spreads the expensive requests of an account over time.

Rate limits count requests, but some need a hundred times as much of the event loop as others. While
other accounts use the process, an account's requests may use only a share of it, and those beyond
it wait. An account that is alone, or whose requests are as cheap as usual, never waits.
"""

import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from rota.platform.cache import ExpiringCache
from rota.platform.pace import COUNT_DATABASE, Pace
from rota.platform.top_accounts import TopAccounts

# Of the event loop. An account of the highest tier that sends as much as it may uses less.
SHARE = 0.25
# What an account can use at once, for example for a page that needs ten requests.
BURST_S = 0.1
# How long a request waits before it is refused.
WAIT_S = 10.0
# An account is alone if no other one has sent a request for this long.
ALONE_S = 10.0
# Time that a request uses beyond what was expected is counted in pieces of this size.
PIECE_S = 0.001
# What is expected of a request is at most this.
MAX_EXPECTED_S = 0.05
# How much the last request changes what is expected of the next one.
NEWEST = 0.3

TOP_PROCESSOR_TIME = TopAccounts(
    "rota_top_account_request_cpu_seconds_total",
    "Processor time of the requests of the accounts that use the most, with what they read.",
)

_TOO_MUCH = (
    "The requests of this account have used too much processor time, for example for large bodies "
    "or pages. Try again in a few seconds, with smaller requests."
)


class RequestPace:
    def __init__(self) -> None:
        self._pace = Pace("requests", _TOO_MUCH, share=SHARE, wait_s=WAIT_S, burst_s=BURST_S)
        self._company = _Company()
        # What the requests of an account usually use.
        self._usual: ExpiringCache[str, float] = ExpiringCache(max_items=10_000, max_age_s=600)

    async def run(
        self, account: str, work: Callable[[], Awaitable[None]], has_response: Callable[[], bool]
    ) -> None:
        """Waits until the account may begin another request, and counts what this one uses.

        What comes after the beginning of its response is not counted: a stream of events is limited
        in other ways, and would keep the account's requests waiting.
        """
        self._company.joined_by(account)
        expected = self._usual.get(account) or 0.0
        use = _Use(self, account, has_response)
        if not self._company.is_alone(account):
            await self._pace.wait(account, expected)
            use.counted = expected
        COUNT_DATABASE.set(use.add_database)
        try:
            await _measured(work().__await__(), use)
        finally:
            self.count(use)
            usual = min(expected + NEWEST * (use.used - expected), MAX_EXPECTED_S)
            self._usual.put(account, usual)
            TOP_PROCESSOR_TIME.add(account, use.used)

    def count(self, use: "_Use") -> None:
        """Counts what has been used but not counted, or gives back what was not needed."""
        if not self._company.is_alone(use.account):
            self._pace.spend(use.account, use.used - use.counted)
        use.counted = use.used


class _Use:
    """The processor time of one request, here and in the database."""

    __slots__ = ("_pace", "account", "counted", "has_response", "used")

    def __init__(self, pace: RequestPace, account: str, has_response: Callable[[], bool]) -> None:
        self._pace = pace
        self.account = account
        self.has_response = has_response
        self.used = 0.0
        self.counted = 0.0

    def add(self, cpu_s: float) -> None:
        self.used += cpu_s
        if self.used - self.counted > PIECE_S:
            self._pace.count(self)

    def add_database(self, cpu_s: float) -> None:
        if not self.has_response():
            self.add(cpu_s)


@types.coroutine
def _measured(work: Generator[Any, Any, None], use: _Use) -> Generator[Any, Any, None]:
    """Takes the steps of a coroutine. What runs while it waits is not counted."""
    proceed: Callable[[Any], Any] = work.send
    value: Any = None
    while True:
        counted = not use.has_response()
        started = time.thread_time()
        try:
            waits_for = proceed(value)
        except StopIteration:
            return
        finally:
            if counted:
                use.add(time.thread_time() - started)
            # An exception that was passed on refers to this frame.
            value = None
        try:
            value = yield waits_for
            proceed = work.send
        except BaseException as error:
            proceed, value = work.throw, error


class _Company:
    """Whether other accounts use the process, from the latest request of the account that came last
    and the latest request of all others."""

    def __init__(self) -> None:
        self._last = ""
        self._last_at = self._others_at = -ALONE_S

    def joined_by(self, account: str) -> None:
        if account != self._last:
            self._last, self._others_at = account, self._last_at
        self._last_at = time.monotonic()

    def is_alone(self, account: str) -> bool:
        others_at = self._others_at if account == self._last else self._last_at
        return time.monotonic() - others_at > ALONE_S
