"""Creates tasks, both for clients and for runs that delegate work."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from rota.agents import output_schemas
from rota.agents import queries as agents
from rota.agents.access import AgentAccess
from rota.agents.model import AgentVersion, Approval
from rota.credits import holds, metrics
from rota.credits.allowance import AllowanceOf, bring_up_to_date
from rota.credits.money import of_cents
from rota.credits.refusals import refusal
from rota.events import journal
from rota.platform import clock, ids
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.schema import SchemaChecks
from rota.tasks import approval_policies, gates, places, queries, seals, transitions
from rota.tasks.bodies import TaskBody, add_actions
from rota.tasks.errors import (
    AgentNotInCatalog,
    BudgetAboveAgents,
    DeadlineInPast,
    NestingTooDeep,
    OptionNotHosted,
    OutputSchemaUnusable,
    ParentEnded,
    ParentNotFound,
    TwoAgents,
)
from rota.tasks.model import Task
from rota.tasks.states import EVENT_OF, TERMINAL, Status

# A task without a parent has depth 0, so the deepest subtask has depth 7.
MAX_DEPTH = 8

Tx = TypeVar("Tx", bound=AccountReader)
FindTask = Callable[[Tx, UUID], Awaitable[Task | None]]


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a new task continues from: a step of another task, or its start (0)."""

    original: Task
    step: int
    # None: the agent's.
    model: str | None


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to create, as its client or the delegating run describes it."""

    name: str
    agent: AgentVersion | None = None
    # Read with find_for_change, so it cannot end before the subtask is committed.
    parent: Task | None = None
    status: Status = "PENDING"
    project_id: str | None = None
    priority: float = 0
    description: str | None = None
    input: str = ""
    output: str | None = None
    actions: list[str] = field(default_factory=list)
    # Options of a hosted task. None: as the agent's file says, and no deadline.
    output_schema: dict[str, Any] | None = None
    budget_cents: int | None = None
    deadline: datetime | None = None
    # Set if it is a fork. The caller copies the steps.
    fork: Fork | None = None

    @property
    def is_hosted(self) -> bool:
        return self.agent is not None and self.status in ("PENDING", "WAITING_APPROVAL")


class TaskCreation:
    def __init__(
        self,
        agent_access: AgentAccess,
        *,
        gate_time: timedelta,
        allowance_of: AllowanceOf,
        weight_of: Callable[[str], float],
    ) -> None:
        self.agent_access = agent_access
        self._gate_time = gate_time
        self._allowance_of = allowance_of
        # The share of busy workers that a tier gets.
        self.weight_of = weight_of

    async def bring_allowance_up_to_date(self, db: Database, account_id: UUID) -> None:
        """So that a quote sees what a hold could have."""
        await bring_up_to_date(db, account_id, self._allowance_of)

    async def find_agent(
        self, tx: AccountReader, name: str, tier: str, *, field: str = "agent"
    ) -> AgentVersion:
        """The agent for a new task. Raises if it is not in the catalog or the tier locks it.

        `field` is the one that named it, for the error.
        """
        agent = await agents.find(tx, name)
        if agent is None:
            raise AgentNotInCatalog(name, field)
        self.agent_access.check(agent, tier)
        return agent

    async def create(
        self, tx: AccountTransaction, new: NewTask, tier: str, *, created_by: UUID | None = None
    ) -> Task:
        """Creates a task with its hold and its first gate. Raises before it writes anything.

        `tier` is the account's. `created_by` is the owner where a run creates the task; without
        it, the transaction's user is the owner.
        """
        parent, agent = new.parent, new.agent
        if new.is_hosted and parent is None:
            # Before the policies are read, and before a lock on the balance.
            await journal.lock_open_account(tx)
        task = await self.build(tx, new)
        start = None
        if task.hosted and agent is not None:
            limit = agent.max_concurrent
            if new.fork is not None:
                # Its version can be an earlier one.
                limit = await agents.max_concurrent(tx, agent.name)
            task = replace(task, limited=limit is not None and task.status == "PENDING")
            await self.place_hold(tx, task, agent, parent)
            if task.status == "PENDING" and not task.limited:
                start = transitions.start_instruction(task, self.weight_of(tier))
        data = transitions.event_data(tx, None, task.status)
        await queries.insert(tx, task, data, start, created_by=created_by)
        if task.limited:
            task = await places.take(tx, task)
            await transitions.enqueue(tx, transitions.START, task, weight=self.weight_of(tier))
        if new.fork is not None:
            origin = {"forkedFrom": seals.origin(task)}
            await journal.append(tx, "task.forked", data | origin, task.id)
        if task.status in EVENT_OF:
            # Clients may listen for only one of the two events, so both are sent.
            await journal.append(tx, EVENT_OF[task.status], data, task.id)
        if task.status == "WAITING_APPROVAL":
            await self.open_first_gate(tx, task, agent)
        if task.deadline is not None:
            await transitions.set_deadline(tx, task)
        return task

    async def build(self, tx: AccountReader, new: NewTask) -> Task:
        """The task that `create` would create. Raises if it cannot, except for lack of money."""
        parent, agent = new.parent, new.agent
        if parent is not None:
            check_accepts_subtasks(parent)
            if parent.depth + 1 >= MAX_DEPTH:
                raise NestingTooDeep(MAX_DEPTH)
        _check_options(new)
        inherited = await approval_policies.inherited(tx, parent)
        if new.fork is not None:
            inherited = await approval_policies.of_fork(tx, new.fork.original)
        gated = (
            new.is_hosted
            and agent is not None
            and (
                _with_policies(agent, inherited).asks_before_run
                or await approval_policies.is_above_cost_limit(
                    tx, run_budget_cents(agent, new.budget_cents)
                )
            )
        )
        status: Status = "WAITING_APPROVAL" if gated else new.status
        return _build(new, status, inherited_approval=inherited)

    async def open_first_gate(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion | None,
        start_at: str = "start",
    ) -> None:
        """Opens the run gate of a hosted task, or the review of a task that its client runs."""
        if task.hosted and agent is not None:
            subject = seals.run(task, agent, start_at)
            await gates.open_gate(tx, task, "run", self._gate_time, subject)
        else:
            await gates.open_gate(tx, task, None, self._gate_time, seals.external(task))

    async def place_hold(
        self, tx: AccountTransaction, task: Task, agent: AgentVersion, parent: Task | None
    ) -> None:
        """Holds the run's budget: under the parent's hold if that is open, else on the balance."""
        budget_cents = run_budget_cents(agent, task.budget_limit_cents)
        micros = of_cents(budget_cents)
        if parent is not None and await holds.hold_under(tx, task.run_id, parent.run_id, micros):
            return
        if not await holds.hold(tx, task.run_id, micros, self._allowance_of):
            metrics.REFUSED.inc()
            raise await refusal(tx, budget_cents)


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
    """The new task that a body describes.

    Raises if the body names an agent or a parent that the account cannot use.
    """
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
        actions=add_actions([], body.actions),
        output_schema=body.output_schema,
        budget_cents=body.budget_cents,
        deadline=deadline,
    )


async def create_requested(
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


def run_budget_cents(agent: AgentVersion, limit_cents: int | None) -> int:
    """The most that a run of the agent can cost, if the task allows `limit_cents`."""
    return agent.budget_cents if limit_cents is None else min(limit_cents, agent.budget_cents)


def for_task(agent: AgentVersion, task: Task) -> AgentVersion:
    """The agent as the task's run uses it: with the policies and the model of the task."""
    agent = _with_policies(agent, task.inherited_approval)
    return replace(agent, model=task.model or agent.model)


