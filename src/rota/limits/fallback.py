"""The limiter used while Redis is down: exact, in this process only, and bounded in memory.

Processes cannot see each other's requests during an outage. Each one enforces its share of a
ceiling, so together they admit at most the whole ceiling.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic_ns

from rota.limits.result import WINDOW_S, Ceilings, LimitResult, policy

SECOND_NS = 1_000_000_000
WINDOW_NS = WINDOW_S * SECOND_NS


class FallbackLimiter:
    def __init__(
        self,
        *,
        processes: int,
        max_keys: int = 10_000,
        max_hits: int = 1_000_000,
        clock_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self._processes = processes
        self._max_keys = max_keys
        self._max_hits = max_hits
        self._clock_ns = clock_ns
        self._hits = 0
        # For each key, the times of all admitted requests and of those to AI endpoints. The least
        # recently used key comes first. An array stores a time in 8 bytes.
        self._logs: OrderedDict[str, tuple[array[int], array[int]]] = OrderedDict()

    def admit(
        self,
        key: str,
        ceilings: Ceilings,
        *,
        ai: bool,
        cost: int = 1,
        replaces: LimitResult | None = None,
    ) -> LimitResult:
        now = self._clock_ns()
        logs = self._logs.setdefault(key, (array("q"), array("q")))
        self._logs.move_to_end(key)
        # How many entries of each log this request replaces: none or one.
        replaced = [0, 0]
        for number, log in enumerate(logs):
            expired = bisect_right(log, now - WINDOW_NS)
            del log[:expired]
            self._hits -= expired
            if replaces and number < replaces.counted and replaces.at in log:
                log.remove(replaces.at)
                self._hits -= 1
                replaced[number] = 1

        limits = (ceilings.all, ceilings.ai) if ai else (ceilings.all,)
        # One pair for each ceiling that applies: the share of this process, and its log.
        windows = [
            (max(1, limit // self._processes), log)
            for limit, log in zip(limits, logs, strict=False)
        ]
        # A request that counts as more than the whole share needs an empty window.
        cost = min([cost, *(share for share, _ in windows)])
        allowed = all(len(log) + cost <= share for share, log in windows)
        # As in Redis, a request that now counts as more than fits still counts as one where it did.
        for (_, log), before in zip(windows, replaced, strict=False):
            counted = cost if allowed else before
            log.extend([now] * counted)
            self._hits += counted
        if allowed or any(replaced):
            self._evict(now)

        # As in Redis, the result describes the ceiling with the fewest requests remaining, or the
        # longer wait if they are equal. Its limit is the tier's, not the share of this process.
        needed = 1 if allowed else cost
        remaining, negative_wait_ns, limit = min(
            (
                max(0, share - len(log)),
                now - WINDOW_NS - (log[max(0, len(log) + needed - 1 - share)] if log else now),
                limit,
            )
            for limit, (share, log) in zip(limits, windows, strict=True)
        )
        reset_s = -(negative_wait_ns // SECOND_NS)
        return LimitResult(
            allowed, limit, remaining, reset_s, policy(*limits), at=now, counted=len(limits)
        )

    def _evict(self, now: int) -> None:
        """Removes expired keys, and the least recently used ones above the memory bounds."""
        while len(self._logs) > 1:
            key, (log, ai_log) = next(iter(self._logs.items()))
            within_bounds = len(self._logs) <= self._max_keys and self._hits <= self._max_hits
            if within_bounds and log[-1] > now - WINDOW_NS:
                return
            del self._logs[key]
            self._hits -= len(log) + len(ai_log)
