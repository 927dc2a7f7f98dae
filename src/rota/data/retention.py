"""Deletes what an account no longer keeps, in small pieces.

A piece is one short transaction. It locks the account only if nobody else has. A pause that is
several times as long follows, so requests of the account and of others hardly notice it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from asyncpg import LockNotAvailableError

from rota.accounts import erasure as accounts
from rota.accounts import queries as account_queries
from rota.audit import checkpoints
from rota.credits import retention as credits_retention
from rota.data import metrics, queries
from rota.events import retention as events
from rota.platform import clock, idempotency
from rota.platform.db import AccountTransaction, Database, ReadConnection
from rota.platform.ids import first_from
from rota.platform.signatures import Signer
from rota.policies.retention import RetentionRules
from rota.runs import retention as runs
from rota.schedules import queries as schedules
from rota.tasks import retention as tasks

log = structlog.get_logger()

# Rows that a transaction looks at: tasks have many rows of other tables.
TASKS, ROWS = 100, 1_000
# The pause after a piece, as a multiple of its duration. Nobody waits for retention.
PAUSE = 3
# How often a piece waits for an account that others have locked, before the next account.
MAX_BUSY = 20
BUSY_S = 0.25
# A payer's bank can ask for evidence this long.
DISPUTE_TIME = timedelta(days=180)
# A charge can come a moment after the end of its task.
CHARGE_MARGIN = timedelta(days=1)

# Deletes a piece: the number of rows, and whether there can be more. None: the account is locked.
Piece = Callable[[AccountTransaction], Awaitable[tuple[int, bool] | None]]


class LeaseLost(Exception):
    """Another worker applies retention now."""


class Busy(Exception):
    """Others have locked the account for too long."""


class Retention:
    def __init__(
        self,
        db: Database,
        signer: Signer,
        issuer: str,
        *,
        rules: RetentionRules,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._db = db
        self._signer = signer
        self._issuer = issuer
        self._rules = rules
        self._now = now
        # Renews the worker's lease. False: another worker has it.
        self._renew: Callable[[], Awaitable[bool]] | None = None

    async def apply(
        self, account_id: UUID, renew: Callable[[], Awaitable[bool]] | None = None
    ) -> dict[str, int]:
        """Deletes everything of an account that is too old. The number of rows of each kind."""
        self._renew = renew
        now = self._now()
        async with self._db.read(account_id) as tx:
            subject = await accounts.subject(tx)
            if subject is None:
                return {}
            policy = await account_queries.policy(tx)
            disputed = await credits_retention.in_dispute(tx, now - DISPUTE_TIME)
        before = {
            kind: now - timedelta(days=days)
            for kind, days in self._rules.in_effect(policy.retention).items()
            if days is not None
        }
        deleted = {"idempotency_keys": await self._repeat(account_id, _old_keys)}
        if subject.erased_at is None and not disputed:
            if "steps" in before:
                deleted["steps"] = await self._steps(account_id, before["steps"])
            if "tasks" in before:
                deleted["tasks"] = await self._tasks(account_id, before["tasks"])
            if "events" in before:
                cut = _events(before["events"])
                deleted["events"] = await self._repeat(account_id, cut)
        if "audit" in before and not disputed:
            deleted["audit"] = await self._repeat(account_id, self._audit(before["audit"]))
        for kind, rows in deleted.items():
            metrics.DELETED.labels(kind).inc(rows)
        return {kind: rows for kind, rows in deleted.items() if rows}

    async def idle(self, connection: ReadConnection, account_ids: Sequence[UUID]) -> set[UUID]:
        """Those of the accounts that have nothing that a turn could delete: they keep everything,
        and have no old idempotency keys. Needs a relay's transaction."""
        if not account_ids:
            return set()
        policies = await account_queries.retention_of(connection, account_ids)
        keep = {
            account_id
            for account_id in account_ids
            if account_id not in policies
            or not any(self._rules.in_effect(policies[account_id]).values())
        }
        return keep - await idempotency.with_old(connection, account_ids)

    async def _repeat(self, account_id: UUID, piece: Piece) -> int:
        """Deletes one piece after the other, with pauses."""
        total, busy = 0, 0
        while True:
            started = time.perf_counter()
            try:
                async with self._db.removal(account_id) as tx:
                    done = await piece(tx)
            except LockNotAvailableError:
                done = None
                if isinstance(piece, _Paged):
                    piece.undo()
            if done is None:
                busy += 1
                if busy >= MAX_BUSY:
                    raise Busy
                await asyncio.sleep(BUSY_S)
                continue
            busy = 0
            rows, more = done
            total += rows
            if not more:
                return total
            if self._renew is not None and not await self._renew():
                raise LeaseLost
            await asyncio.sleep(PAUSE * (time.perf_counter() - started))

    async def _tasks(self, account_id: UUID, before: datetime) -> int:
        """Deletes old tasks. A task goes after its subtasks, so this repeats until none goes."""
        total = 0
        while rows := await self._repeat(account_id, _OldTasks(before)):
            total += rows
        return total

    async def _steps(self, account_id: UUID, before: datetime) -> int:
        return await self._repeat(account_id, _OldSteps(before))

    def _audit(self, before: datetime) -> Piece:
        async def cut(tx: AccountTransaction) -> tuple[int, bool]:
            rows = await checkpoints.cut(tx, self._signer, self._issuer, before, self._now(), ROWS)
            return rows, rows == ROWS

        return cut


