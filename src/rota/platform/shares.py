"""Shares of a process: how many things it does at once, in total and for one account.

An account that has used its share waits behind its own work only. While all places are taken, the
accounts that wait take turns, however much each of them asks for. As places fill up, an account
that already holds many gets fewer of the rest, so that some stay free for accounts with none.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NoReturn
from uuid import UUID

from prometheus_client import Counter, Gauge, Histogram

from rota.platform.errors import RateLimited

WAIT_SECONDS = Histogram(
    "rota_share_wait_seconds",
    "Seconds that work waited for a place in a share of this process.",
    ["share"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
REFUSED = Counter(
    "rota_share_refused_total",
    "Work that was refused because its account used its share or no place became free in time.",
    ["share"],
)
TAKEN = Gauge("rota_share_taken", "Places of a share that are taken.", ["share"])
PLACES = Gauge("rota_share_places", "Places of a share, taken or free.", ["share"])

# An account can have this many times as many places as are still free. So one account has at most 4
# of 5 places, and two have 8 of 9.
TIMES_FREE = 4

Waiter = asyncio.Future[None]


class Shares:
    def __init__(
        self, name: str, message: str, *, total: int, per_account: int, waiting: int, wait_s: float
    ) -> None:
        self._name = name
        # What a refused caller reads.
        self._message = message
        self._total = total
        self._per_account = per_account
        # How many of an account can wait, and for how long.
        self._max_waiting = waiting
        self.wait_s = wait_s
        self._taken = 0
        self._taken_gauge = TAKEN.labels(name)
        PLACES.labels(name).set(total)
        # From the start, so that the first refusal is an increase.
        REFUSED.labels(name)
        self._taken_by: dict[UUID, int] = {}
        self._waiting: dict[UUID, deque[Waiter]] = {}
        # The accounts that wait, in the order of their turns.
        self._turns: OrderedDict[UUID, None] = OrderedDict()

    @asynccontextmanager
    async def place(self, account_id: UUID) -> AsyncIterator[None]:
        await self.enter(account_id)
        try:
            yield
        finally:
            self.leave(account_id)

    async def enter(self, account_id: UUID, wait_s: float | None = None) -> None:
        """Takes a place, or waits for one. Raises `RateLimited` if that takes too long."""
        wait_s = self.wait_s if wait_s is None else wait_s
        if self._may_take(account_id):
            self._take(account_id)
            return
        if not wait_s or len(self._waiting.get(account_id, ())) >= self._max_waiting:
            self._refuse()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(account_id, deque())
        queue.append(waiter)
        self._turns.setdefault(account_id, None)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(wait_s):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                # It got its place at the last moment.
                self.leave(account_id)
            else:
                with suppress(ValueError):
                    queue.remove(waiter)
                self._forget_if_done(account_id)
            if isinstance(error, TimeoutError):
                self._refuse()
            raise
        finally:
            WAIT_SECONDS.labels(self._name).observe(time.perf_counter() - started)

    def leave(self, account_id: UUID) -> None:
        """Gives the place back, to the account whose turn it is."""
        self._taken -= 1
        self._taken_gauge.dec()
        self._taken_by[account_id] -= 1
        if not self._taken_by[account_id]:
            del self._taken_by[account_id]
        while self._taken < self._total:
            next_account = next(filter(self._may_take, self._turns), None)
            if next_account is None:
                return
            del self._turns[next_account]
            waiter = self._waiting[next_account].popleft()
            if not waiter.done():
                self._take(next_account)
                waiter.set_result(None)
            # Behind the others.
            self._turns[next_account] = None
            self._forget_if_done(next_account)

    @property
    def are_half_free(self) -> bool:
        return 2 * self._taken <= self._total

    def has_any(self, account_id: UUID) -> bool:
        return account_id in self._taken_by

    def room(self, account_id: UUID) -> int:
        """How many more places the account could take now."""
        room = 0
        while self._may_take(account_id, room):
            room += 1
        return room

    def _may_take(self, account_id: UUID, more: int = 0) -> bool:
        """Whether the account may take a place, after `more` others."""
        free = self._total - self._taken - more
        taken = self._taken_by.get(account_id, 0) + more
        return free > 0 and (not taken or taken < min(self._per_account, TIMES_FREE * free))

    def _take(self, account_id: UUID) -> None:
        self._taken += 1
        self._taken_gauge.inc()
        self._taken_by[account_id] = self._taken_by.get(account_id, 0) + 1

    def _forget_if_done(self, account_id: UUID) -> None:
        if not self._waiting.get(account_id):
            self._waiting.pop(account_id, None)
            self._turns.pop(account_id, None)

    def _refuse(self) -> NoReturn:
        REFUSED.labels(self._name).inc()
        raise RateLimited(self._message)
