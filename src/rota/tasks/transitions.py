"""One move of a task, whoever makes it: the row, its event, and what follows from it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from rota.credits import holds
from rota.events import outbox
from rota.events.outbox import Instruction
from rota.platform import clock, ids, tracing
from rota.platform.db import AccountTransaction
from rota.tasks import queries, review_queries
from rota.tasks.model import Task
from rota.tasks.paying import payer
from rota.tasks.states import EVENT_OF, TERMINAL, Gate, Status, TransitionRefused, Trigger, allows

# Instructions for whoever carries tasks out.
START, CANCEL, NUDGE = "run.start", "run.cancel", "run.nudge"


async def apply(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    target: Status,
    by: Trigger,
    *,
    user_id: UUID | None = None,
    event: str | None = None,
    reason: str | None = None,
) -> Task:
    """Writes `after` in its new state. The account's head must be locked."""
    if not allows(before.status, target, by, hosted=before.hosted):
        raise TransitionRefused(before.status, target, why_not(before))
    now = clock.now()
    after = replace(
        after,
        status=target,
        updated_at=now,
        started_at=now if target == "RUNNING" and not after.started_at else after.started_at,
        finished_at=now if target in TERMINAL else None,
    )
    data = event_data(before.status, target, user_id, reason)
    await queries.update(tx, before, after, (event or EVENT_OF[target], data))
    if before.hosted and target in TERMINAL:
        await holds.release(tx, payer(before))
    if before.hosted and target == "CANCELLED":
        await instruct(tx, CANCEL, before)
    if before.hosted and target in TERMINAL and before.parent_task_id:
        parent = await queries.find(tx, before.parent_task_id)
        if parent is not None and parent.hosted:
            # It may have delegated this to us, and waits for how it ended.
            await instruct(tx, NUDGE, parent)
    return after


def event_data(
    source: Status | None, target: Status, user_id: UUID | None, reason: str | None = None
) -> dict[str, Any]:
    data: dict[str, Any] = {"status": target, "previousStatus": source}
    data["by"] = ids.to_wire("user", user_id) if user_id else None
    if reason is not None:
        data["reason"] = reason
    return data


def start_of(task: Task, weight: float) -> tuple[str, dict[str, Any]]:
    """The instruction that a new task's first run begins with."""
    return START, {**_of(task), "weight": weight}


def _of(task: Task) -> dict[str, Any]:
    """What every instruction about a task says."""
    payload: dict[str, Any] = {"run": task.run, "priority": task.priority}
    if (trace := tracing.here()) is not None:
        payload["trace"] = trace
    return payload


async def instruct(tx: AccountTransaction, kind: str, task: Task, **details: Any) -> None:
    payload = {**_of(task), **details}
    await outbox.put(tx, Instruction(tx.account_id, kind, task.id, payload))


async def open_gate(
    tx: AccountTransaction,
    task: Task,
    gate: Gate | None,
    time: timedelta,
    items: list[Mapping[str, Any]] | None = None,
) -> None:
    now = clock.now()
    await review_queries.open_pending(tx, task.id, gate, now, now + time, items or [])


def why_not(task: Task) -> str:
    if task.status == "FAILED":
        return "Run it again with POST /api/tasks/:id/retry."
    if task.status in TERMINAL:
        return f"{task.status} is final."
    if task.status == "WAITING_APPROVAL":
        return "It waits for a person: POST /api/tasks/:id/approve or reject."
    if task.hosted:
        return "The service runs this task; a client may only cancel it."
    return "GET /api/tasks/:id shows its state; the documentation lists every move."


async def cancel(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    by: Trigger,
    user_id: UUID | None,
    *,
    event: str | None = None,
    reason: str | None = None,
) -> Task:
    """The end of a task, of its review if one is pending, and of all that is open below it."""
    ended = await apply(
        tx,
        before,
        after,
        "CANCELLED",
        by,
        user_id=user_id,
        event=event,
        reason=reason,
    )
    if by is Trigger.CANCEL:
        why = "The task was cancelled."
        await close_review(tx, before, "rejected", user_id, why)
    for child in await queries.open_children(tx, before.id):
        why = "The task above it was cancelled."
        await apply(
            tx,
            child,
            child,
            "CANCELLED",
            Trigger.CANCEL,
            user_id=user_id,
            reason=why,
        )
        await close_review(tx, child, "rejected", user_id, why)
    return ended


async def close_review(
    tx: AccountTransaction,
    task: Task,
    state: str,
    user_id: UUID | None,
    reason: str | None = None,
) -> None:
    """Ends the review of a task that waits; one that does not has none to end."""
    if task.status == "WAITING_APPROVAL":
        await review_queries.close(tx, task.id, state, user_id, reason, clock.now())
