"""Delegation: an agent gives a part of its work to an agent of a lower rank, as a subtask."""

from rota.accounts import queries as accounts
from rota.agents.access import AgentLocked
from rota.agents.model import AgentVersion
from rota.credits.refusals import InsufficientCredits
from rota.platform.db import AccountTransaction
from rota.runs import step_events, tool_steps
from rota.runs.steps import Step
from rota.tasks import queries, trees
from rota.tasks.creation import MAX_DEPTH, NewTask, TaskCreation
from rota.tasks.errors import InvalidField, NestingTooDeep
from rota.tasks.model import Task


class Delegation:
    def __init__(self, creation: TaskCreation) -> None:
        self._creation = creation

    async def delegate(
        self,
        tx: AccountTransaction,
        parent: Task,
        agent: AgentVersion,
        row: Step,
    ) -> None:
        """Creates the subtask, or finishes the call with the reason for the refusal."""
        try:
            child = await self._create(tx, parent, agent, row)
        except NestingTooDeep:
            reason = f"Tasks can be nested at most {MAX_DEPTH} levels deep. Do the work yourself."
            await tool_steps.finish(tx, parent.id, row, reason, "failed")
        except InvalidField as refused:
            await tool_steps.finish(tx, parent.id, row, refused.reason, "failed")
        except (AgentLocked, InsufficientCredits) as refused:
            await tool_steps.finish(tx, parent.id, row, refused.message, "failed")
        else:
            await tool_steps.set_state(tx, parent.id, row, "delegated", child_task_id=child.id)
            await step_events.tool_calls_start(tx, parent.id, [row], are_new=True)

    async def _create(
        self, tx: AccountTransaction, parent: Task, agent: AgentVersion, row: Step
    ) -> Task:
        assert row.arguments is not None
        tier = await accounts.tier(tx)
        helper = await self._creation.find_agent(tx, str(row.arguments["agent"]), tier)
        if helper.rank <= agent.rank:
            raise InvalidField(
                "agent",
                f"The rank of {helper.name} is not lower than yours. Delegate to an agent of a "
                "lower rank.",
            )
        if helper.max_concurrent is not None:
            above = [parent, *await trees.running_ancestors(tx, parent.id)]
            if helper.name in {task.agent for task in above}:
                # Its rank has changed. The subtask could wait for the place of a task above it.
                raise InvalidField(
                    "agent",
                    f"{helper.name} is already working on a task above this one. Delegate to "
                    "another agent.",
                )
        new = NewTask(
            name=str(row.arguments["name"]),
            agent=helper,
            parent=parent,
            project_id=parent.project_id,
            priority=parent.priority,
            input=str(row.arguments["input"]),
        )
        owner = await queries.created_by(tx, parent.id)
        return await self._creation.create(tx, new, tier, created_by=owner)
