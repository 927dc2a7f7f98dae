"""What a PATCH changes in a task, except for its status."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from rota.platform import clock, ids
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks import approval_policies, queries, review_queries, trees
from rota.tasks.bodies import PatchTask, add_actions
from rota.tasks.creation import MAX_DEPTH, check_accepts_subtasks
from rota.tasks.errors import (
    DeadlineInPast,
    DeadlineNotWritable,
    ErrorNotWritable,
    ErrorWithoutFailure,
    NestingTooDeep,
    OutputNotWritable,
    OutputTooLong,
    ParentIsBelow,
    ParentNotChangeable,
    ParentNotFound,
    TextFrozen,
    TextIncomplete,
)
from rota.tasks.model import Task
from rota.tasks.schemas import MAX_TEXT
from rota.tasks.states import FINAL


async def patched(tx: AccountTransaction, task: Task, body: PatchTask) -> Task:
    """The task with the body's changes. The account must be locked.

    A value that the task already has changes nothing and is always allowed, so that a client can
    send back a task that it has read.
    """
    sent = body.model_fields_set
    for name in ("description", "output"):
        if name in sent and name in (body.truncated or ()):
            raise TextIncomplete(name)
    after = replace(
        await _moved(tx, task, body),
        name=body.name if body.name is not None else task.name,
        description=body.description if "description" in sent else task.description,
        priority=body.priority if body.priority is not None else task.priority,
        project_id=body.project_id if "project_id" in sent else task.project_id,
        output=_output(task, body),
        error=_error(task, body),
        actions=add_actions(task.actions, body.actions),
        deadline=_deadline(task, body),
    )
    await _check_not_frozen(tx, task, after)
    return after


def texts(task: Task) -> tuple[str | None, ...]:
    """What a person who reviews an external task decides about."""
    return task.name, task.description, task.output


async def _check_not_frozen(tx: AccountReader, before: Task, after: Task) -> None:
    """Refuses to change texts that a person approves or has approved, or that an agent works
    with."""
    if not before.hosted or texts(before) == texts(after):
        return
    frozen = before.status in ("WAITING_APPROVAL", "RUNNING")
    if before.status == "PENDING":
        # Also in a later run: a retry of the same work needs no second approval.
        frozen = await review_queries.approved_run(tx, before.id) is not None
    if frozen:
        raise TextFrozen(before)


def _output(task: Task, body: PatchTask) -> str | None:
    output = body.output if "output" in body.model_fields_set else task.output
    if task.hosted and (output != task.output or body.logs is not None):
        raise OutputNotWritable
    if body.logs is not None:
        output = (output or "") + body.logs
        if len(output) > MAX_TEXT:
            raise OutputTooLong(len(output), MAX_TEXT)
    return output


def _error(task: Task, body: PatchTask) -> Mapping[str, Any] | None:
    error = body.error.model_dump() if body.error else None
    if error is None or error == task.error:
        return task.error
    if task.hosted:
        raise ErrorNotWritable
    if (body.status or task.status) != "FAILED":
        raise ErrorWithoutFailure
    return error


def _deadline(task: Task, body: PatchTask) -> datetime | None:
    deadline = body.deadline if "deadline" in body.model_fields_set else task.deadline
    if deadline == task.deadline:
        return deadline
    if not task.hosted or task.status in FINAL:
        raise DeadlineNotWritable(task)
    if deadline is not None and deadline <= clock.now():
        raise DeadlineInPast
    return deadline


async def _moved(tx: AccountTransaction, task: Task, body: PatchTask) -> Task:
    """The task below its new parent, if it has one. Its subtasks move with it."""
    if "parent_task_id" not in body.model_fields_set:
        return task
    parent_id, depth, parent = None, 0, None
    if body.parent_task_id is not None:
        parent_id = ids.from_wire("task", body.parent_task_id)
        if parent_id is None:
            raise ParentNotFound(body.parent_task_id)
    if parent_id == task.parent_task_id:
        return task
    if task.hosted or task.status != "PENDING":
        raise ParentNotChangeable(task)
    if parent_id is not None:
        parent = await queries.find(tx, parent_id)
        if parent is None:
            raise ParentNotFound(ids.to_wire("task", parent_id))
        if parent_id == task.id or await trees.is_below(tx, parent_id, task.id):
            raise ParentIsBelow
        check_accepts_subtasks(parent)
        depth = parent.depth + 1
    if depth + await trees.subtree_height(tx, task.id) >= MAX_DEPTH:
        raise NestingTooDeep(MAX_DEPTH)
    await trees.move_subtasks(tx, task.id, depth - task.depth)
    # For subtasks that are created below it from now on.
    inherited = await approval_policies.inherited(tx, parent)
    return replace(task, parent_task_id=parent_id, depth=depth, inherited_approval=inherited)
