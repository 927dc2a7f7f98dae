"""Creates the tasks of due schedules. Every worker does this.

One transaction creates the task and moves the schedule to its next time, so no time is lost or runs
twice, whichever worker dies. A schedule that missed several times, because no worker was running,
creates one task, for the newest of them.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import structlog
from prometheus_client import Counter, Histogram

from rota.accounts import queries as accounts
from rota.auth import queries as credentials
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import ApiError
from rota.schedules import queries, times
from rota.schedules.errors import OwnerCannotAct
from rota.schedules.model import Outcome, Schedule
from rota.schedules.service import planned, record_shapers, remember_task, task_body
from rota.tasks import creation
from rota.tasks import queries as tasks
from rota.tasks.creation import TaskCreation

log = structlog.get_logger()

# Found at a time, and how many of them one account can have. A sweep takes all that are due, and
# looks again after each page, so that what becomes due in the meantime waits for few of an account.
PAGE, OWN = 500, 2
# For one schedule. Usually it takes milliseconds, unless others have locked the account.
LIMIT_S = 5.0
# After such a failure, sweeps skip the account for this long.
LEAVE_ALONE_S = 30.0
# How long a worker sleeps at most. A new schedule can be due sooner than all others.
POLL_EVERY_S = 5.0
# How soon a time that waits for an earlier task is looked at again, and one that failed
# unexpectedly.
WAIT, MAX_WAIT, RECOVER = timedelta(seconds=5), timedelta(minutes=5), timedelta(seconds=30)

RUNS = Counter("rota_schedule_times_total", "Times of schedules that workers handled.", ["outcome"])
for _outcome in ("created", "skipped", "failed"):
    RUNS.labels(_outcome)
DELAY = Histogram(
    "rota_schedule_delay_seconds",
    "Time from a schedule's time to its task.",
    buckets=(0.1, 0.5, 1, 5, 15, 60, 300, 3600),
)


class Sweep:
    def __init__(
        self, db: Database, creation: TaskCreation, *, now: Callable[[], datetime] = clock.now
    ) -> None:
        self._db = db
        self._creation = creation
        self._now = now
        # When the next schedule is due, as of the last look.
        self._next_check: datetime | None = None

    async def run(self) -> None:
        """Handles schedules as they become due, until it is cancelled."""
        while True:
            pause_s = POLL_EVERY_S
            try:
                await self.handle_due()
                pause_s = self._until_next()
            except Exception as error:
                log.exception("schedule_sweep_failed", error=repr(error))
            await asyncio.sleep(pause_s)

    async def handle_due(self) -> int:
        """Handles all schedules that are due. Returns how many."""
        handled = 0
        # Accounts that are left alone until then: others must not wait for them on every page.
        left_alone: dict[UUID, float] = {}
        while True:
            now = self._now()
            async with self._db.relay() as connection:
                left_alone = {a: end for a, end in left_alone.items() if end > time.monotonic()}
                due = await queries.due(connection, now, PAGE, OWN, left_alone)
                self._next_check = await queries.next_check(connection, now)
            done = 0
            for account_id, schedule_id in due:
                if account_id not in left_alone:
                    done += await self._handle_safely(account_id, schedule_id, left_alone)
            handled += done
            if not done:
                return handled

    def _until_next(self) -> float:
        """How long to sleep, in seconds."""
        poll_s = clock.about(POLL_EVERY_S)
        if self._next_check is None:
            return poll_s
        return min(max(0.0, (self._next_check - self._now()).total_seconds()), poll_s)

    async def _handle_safely(
        self, account_id: UUID, schedule_id: UUID, left_alone: dict[UUID, float]
    ) -> bool:
        """A failure must not delay other schedules, nor be repeated all the time."""
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._handle(account_id, schedule_id)
        except Exception as error:
            log.exception("schedule_failed", account_id=str(account_id), schedule=str(schedule_id))
            if isinstance(error, TimeoutError | asyncpg.LockNotAvailableError):
                # Usually somebody has locked it.
                left_alone[account_id] = time.monotonic() + LEAVE_ALONE_S
        try:
            async with asyncio.timeout(LIMIT_S), self._db.write(account_id) as tx:
                await queries.postpone(tx, schedule_id, self._now() + RECOVER)
        except Exception:
            # Such as an account that has no free connection. The next sweep tries again.
            log.exception("schedule_not_postponed", account_id=str(account_id))
            left_alone[account_id] = time.monotonic() + LEAVE_ALONE_S
            return False
        return True

    async def _handle(self, account_id: UUID, schedule_id: UUID) -> bool:
        """Whether the schedule was due. Another worker can have handled it by now."""
        async with self._db.write(account_id) as tx:
            # Those before it on the page can have taken minutes.
            now = self._now()
            schedule = await queries.claim_due(tx, schedule_id, now)
            if schedule is None or schedule.next_at is None:
                return False
            error: ApiError | None = None
            outcome: Outcome | None
            try:
                outcome = await self._create_task(tx, schedule)
            except ApiError as refused:
                # Nothing was written. The next time of the schedule is the next attempt.
                outcome, error = "failed", refused
            if outcome is None:
                # The pause is a tenth of the time it has waited so far, between WAIT and MAX_WAIT.
                wait = min(max(WAIT, (now - schedule.next_at) / 10), MAX_WAIT)
                await queries.postpone(tx, schedule.id, now + wait)
                return True
            due_at = times.newest(schedule.cron, schedule.time_zone, schedule.next_at, now)
            after = _after_time(schedule, now, due_at, outcome, error)
            await queries.update(tx, after)
            details = {"outcome": outcome, "dueAt": clock.to_wire(due_at)}
            tx.record("schedule.ran", details, ids.to_wire("sched", after.id))
            if error is not None:
                await _record_failure(tx, after)
        RUNS.labels(outcome).inc()
        if outcome == "created":
            DELAY.observe((self._now() - due_at).total_seconds())
        return True

    async def _create_task(self, tx: AccountTransaction, schedule: Schedule) -> Outcome | None:
        """What became of the time. None if it waits until an earlier task ends."""
        if not await credentials.may_act(tx, schedule.saved_by, schedule.saved_with, "tasks:write"):
            raise OwnerCannotAct
        earlier = await queries.tasks_of(tx, schedule.id)
        if await tasks.open_among(tx, earlier):
            return "skipped" if schedule.overlap == "skip" else None
        tier = await accounts.tier(tx)
        task = await creation.create_requested(
            tx, self._creation, task_body(schedule), tier, created_by=schedule.saved_by
        )
        await remember_task(tx, schedule.id, task.id)
        await record_shapers(tx, schedule, task.id)
        return "created"


def _after_time(
    schedule: Schedule, now: datetime, due_at: datetime, outcome: Outcome, error: ApiError | None
) -> Schedule:
    """The schedule after one of its times."""
    after = replace(planned(schedule, now), last_due_at=due_at, last_outcome=outcome)
    if error is not None:
        after = replace(after, last_error={"code": str(error.code), "message": error.message})
    elif outcome == "created":
        after = replace(after, last_error=None)
    if isinstance(error, OwnerCannotAct):
        # No later time would succeed either.
        after = replace(after, paused=True, next_at=None, check_at=None)
    return after


async def _record_failure(tx: AccountTransaction, schedule: Schedule) -> None:
    data = {"scheduleId": ids.to_wire("sched", schedule.id), "error": schedule.last_error}
    await journal.append(tx, "schedule.failed", data)
