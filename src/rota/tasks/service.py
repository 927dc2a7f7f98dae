"""What can be done with a task. The database decides; each change is one transaction."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from rota.agents import queries as agents
from rota.agents.access import AgentAccess
from rota.agents.model import AgentVersion
from rota.auth.caller import Caller
from rota.credits.allowance import AllowanceOf
from rota.platform import clock, ids
from rota.platform.db import (
    AccountReader,
    AccountTransaction,
    Database,
)
from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from rota.platform.idempotency import Idempotency, Outcome
from rota.tasks import paying, queries, schemas, transitions
from rota.tasks.lookup import TaskNotFound, for_change
from rota.tasks.model import Task, new_task
from rota.tasks.queries import Filter
from rota.tasks.schemas import MAX_ACTIONS, MAX_TEXT, CreateTask, PatchTask, TaskResponse
from rota.tasks.states import TERMINAL, Gate, Status, TransitionRefused, Trigger, target_of
from rota.tasks.transitions import START

MAX_DEPTH = 8


class Tasks:
    def __init__(
        self,
        db: Database,
        idempotency: Idempotency,
        agent_access: AgentAccess,
        *,
        gate_days: int,
        allowance_of: AllowanceOf,
        weight_of: Callable[[str], float] = lambda tier: 1.0,
    ) -> None:
        self._db = db
        self._idempotency = idempotency
        self._agent_access = agent_access
        self._gate_time = timedelta(days=gate_days)
        self._allowance_of = allowance_of
        # A tier's share of busy workers.
        self._weight_of = weight_of

    async def create(self, caller: Caller, body: CreateTask, key: str | None) -> Outcome:
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                task = await self._create(tx, caller, body)
                return TaskResponse(task=schemas.Task.of(task))

            return await self._idempotency.once(tx, key, ("POST /api/tasks", body), 201, work)

    async def _create(self, tx: AccountTransaction, caller: Caller, body: CreateTask) -> Task:
        agent = await self._agent(tx, caller, body)
        parent = await self._parent(tx, caller, body.parent_task_id)
        hosted = agent is not None and body.status in ("PENDING", "WAITING_APPROVAL")
        status = body.status
        if hosted and agent and agent.approval.run:
            status = "WAITING_APPROVAL"
        task = new_task(
            ids.new_uuid(),
            name=body.name,
            status=status,
            hosted=hosted,
            agent=agent.name if agent else None,
            agent_version=agent.version if agent else None,
            project_id=body.project_id,
            parent=parent,
            priority=body.priority,
            description=body.description,
            input=body.input or "",
            output=body.output,
            actions=body.actions,
        )
        start = None
        if hosted and status == "PENDING":
            start = transitions.start_of(task, self._weight_of(caller.tier))
        data = transitions.event_data(None, status, caller.user_id)
        await queries.insert(tx, caller.user_id, task, data, start)
        if hosted and agent:
            await self._reserve(tx, caller, task, parent, agent)
        if status == "WAITING_APPROVAL":
            await self._open_review(tx, task)
        return task

    async def _agent(
        self, tx: AccountReader, caller: Caller, body: CreateTask
    ) -> AgentVersion | None:
        if body.agent and body.assigned_agent and body.agent != body.assigned_agent:
            raise ValidationFailed.of(
                FieldError("agent", "is another name for assignedAgent; send one, or both alike")
            )
        name = body.agent or body.assigned_agent
        if name is None:
            return None
        agent = await agents.find(tx, name)
        if agent is None:
            raise ValidationFailed.of(
                FieldError("agent", "is not in the catalog; GET /api/agents lists what is")
            )
        self._check_open(agent, caller)
        return agent

    def _check_open(self, agent: AgentVersion, caller: Caller) -> None:
        if self._agent_access.locked(agent, caller.tier):
            raise Forbidden(
                f"The agent {agent.name} needs the tier {self._agent_access.required_tier(agent)}. "
                "Choose another agent or a higher plan."
            )

    async def _parent(
        self, tx: AccountTransaction, caller: Caller, wire_id: str | None
    ) -> Task | None:
        if wire_id is None:
            return None
        parent_id = ids.from_wire("task", wire_id)
        # Locked: it must not end between this look and our commit.
        parent = parent_id and await queries.find_for_change(tx, parent_id)
        if not parent:
            raise NotFound("There is no task with the id given as parentTaskId.")
        _check_takes_subtasks(parent)
        if parent.depth + 1 >= MAX_DEPTH:
            raise ValidationFailed.of(
                FieldError("parentTaskId", f"tasks nest at most {MAX_DEPTH} deep")
            )
        return parent

    async def page(
        self, caller: Caller, wanted: Filter, limit: int, offset: int
    ) -> tuple[list[Task], int]:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            total = await queries.total(tx, wanted)
            tasks = await queries.page(tx, wanted, limit, offset, total)
        return tasks, total

    async def get(self, caller: Caller, task_id: UUID | None) -> Task:
        if task_id is None:
            raise TaskNotFound
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            task = await queries.find(tx, task_id)
        if task is None:
            raise TaskNotFound
        return task

    async def patch(self, caller: Caller, task_id: UUID | None, body: PatchTask) -> Task:
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await for_change(tx, caller, task_id)
            after = _patched(before, body)
            if body.status is None or body.status == before.status:
                if after != before:
                    after = replace(after, updated_at=clock.now())
                    await queries.update(tx, before, after, None)
                return after
            if body.status == "CANCELLED":
                after = await transitions.cancel(tx, before, after, Trigger.CANCEL, caller.user_id)
            else:
                after = await self._move(tx, caller, before, after, Trigger.PATCH, body.status)
        return after

    async def retry(
        self, caller: Caller, task_id: UUID | None, start_at: str, key: str | None
    ) -> Outcome:
        async with self._db.write(caller.account_id, caller.user_id) as tx:

            async def work() -> TaskResponse:
                before = await for_change(tx, caller, task_id)
                if before.status != "FAILED":
                    raise TransitionRefused(
                        before.status, "PENDING", "Only a failed task is retried."
                    )
                parent = None
                if before.parent_task_id is not None:
                    parent = await queries.find(tx, before.parent_task_id)
                    if parent is not None:
                        _check_takes_subtasks(parent)
                fresh = replace(
                    before,
                    run=before.run + 1,
                    started_at=None,
                    finished_at=None,
                    error=None,
                    # A hosted task's output is the run's; an external one's is its client's.
                    output=None if before.hosted else before.output,
                )
                after = await self._move(
                    tx, caller, before, fresh, Trigger.RETRY, event="task.retried"
                )
                if after.hosted:
                    assert after.agent is not None
                    assert after.agent_version is not None
                    agent = await agents.find_version(tx, after.agent, after.agent_version)
                    assert agent is not None
                    self._check_open(agent, caller)
                    await self._reserve(tx, caller, after, parent, agent)
                    await transitions.instruct(
                        tx,
                        START,
                        after,
                        start_at=start_at,
                        weight=self._weight_of(caller.tier),
                    )
                return TaskResponse(task=schemas.Task.of(after))

            operation = f"POST /api/tasks/{task_id}/retry?from={start_at}"
            return await self._idempotency.once(tx, key, (operation, None), 200, work)

    async def _move(
        self,
        tx: AccountTransaction,
        caller: Caller,
        before: Task,
        after: Task,
        by: Trigger,
        target: Status | None = None,
        *,
        event: str | None = None,
        reason: str | None = None,
    ) -> Task:
        target = target or target_of(before.status, by, hosted=before.hosted)
        assert target is not None
        after = await transitions.apply(
            tx,
            before,
            after,
            target,
            by,
            user_id=caller.user_id,
            event=event,
            reason=reason,
        )
        if target == "WAITING_APPROVAL":
            await self._open_review(tx, after)
        return after

    async def _reserve(
        self,
        tx: AccountTransaction,
        caller: Caller,
        task: Task,
        parent: Task | None,
        agent: AgentVersion,
    ) -> None:
        await paying.reserve(
            tx,
            task,
            parent,
            agent.budget_cents,
            self._allowance_of,
        )

    async def _open_review(self, tx: AccountTransaction, task: Task) -> None:
        gate: Gate | None = "run" if task.hosted else None
        await transitions.open_gate(tx, task, gate, self._gate_time)


def _check_takes_subtasks(parent: Task) -> None:
    if parent.status in TERMINAL:
        raise Conflict(f"The parent task is {parent.status}, so nothing goes on below it.")


def _patched(task: Task, body: PatchTask) -> Task:
    """The task with everything but the status as the body wants it."""
    if task.hosted and (body.output is not None or body.logs is not None):
        raise Conflict("The service runs this task, so its output is not the client's to write.")
    output = body.output if body.output is not None else task.output
    if body.logs is not None:
        output = (output or "") + body.logs
        if len(output) > MAX_TEXT:
            raise ValidationFailed.of(
                FieldError("logs", f"output would be longer than {MAX_TEXT} characters")
            )
    actions = [*task.actions, *(body.actions or [])]
    if len(actions) > MAX_ACTIONS:
        raise ValidationFailed.of(
            FieldError("actions", f"a task keeps at most {MAX_ACTIONS} actions")
        )
    return replace(
        task,
        name=body.name if body.name is not None else task.name,
        description=body.description if body.description is not None else task.description,
        priority=float(body.priority) if body.priority is not None else task.priority,
        output=output,
        actions=actions,
    )
