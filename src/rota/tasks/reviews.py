"""Reviews: a person approves or rejects what a task waits for, or the review expires."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any
from uuid import UUID

from rota.auth.caller import Caller
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import AccountTransaction, Database
from rota.platform.schema import problems
from rota.tasks import queries, review_queries, transitions
from rota.tasks.errors import InvalidArguments, ItemsNotPending
from rota.tasks.model import Review, Task
from rota.tasks.schemas import Decision
from rota.tasks.states import APPROVAL_OF, Gate, TransitionRefused, Trigger, target_of
from rota.tasks.transitions import START, WAKE

Items = list[dict[str, Any]]

_NOT_WAITING = "It is not waiting for a decision."


class Reviews:
    def __init__(
        self,
        db: Database,
        *,
        weight_of: Callable[[str], float] = lambda tier: 1.0,
    ) -> None:
        self._db = db
        self._weight_of = weight_of

    async def get(self, caller: Caller, task_id: UUID | None) -> tuple[Task, list[Review]]:
        """The task and its reviews, newest first."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await queries.get(tx, task_id)
            return task, await review_queries.of_task(tx, task.id)

    async def approve(
        self, caller: Caller, task_id: UUID | None, decisions: Sequence[Decision] | None
    ) -> tuple[Task, list[Review]]:
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await queries.get_for_change(tx, task_id)
            reviews = await review_queries.of_task(tx, before.id)
            if before.status != "WAITING_APPROVAL":
                if reviews and reviews[0].state == "approved":
                    return before, reviews  # Another request approved it just before.
                raise TransitionRefused(
                    before.status, "RUNNING" if not before.hosted else "PENDING", _NOT_WAITING
                )
            items = approve_items(reviews[0], decisions, caller.user_id)
            await review_queries.save_items(tx, before.id, items)
            after = before
            if all_decided(items):
                after = await self._approve_gate(tx, caller, before, reviews[0].gate, items)
            reviews = await review_queries.of_task(tx, before.id)
        return after, reviews

    async def _approve_gate(
        self,
        tx: AccountTransaction,
        caller: Caller,
        before: Task,
        gate: Gate | None,
        items: Items,
    ) -> Task:
        """Lets the task continue after all items of its gate are decided."""
        changed = before
        if gate == "output":
            changed = replace(before, output=items[0]["arguments"]["output"])
        await transitions.close_review(tx, before, "approved")
        trigger = APPROVAL_OF[gate]
        target = target_of(before.status, trigger, hosted=before.hosted)
        assert target is not None
        after = await transitions.apply(tx, before, changed, target, trigger, event="task.approved")
        if after.status == "COMPLETED":
            # Clients may listen for only one of the two events, so both are sent.
            data = transitions.event_data(tx, before.status, after.status)
            await journal.append(tx, "task.completed", data, after.id)
        if before.hosted:
            if gate == "run":
                weight = self._weight_of(caller.tier)
                await transitions.enqueue(tx, START, after, weight=weight)
            else:
                await transitions.enqueue(tx, WAKE, after)
        return after

    async def reject(
        self, caller: Caller, task_id: UUID | None, reason: str | None, *, resume: bool
    ) -> tuple[Task, list[Review]]:
        """Rejects all pending items. The task is cancelled, or continues if `resume` is set."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await queries.get_for_change(tx, task_id)
            reviews = await review_queries.of_task(tx, before.id)
            if before.status != "WAITING_APPROVAL":
                resumed = before.status != "CANCELLED"
                if reviews and reviews[0].state == "rejected" and resumed == resume:
                    return before, reviews  # Another request rejected it just before.
                raise TransitionRefused(
                    before.status, "RUNNING" if resume else "CANCELLED", _NOT_WAITING
                )
            if resume and reviews[0].gate == "run":
                raise TransitionRefused(
                    before.status, "RUNNING", "Its run has not started, so it cannot resume."
                )
            items = reject_items(reviews[0], caller.user_id)
            await review_queries.save_items(tx, before.id, items)
            await transitions.close_review(tx, before, "rejected", reason)
            event = "task.rejected"
            if resume:
                after = await transitions.apply(
                    tx,
                    before,
                    before,
                    "RUNNING",
                    Trigger.REJECT_RESUME,
                    event=event,
                    reason=reason,
                )
                if before.hosted:
                    await transitions.enqueue(tx, WAKE, after)
            else:
                after = await transitions.cancel(
                    tx, before, before, Trigger.REJECT, event=event, reason=reason
                )
            reviews = await review_queries.of_task(tx, before.id)
        return after, reviews

    async def expire_due(self, limit: int) -> int:
        """Cancels up to `limit` tasks, of all accounts, whose review expired. Returns how many."""
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
            return False  # It was decided after the query that found it.
        reason = "No decision was made in time."
        await transitions.close_review(tx, task, "expired", reason)
        await transitions.cancel(tx, task, task, Trigger.EXPIRE, reason=reason)
        return True


def approve_items(review: Review, decisions: Sequence[Decision] | None, user_id: UUID) -> Items:
    """The items after approving the named ones, or all pending ones if none is named.

    The approval is valid only for the arguments that the returned item has.
    """
    if decisions is None:
        return [_decide(item, "approved", user_id) for item in review.items]
    edits = {decision.id: decision.arguments for decision in decisions}
    pending = {item["id"] for item in review.items if item["decision"] is None}
    if unknown := sorted(edits.keys() - pending):
        raise ItemsNotPending(unknown)
    return [
        _decide(_edit(item, edits[item["id"]]), "approved", user_id)
        if item["id"] in edits
        else item
        for item in review.items
    ]


def reject_items(review: Review, user_id: UUID | None) -> Items:
    """The items after rejecting all pending ones."""
    return [_decide(item, "rejected", user_id) for item in review.items]


def all_decided(items: Items) -> bool:
    return all(item["decision"] is not None for item in items)


def _edit(item: dict[str, Any], arguments: dict[str, Any] | None) -> dict[str, Any]:
    if arguments is None:
        return item
    schema = item["argumentsSchema"]
    if schema is not None and (found := problems(schema, arguments)):
        raise InvalidArguments(item["id"], found)
    return item | {"arguments": arguments}


def _decide(item: dict[str, Any], decision: str, user_id: UUID | None) -> dict[str, Any]:
    if item["decision"] is not None:
        return item
    return item | {
        "decision": decision,
        "decidedBy": ids.to_wire("user", user_id) if user_id else None,
        "decidedAt": clock.to_wire(clock.now()),
    }
