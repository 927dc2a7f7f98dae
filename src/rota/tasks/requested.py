"""The new task that a request describes."""

from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import changes, queries
from rota.tasks.bodies import CreateTask
from rota.tasks.creation import NewTask, TaskCreation
from rota.tasks.errors import ParentNotFound, TwoAgents


async def new_task(
    tx: AccountTransaction, creation: TaskCreation, body: CreateTask, tier: str
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
        parent = await queries.find_for_change(tx, parent_id) if parent_id else None
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
    )
