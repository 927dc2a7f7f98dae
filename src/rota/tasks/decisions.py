"""What people decide: approving, rejecting, and what happens when nobody does in time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from rota.auth.caller import Caller
from rota.events import journal
from rota.events.fanout import Fanout
from rota.platform import clock
from rota.platform.db import Database, WriteConnection
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
        fanout: Fanout,
        *,
        weight_of: Callable[[str], float] = lambda tier: 1.0,
    ) -> None:
        self._db = db
        self._fanout = fanout
        self._weight_of = weight_of

    async def review_of(self, caller: Caller, task_id: UUID | None) -> tuple[Task, list[Review]]:
        if task_id is None:
            raise TaskNotFound
        async with self._db.snapshot(caller.account_id, caller.user_id) as connection:
            task = await queries.find(connection, caller.account_id, task_id)
            if task is None:
                raise TaskNotFound
            return task, await review_queries.of_task(connection, caller.account_id, task_id)

    async def approvals(
        self, caller: Caller, limit: int, offset: int
    ) -> tuple[list[tuple[Task, list[Review]]], int]:
        """Everything in the account that waits for a person, oldest first."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as connection:
            wanted = Filter(status="WAITING_APPROVAL")
            total = await queries.total(connection, caller.account_id, wanted)
            # The list is kept newest first, so the oldest are at its end.
            limit = max(0, min(limit, total - offset))
            tasks = await queries.page(
                connection, caller.account_id, wanted, limit, total - offset - limit, total
            )
            pending = await review_queries.pending(
                connection, caller.account_id, [task.id for task in tasks]
            )
        return [(task, pending.get(task.id, [])) for task in reversed(tasks)], total

    async def approve(
        self, caller: Caller, task_id: UUID | None, decisions: Sequence[Decision] | None
    ) -> tuple[Task, list[Review]]:
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.write(account_id, user_id) as connection:
            before = await for_change(connection, caller, task_id)
            reviews = await review_queries.of_task(connection, account_id, before.id)
            if before.status != "WAITING_APPROVAL":
                if reviews and reviews[0].state == "approved":
                    return before, reviews  # Somebody else said the same a moment ago.
                raise TransitionRefused(
                    before.status, "RUNNING" if not before.hosted else "PENDING", _NOT_WAITING
                )
            items = review.approve(reviews[0], decisions, user_id)
            await review_queries.save_items(connection, account_id, before.id, items)
            after = before
            if not review.still_waits(items):
                after = await self._approved(connection, caller, before, reviews[0].gate, items)
            reviews = await review_queries.of_task(connection, account_id, before.id)
        self._fanout.announce(account_id)
        return after, reviews

    async def _approved(
        self,
        connection: WriteConnection,
        caller: Caller,
        before: Task,
        gate: Gate | None,
        items: Items,
    ) -> Task:
        """Every item of the gate is decided, so the task goes on."""
        account_id, user_id = caller.account_id, caller.user_id
        wanted = before
        if gate == "output":
            wanted = replace(before, output=items[0]["arguments"]["output"])
        await transitions.close_review(connection, account_id, before, "approved", user_id)
        by = APPROVAL_OF[gate]
        target = target_of(before.status, by, hosted=before.hosted)
        assert target is not None
        after = await transitions.apply(
            *(connection, account_id, before, wanted, target, by),
            user_id=user_id,
            event="task.approved",
        )
        if after.status == "COMPLETED":
            # Approved and completed are two things to whoever listens for one of them.
            data = transitions.event_data(before.status, after.status, user_id)
            await journal.append(connection, account_id, "task.completed", data, after.id)
        if before.hosted:
            if gate == "run":
                weight = self._weight_of(caller.tier)
                await transitions.instruct(connection, account_id, START, after, weight=weight)
            else:
                await transitions.instruct(connection, account_id, NUDGE, after)
        return after

    async def reject(
        self, caller: Caller, task_id: UUID | None, reason: str | None, *, resume: bool
    ) -> tuple[Task, list[Review]]:
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.write(account_id, user_id) as connection:
            before = await for_change(connection, caller, task_id)
            reviews = await review_queries.of_task(connection, account_id, before.id)
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
            await review_queries.save_items(connection, account_id, before.id, items)
            await transitions.close_review(
                connection, account_id, before, "rejected", user_id, reason
            )
            if resume:
                after = await transitions.apply(
                    *(connection, account_id, before, before, "RUNNING", Trigger.REJECT_RESUME),
                    user_id=user_id,
                    event=event,
                    reason=reason,
                )
                if before.hosted:
                    await transitions.instruct(connection, account_id, NUDGE, after)
            else:
                after = await transitions.cancel(
                    *(connection, account_id, before, before, Trigger.REJECT, user_id),
                    event=event,
                    reason=reason,
                )
            reviews = await review_queries.of_task(connection, account_id, before.id)
        self._fanout.announce(account_id)
        return after, reviews

    async def expire_due(self, limit: int) -> int:
        """Cancels tasks for which nobody decided in time, of any account; tells how many."""
        async with self._db.relay() as connection:
            due = sorted(await review_queries.due(connection, limit))
        expired = 0
        for account_id, tasks in groupby(due, lambda found: found[0]):
            async with self._db.write(account_id) as connection:
                for _, task_id in tasks:
                    expired += await self._expire(connection, account_id, task_id)
            self._fanout.announce(account_id)
        return expired

    async def _expire(self, connection: WriteConnection, account_id: UUID, task_id: UUID) -> bool:
        task = await queries.find_for_change(connection, account_id, task_id)
        reviews = await review_queries.of_task(connection, account_id, task_id)
        if task is None or reviews[0].state != "pending" or reviews[0].expires_at > clock.now():
            return False  # Somebody decided since we looked.
        reason = "Nobody decided in time."
        await transitions.close_review(connection, account_id, task, "expired", None, reason)
        await transitions.cancel(
            connection, account_id, task, task, Trigger.EXPIRE, None, reason=reason
        )
        return True
