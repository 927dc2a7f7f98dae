"""The limiter that stands in while Redis is away: exact, in this process alone, bounded in size.

Processes cannot see each other's requests then, so each enforces its share of
a ceiling, and together they admit no more than the whole of it.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic_ns

from rota.limits.verdict import WINDOW_S, Ceilings, Verdict, policy

SECOND_NS = 1_000_000_000
WINDOW_NS = WINDOW_S * SECOND_NS


class Fallback:
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
        # Of each key, least recently used first: when its requests were admitted, all of them
        # and those to AI endpoints. An array holds such a time in 8 bytes.
        self._logs: OrderedDict[str, tuple[array[int], array[int]]] = OrderedDict()

    def admit(self, key: str, ceilings: Ceilings, *, ai: bool) -> Verdict:
        now = self._clock_ns()
        logs = self._logs.setdefault(key, (array("q"), array("q")))
        self._logs.move_to_end(key)
        for log in logs:
            gone = bisect_right(log, now - WINDOW_NS)
            del log[:gone]
            self._hits -= gone

        limits = (ceilings.all, ceilings.ai) if ai else (ceilings.all,)
        # A pair for each ceiling that the request counts toward: this process' share, and the log.
        windows = [
            (max(1, limit // self._processes), log)
            for limit, log in zip(limits, logs, strict=False)
        ]
        allowed = all(len(log) < share for share, log in windows)
        if allowed:
            for _, log in windows:
                log.append(now)
            self._hits += len(windows)
            self._forget(now)

        # As in Redis: the fewest remaining and, of two alike, the later to give a request back.
        # The limit told is the tier's own, because that is what the caller bought.
        remaining, negative_wait_ns, limit = min(
            (
                max(0, share - len(log)),
                now - WINDOW_NS - (log[max(0, len(log) - share)] if log else now),
                limit,
            )
            for limit, (share, log) in zip(limits, windows, strict=True)
        )
        return Verdict(allowed, limit, remaining, -(negative_wait_ns // SECOND_NS), policy(*limits))

    def _forget(self, now: int) -> None:
        """Drops keys past their window or beyond the bounds, least recently used first."""
        while len(self._logs) > 1:
            key, (log, ai_log) = next(iter(self._logs.items()))
            within_bounds = len(self._logs) <= self._max_keys and self._hits <= self._max_hits
            if within_bounds and log[-1] > now - WINDOW_NS:
                return
            del self._logs[key]
            self._hits -= len(log) + len(ai_log)
