"""Deletes what an account no longer keeps, in small pieces.

A piece is one short transaction. It locks the account only if nobody else has, and reads again what
the account keeps. A pause that is several times as long follows, so requests of the account and of
others hardly notice it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from asyncpg import LockNotAvailableError

from rota.accounts import erasure as accounts
from rota.accounts import queries as account_queries
from rota.accounts.model import Retention as KeptDays
from rota.audit import checkpoints
from rota.credits import retention as credits_retention
from rota.data import metrics, queries
from rota.events import retention as events
from rota.platform import clock, idempotency
from rota.platform.db import AccountReader, AccountTransaction, Database, ReadConnection
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

# Deletes a piece: the number of rows, and whether there can be more.
Piece = Callable[[AccountTransaction], Awaitable[tuple[int, bool]]]


class LeaseLost(Exception):
    """Another worker applies retention now."""


class Busy(Exception):
    """Others have locked the account for too long."""


class Changed(Exception):
    """The account keeps other data than when its turn began."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What decides what a turn may delete."""

    now: datetime
    kept: KeptDays
    erased: bool
    disputed: bool


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
            turn = await _turn(tx, now)
        if turn is None:
            return {}
        before = {
            kind: now - timedelta(days=days)
            for kind, days in self._rules.in_effect(turn.kept).items()
            if days is not None
        }
        deleted = {"idempotency_keys": await self._repeat(account_id, _old_keys)}
        if not turn.erased and not turn.disputed:
            if "steps" in before:
                deleted["steps"] = await self._repeat(account_id, _OldSteps(before["steps"]), turn)
            if "tasks" in before:
                deleted["tasks"] = await self._tasks(account_id, before["tasks"], turn)
            if "events" in before:
                cut = _events(before["events"])
                deleted["events"] = await self._repeat(account_id, cut, turn)
        if "audit" in before and not turn.disputed:
            deleted["audit"] = await self._repeat(account_id, self._audit(before["audit"]), turn)
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

    async def _repeat(self, account_id: UUID, piece: Piece, turn: Turn | None = None) -> int:
        """Deletes one piece after the other, with pauses. With a turn, the account is locked, and
        the pieces end when its policy or a dispute changes what the turn may delete."""
        total, busy = 0, 0
        while True:
            started = time.perf_counter()
            try:
                async with self._db.removal(account_id) as tx:
                    done = await _checked(tx, piece, turn) if turn else await piece(tx)
            except LockNotAvailableError:
                done = None  # Others have locked the account.
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

    async def _tasks(self, account_id: UUID, before: datetime, turn: Turn) -> int:
        """Deletes old tasks. A task goes after its subtasks, which can be older than a parent that
        they got later. So this repeats until none goes."""
        total = 0
        while rows := await self._repeat(account_id, _OldTasks(before), turn):
            total += rows
        return total

    def _audit(self, before: datetime) -> Piece:
        async def cut(tx: AccountTransaction) -> tuple[int, bool]:
            rows = await checkpoints.cut(tx, self._signer, self._issuer, before, self._now(), ROWS)
            return rows, rows == ROWS

        return cut


async def _turn(tx: AccountReader, now: datetime) -> Turn | None:
    """What the account keeps now. None: there is no such account."""
    subject = await accounts.subject(tx)
    if subject is None:
        return None
    policy = await account_queries.policy(tx)
    disputed = await credits_retention.in_dispute(tx, now - DISPUTE_TIME)
    return Turn(now, policy.retention, subject.erased_at is not None, disputed)


async def _checked(tx: AccountTransaction, piece: Piece, turn: Turn) -> tuple[int, bool] | None:
    """Locks the account, so that no new policy comes in between, and deletes a piece. None: others
    have locked it."""
    if not await events.try_lock(tx):
        return None
    if await _turn(tx, turn.now) != turn:
        raise Changed
    return await piece(tx)


async def _old_keys(tx: AccountTransaction) -> tuple[int, bool]:
    rows = await idempotency.delete_old(tx, ROWS)
    if rows:
        tx.record("retention.applied", {"kind": "idempotencyKeys", "rows": rows})
    return rows, rows == ROWS


def _events(before: datetime) -> Piece:
    async def cut(tx: AccountTransaction) -> tuple[int, bool]:
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

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool]:
        raise NotImplementedError


class _OldTasks(_Paged):
    """Deletes tasks that are too old, from the newest on: a task goes after its forks and subtasks.
    Those in the same page go one after the other, so a page repeats while it deletes."""

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool]:
        self.begin()
        limit = self._after or first_from(self._before)
        page = await tasks.page(
            tx, UUID(int=0), self._before, TASKS, created_before=limit, newest_first=True
        )
        free = [each.id for each in page if each.finished and each.unneeded]
        needed = await credits_retention.held_among(tx, free)
        needed |= await schedules.listed_among(tx, free)
        chosen = [task_id for task_id in free if task_id not in needed]
        if chosen:
            await credits_retention.note_cut(tx, self._before + CHARGE_MARGIN)
            rows = await runs.delete_steps(tx, chosen, ROWS)
            if rows == ROWS:
                tx.record("retention.applied", {"kind": "tasks", "tasks": 0, "rows": rows})
                return rows, True
            rows += await tasks.delete(tx, chosen)
            details = {"kind": "tasks", "tasks": len(chosen), "rows": rows}
            tx.record("retention.applied", details)
            return rows, True
        if page:
            self._after = page[-1].id
        return 0, len(page) == TASKS


class _OldSteps(_Paged):
    """Deletes the steps of tasks that ended long ago. It remembers up to which task it has, so a
    task is looked at once."""

    async def __call__(self, tx: AccountTransaction) -> tuple[int, bool]:
        self.begin()
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