async def _old_keys(tx: AccountTransaction) -> tuple[int, bool]:
    rows = await idempotency.delete_old(tx, ROWS)
    if rows:
        tx.record("retention.applied", {"kind": "idempotencyKeys", "rows": rows})
    return rows, rows == ROWS


def _events(before: datetime) -> Piece:
    async def cut(tx: AccountTransaction) -> tuple[int, bool] | None:
        if not await events.try_lock(tx):
            return None
        found = await events.oldest(tx, before, ROWS)
        running = await tasks.open_among(tx, list({e.task_id for e in found if e.task_id}))
        through = 0
        for event in found:
            if event.task_id in running:
                break
            through = event.sequence
        if not through:
            return 0, False
        rows = await events.cut(tx, through)
        tx.record("retention.applied", {"kind": "events", "rows": rows, "through": through})
        return rows, rows == ROWS

    return cut


class _Paged:
    """A piece that remembers where the one before it stopped."""

    def __init__(self, before: datetime) -> None:
        self._before = before
        self._after: UUID | None = None
        # Whether all tasks so far were old enough.
        self._settled = True
        self._saved: tuple[UUID | None, bool] = (None, True)

    def begin(self) -> None:
        self._saved = (self._after, self._settled)

    def undo(self) -> None:
        """The transaction of the last piece was rolled back."""
        self._after, self._settled = self._saved

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool] | None:
        raise NotImplementedError


class _OldTasks(_Paged):
    """Deletes tasks that are too old, from the oldest on."""

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool] | None:
        self.begin()
        if not await events.try_lock(tx):
            return None
        after = self._after or UUID(int=0)
        page = await tasks.page(tx, after, self._before, TASKS, created_before=None)
        free = [each.id for each in page if each.finished and each.unneeded]
        needed = await credits_retention.held_among(tx, free)
        needed |= await schedules.listed_among(tx, free)
        chosen = [task_id for task_id in free if task_id not in needed]
        rows = 0
        if chosen:
            await credits_retention.note_cut(tx, self._before + CHARGE_MARGIN)
            rows = await runs.delete_steps(tx, chosen, ROWS)
            if rows == ROWS:
                tx.record("retention.applied", {"kind": "tasks", "tasks": 0, "rows": rows})
                return rows, True
            rows += await tasks.delete(tx, chosen)
            details = {"kind": "tasks", "tasks": len(chosen), "rows": rows}
            tx.record("retention.applied", details)
        if page:
            self._after = page[-1].id
        return rows, len(page) == TASKS


class _OldSteps(_Paged):
    """Deletes the steps of tasks that ended long ago. It remembers up to which task it has, so a
    task is looked at once."""

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool] | None:
        self.begin()
        if not await events.try_lock(tx):
            return None
        if self._after is None:
            self._after = await queries.steps_before(tx)
            # A task that was retried has steps again.
            again = await runs.first_with_steps(tx, self._after)
            if again is not None:
                self._after = UUID(int=again.int - 1)
        limit = first_from(self._before)
        page = await tasks.page(tx, self._after, self._before, TASKS, created_before=limit)
        finished = [each.id for each in page if each.finished]
        held = await credits_retention.held_among(tx, finished)
        chosen = [task_id for task_id in finished if task_id not in held]
        rows = 0
        if chosen:
            rows = await runs.delete_steps(tx, chosen, ROWS)
        if rows:
            await credits_retention.note_cut(tx, self._before + CHARGE_MARGIN)
            tx.record("retention.applied", {"kind": "steps", "rows": rows})
        if rows == ROWS:
            return rows, True  # The same tasks again.
        if page:
            self._after = page[-1].id
            await self._remember(tx, [each.id for each in page], set(chosen))
        return rows, len(page) == TASKS

    async def _remember(self, tx: AccountTransaction, page: list[UUID], done: set[UUID]) -> None:
        last = None
        for task_id in page:
            if not self._settled or task_id not in done:
                self._settled = False
                break
            last = task_id
        if last is not None:
            await queries.set_steps_before(tx, last)
