"""Moves a task from one status to another: its row, its event, and what follows from the change."""

from dataclasses import fields, replace
from typing import Any
from uuid import UUID

from prometheus_client import Counter
from pydantic.alias_generators import to_camel

from rota.credits import holds
from rota.events import notices, outbox
from rota.events.outbox import Instruction
from rota.platform import clock, ids, tracing
from rota.platform.db import NO_USER, AccountReader, AccountTransaction
from rota.tasks import places, queries
from rota.tasks.model import Task
from rota.tasks.states import EVENT_OF, TERMINAL, Status, TransitionRefused, Trigger, allows

RUNS_ENDED = Counter(
    "rota_runs_ended_total", "Runs that ended, by their task's status.", ["status"]
)
for _status in TERMINAL:
    RUNS_ENDED.labels(_status)

# What follows from other changes, and is not a field of the task for clients.
_NOT_SHOWN = (
    "updated_at",
    "depth",
    "inherited_approval",
    "fence",
    "own_output_schema",
    "limited",
    "start_run",
    "queue_position",
)

# Kinds of instructions to the worker. They are stored in the outbox.
START, CANCEL, WAKE, CHECK = "run.start", "run.cancel", "run.nudge", "run.check"
# A run that waits for a slot of a worker, and the end of a task's time.
QUEUED, DEADLINE = "run.queued", "run.deadline"


async def apply(
    tx: AccountTransaction,
    before: Task,
    after: Task,
    target: Status,
    trigger: Trigger,
    *,
    event: str | None = None,
    reason: str | None = None,
) -> Task:
    """Writes `after` with the status `target`. The account must be locked."""
    if not allows(before.status, target, trigger, hosted=before.hosted):
        raise TransitionRefused(before.status, target, _advice(before))
    now = clock.now()
    ends_run = target in TERMINAL or trigger is Trigger.RETRY
    after = replace(
        after,
        status=target,
        # A worker that still carries the run stops at its next write.
        fence=after.fence + 1 if ends_run else after.fence,
        updated_at=now,
        started_at=now if target == "RUNNING" and not after.started_at else after.started_at,
        finished_at=now if target in TERMINAL else None,
    )
    data = event_data(tx, before.status, target, reason)
    if before.hosted and target in TERMINAL:
        RUNS_ENDED.labels(target).inc()
    after = await places.settle(tx, before, after)
    await queries.update(tx, before, after, (event or EVENT_OF[target], data))
    if target == "FAILED" and before.parent_task_id is None:
        # The agent of a parent handles the failures of its subtasks.
        creator = await queries.created_by(tx, before.id)
        await notices.put(tx, "task_failed", before.id, only_for=creator)
    if before.hosted and target in TERMINAL:
        await holds.release(tx, before.run_id)
        await outbox.drop(tx, before.id, (START, WAKE, CHECK, QUEUED, DEADLINE))
    if before.hosted and (target == "CANCELLED" or trigger is Trigger.DEADLINE):
        await enqueue(tx, CANCEL, before)
    if before.hosted and target in TERMINAL and before.parent_task_id:
        parent = await queries.find(tx, before.parent_task_id)
        if parent is not None and parent.hosted and parent.status != "CANCELLED":
            # The parent's run may be waiting for the result of this task.
            await enqueue(tx, WAKE, parent)
    return after


async def update(tx: AccountTransaction, before: Task, after: Task) -> None:
    """Writes a change other than a new status. The event names the changed fields."""
    changed = [
        to_camel(field.name)
        for field in fields(Task)
        if field.name not in _NOT_SHOWN
        and getattr(before, field.name) != getattr(after, field.name)
    ]
    data = event_data(tx, before.status, before.status) | {"fields": changed}
    await queries.update(tx, before, after, ("task.updated", data))


def event_data(
    tx: AccountReader, source: Status | None, target: Status, reason: str | None = None
) -> dict[str, Any]:
    user_id = actor(tx)
    data: dict[str, Any] = {"status": target, "previousStatus": source}
    data["by"] = ids.to_wire("user", user_id) if user_id else None
    if reason is not None:
        data["reason"] = reason
    return data


def actor(tx: AccountReader) -> UUID | None:
    """The user who makes the change, or None when the service makes it."""
    return tx.user_id if tx.user_id != NO_USER else None


def start_instruction(task: Task, weight: float) -> tuple[str, dict[str, Any]]:
    """The instruction that starts a new task's first run."""
    return START, {**_payload(task), "weight": weight}


async def enqueue(
    tx: AccountTransaction, kind: str, task: Task, *, delay_s: float = 0, **details: Any
) -> None:
    """Puts an instruction about the task into the outbox.

    What starts or continues a run that is queued is parked there.
    """
    if kind == WAKE and task.status in TERMINAL:
        details["again"] = True  # The run only has to notice its end, so it needs no check.
    payload = {**_payload(task), **details}
    parked = kind in (START, WAKE) and await places.is_queued(tx, task)
    instruction = Instruction(tx.account_id, kind, task.id, payload)
    await outbox.put(tx, instruction, None if parked else delay_s)


async def set_deadline(tx: AccountTransaction, task: Task) -> None:
    """Makes a worker end the task at its deadline, instead of at an earlier one."""
    await outbox.drop(tx, task.id, (DEADLINE,))
    if task.deadline is not None and task.status not in TERMINAL:
        left_s = (task.deadline - clock.now()).total_seconds()
        instruction = Instruction(tx.account_id, DEADLINE, task.id, {})
        await outbox.put(tx, instruction, max(left_s, 0))


def _payload(task: Task) -> dict[str, Any]:
    payload: dict[str, Any] = {"run": task.run, "priority": task.priority, "fence": task.fence}
    if (trace := tracing.here()) is not None:
        payload["trace"] = trace
    return payload


def _advice(task: Task) -> str:
    """What a client can do instead of the change that was refused."""
    if task.status == "FAILED":
        return "Run it again with POST /api/tasks/{id}/retry."
    if task.status in TERMINAL:
        return f"{task.status} is final."
    if task.status == "WAITING_APPROVAL":
        return "Decide with POST /api/tasks/{id}/approve or POST /api/tasks/{id}/reject."
    if task.hosted:
        return "The service runs this task. A client can only cancel it."
    return "See the transition table in the documentation of tasks."
