"""A worker's slots: how many slices it carries at the same time, shared by the accounts.

Temporal gives the accounts turns, but only when a slot becomes free. So an account that has many
slots leaves the last ones to others. If its slices end quickly, its next slice waits in the worker
for a moment. Otherwise the run waits in the outbox, where it costs nothing, until one of the
account's slices ends.
"""

import asyncio
import time
from collections import Counter
from uuid import UUID

import structlog

from rota.events import outbox
from rota.events.outbox import Instruction, lane_of
from rota.events.wakes import Wakes
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.errors import RateLimited
from rota.platform.loops import is_set
from rota.platform.shares import Shares
from rota.runs.contracts import RunInput
from rota.runs.run_context import ids_of
from rota.tasks.transitions import QUEUED

log = structlog.get_logger()

# A slice waits in the worker for at most this long, if a slice of its account has just ended.
QUICK_S = 0.5
# How often a worker looks for runs that other workers have queued.
LOOK_EVERY_S = 5.0
# Only a fallback: a run that is queued is woken when its account has room.
WAKE_ANYWAY_S = 600


class Slots:
    def __init__(self, db: Database, wakes: Wakes, total: int) -> None:
        self._db = db
        self._wakes = wakes
        self._shares = Shares(
            "slices",
            "The account's runs use their share of the worker.",
            total=total,
            per_account=total,
            waiting=total,
            wait_s=QUICK_S,
        )
        # When a slice of the account ended, while the account has others.
        self._ended_at: dict[UUID, float] = {}
        # Accounts that may have queued runs, and their runs that were woken and are on their way.
        self._queued: set[UUID] = set()
        self._woken: Counter[UUID] = Counter()
        self._changed = asyncio.Event()

    def may_skip_queue(self) -> bool:
        """Whether a new run can begin here at once without delaying the runs of other accounts."""
        return not self._queued and self._shares.are_half_free

    async def take(self, run_input: RunInput) -> bool:
        """Takes a slot for a slice, if its account has room for it."""
        account_id, _ = ids_of(run_input)
        if self._woken[account_id] <= 1:
            del self._woken[account_id]
        else:
            self._woken[account_id] -= 1
        is_quick = time.monotonic() - self._ended_at.get(account_id, -QUICK_S) < QUICK_S
        try:
            await self._shares.enter(account_id, QUICK_S if is_quick else 0)
        except RateLimited:
            return False
        return True

    async def queue(self, run_input: RunInput) -> None:
        """Lets the run wait until its account has room."""
        account_id, task_id = ids_of(run_input)
        instruction = Instruction(
            account_id, QUEUED, task_id, {"run": run_input.run, "again": True}
        )
        async with self._db.write(account_id) as tx:
            await outbox.put(tx, instruction, WAKE_ANYWAY_S)
        # Room may have become free meanwhile.
        self._queued.add(account_id)
        self._changed.set()

    def give_back(self, run_input: RunInput) -> None:
        account_id, _ = ids_of(run_input)
        self._shares.leave(account_id)
        if self._shares.has_any(account_id):
            self._ended_at[account_id] = time.monotonic()
        else:
            self._ended_at.pop(account_id, None)
        if self._queued:
            self._changed.set()

    async def wake_queued(self) -> None:
        """Wakes queued runs when their account has room, until cancelled."""
        look_at = 0.0
        while True:
            self._changed.clear()
            try:
                if time.monotonic() >= look_at:
                    self._queued |= set(await outbox.accounts_with_queued_runs(self._db))
                    self._woken.clear()
                    look_at = time.monotonic() + clock.about(LOOK_EVERY_S)
            except Exception as error:
                log.warning("queued_run_look_failed", error=repr(error))
                await asyncio.sleep(clock.about(1))
                continue
            for account_id in list(self._queued):
                try:
                    await self._wake(account_id)
                except Exception as error:
                    # The other accounts have their turn, too. But usually the database is down,
                    # and would fail for each of them.
                    self._queued.add(account_id)
                    log.warning(
                        "queued_run_wake_failed", account_id=str(account_id), error=repr(error)
                    )
                    await asyncio.sleep(clock.about(1))
            await is_set(self._changed, look_at - time.monotonic())

    async def _wake(self, account_id: UUID) -> None:
        room = self._shares.room(account_id) - self._woken[account_id]
        if room <= 0:
            return
        # A run that is queued meanwhile adds the account again.
        self._queued.discard(account_id)
        woken = await outbox.wake_queued_runs(self._db, account_id, room)
        if woken:
            self._wakes.announce([lane_of(QUEUED)])
            self._woken[account_id] += woken
        if woken == room:
            self._queued.add(account_id)
