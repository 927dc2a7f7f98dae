"""Erases what a stopped account has, one stage after the other. Workers do this.

Every stage can be repeated: it looks for what is left. So a worker that dies loses nothing, and
another one continues. A peer that fails delays its own stage only: the next ones do not wait for
the payment processor.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import structlog
from redis.asyncio import Redis

from rota.accounts import erasure as accounts
from rota.audit import checkpoints
from rota.audit.verify import ERASED as ERASED_ACTION
from rota.auth import erasure as credentials
from rota.credits import retention as credits_retention
from rota.data import metrics, queries, tables
from rota.data.queries import Erasure, Stage
from rota.events import journal
from rota.events import retention as events
from rota.events.live_text import key_of
from rota.payments.port import PaymentFailed, Processor
from rota.plans.erasure import end_subscriptions
from rota.platform import clock, ids
from rota.platform.db import Database
from rota.platform.telemetry import without_secrets
from rota.platform.temporal import Temporal
from rota.runs import retention as runs
from rota.tasks import retention as tasks

log = structlog.get_logger()

# Rows of a transaction, and runs that are deleted in Temporal at the same time.
TASKS, HOLDS, ROWS = 100, 50, 1_000
AT_ONCE = 8
# How long a worker has an erasure before another takes it over. Every piece renews it.
LEASE_S = 60.0
# A request that was accepted before can still write. The longest are calls of tools.
CONFIRM_S = 600.0
MAX_BACKOFF_S = 600.0
# How often Temporal is asked to delete histories, for about two minutes.
HISTORY_ATTEMPTS = 7
MAX_ERROR_LENGTH = 500

_AFTER: dict[Stage, Stage] = {
    "companies": "holds",
    "holds": "plans",
    "plans": "tasks",
    "tasks": "tables",
    "tables": "person",
    "person": "audit",
    "audit": "confirm",
}


class Erasing:
    def __init__(
        self,
        db: Database,
        temporal: Temporal,
        redis: Redis,
        processor: Processor,
        *,
        leave_companies: Callable[[UUID], Awaitable[None]],
        confirm_s: float = CONFIRM_S,
    ) -> None:
        self._db = db
        self._temporal = temporal
        self._redis = redis
        self._processor = processor
        self._leave_companies = leave_companies
        self._confirm_s = confirm_s

    async def step(self) -> bool:
        """Continues one erasure that is due. Returns whether there was one."""
        erasure = await queries.claim_erasure(self._db, LEASE_S)
        if erasure is None:
            return False
        try:
            await self.run(erasure)
        except Exception as error:
            await self._failed(erasure, error)
        return True

    async def run(self, erasure: Erasure) -> None:
        """Continues from the stage that was saved, until it has to wait."""
        stages: dict[Stage, Callable[[Erasure], Awaitable[None]]] = {
            "companies": self._companies,
            "holds": self._holds,
            "plans": self._plans,
            "tasks": self._tasks,
            "tables": self._tables,
            "person": self._person,
            "audit": self._audit,
        }
        stage = erasure.stage
        if stage == "ending":
            await self._end(erasure)
            return
        while stage != "confirm":
            await stages[stage](erasure)
            stage = _AFTER[stage]
            await self._save(erasure, stage)
        await self._confirm(erasure)

    async def _failed(self, erasure: Erasure, error: Exception) -> None:
        """The next attempt continues where this one stopped."""
        metrics.ERASURE_FAILURES.labels(erasure.stage).inc()
        account = ids.to_wire("acct", erasure.account_id)
        log.warning("erasure_failed", account=account, error=repr(error))
        text = without_secrets(f"{type(error).__name__}: {error}")[:MAX_ERROR_LENGTH]
        delay_s = min(MAX_BACKOFF_S, 2.0 ** min(erasure.attempts, 10))
        async with self._db.removal(erasure.account_id) as tx:
            await queries.fail(tx, text, clock.about(delay_s))

    async def _save(
        self, erasure: Erasure, stage: Stage, rows: int = 0, due_in_s: float = LEASE_S
    ) -> None:
        async with self._db.removal(erasure.account_id) as tx:
            await queries.progress(tx, stage, rows, due_in_s=due_in_s)

    async def _companies(self, erasure: Erasure) -> None:
        """A person leaves the companies that the request could not leave."""
        if erasure.kind == "personal":
            await self._leave_companies(erasure.account_id)

    async def _holds(self, erasure: Erasure) -> None:
        """Money that was set aside for runs returns to the balance."""
        while True:
            async with self._db.removal(erasure.account_id, lock_s=5) as tx:
                await journal.lock_account(tx)
                released = await credits_retention.release_some(tx, HOLDS)
                await queries.progress(tx, "holds", 0, due_in_s=LEASE_S)
            if not released:
                return

    async def _plans(self, erasure: Erasure) -> None:
        """Ends subscriptions. If the processor fails, it is asked again at the end."""
        try:
            await end_subscriptions(self._db, self._processor, erasure.account_id)
        except PaymentFailed as error:
            account = ids.to_wire("acct", erasure.account_id)
            log.warning("erasure_plan_not_ended", account=account, error=error.message)

    async def _tasks(self, erasure: Erasure) -> None:
        """Deletes tasks, after their histories in Temporal and their live texts in Redis."""
        while True:
            async with self._db.removal(erasure.account_id) as tx:
                now = clock.now()
                # Also a task that another machine's clock has dated later.
                last = ids.first_from(now + timedelta(days=365))
                page = await tasks.page(tx, UUID(int=0), now, TASKS, created_before=last)
            if not page:
                return
            for start in range(0, len(page), AT_ONCE):
                await asyncio.gather(
                    *[
                        self._forget_runs(erasure, each.id, each.run)
                        for each in page[start : start + AT_ONCE]
                        if each.hosted
                    ]
                )
            task_ids = [each.id for each in page]
            await self._redis.delete(*map(key_of, task_ids))
            more = True
            while more:
                async with self._db.removal(erasure.account_id, lock_s=5) as tx:
                    await journal.lock_account(tx)
                    await credits_retention.note_cut(tx, None)
                    rows = await runs.delete_steps(tx, task_ids, ROWS)
                    more = rows == ROWS
                    if not more:
                        rows += await tasks.delete(tx, task_ids)
                    await queries.progress(tx, "tasks", rows, due_in_s=LEASE_S)

    async def _forget_runs(self, erasure: Erasure, task_id: UUID, newest: int) -> None:
        """Histories have IDs only. If Temporal keeps failing, the texts do not wait for them."""
        for run in range(1, newest + 1):
            try:
                await runs.delete_history(self._temporal, task_id, run)
            except Exception as error:
                if erasure.attempts < HISTORY_ATTEMPTS:
                    raise
                task = ids.to_wire("task", task_id)
                log.error("erasure_history_delete_failed", task=task, run=run, error=repr(error))

    async def _tables(self, erasure: Erasure) -> None:
        """Deletes every row of the tables that keep nothing."""
        for table in tables.ERASED:
            rows = ROWS
            while rows == ROWS:
                async with self._db.removal(erasure.account_id, lock_s=5) as tx:
                    rows = await queries.delete_rows(tx, table.name, table.owner, ROWS)
                    if rows:
                        await queries.progress(tx, "tables", rows, due_in_s=LEASE_S)

        async with self._db.removal(erasure.account_id, lock_s=5) as tx:
            await events.drop_instructions(tx)

    async def _person(self, erasure: Erasure) -> None:
        if erasure.kind != "personal":
            return
        async with self._db.removal(erasure.account_id, erasure.account_id) as tx:
            rows = await credentials.delete_sessions(tx) + await accounts.delete_user(tx)
            await queries.progress(tx, "person", rows, due_in_s=LEASE_S)

    async def _audit(self, erasure: Erasure) -> None:
        """Deletes what is private in the trail. An entry at the end says so."""
        after: int | None = 0
        while after is not None:
            async with self._db.removal(erasure.account_id) as tx:
                after = await checkpoints.erase_details(tx, after, ROWS)
                await queries.progress(tx, "audit", 0, due_in_s=LEASE_S)
        async with self._db.removal(erasure.account_id) as tx:
            tx.record(ERASED_ACTION, {})

    async def _confirm(self, erasure: Erasure) -> None:
        """Repeats everything after a while, for what late requests have written."""
        left_s = self._confirm_s - (clock.now() - erasure.requested_at).total_seconds()
        if left_s > 0:
            await self._save(erasure, "confirm", due_in_s=left_s)
            return
        for stage in (
            self._companies,
            self._holds,
            self._tasks,
            self._tables,
            self._person,
            self._audit,
        ):
            await stage(erasure)
        await self._save(erasure, "ending")
        await self._end(erasure)

    async def _end(self, erasure: Erasure) -> None:
        """Raises while the processor fails: the erasure has not ended before."""
        await end_subscriptions(self._db, self._processor, erasure.account_id)
        async with self._db.removal(erasure.account_id) as tx:
            await queries.finish(tx)
            account = ids.to_wire("acct", erasure.account_id)
        log.info("account_erased", account=account)
