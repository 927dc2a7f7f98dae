"""A metric of the accounts that use the most of something.

A time series for every account would be too many. So a process counts all accounts that were
recently active, and shows only the first few of them. How much an account used in the last minutes
decides which these are. Their counters are totals, so the usual functions for counters work.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

# How many accounts a process shows, and how many it counts.
SHOWN = 20
COUNTED = 1_000
# After this time, use counts half as much.
HALF_LIFE_S = 120.0


@dataclass(slots=True)
class _Use:
    total: float = 0
    # Recent use, as it was at `at_s`.
    recent: float = 0
    at_s: float = 0

    def recent_at(self, now_s: float) -> float:
        return self.recent * math.exp2((self.at_s - now_s) / HALF_LIFE_S)


class TopAccounts(Collector):
    def __init__(
        self,
        name: str,
        documentation: str,
        *,
        now_s: Callable[[], float] = time.monotonic,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self.name = name
        self._documentation = documentation
        self._now_s = now_s
        self._uses: dict[str, _Use] = {}
        registry.register(self)

    def add(self, account: str, amount: float = 1) -> None:
        """Counts use of an account, which is named by its ID as clients see it."""
        now_s = self._now_s()
        use = self._uses.get(account)
        if use is None:
            if len(self._uses) >= COUNTED:
                self._forget(now_s)
            use = self._uses[account] = _Use()
        use.recent = use.recent_at(now_s) + amount
        use.at_s = now_s
        use.total += amount

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self.name, self._documentation, labels=["account"])
        # The metrics server has a thread of its own.
        for account, use in self._ranked(self._now_s())[:SHOWN]:
            family.add_metric([account], use.total)
        yield family

    def describe(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self.name, self._documentation, labels=["account"])

    def _ranked(self, now_s: float) -> list[tuple[str, _Use]]:
        uses = list(self._uses.copy().items())
        return sorted(uses, key=lambda each: each[1].recent_at(now_s), reverse=True)

    def _forget(self, now_s: float) -> None:
        """Keeps the half that used the most."""
        self._uses = dict(self._ranked(now_s)[: COUNTED // 2])
