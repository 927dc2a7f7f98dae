"""The loop of a worker that applies retention and continues erasures.

One worker at a time applies retention: a lease in the database says which. It looks only every few
minutes. A request that begins an erasure wakes a worker at once.
"""

import asyncio
import contextlib
import time
from uuid import UUID

import structlog

from rota.data import metrics, queries
from rota.data.erasing import Erasing
from rota.data.erasure import LANE
from rota.data.retention import Busy, Retention
from rota.events.wakes import Wakes
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.ids import new_uuid

log = structlog.get_logger()

LEASE = "retention"
# Longer than any piece and its pauses. It is renewed before each account.
LEASE_S = 900.0
PAGE = 100
# An account has its turn once a day, and again soon if it was busy or its turn failed.
TURN_EVERY_S, AGAIN_S = 86_400.0, 900.0
# How soon a failed look is repeated.
RETRY_S = 20.0


class DataSweep:
    lane = LANE

    def __init__(
        self,
        db: Database,
        retention: Retention,
        erasing: Erasing,
        wakes: Wakes,
        *,
        every_s: float,
    ) -> None:
        self._db = db
        self._retention = retention
        self._erasing = erasing
        self._wakes = wakes
        self._every_s = every_s
        self._holder = new_uuid()
        self._woken = asyncio.Event()
        # When retention looks next, in monotonic time.
        self._next_look = 0.0

    @property
    def has_room(self) -> bool:
        return True

    async def room(self) -> None:
        pass

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Works until it is cancelled."""
        listener = asyncio.create_task(self._wakes.listen(self))
        try:
            while True:
                self._woken.clear()
                wait_s = await self._look()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._woken.wait()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _look(self) -> float:
        """Does what is due. Returns how long to wait."""
        try:
            due_in_s = await self.erase()
            if time.monotonic() >= self._next_look:
                await self.apply_retention()
                self._next_look = time.monotonic() + clock.about(self._every_s)
        except Exception as error:
            log.exception("data_sweep_failed", error=repr(error))
            return clock.about(RETRY_S)
        wait_s = max(0.0, self._next_look - time.monotonic())
        return wait_s if due_in_s is None else min(wait_s, max(due_in_s, 0.05))

    async def erase(self) -> float | None:
        """Continues every erasure that is due. Returns in how many seconds the next one is."""
        while await self._erasing.step():
            pass
        async with self._db.relay() as connection:
            running, due_in_s = await queries.count_erasures(connection)
        metrics.ERASURES.set(running)
        return due_in_s

    async def apply_retention(self) -> dict[str, int]:
        """Gives every account its turn that is due, unless another worker does."""
        totals: dict[str, int] = {}
        if not await self._hold_lease():
            return totals
        try:
            while due := await self._due():
                for account_id, _ in due:
                    if not await self._hold_lease():
                        return totals
                    again_s = TURN_EVERY_S
                    try:
                        deleted = await self._retention.apply(account_id)
                        for kind, rows in deleted.items():
                            totals[kind] = totals.get(kind, 0) + rows
                    except Busy:
                        again_s = AGAIN_S
                    except Exception as error:
                        # It must not delay the other accounts.
                        log.exception(
                            "retention_failed", account=str(account_id), error=repr(error)
                        )
                        again_s = AGAIN_S
                    async with self._db.relay() as connection:
                        await queries.end_turn(connection, account_id, clock.about(again_s))
        finally:
            await queries.give_back_lease(self._db, LEASE, self._holder)
        return totals

    async def _hold_lease(self) -> bool:
        return await queries.hold_lease(self._db, LEASE, self._holder, LEASE_S)

    async def _due(self) -> list[tuple[UUID, float]]:
        async with self._db.relay() as connection:
            due = await queries.due_accounts(connection, PAGE)
        metrics.LAG_SECONDS.set(due[0][1] if due else 0)
        return due
