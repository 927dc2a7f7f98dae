"""Spreads the expensive work of an account over time.

Work that keeps the event loop busy slows down every account, however little of it runs at once. So
an account that has used processor time waits until that time is only a small share of what has
passed since. Cheap work hardly waits.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Hashable
from typing import NoReturn
from weakref import WeakValueDictionary

from rota.platform.cache import ExpiringCache
from rota.platform.errors import RateLimited
from rota.platform.shares import REFUSED, WAIT_SECONDS

# Work of one account that waits.
MAX_WAITING = 256
LOOK_EVERY_S = 0.1


class Pace:
    def __init__(
        self,
        name: str,
        message: str,
        *,
        share: float,
        wait_s: float,
        burst_s: float = 0.0,
        max_debt_s: float = math.inf,
    ) -> None:
        self._waited = WAIT_SECONDS.labels(name)
        self._refused = REFUSED.labels(name)
        # What a refused caller reads.
        self._message = message
        # Of one processor.
        self._share = share
        self._wait_s = wait_s
        # An account that has used no more than this does not wait.
        self._burst_s = burst_s / share
        # No account has to wait longer than this, whatever it has used.
        self._max_debt_s = self._burst_s + max_debt_s
        # When what an account has used is only its share of the time.
        self._paid: ExpiringCache[Hashable, float] = ExpiringCache(
            max_items=10_000, max_age_s=3_600
        )
        self._waiting: Counter[Hashable] = Counter()
        # Those of an account who wait, in their order.
        self._queues: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def wait(self, account: Hashable, cpu_s: float = 0.0) -> None:
        """Waits until the account may begin work that takes at least this much processor time.
        Raises `RateLimited` if that takes too long."""
        queue = self._queues.get(account)
        if queue is None:
            queue = self._queues[account] = asyncio.Lock()
        if queue.locked() or self.due_in(account):
            await self._wait(account, queue)
        self.spend(account, cpu_s)

    async def _wait(self, account: Hashable, queue: asyncio.Lock) -> None:
        if self.due_in(account) > self._wait_s or self._waiting[account] >= MAX_WAITING:
            self.refuse(account)
        self._waiting[account] += 1
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._wait_s), queue:
                # It is later after what others of the account have spent meanwhile, and sooner
                # after what they have given back.
                while due_in := self.due_in(account):  # noqa: ASYNC110
                    await asyncio.sleep(min(due_in, LOOK_EVERY_S))
        except TimeoutError:
            self.refuse(account)
        finally:
            self._waiting[account] -= 1
            if not self._waiting[account]:
                del self._waiting[account]
            self._waited.observe(time.monotonic() - started)

    def spend(self, account: Hashable, cpu_s: float) -> None:
        """Counts processor time that the account has used, or gives back what it did not need."""
        now = time.monotonic()
        paid = max(now, self._paid.get(account) or now) + cpu_s / self._share
        self._paid.put(account, min(paid, now + self._max_debt_s))

    def due_in(self, account: Hashable) -> float:
        """The seconds until the next work of the account can begin."""
        paid = self._paid.get(account)
        return max(0.0, paid - time.monotonic() - self._burst_s) if paid is not None else 0.0

    def refuse(self, account: Hashable) -> NoReturn:
        self._refused.inc()
        retry_after_s = max(1, math.ceil(self.due_in(account)))
        raise RateLimited(self._message, retry_after_s=retry_after_s)
