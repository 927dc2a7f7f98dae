"""Spreads the expensive work of an account over time.

Work that keeps the event loop or a processor busy slows down every account, however few of it runs
at once. So an account that has spent processor time waits until that time is only a small share of
what has passed since. Cheap work hardly waits.
"""

import asyncio
import time
from uuid import UUID

from rota.platform.cache import ExpiringCache
from rota.platform.errors import RateLimited
from rota.platform.shares import REFUSED, WAIT_SECONDS


class Pace:
    def __init__(self, name: str, message: str, *, share: float, wait_s: float) -> None:
        self._waited = WAIT_SECONDS.labels(name)
        self._refused = REFUSED.labels(name)
        # What a refused caller reads.
        self._message = message
        # Of one processor.
        self._share = share
        self._wait_s = wait_s
        # When the next work of an account can begin.
        self._due: ExpiringCache[UUID, float] = ExpiringCache(max_items=10_000, max_age_s=60)

    async def wait(self, account_id: UUID, expected_s: float = 0.0) -> None:
        """Waits until the account may begin work that takes about this much processor time. Raises
        `RateLimited` if that would take too long."""
        now = time.monotonic()
        due = max(now, self._due.get(account_id) or now)
        if due - now > self._wait_s:
            self._refused.inc()
            raise RateLimited(self._message)
        self._due.put(account_id, due + expected_s / self._share)
        if due > now:
            self._waited.observe(due - now)
            await asyncio.sleep(due - now)

    def spend(self, account_id: UUID, cpu_s: float) -> None:
        """Counts processor time that was not expected."""
        now = time.monotonic()
        due = max(now, self._due.get(account_id) or now)
        self._due.put(account_id, due + cpu_s / self._share)
