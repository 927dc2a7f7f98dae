"""Calls that a standing rule approves instead of a person.

A call that a rule covers is planned like one that needs no approval. When it starts, a use of the
rule is counted and the approval is stored, in the transaction that marks the call as started. If no
rule covers it by then, a gate opens.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rota.agents.model import AgentVersion
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.rules import use as rules
from rota.rules.model import Rule
from rota.runs import gate_items, tool_steps
from rota.runs.steps import Step
from rota.runs.tool_steps import PlannedCall
from rota.runs.tools import Tool, model_name
from rota.tasks import gates, review_queries
from rota.tasks.model import ReviewItem, Task


async def covered_calls(
    tx: AccountTransaction, task: Task, calls: Sequence[PlannedCall], tools: Mapping[str, Tool]
) -> dict[int, Rule]:
    """The calls that a rule covers now, by their numbers from 1. Not more than it has uses left."""
    found: dict[int, Rule] = {}
    usable: dict[tuple[str, str], list[rules.Usable]] = {}
    promised: Counter[UUID] = Counter()
    for number, call in enumerate(calls, 1):
        if not call.gated:
            continue
        server = tools[model_name(call.server, call.name)].server_revision
        if server is None:
            continue
        tool = server[0], call.name
        if tool not in usable:
            usable[tool] = await rules.usable(tx, task, *tool)
        # Other work of the process goes on between two comparisons with many conditions.
        await asyncio.sleep(0)
        rule = next(
            (
                each.rule
                for each in usable[tool]
                if each.rule.uses_left > promised[each.rule.id] and each.covers(call.arguments)
            ),
            None,
        )
        if rule is not None:
            found[number] = rule
            promised[rule.id] += 1
    return found


def approved(item: ReviewItem, rule: Rule) -> ReviewItem:
    """The item of a review, as the rule decides about it."""
    return {
        **item,
        "decision": "approved",
        "decidedBy": rule.decider,
        "decidedAt": clock.to_wire(clock.now()),
    }


async def use(
    tx: AccountTransaction, task: Task, agent: AgentVersion, row: Step, tool: Tool
) -> Step | None:
    """Approves this start of a call, if a rule covers it. Never of a call that may have reached its
    tool, nor of one from an earlier run: whether to repeat it is a decision of a person."""
    if row.may_have_effect or row.approved_by_rule or row.copied or not tool.server_revision:
        return None
    server_id, arguments = tool.server_revision[0], row.sealed_arguments
    rule = await rules.use(tx, task, row.item_id, server_id, tool.name, arguments)
    if rule is None:
        return None
    words = await gate_items.words_beside(tx, task, row)
    item = approved(gate_items.of_call(agent, row, tool, words, None), rule)
    if not await _is_shown(tx, task, item):
        await gates.record_approval(tx, task, item, rule.created_by, rule.credential)
    await tool_steps.approve_start(tx, task.id, row)
    return replace(row, approved_by_rule=True)


async def _is_shown(tx: AccountTransaction, task: Task, item: ReviewItem) -> bool:
    """Whether a review of other calls has shown this decision already."""
    reviews = await review_queries.newest_of_items(tx, task.id, [item["id"]], run=task.run)
    shown = (each for review in reviews.values() for each in review.items)
    newest = next((each for each in shown if each["id"] == item["id"]), None)
    return newest is not None and newest["decidedBy"] == item["decidedBy"]
