"""What people decide: approving, rejecting, and what happens when nobody does in time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from rota.auth.caller import Caller
from rota.events import journal
from rota.platform import clock
from rota.platform.db import AccountTransaction, Database
from rota.tasks import queries, review, review_queries, transitions
from rota.tasks.lookup import TaskNotFound, for_change
from rota.tasks.model import Review, Task
from rota.tasks.queries import Filter
from rota.tasks.review import Items
from rota.tasks.schemas import Decision
from rota.tasks.states import APPROVAL_OF, Gate, TransitionRefused, Trigger, target_of
from rota.tasks.transitions import NUDGE, START

_NOT_WAITING = "It does not wait for a person."


class Decisions:
    def __init__(
        self,
        db: Database,
        *,
        weight_of: Callable[[str], float] = lambda tier: 1.0,
    ) -> None:
        self._db = db
        self._weight_of = weight_of

    async def review_of(self, caller: Caller, task_id: UUID | None) -> tuple[Task, list[Review]]:
        if task_id is None:
            raise TaskNotFound
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await queries.find(tx, task_id)
            if task is None:
                raise TaskNotFound
            return task, await review_queries.of_task(tx, task_id)

    async def approvals(
        self, caller: Caller, limit: int, offset: int
    ) -> tuple[list[tuple[Task, list[Review]]], int]:
        """Everything in the account that waits for a person, oldest first."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            wanted = Filter(status="WAITING_APPROVAL")
            total = await queries.total(tx, wanted)
            # The list is kept newest first, so the oldest are at its end.
            limit = max(0, min(limit, total - offset))
            tasks = await queries.page(tx, wanted, limit, total - offset - limit, total)
            pending = await review_queries.pending(tx, [task.id for task in tasks])
        return [(task, pending.get(task.id, [])) for task in reversed(tasks)], total

    async def approve(
        self, caller: Caller, task_id: UUID | None, decisions: Sequence[Decision] | None
    ) -> tuple[Task, list[Review]]:
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.write(account_id, user_id) as tx:
            before = await for_change(tx, caller, task_id)
            reviews = await review_queries.of_task(tx, before.id)
            if before.status != "WAITING_APPROVAL":
                if reviews and reviews[0].state == "approved":
                    return before, reviews  # Somebody else said the same a moment ago.
                raise TransitionRefused(
                    before.status, "RUNNING" if not before.hosted else "PENDING", _NOT_WAITING
                )
            items = review.approve(reviews[0], decisions, user_id)
            await review_queries.save_items(tx, before.id, items)
            after = before
            if not review.still_waits(items):
                after = await self._approved(tx, caller, before, reviews[0].gate, items)
            reviews = await review_queries.of_task(tx, before.id)
        return after, reviews

    async def _approved(
        self,
        tx: AccountTransaction,
        caller: Caller,
        before: Task,
        gate: Gate | None,
        items: Items,
    ) -> Task:
        """Every item of the gate is decided, so the task goes on."""
        user_id = caller.user_id
        wanted = before
        if gate == "output":
            wanted = replace(before, output=items[0]["arguments"]["output"])
        await transitions.close_review(tx, before, "approved", user_id)
        by = APPROVAL_OF[gate]
        target = target_of(before.status, by, hosted=before.hosted)
        assert target is not None
        after = await transitions.apply(
            tx,
            before,
            wanted,
            target,
            by,
            user_id=user_id,
            event="task.approved",
        )
        if after.status == "COMPLETED":
            # Approved and completed are two things to whoever listens for one of them.
            data = transitions.event_data(before.status, after.status, user_id)
            await journal.append(tx, "task.completed", data, after.id)
        if before.hosted:
            if gate == "run":
                weight = self._weight_of(caller.tier)
                await transitions.instruct(tx, START, after, weight=weight)
            else:
                await transitions.instruct(tx, NUDGE, after)
        return after

    async def reject(
        self, caller: Caller, task_id: UUID | None, reason: str | None, *, resume: bool
    ) -> tuple[Task, list[Review]]:
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.write(account_id, user_id) as tx:
            before = await for_change(tx, caller, task_id)
            reviews = await review_queries.of_task(tx, before.id)
            if before.status != "WAITING_APPROVAL":
                resumed = before.status != "CANCELLED"
                if reviews and reviews[0].state == "rejected" and resumed == resume:
                    return before, reviews  # Somebody else said the same a moment ago.
                raise TransitionRefused(
                    before.status, "RUNNING" if resume else "CANCELLED", _NOT_WAITING
                )
            if resume and reviews[0].gate == "run":
                raise TransitionRefused(
                    before.status, "RUNNING", "Its run has not begun, so there is none to resume."
                )
            event = "task.rejected"
            items = review.reject(reviews[0], user_id)
            await review_queries.save_items(tx, before.id, items)
            await transitions.close_review(tx, before, "rejected", user_id, reason)
            if resume:
                after = await transitions.apply(
                    tx,
                    before,
                    before,
                    "RUNNING",
                    Trigger.REJECT_RESUME,
                    user_id=user_id,
                    event=event,
                    reason=reason,
                )
                if before.hosted:
                    await transitions.instruct(tx, NUDGE, after)
            else:
                after = await transitions.cancel(
                    tx,
                    before,
                    before,
                    Trigger.REJECT,
                    user_id,
                    event=event,
                    reason=reason,
                )
            reviews = await review_queries.of_task(tx, before.id)
        return after, reviews

    async def expire_due(self, limit: int) -> int:
        """Cancels tasks for which nobody decided in time, of any account; tells how many."""
        async with self._db.relay() as connection:
            due = sorted(await review_queries.due(connection, limit))
        expired = 0
        for account_id, tasks in groupby(due, lambda found: found[0]):
            async with self._db.write(account_id) as tx:
                for _, task_id in tasks:
                    expired += await self._expire(tx, task_id)
        return expired

    async def _expire(self, tx: AccountTransaction, task_id: UUID) -> bool:
        task = await queries.find_for_change(tx, task_id)
        reviews = await review_queries.of_task(tx, task_id)
        if task is None or reviews[0].state != "pending" or reviews[0].expires_at > clock.now():
            return False  # Somebody decided since we looked.
        reason = "Nobody decided in time."
        await transitions.close_review(tx, task, "expired", None, reason)
        await transitions.cancel(tx, task, task, Trigger.EXPIRE, None, reason=reason)
        return True