def _with_policies(agent: AgentVersion, inherited: list[dict[str, Any]] | None) -> AgentVersion:
    policies = tuple(Approval.from_json(policy) for policy in inherited or ())
    return replace(agent, inherited_approval=policies)


def check_accepts_subtasks(parent: Task) -> None:
    if parent.status in TERMINAL:
        raise ParentEnded(parent)


def _check_options(new: NewTask) -> None:
    options = {
        "outputSchema": new.output_schema,
        "budgetCents": new.budget_cents,
        "deadline": new.deadline,
    }
    given = [name for name, value in options.items() if value is not None]
    if given and not new.is_hosted:
        raise OptionNotHosted(given[0])
    if new.agent is not None and (new.budget_cents or 0) > new.agent.budget_cents:
        raise BudgetAboveAgents(new.agent.name, new.agent.budget_cents)
    if new.deadline is not None and new.deadline <= clock.now():
        raise DeadlineInPast


def _build(
    new: NewTask,
    status: Status,
    *,
    inherited_approval: list[dict[str, Any]] | None,
) -> Task:
    agent = new.agent if new.is_hosted else None
    task_id = ids.new_uuid()
    # The time inside the id, so that the order of ids is the order of creation.
    now = ids.time_of(task_id)
    return Task(
        id=task_id,
        status=status,
        hosted=new.is_hosted,
        depth=new.parent.depth + 1 if new.parent else 0,
        run=1,
        agent=new.agent.name if new.agent else None,
        agent_version=new.agent.version if new.agent else None,
        budget_cents=run_budget_cents(agent, new.budget_cents) if agent else None,
        project_id=new.project_id,
        parent_task_id=new.parent.id if new.parent else None,
        name=new.name,
        priority=float(new.priority),
        created_at=now,
        updated_at=now,
        started_at=now if status == "RUNNING" else None,
        finished_at=now if status in TERMINAL else None,
        description=new.description,
        input=new.input,
        output=new.output,
        actions=new.actions,
        error=None,
        steps=0,
        input_tokens=0,
        output_tokens=0,
        cost_micros=0,
        inherited_approval=inherited_approval,
        output_schema=new.output_schema or (agent.output_schema if agent else None),
        own_output_schema=new.output_schema is not None,
        budget_limit_cents=new.budget_cents,
        deadline=new.deadline,
        model=new.fork.model if new.fork else None,
        forked_from=new.fork.original.id if new.fork else None,
        forked_run=new.fork.original.run if new.fork else None,
        forked_step=new.fork.step if new.fork else None,
        start_run=1,
    )
