"""Spreads the expensive work of an account over time.

Work that keeps the event loop busy slows down every account, however little of it runs at once. So
an account that has used processor time waits until that time is only a small share of what has
passed since. Cheap work hardly waits.
"""

import asyncio
import math
import time
from typing import NoReturn
from uuid import UUID
from weakref import WeakValueDictionary

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
        self._due: ExpiringCache[UUID, float] = ExpiringCache(max_items=10_000, max_age_s=3_600)
        # Those of an account who wait, in their order.
        self._queues: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    async def wait(self, account_id: UUID, cpu_s: float = 0.0) -> None:
        """Waits until the account may begin work that takes at least this much processor time.
        Raises `RateLimited` if that takes too long."""
        queue = self._queues.get(account_id)
        if queue is None:
            queue = self._queues[account_id] = asyncio.Lock()
        if queue.locked() or self.due_in(account_id):
            await self._wait(account_id, queue)
        self.spend(account_id, cpu_s)

    async def _wait(self, account_id: UUID, queue: asyncio.Lock) -> None:
        if self.due_in(account_id) > self._wait_s:
            self.refuse(account_id)
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._wait_s), queue:
                # It is later after what others of the account have spent meanwhile.
                while due_in := self.due_in(account_id):  # noqa: ASYNC110
                    await asyncio.sleep(due_in)
        except TimeoutError:
            self.refuse(account_id)
        finally:
            self._waited.observe(time.monotonic() - started)

    def spend(self, account_id: UUID, cpu_s: float) -> None:
        """Counts processor time that the account has used."""
        due = time.monotonic() + self.due_in(account_id) + cpu_s / self._share
        self._due.put(account_id, due)

    def due_in(self, account_id: UUID) -> float:
        """The seconds until the next work of the account can begin."""
        due = self._due.get(account_id)
        return max(0.0, due - time.monotonic()) if due is not None else 0.0

    def refuse(self, account_id: UUID) -> NoReturn:
        self._refused.inc()
        retry_after_s = max(1, math.ceil(self.due_in(account_id)))
        raise RateLimited(self._message, retry_after_s=retry_after_s)
