"""The approval policies that a task runs under: of its agent, of the tasks above it, of forks and
of retries, and the account's limit of cost."""

from dataclasses import asdict
from typing import Any

from rota.accounts import queries as accounts
from rota.agents import queries as agents
from rota.agents.model import AgentVersion, Approval
from rota.platform.db import AccountReader
from rota.tasks import trees
from rota.tasks.model import Task

# A fork asks before each call that writes, whatever its agent's policy says.
FORK_POLICY = asdict(Approval(tools="writes"))


async def is_above_cost_limit(tx: AccountReader, budget_cents: int) -> bool:
    """Whether the account's policy makes a run with this budget wait for a person."""
    limit_cents = (await accounts.policy(tx)).max_cost_cents
    return limit_cents is not None and budget_cents > limit_cents


async def inherited(tx: AccountReader, parent: Task | None) -> list[dict[str, Any]] | None:
    """The policies of all tasks above a task: of their agents, and what they inherit. What the
    parent inherited is not enough: the tasks above it can have gained gates since, by a retry."""
    if parent is None:
        return None
    policies: dict[Approval, dict[str, Any]] = {}
    for task in [*await trees.above(tx, parent), parent]:
        own = [asdict((await version_of(tx, task)).approval)] if task.hosted else []
        for policy in [*(task.inherited_approval or []), *own]:
            policies.setdefault(Approval.from_json(policy), policy)
    return list(policies.values()) or None


async def of_fork(tx: AccountReader, original: Task) -> list[dict[str, Any]]:
    """What the original inherits, the policy of the agent as it is now, and that of all forks."""
    assert original.agent is not None
    policies = list(original.inherited_approval or [])
    current = await agents.find(tx, original.agent)
    # An earlier version must not avoid gates that the agent has gained since.
    for policy in ([asdict(current.approval)] if current else []) + [FORK_POLICY]:
        if policy not in policies:
            policies.append(policy)
    return policies


async def of_retry(
    tx: AccountReader, task: Task, parent: Task | None, agent: AgentVersion, current: AgentVersion
) -> list[dict[str, Any]] | None:
    """For a run that keeps its version: what the task inherits, the policy of the agent as it is
    now, and what a new subtask would inherit. A retry must not avoid gates that the agent or the
    tasks above have gained since."""
    policies = list(task.inherited_approval or [])
    known = {agent.approval, *map(Approval.from_json, policies)}
    for policy in [asdict(current.approval), *(await inherited(tx, parent) or [])]:
        approval = Approval.from_json(policy)
        if approval not in known:
            known.add(approval)
            policies.append(policy)
    return policies or None


async def version_of(tx: AccountReader, task: Task) -> AgentVersion:
    assert task.agent is not None
    assert task.agent_version is not None
    agent = await agents.find_version(tx, task.agent, task.agent_version)
    assert agent is not None
    return agent
