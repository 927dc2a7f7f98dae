"""The loop of a worker that applies retention and continues erasures.

One worker at a time applies retention: a lease in the database says which. It looks only every few
minutes. A request that begins an erasure wakes a worker at once.
"""

import asyncio
import time
from uuid import UUID

import structlog

from rota.data import metrics, queries
from rota.data.erasing import Erasing
from rota.data.erasure import LANE
from rota.data.retention import Busy, Changed, LeaseLost, Retention
from rota.events.wakes import Wakes, WakeSignal
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.ids import new_uuid

log = structlog.get_logger()

LEASE = "retention"
# Longer than any piece and its pauses. It is renewed between pieces, at most once in a while.
LEASE_S, RENEW_S = 900.0, 60.0
PAGE = 100
# An account has its turn once a day, and again soon if it was busy or its turn failed.
TURN_EVERY_S, AGAIN_S = 86_400.0, 900.0
# How soon a failed look is repeated.
RETRY_S = 20.0


class DataSweep:
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
        self._wake_signal = WakeSignal(LANE)
        # When the lease is renewed, in monotonic time.
        self._renew_at = 0.0

    async def run(self) -> None:
        """Works until it is cancelled. An erasure does not wait for retention."""
        loops = [
            asyncio.create_task(work)
            for work in (
                self._wakes.listen(self._wake_signal),
                self._erase_forever(),
                self._retain_forever(),
            )
        ]
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    async def _erase_forever(self) -> None:
        while True:
            self._wake_signal.clear()
            try:
                due_in_s = await self.erase()
                wait_s = clock.about(self._every_s)
                if due_in_s is not None:
                    wait_s = min(wait_s, max(due_in_s, 0.05))
            except Exception as error:
                wait_s = _failed(error)
            await self._wake_signal.wait(wait_s)

    async def _retain_forever(self) -> None:
        while True:
            try:
                await self.apply_retention()
                wait_s = clock.about(self._every_s)
            except Exception as error:
                wait_s = _failed(error)
            await asyncio.sleep(wait_s)

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
            while (due := await self._due()) is not None:
                for account_id in due:
                    if not await self._hold_lease():
                        return totals
                    again_s = TURN_EVERY_S
                    try:
                        deleted = await self._retention.apply(account_id, self._hold_lease)
                        for kind, rows in deleted.items():
                            totals[kind] = totals.get(kind, 0) + rows
                    except LeaseLost:
                        return totals
                    except Changed:
                        continue  # It is still due.
                    except Busy:
                        again_s = AGAIN_S
                    except Exception as error:
                        # It must not delay the other accounts.
                        log.exception(
                            "retention_failed", account=str(account_id), error=repr(error)
                        )
                        again_s = AGAIN_S
                    async with self._db.relay() as connection:
                        await queries.end_turns(connection, [account_id], clock.about(again_s))
        finally:
            self._renew_at = 0.0
            await queries.give_back_lease(self._db, LEASE, self._holder)
        return totals

    async def _hold_lease(self) -> bool:
        now = time.monotonic()
        if now < self._renew_at:
            return True
        held = await queries.hold_lease(self._db, LEASE, self._holder, LEASE_S)
        self._renew_at = now + RENEW_S if held else 0.0
        return held

    async def _due(self) -> list[UUID] | None:
        """The next accounts that need their turn. The turns of those with nothing to delete end
        here, together. None: no account is due."""
        async with self._db.relay() as connection:
            due = await queries.due_accounts(connection, PAGE)
            found = [account_id for account_id, _ in due]
            idle = await self._retention.idle(connection, found)
            await queries.end_turns(connection, idle, clock.about(TURN_EVERY_S))
        metrics.LAG_SECONDS.set(due[0][1] if due else 0)
        return [account_id for account_id in found if account_id not in idle] if due else None


def _failed(error: Exception) -> float:
    """How long to wait before the next attempt."""
    log.exception("data_sweep_failed", error=repr(error))
    return clock.about(RETRY_S)
