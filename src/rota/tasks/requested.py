"""The new task that a request describes."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from rota.agents import output_schemas
from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.schema import SchemaChecks
from rota.tasks import changes, queries
from rota.tasks.bodies import TaskBody
from rota.tasks.creation import NewTask, TaskCreation
from rota.tasks.errors import OutputSchemaUnusable, ParentNotFound, TwoAgents
from rota.tasks.model import Task

Tx = TypeVar("Tx", bound=AccountReader)
FindTask = Callable[[Tx, UUID], Awaitable[Task | None]]


async def check_schema(checks: SchemaChecks, account_id: UUID, body: TaskBody) -> None:
    """Before the transaction, because a check can take seconds."""
    if body.output_schema is None:
        return
    problem = await output_schemas.problem_with(checks, account_id, body.output_schema)
    if problem is not None:
        raise OutputSchemaUnusable(problem)


async def new_task(
    tx: Tx,
    creation: TaskCreation,
    body: TaskBody,
    tier: str,
    find_parent: FindTask[Tx],
    *,
    deadline: datetime | None = None,
) -> NewTask:
    """Raises if the body names an agent or a parent that the account cannot use."""
    if body.agent and body.assigned_agent and body.agent != body.assigned_agent:
        raise TwoAgents(body.agent, body.assigned_agent)
    agent, parent = None, None
    if (name := body.agent or body.assigned_agent) is not None:
        field = "agent" if body.agent else "assignedAgent"
        agent = await creation.find_agent(tx, name, tier, field=field)
    if body.parent_task_id is not None:
        parent_id = ids.from_wire("task", body.parent_task_id)
        parent = await find_parent(tx, parent_id) if parent_id else None
        if parent is None:
            raise ParentNotFound(body.parent_task_id)
    return NewTask(
        name=body.name,
        agent=agent,
        parent=parent,
        status=body.status,
        project_id=body.project_id,
        priority=body.priority,
        description=body.description,
        input=body.input or "",
        output=body.output,
        actions=changes.added([], body.actions),
        output_schema=body.output_schema,
        budget_cents=body.budget_cents,
        deadline=deadline,
    )


async def create(
    tx: AccountTransaction,
    creation: TaskCreation,
    body: TaskBody,
    tier: str,
    *,
    deadline: datetime | None = None,
    created_by: UUID | None = None,
) -> Task:
    """Creates the task that a body describes. Raises before it writes anything."""
    new = await new_task(tx, creation, body, tier, queries.find_for_change, deadline=deadline)
    return await creation.create(tx, new, tier, created_by=created_by)
