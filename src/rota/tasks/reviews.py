"""Reviews: a person approves or rejects what a task waits for, or the review expires.

A decision names the review that was shown, by number and digest. If another one waits, nothing is
decided. A decision that names no review decides what waits, except that the same caller who repeats
it within a few seconds means the same decision, and not the next review.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from rota.auth.caller import Caller
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http.schemas import Body
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.schema import SchemaChecks
from rota.tasks import (
    cancellation,
    edits,
    gates,
    queries,
    review_checks,
    review_items,
    review_list_queries,
    review_queries,
    review_reading,
    review_schemas,
    schemas,
    seals,
    shaping,
    transitions,
)
from rota.tasks.edits import CheckedEdits, NotChecked
from rota.tasks.errors import NothingWaits, NotWaiting, ReviewStale
from rota.tasks.model import Actor, Review, Task
from rota.tasks.questions import is_question
from rota.tasks.review_items import Items
from rota.tasks.review_reading import TaskReviews
from rota.tasks.review_schemas import ApproveTask, DecisionResponse, RejectTask
from rota.tasks.states import APPROVAL_OF, Status, TransitionRefused, Trigger, target_of
from rota.tasks.transitions import START, WAKE

log = structlog.get_logger()

# Reviews of one account that expire in one transaction, which locks the account.
EXPIRE_AT_ONCE = 50


class Reviews:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        schema_checks: SchemaChecks,
        *,
        weight_of: Callable[[str], float],
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._schema_checks = schema_checks
        self._weight_of = weight_of

    async def get(self, caller: Caller, task_id: UUID | None) -> TaskReviews:
        """The task and its reviews, newest first."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await review_reading.read(tx, await queries.get(tx, task_id))

    async def snooze(
        self, caller: Caller, task_id: UUID | None, until: datetime | None
    ) -> datetime | None:
        """Puts off a decision for the caller alone, or brings it back. The deadline stays."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            task = await queries.get_for_change(tx, task_id)
            if task.status != "WAITING_APPROVAL":
                raise NothingWaits(task)
            resource = ids.to_wire("task", task.id)
            if until is None:
                await review_list_queries.delete_snooze(tx, task.id)
                tx.record("task.unsnoozed", {}, resource)
                return None
            if until <= clock.now():
                raise ValidationFailed.of(FieldError("until", "must be in the future"))
            review = (await review_queries.pending(tx, [task.id]))[task.id]
            until = min(until, review.expires_at)
            await review_list_queries.save_snooze(tx, task.id, review.number, until)
            tx.record("task.snoozed", {"until": clock.to_wire(until)}, resource)
            return until

    async def approve(
        self, caller: Caller, task_id: UUID | None, body: ApproveTask, key: str | None
    ) -> Outcome:
        request = (f"POST /api/tasks/{task_id}/approve", body)
        checked = await edits.check(
            self._db, self._schema_checks, caller.account_id, task_id, body.decisions or ()
        )
        return await self._once(
            caller, key, request, lambda tx: self._approve(tx, caller, task_id, body, checked)
        )

    async def _once(
        self,
        caller: Caller,
        key: str | None,
        request: tuple[str, Body],
        decide: Callable[[AccountTransaction], Awaitable[TaskReviews]],
    ) -> Outcome:
        """Makes the decision, unless the idempotency key has a response."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:

            async def work() -> DecisionResponse:
                decided = await decide(tx)
                return DecisionResponse(
                    task=schemas.Task.of(decided.task), review=review_schemas.Review.of(decided)
                )

            return await self._idempotency.once(tx, key, request, 200, work)

    async def _approve(
        self,
        tx: AccountTransaction,
        caller: Caller,
        task_id: UUID | None,
        body: ApproveTask,
        checked: CheckedEdits,
    ) -> TaskReviews:
        found = await review_reading.read(tx, await queries.get_for_change(tx, task_id))
        before, reviews = found.task, found.reviews
        await review_checks.check_approver(tx)
        by = await review_checks.decider(tx, caller)
        named = [decision.id for decision in body.decisions or ()]
        if before.status != "WAITING_APPROVAL":
            asked = review_checks.for_people(reviews)
            if review_checks.was_approved(before, asked, body):
                asked_about = replace(found, reviews=asked)
                await review_checks.check_second_person(tx, asked_about, named, by)
                await review_checks.add_answer(tx, before, asked[0], by, "approved", named)
                return found
            review_checks.check_shown(found, body.review)
            raise NotWaiting(before, review_checks.wire(found))
        if review_checks.is_repeated_edit(found, by, body):
            return found
        review_checks.check_shown(found, body.review)
        review_checks.check_not_expired(found)
        await review_checks.check_connected(tx, reviews[0], named)
        if body.review is None:
            review_checks.check_not_repeated(found, by, "approved", named)
        if not named:
            review_checks.check_edits_seen(found, by)
        try:
            items = review_items.approve_items(reviews[0], body.decisions, checked, by)
        except NotChecked:
            raise ReviewStale(review_checks.wire(found)) from None
        edited = review_items.edited_items(reviews[0], items, by)
        if edited:
            await shaping.record(tx, before.id, "edited")
            if found.second_person is not None:
                await review_checks.add_edit(tx, before, reviews[0], by, body)
                return await self._replace_edited(tx, before, reviews[0], edited)
        await review_checks.check_second_person(tx, found, named, by)
        review_checks.check_accepted(found, named)
        await self._record_answers(tx, before, reviews[0], items)
        await review_checks.add_answer(tx, before, reviews[0], by, "approved", named)
        await review_queries.save_items(tx, before.id, items)
        if not review_items.all_decided(items):
            # What waits still has to say how the caller shaped it, perhaps by an answer.
            return await review_reading.read(tx, before)
        after = await self._approve_gate(tx, caller, before, reviews[0], items, by)
        return replace(found, task=after, reviews=await review_queries.of_task(tx, before.id))

    async def _record_answers(
        self, tx: AccountTransaction, task: Task, review: Review, items: Items
    ) -> None:
        """The agent works with the answers to its questions, so they shape the task. An approval
        without an answer is one too: the agent can read it as a yes."""
        for before, after in zip(review.items, items, strict=True):
            if is_question(after) and (before["decision"], after["decision"]) == (None, "approved"):
                await shaping.record(tx, task.id, "answered")
                return

    async def _replace_edited(
        self, tx: AccountTransaction, task: Task, review: Review, items: Items
    ) -> TaskReviews:
        """Opens a new review with changed arguments, for a second person. Nothing is approved."""
        reason = "The arguments were changed, so a second person has to approve them."
        subject = review_items.subject(review, items)
        await gates.replace_review(tx, task, subject, items, reason)
        data = transitions.event_data(tx, task.status, task.status) | {"fields": ["review"]}
        await journal.append(tx, "task.updated", data, task.id)
        return await review_reading.read(tx, task)

    async def _approve_gate(
        self,
        tx: AccountTransaction,
        caller: Caller,
        before: Task,
        review: Review,
        items: Items,
        by: Actor,
    ) -> Task:
        """Lets the task continue after all items of its gate are decided."""
        gate = review.gate
        changed = before
        if gate == "output":
            changed = replace(before, output=review_items.output_of(before, items[0]))
        await gates.close_review(tx, before, "approved", decided_with=review_checks.credential(by))
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
                start_at = seals.start_of(review.sealed)
                await transitions.enqueue(tx, START, after, weight=weight, start_at=start_at)
            else:
                await transitions.enqueue(tx, WAKE, after)
        return after

    async def reject(
        self, caller: Caller, task_id: UUID | None, body: RejectTask, key: str | None
    ) -> Outcome:
        """Rejects all pending items. The task is cancelled, or continues if `resume` is set."""
        request = (f"POST /api/tasks/{task_id}/reject", body)
        return await self._once(
            caller, key, request, lambda tx: self._reject(tx, caller, task_id, body)
        )

    async def _reject(
        self, tx: AccountTransaction, caller: Caller, task_id: UUID | None, body: RejectTask
    ) -> TaskReviews:
        found = await review_reading.read(tx, await queries.get_for_change(tx, task_id))
        before, reviews = found.task, found.reviews
        await review_checks.check_approver(tx)
        target: Status = "RUNNING" if body.resume else "CANCELLED"
        by = await review_checks.decider(tx, caller)
        if before.status != "WAITING_APPROVAL":
            asked = review_checks.for_people(reviews)
            if review_checks.was_rejected(before, asked, body):
                await review_checks.add_answer(tx, before, asked[0], by, "rejected")
                return found
            review_checks.check_shown(found, body.review)
            raise NotWaiting(before, review_checks.wire(found))
        review_checks.check_shown(found, body.review)
        review_checks.check_not_expired(found)
        if body.review is None:
            review_checks.check_not_repeated(found, by, "rejected")
        if body.resume and reviews[0].gate == "run":
            raise TransitionRefused(
                before.status,
                target,
                "Its run has not started, so resume does not apply. To cancel the task, reject "
                "it without resume.",
            )
        await review_checks.add_answer(tx, before, reviews[0], by, "rejected")
        await review_queries.save_items(tx, before.id, review_items.reject_items(reviews[0], by))
        await gates.close_review(
            tx, before, "rejected", body.reason, review_checks.credential(by), resumed=body.resume
        )
        event = "task.rejected"
        if body.resume:
            if body.reason is not None:
                # The agent reads the reason and does what it says.
                await shaping.record(tx, before.id, "instructed")
            after = await transitions.apply(
                tx,
                before,
                before,
                "RUNNING",
                Trigger.REJECT_RESUME,
                event=event,
                reason=body.reason,
            )
            if before.hosted:
                await transitions.enqueue(tx, WAKE, after)
        else:
            after = await cancellation.cancel(
                tx, before, before, Trigger.REJECT, event=event, reason=body.reason
            )
        return replace(found, task=after, reviews=await review_queries.of_task(tx, before.id))

    async def expire_due(self, limit: int) -> int:
        """Cancels all tasks whose review expired, finding `limit` at a time. Returns how many."""
        expired, last = 0, (datetime.fromtimestamp(0, UTC), UUID(int=0))
        while True:
            async with self._db.relay() as connection:
                due = await review_queries.due_accounts(connection, last, limit)
            if not due:
                return expired
            last, found = due[-1], list({account_id for _, account_id in due})
            # In any order, so that the workers do not follow each other.
            random.shuffle(found)
            for account_id in found:
                try:
                    expired += await self._expire_of(account_id)
                except Exception:
                    # A failure must not delay the other accounts.
                    log.exception("review_expiry_failed", account_id=str(account_id))

    async def _expire_of(self, account_id: UUID) -> int:
        """Expires the account's due reviews, unless another worker is doing it."""
        expired, more = 0, True
        while more:
            async with self._db.write(account_id) as tx:
                due = await review_queries.claim_due(tx, EXPIRE_AT_ONCE)
                at_once = cancellation.BATCH // max(1, len(due))
                done = sum([await self._expire(tx, task_id, at_once) for task_id in due])
            expired, more = expired + done, done > 0 and len(due) == EXPIRE_AT_ONCE
        return expired

    async def _expire(self, tx: AccountTransaction, task_id: UUID, at_once: int) -> bool:
        task = await queries.find_for_change(tx, task_id)
        review = (await review_queries.pending(tx, [task_id])).get(task_id)
        if task is None or review is None or review.expires_at > clock.now():
            return False  # It was decided after the query that found it.
        reason = "No decision was made in time."
        await gates.close_review(tx, task, "expired", reason)
        await cancellation.cancel(tx, task, task, Trigger.EXPIRE, reason=reason, at_once=at_once)
        return True
