"""Delegation: an agent creates a subtask for an agent of a lower rank."""

from collections.abc import Callable
from datetime import timedelta

from rota.accounts import queries as accounts
from rota.agents import queries as agents
from rota.agents.access import AgentAccess
from rota.agents.model import AgentVersion
from rota.credits import holds
from rota.credits.money import of_cents
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.runs import steps
from rota.runs.steps import Step
from rota.tasks import queries, transitions
from rota.tasks.model import Task, new_task
from rota.tasks.paying import payer
from rota.tasks.service import MAX_DEPTH


class Delegation:
    def __init__(
        self, agent_access: AgentAccess, gate_time: timedelta, weight_of: Callable[[str], float]
    ) -> None:
        self._agent_access = agent_access
        self._gate_time = gate_time
        self._weight_of = weight_of

    async def delegate(
        self,
        tx: AccountTransaction,
        parent: Task,
        agent: AgentVersion,
        row: Step,
    ) -> None:
        """Creates the subtask, or finishes the call with the reason why it cannot."""
        assert row.arguments is not None
        wanted = str(row.arguments["agent"])
        helper = await agents.find(tx, wanted)
        tier = await accounts.tier(tx)
        problem = self._problem(parent, agent, helper, tier)
        if problem is not None or helper is None:
            await steps.finish(tx, parent.id, row, problem, "failed")
            return
        child = new_task(
            ids.new_uuid(),
            name=str(row.arguments["name"]),
            status="WAITING_APPROVAL" if helper.approval.run else "PENDING",
            hosted=True,
            agent=helper.name,
            agent_version=helper.version,
            project_id=parent.project_id,
            parent=parent,
            priority=parent.priority,
            input=str(row.arguments["input"]),
        )
        budget_micros = of_cents(helper.budget_cents)
        if not await holds.hold_under(tx, payer(child), payer(parent), budget_micros):
            problem = "The hold of this run is closed, so it cannot pay for a subtask."
            await steps.finish(tx, parent.id, row, problem, "failed")
            return
        owner = await queries.created_by(tx, parent.id)
        await queries.insert(
            tx,
            owner,
            child,
            transitions.event_data(None, child.status, None),
            transitions.start_of(child, self._weight_of(tier))
            if child.status == "PENDING"
            else None,
        )
        if child.status == "WAITING_APPROVAL":
            await transitions.open_gate(tx, child, "run", self._gate_time)
        await steps.set_state(tx, parent.id, row, "delegated", child_task_id=child.id)

    def _problem(
        self, parent: Task, agent: AgentVersion, helper: AgentVersion | None, tier: str
    ) -> str | None:
        if helper is None:
            return "There is no agent of that name in the catalog."
        if helper.tier <= agent.tier:
            return f"{helper.name} is not of a lower rank than you."
        if self._agent_access.locked(helper, tier):
            return f"{helper.name} needs a higher plan than this account has."
        if parent.depth + 1 >= MAX_DEPTH:
            return f"Tasks nest at most {MAX_DEPTH} deep."
        return None
