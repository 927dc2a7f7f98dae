"""Retries: the next run of a failed task, after the failure or from its start."""

from dataclasses import dataclass, replace
from typing import Any

from rota.agents import queries as agents
from rota.agents.model import AgentVersion
from rota.credits import retention as credits_retention
from rota.events import journal
from rota.platform import clock
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks import (
    approval_policies,
    queries,
    review_queries,
    seals,
    shaping,
    transitions,
    trees,
)
from rota.tasks.creation import TaskCreation, for_task, run_budget_cents
from rota.tasks.errors import AgentRetired, DeadlinePassed, ParentEnded, StepsDeleted
from rota.tasks.model import Task
from rota.tasks.states import EVENT_OF, Status, TransitionRefused, Trigger


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The next run of a failed task that the service runs."""

    # With the policies that the run inherits.
    agent: AgentVersion
    inherited_approval: list[dict[str, Any]] | None
    opens_run_gate: bool
    # Whether a text differs from what a person approved at the run gate.
    text_changed: bool


async def retry(
    tx: AccountTransaction, creation: TaskCreation, before: Task, tier: str, start_at: str
) -> Task:
    """Begins the next run of a failed task. Raises if it cannot be retried."""
    parent = await check_can_retry(tx, before)
    await shaping.record(tx, before.id, "retried")
    fresh = replace(before, run=before.run + 1, started_at=None, finished_at=None, error=None)
    if not before.hosted:
        # A client writes the output of an external task, so it stays.
        return await transitions.apply(
            tx, before, fresh, "PENDING", Trigger.RETRY, event="task.retried"
        )
    plan = await plan_retry(tx, creation, before, parent, tier, start_at)
    agent = plan.agent
    fresh = replace(
        fresh,
        output=None,
        start_run=fresh.run if start_at == "start" else before.start_run or before.run,
        agent_version=agent.version,
        inherited_approval=plan.inherited_approval,
        budget_cents=run_budget_cents(agent, before.budget_limit_cents),
        output_schema=before.output_schema if before.own_output_schema else agent.output_schema,
    )
    target: Status = "WAITING_APPROVAL" if plan.opens_run_gate else "PENDING"
    after = await transitions.apply(tx, before, fresh, target, Trigger.RETRY, event="task.retried")
    if plan.opens_run_gate:
        data = transitions.event_data(tx, before.status, after.status)
        await journal.append(tx, EVENT_OF[after.status], data, after.id)
    await _restart(tx, creation, after, agent, parent, tier, start_at=start_at)
    return after


async def check_can_retry(tx: AccountReader, task: Task) -> Task | None:
    """The parent of a task that can be retried. Raises if it cannot."""
    if task.status != "FAILED":
        raise TransitionRefused(task.status, "PENDING", "Only a failed task can be retried.")
    if task.hosted and task.deadline is not None and task.deadline <= clock.now():
        raise DeadlinePassed
    if task.parent_task_id is None:
        return None
    if (cancelled := await trees.cancelled_ancestor(tx, task)) is not None:
        raise ParentEnded(cancelled)
    return await queries.find(tx, task.parent_task_id)


async def plan_retry(
    tx: AccountReader,
    creation: TaskCreation,
    task: Task,
    parent: Task | None,
    tier: str,
    start_at: str,
) -> RetryPlan:
    """What a retry of a hosted task would do. Raises if the tier does not include the agent, or
    the agent is retired.

    From failure, the run keeps the agent's version, and its run gate opens only if the work is
    not the work that a person approved, or if nobody has approved it yet. From the start, the
    run uses the newest version, inherits what a new task would, and every gate opens again. A fork
    keeps the version that it was made for.
    """
    assert task.agent is not None
    current = await agents.find(tx, task.agent)
    if current is None:
        raise AgentRetired(task.agent)
    begins_with_steps = bool(task.forked_step)
    if (start_at == "failure" or begins_with_steps) and await has_lost_steps(tx, task):
        # It would repeat calls that were made, and nobody would be asked.
        raise StepsDeleted(is_fork=begins_with_steps)
    newest = start_at == "start" and task.forked_from is None
    agent = current if newest else await approval_policies.version_of(tx, task)
    creation.agent_access.check(agent, tier)
    if newest:
        inherited = await approval_policies.inherited(tx, parent)
    else:
        inherited = await approval_policies.of_retry(tx, task, parent, agent, current)
    agent = for_task(agent, replace(task, inherited_approval=inherited))
    approved = await review_queries.approved_run(tx, task.id)
    if start_at == "start" or approved is None:
        # A deadline can end a task before anyone has decided about its run.
        opens_run_gate = (
            agent.asks_before_run
            or await review_queries.has_run_gate(tx, task.id)
            or await approval_policies.is_above_cost_limit(
                tx, run_budget_cents(agent, task.budget_limit_cents)
            )
        )
    else:
        opens_run_gate = not seals.is_same_work(approved.sealed, task, agent)
    text_changed = approved is not None and not seals.has_same_texts(approved.sealed, task)
    return RetryPlan(agent, inherited, opens_run_gate, text_changed)


async def has_lost_steps(tx: AccountReader, task: Task) -> bool:
    """Whether retention has deleted steps of tasks that ended when this one did."""
    cut_at = await credits_retention.steps_cut_at(tx)
    return cut_at is not None and task.finished_at is not None and task.finished_at < cut_at


async def _restart(
    tx: AccountTransaction,
    creation: TaskCreation,
    task: Task,
    agent: AgentVersion,
    parent: Task | None,
    tier: str,
    *,
    start_at: str,
) -> None:
    """Places the hold for a hosted task's next run, and starts the run or opens its gate."""
    await journal.lock_open_account(tx)
    await creation.place_hold(tx, task, agent, parent)
    if task.deadline is not None:
        await transitions.set_deadline(tx, task)
    if task.status == "WAITING_APPROVAL":
        await creation.open_first_gate(tx, task, agent, start_at)
        return
    await transitions.enqueue(
        tx, transitions.START, task, start_at=start_at, weight=creation.weight_of(tier)
    )
