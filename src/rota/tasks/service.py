"""What can be done with a task. The database decides; each change is one transaction."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from fastapi import Response

from rota.agents import queries as agents
from rota.agents.gating import Gating
from rota.agents.model import AgentVersion
from rota.auth.caller import Caller
from rota.events import outbox
from rota.events.fanout import Fanout
from rota.events.outbox import Instruction
from rota.platform import clock, ids
from rota.platform.db import Database, ReadConnection, WriteConnection
from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from rota.platform.idempotency import Replays
from rota.tasks import queries
from rota.tasks.model import Review, Task
from rota.tasks.queries import Filter
from rota.tasks.schemas import MAX_ACTIONS, MAX_TEXT, CreateTask, PatchTask, TaskAnswer, TaskShape
from rota.tasks.states import (
    APPROVAL_OF,
    EVENT_OF,
    TERMINAL,
    By,
    MoveRefused,
    Status,
    allows,
    target_of,
)

MAX_DEPTH = 8

# Instructions for whoever carries tasks out.
START, CANCEL, DECIDED = "run.start", "run.cancel", "run.decided"


class TaskNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("There is no such task.")


class Tasks:
    def __init__(
        self, db: Database, replays: Replays, gating: Gating, fanout: Fanout, *, gate_days: int
    ) -> None:
        self._db = db
        self._replays = replays
        self._gating = gating
        self._fanout = fanout
        self._gate_time = timedelta(days=gate_days)

    async def create(self, caller: Caller, body: CreateTask, key: str | None) -> Response:
        async with self._db.write(caller.account_id, caller.user_id) as connection:

            async def work() -> TaskAnswer:
                task = await self._create(connection, caller, body)
                return TaskAnswer(task=TaskShape.of(task))

            answer = await self._replays.once(
                connection, caller.account_id, key, ("POST /api/tasks", body), 201, work
            )
        self._fanout.announce(caller.account_id)
        return answer

    async def _create(self, connection: WriteConnection, caller: Caller, body: CreateTask) -> Task:
        agent = await self._agent(connection, caller, body)
        parent = await self._parent(connection, caller, body.parent_task_id)
        task_id = ids.new_uuid()
        # The time inside the id, so that listing by id is listing by time.
        now = ids.time_of(task_id)
        hosted = agent is not None and body.status in ("PENDING", "WAITING_APPROVAL")
        task = Task(
            id=task_id,
            status=body.status,
            hosted=hosted,
            depth=parent.depth + 1 if parent else 0,
            run=1,
            agent=agent.name if agent else None,
            agent_version=agent.version if agent else None,
            project_id=body.project_id,
            parent_task_id=parent.id if parent else None,
            name=body.name,
            priority=float(body.priority),
            created_at=now,
            updated_at=now,
            started_at=now if body.status == "RUNNING" else None,
            finished_at=now if body.status in TERMINAL else None,
            description=body.description,
            input=body.input or "",
            output=body.output,
            actions=body.actions or [],
            error=None,
            steps=0,
            input_tokens=0,
            output_tokens=0,
            cost_micros=0,
        )
        start = (START, {"run": 1}) if hosted and body.status == "PENDING" else None
        data = _event_data(None, body.status, caller)
        await queries.insert(connection, caller.account_id, caller.user_id, task, data, start)
        if body.status == "WAITING_APPROVAL":
            await self._open_review(connection, caller.account_id, task)
        return task

    async def _agent(
        self, connection: ReadConnection, caller: Caller, body: CreateTask
    ) -> AgentVersion | None:
        if body.agent and body.assigned_agent and body.agent != body.assigned_agent:
            raise ValidationFailed.of(
                FieldError("agent", "is another name for assignedAgent; send one, or both alike")
            )
        name = body.agent or body.assigned_agent
        if name is None:
            return None
        agent = await agents.find(connection, name)
        if agent is None:
            raise ValidationFailed.of(
                FieldError("agent", "is not in the catalog; GET /api/agents lists what is")
            )
        if self._gating.locked(agent, caller.tier):
            raise Forbidden(
                f"The agent {agent.name} needs the tier {self._gating.required_tier(agent)}. "
                "Choose another agent or a higher plan."
            )
        return agent

    async def _parent(
        self, connection: WriteConnection, caller: Caller, wire_id: str | None
    ) -> Task | None:
        if wire_id is None:
            return None
        parent_id = ids.from_wire("task", wire_id)
        # Locked: it must not end between this look and our commit.
        parent = parent_id and await queries.find_for_change(
            connection, caller.account_id, parent_id
        )
        if not parent:
            raise NotFound("There is no task with the id given as parentTaskId.")
        if parent.status in TERMINAL:
            raise Conflict(f"The parent task is {parent.status}, so it takes no subtasks.")
        if parent.depth + 1 >= MAX_DEPTH:
            raise ValidationFailed.of(
                FieldError("parentTaskId", f"tasks nest at most {MAX_DEPTH} deep")
            )
        return parent

    async def page(
        self, caller: Caller, wanted: Filter, limit: int, offset: int
    ) -> tuple[list[Task], int]:
        async with self._db.snapshot(caller.account_id, caller.user_id) as connection:
            total = await queries.total(connection, caller.account_id, wanted)
            tasks = await queries.page(connection, caller.account_id, wanted, limit, offset, total)
        return tasks, total

    async def get(self, caller: Caller, task_id: UUID | None) -> Task:
        if task_id is None:
            raise TaskNotFound
        async with self._db.read(caller.account_id, caller.user_id) as connection:
            task = await queries.find(connection, caller.account_id, task_id)
        if task is None:
            raise TaskNotFound
        return task

    async def review(self, caller: Caller, task_id: UUID | None) -> tuple[Task, list[Review]]:
        if task_id is None:
            raise TaskNotFound
        async with self._db.snapshot(caller.account_id, caller.user_id) as connection:
            task = await queries.find(connection, caller.account_id, task_id)
            if task is None:
                raise TaskNotFound
            return task, await queries.reviews(connection, caller.account_id, task_id)

    async def patch(self, caller: Caller, task_id: UUID | None, body: PatchTask) -> Task:
        async with self._db.write(caller.account_id, caller.user_id) as connection:
            before = await _for_change(connection, caller, task_id)
            after = _patched(before, body)
            if body.status is None or body.status == before.status:
                if after != before:
                    after = replace(after, updated_at=clock.now())
                    await queries.update(connection, caller.account_id, before, after, None)
                return after
            by = By.CANCEL if body.status == "CANCELLED" else By.PATCH
            after = await self._move(connection, caller, before, after, by, body.status)
            if by is By.CANCEL:
                await self._cancel_children(connection, caller, before)
        self._fanout.announce(caller.account_id)
        return after

    async def approve(
        self, caller: Caller, task_id: UUID | None, decisions: list[str] | None
    ) -> tuple[Task, list[Review]]:
        async with self._db.write(caller.account_id, caller.user_id) as connection:
            before = await _for_change(connection, caller, task_id)
            reviews = await queries.reviews(connection, caller.account_id, before.id)
            if decisions is not None:
                known = {item["id"] for item in reviews[0].items} if reviews else set()
                if unknown := [item for item in decisions if item not in known]:
                    raise ValidationFailed.of(
                        FieldError("decisions", f"no such item waits: {', '.join(unknown)}")
                    )
            if before.status != "WAITING_APPROVAL":
                if reviews and reviews[0].state == "approved":
                    return before, reviews  # Somebody else said the same a moment ago.
                raise MoveRefused(
                    before.status, "RUNNING" if not before.hosted else "PENDING", _NOT_WAITING
                )
            by = APPROVAL_OF[reviews[0].gate]
            await self._close_review(connection, caller, before, "approved", None)
            after = await self._move(
                connection, caller, before, before, by, None, event="task.approved"
            )
            if by is By.APPROVE_RUN:
                await _instruct(connection, caller.account_id, START, after)
            reviews = await queries.reviews(connection, caller.account_id, before.id)
        self._fanout.announce(caller.account_id)
        return after, reviews

    async def reject(
        self, caller: Caller, task_id: UUID | None, reason: str | None, *, resume: bool
    ) -> tuple[Task, list[Review]]:
        by = By.REJECT_RESUME if resume else By.REJECT
        async with self._db.write(caller.account_id, caller.user_id) as connection:
            before = await _for_change(connection, caller, task_id)
            reviews = await queries.reviews(connection, caller.account_id, before.id)
            if before.status != "WAITING_APPROVAL":
                if reviews and reviews[0].state == "rejected" and not resume:
                    return before, reviews  # Somebody else said the same a moment ago.
                raise MoveRefused(before.status, "RUNNING" if resume else "CANCELLED", _NOT_WAITING)
            if resume and reviews[0].gate == "run":
                raise MoveRefused(
                    before.status, "RUNNING", "Its run has not begun, so there is none to resume."
                )
            await self._close_review(connection, caller, before, "rejected", reason)
            after = await self._move(
                connection, caller, before, before, by, None, event="task.rejected", reason=reason
            )
            if by is By.REJECT:
                await self._cancel_children(connection, caller, before)
            reviews = await queries.reviews(connection, caller.account_id, before.id)
        self._fanout.announce(caller.account_id)
        return after, reviews

    async def retry(
        self, caller: Caller, task_id: UUID | None, start_at: str, key: str | None
    ) -> Response:
        async with self._db.write(caller.account_id, caller.user_id) as connection:

            async def work() -> TaskAnswer:
                before = await _for_change(connection, caller, task_id)
                if before.status != "FAILED":
                    raise MoveRefused(before.status, "PENDING", "Only a failed task is retried.")
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
                    connection, caller, before, fresh, By.RETRY, None, event="task.retried"
                )
                if after.hosted:
                    await _instruct(connection, caller.account_id, START, after, start_at=start_at)
                return TaskAnswer(task=TaskShape.of(after))

            operation = f"POST /api/tasks/{task_id}/retry?from={start_at}"
            answer = await self._replays.once(
                connection, caller.account_id, key, (operation, None), 200, work
            )
        self._fanout.announce(caller.account_id)
        return answer

    async def _move(
        self,
        connection: WriteConnection,
        caller: Caller,
        before: Task,
        after: Task,
        by: By,
        target: Status | None,
        *,
        event: str | None = None,
        reason: str | None = None,
    ) -> Task:
        """One move of the table: the task, its event, and what follows from it."""
        target = target or target_of(before.status, by, hosted=before.hosted)
        assert target is not None
        if not allows(before.status, target, by, hosted=before.hosted):
            raise MoveRefused(before.status, target, _why_not(before, target))
        now = clock.now()
        after = replace(
            after,
            status=target,
            updated_at=now,
            started_at=now if target == "RUNNING" and not after.started_at else after.started_at,
            finished_at=now if target in TERMINAL else None,
        )
        data = _event_data(before.status, target, caller, reason)
        account_id = caller.account_id
        await queries.update(
            connection, account_id, before, after, (event or EVENT_OF[target], data)
        )
        if target == "WAITING_APPROVAL":
            await self._open_review(connection, account_id, after)
        if before.status == "WAITING_APPROVAL" and by is By.CANCEL:
            await self._close_review(
                connection, caller, before, "rejected", "The task was cancelled."
            )
        if target == "CANCELLED" and before.hosted:
            await _instruct(connection, account_id, CANCEL, before)
        return after

    async def _cancel_children(
        self, connection: WriteConnection, caller: Caller, parent: Task
    ) -> None:
        for child in await queries.open_children(connection, caller.account_id, parent.id):
            await self._move(
                *(connection, caller, child, child, By.CANCEL, "CANCELLED"),
                reason="The task above it was cancelled.",
            )

    async def _open_review(self, connection: WriteConnection, account_id: UUID, task: Task) -> None:
        now = clock.now()
        gate = "run" if task.hosted else None
        await queries.open_review(connection, account_id, task.id, gate, now, now + self._gate_time)

    async def _close_review(
        self,
        connection: WriteConnection,
        caller: Caller,
        task: Task,
        state: str,
        reason: str | None,
    ) -> None:
        await queries.close_review(
            connection, caller.account_id, task.id, state, caller.user_id, reason, clock.now()
        )


_NOT_WAITING = "It does not wait for a person."


def _why_not(task: Task, target: Status) -> str:
    if task.status == "FAILED":
        return "Run it again with POST /api/tasks/:id/retry."
    if task.status in TERMINAL:
        return f"{task.status} is final."
    if task.status == "WAITING_APPROVAL":
        return "It waits for a person: POST /api/tasks/:id/approve or reject."
    if task.hosted:
        return "The service runs this task; a client may only cancel it."
    return "GET /api/tasks/:id shows its state; the documentation lists every move."


async def _for_change(connection: WriteConnection, caller: Caller, task_id: UUID | None) -> Task:
    task = task_id and await queries.find_for_change(connection, caller.account_id, task_id)
    if not task:
        raise TaskNotFound
    return task


async def _instruct(
    connection: WriteConnection, account_id: UUID, kind: str, task: Task, **details: Any
) -> None:
    payload = {"run": task.run, **details}
    await outbox.put(connection, Instruction(account_id, kind, task.id, payload))


def _event_data(
    source: Status | None, target: Status, caller: Caller, reason: str | None = None
) -> dict[str, Any]:
    data: dict[str, Any] = {"status": target, "previousStatus": source}
    data["by"] = ids.to_wire("user", caller.user_id)
    if reason is not None:
        data["reason"] = reason
    return data


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
