"""What a task can cost, its tools and its approvals, before it is created."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rota.agents.model import DELEGATE, AgentVersion, matches
from rota.credits import holds
from rota.credits.money import of_cents
from rota.mcp import offers
from rota.platform.db import AccountReader
from rota.tasks import overview_queries
from rota.tasks.creation import NewTask, TaskCreation, for_task
from rota.tasks.errors import OptionNotHosted
from rota.tasks.overview_queries import TypicalCost
from rota.tasks.states import Gate

# More tools are only counted.
MAX_TOOLS = 200


@dataclass(frozen=True, slots=True)
class QuotedTool:
    server: str
    name: str
    title: str | None
    read_only: bool
    needs_approval: bool


@dataclass(frozen=True, slots=True)
class Quote:
    agent: AgentVersion
    budget_cents: int
    deadline: datetime | None
    # None if the agent has not completed a task of this account.
    typical: TypicalCost | None
    opens_gates: list[Gate]
    tools: list[QuotedTool]
    tool_count: int
    # Patterns of the agent's file that no usable tool matches.
    missing_tools: list[str]
    covered: bool
    available_micros: int
    # Whether the parent's hold pays, and not the balance.
    paid_by_parent: bool


async def quote(tx: AccountReader, creation: TaskCreation, new: NewTask) -> Quote:
    """The quote for a task. Raises what its creation would raise, except for lack of money.

    The account's allowance must be up to date.
    """
    if not new.is_hosted or new.agent is None:
        raise OptionNotHosted("dryRun")
    task = await creation.build(tx, new)
    agent = for_task(new.agent, task)
    assert task.budget_cents is not None
    by_parent = new.parent is not None and await holds.is_open(tx, new.parent.run_id)
    available_micros = await holds.available(tx)
    found = await offers.quoted_tools(tx, agent.tools) if agent.tools else []
    tools = [
        QuotedTool(
            server=tool.server,
            name=tool.name,
            title=tool.title,
            read_only=tool.read_only,
            needs_approval=agent.asks_before(tool.full_name, read_only=tool.read_only),
        )
        for tool in found
    ]
    return Quote(
        agent=agent,
        budget_cents=task.budget_cents,
        deadline=task.deadline,
        typical=await overview_queries.typical_cost(tx, agent.name),
        opens_gates=gates(agent, run=task.status == "WAITING_APPROVAL"),
        tools=tools[:MAX_TOOLS],
        tool_count=len(tools),
        missing_tools=_unmatched(agent, [tool.full_name for tool in found]),
        covered=by_parent or available_micros >= of_cents(task.budget_cents),
        available_micros=available_micros,
        paid_by_parent=by_parent,
    )


def gates(agent: AgentVersion, *, run: bool) -> list[Gate]:
    """The gates that a run of the agent can open, apart from questions of the agent."""
    asks = any(policy.tools not in ("never", ()) for policy in agent.policies)
    asks_to_delegate = agent.can_delegate and agent.asks_before(DELEGATE, read_only=True)
    opens: dict[Gate, bool] = {
        "run": run,
        "tool": (bool(agent.tools) and asks) or asks_to_delegate,
        "output": agent.asks_before_output,
    }
    return [gate for gate, is_open in opens.items() if is_open]


def _unmatched(agent: AgentVersion, tools: Sequence[str]) -> list[str]:
    return [
        pattern for pattern in agent.tools if not any(matches((pattern,), tool) for tool in tools)
    ]
