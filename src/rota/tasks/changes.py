"""What a PATCH changes in a task, except for its status."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import queries
from rota.tasks.bodies import PatchTask
from rota.tasks.creation import MAX_DEPTH, check_accepts_subtasks
from rota.tasks.errors import (
    ErrorNotWritable,
    ErrorWithoutFailure,
    NestingTooDeep,
    OutputNotWritable,
    OutputTooLong,
    ParentIsBelow,
    ParentNotChangeable,
    ParentNotFound,
    TooManyActions,
)
from rota.tasks.model import Task
from rota.tasks.schemas import MAX_ACTIONS, MAX_TEXT


async def patched(tx: AccountTransaction, task: Task, body: PatchTask) -> Task:
    """The task with the body's changes. The account must be locked.

    A value that the task already has changes nothing and is always allowed, so that a client can
    send back a task that it has read.
    """
    sent = body.model_fields_set
    actions = [*task.actions, *(body.actions or [])]
    if len(actions) > MAX_ACTIONS:
        raise TooManyActions(len(actions), MAX_ACTIONS)
    return replace(
        await _moved(tx, task, body),
        name=body.name if body.name is not None else task.name,
        description=body.description if "description" in sent else task.description,
        priority=body.priority if body.priority is not None else task.priority,
        project_id=body.project_id if "project_id" in sent else task.project_id,
        output=_output(task, body),
        error=_error(task, body),
        actions=actions,
    )


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


async def _moved(tx: AccountTransaction, task: Task, body: PatchTask) -> Task:
    """The task below its new parent, if it has one. Its subtasks move with it."""
    if "parent_task_id" not in body.model_fields_set:
        return task
    parent_id, depth = None, 0
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
        if parent_id == task.id or await queries.is_below(tx, parent_id, task.id):
            raise ParentIsBelow
        check_accepts_subtasks(parent)
        depth = parent.depth + 1
    if depth + await queries.subtree_height(tx, task.id) >= MAX_DEPTH:
        raise NestingTooDeep(MAX_DEPTH)
    await queries.move_subtasks(tx, task.id, depth - task.depth)
    return replace(task, parent_task_id=parent_id, depth=depth)
