"""Opens and closes the reviews of a task: at its gates, and by a standing rule."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rota.accounts import queries as accounts
from rota.events import notices
from rota.platform import clock
from rota.platform.canonical import digest
from rota.platform.db import AccountTransaction
from rota.tasks import review_queries, seals
from rota.tasks.model import Credential, Review, ReviewItem, ReviewState, Task
from rota.tasks.states import Gate
from rota.tasks.transitions import actor


async def open_gate(
    tx: AccountTransaction,
    task: Task,
    gate: Gate | None,
    gate_time: timedelta,
    subject: Mapping[str, Any],
    items: Sequence[ReviewItem] = (),
) -> None:
    """Opens a review of `subject`. The task is cancelled if no decision is made in time."""
    now = clock.now()
    await _open_review(tx, task, gate, (now, now + gate_time), subject, items)


async def record_approval(
    tx: AccountTransaction,
    task: Task,
    item: ReviewItem,
    decided_by: UUID,
    decided_with: Credential,
) -> None:
    """Stores a review of a call that a standing rule has approved. The task does not wait."""
    now = clock.now()
    number = await review_queries.next_number(tx, task.id)
    sealed = seals.review(tx.account_id, task, number, "tool", seals.items([item]))
    review = Review(
        number=number,
        run=task.run,
        state="approved",
        gate="tool",
        requested_at=now,
        expires_at=now,
        decided_at=now,
        decided_by=decided_by,
        decided_with=decided_with,
        resumed=False,
        answers=[],
        reason=None,
        items=[item],
        sealed=sealed,
        digest=digest(sealed),
    )
    await review_queries.insert(tx, task.id, review)


async def replace_review(
    tx: AccountTransaction,
    task: Task,
    subject: Mapping[str, Any],
    items: Sequence[ReviewItem] = (),
    reason: str = "The task was changed.",
    *,
    is_side_effect: bool = False,
) -> None:
    """Opens a new review in place of the pending one, because what it was about has changed.

    The task has waited since the first one, and expires with it. `is_side_effect` if the request is
    not about the task, so that whoever sent it is told too.
    """
    pending = (await review_queries.pending(tx, [task.id]))[task.id]
    await close_review(tx, task, "cancelled", reason)
    waits = (pending.requested_at, pending.expires_at)
    await _open_review(
        tx,
        task,
        pending.gate,
        waits,
        subject,
        items,
        second_person=pending.second_person,
        is_side_effect=is_side_effect,
    )


async def _open_review(
    tx: AccountTransaction,
    task: Task,
    gate: Gate | None,
    waits: tuple[datetime, datetime],
    subject: Mapping[str, Any],
    items: Sequence[ReviewItem] = (),
    *,
    second_person: bool = False,
    is_side_effect: bool = False,
) -> None:
    number = await review_queries.next_number(tx, task.id)
    policy = await accounts.policy(tx)
    sealed = seals.review(tx.account_id, task, number, gate, subject)
    review = Review(
        number=number,
        run=task.run,
        state="pending",
        gate=gate,
        requested_at=waits[0],
        expires_at=waits[1],
        decided_at=None,
        decided_by=None,
        decided_with=None,
        resumed=False,
        answers=[],
        reason=None,
        items=list(items),
        sealed=sealed,
        digest=digest(sealed),
        second_person=policy.second_person or second_person,
    )
    await review_queries.insert(tx, task.id, review)
    await notices.put(tx, "approval_waiting", task.id, is_side_effect=is_side_effect)


async def close_review(
    tx: AccountTransaction,
    task: Task,
    state: ReviewState,
    reason: str | None = None,
    decided_with: Credential | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Closes the pending review, if the task has one. A person's decision has `decided_with`."""
    if task.status == "WAITING_APPROVAL":
        decided_by = actor(tx) if decided_with else None
        await review_queries.close(
            tx, task.id, state, decided_by, decided_with, reason, clock.now(), resumed=resumed
        )
