"""Finds the rule that covers a call, and counts its use when the call starts.

A rule stands for an approval by the user who made it. So it works only while that user can approve,
and where a second person is required, not for what the user shaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prometheus_client import Counter

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.agents import queries as agents
from rota.events import journal
from rota.mcp import queries as mcp
from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction
from rota.rules import conditions, queries
from rota.rules.model import MAX_BYTES_IN_FORCE, Rule, RuleDependencies
from rota.tasks import shaping, trees
from rota.tasks.model import Task

USES = Counter("rota_rule_uses_total", "Tool calls that a standing rule has approved.")


async def dependencies_of(tx: AccountReader, rules: Sequence[Rule]) -> RuleDependencies:
    """What these rules depend on."""
    tools = list({(rule.server_id, rule.tool) for rule in rules})
    accepted = await mcp.accepted_definitions(tx, tools)
    return RuleDependencies(
        server_revisions=await mcp.revisions(tx, [server_id for server_id, _ in tools]),
        definition_hashes={tool: definition.hash for tool, definition in accepted.items()},
        agent_versions=await agents.current_versions(tx, list({rule.agent for rule in rules})),
        approving_since=await members.approving_since(
            tx, list({rule.created_by for rule in rules})
        ),
    )


@dataclass(frozen=True, slots=True)
class Usable:
    """A rule that approves calls of a task's run, if their arguments meet its conditions."""

    rule: Rule
    # Read once, because an answer can have many calls.
    conditions: Mapping[str, Mapping[str, Any]]

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        return conditions.cover(self.conditions, arguments)


async def usable(tx: AccountReader, task: Task, server_id: str, tool: str) -> list[Usable]:
    """The rules that can approve calls of the tool in the task's run now. The account must be
    locked.

    None in a fork or below one, where a person approves each call that writes.
    """
    row_id = ids.from_wire("mcp", server_id)
    if row_id is None or task.agent is None or task.agent_version is None:
        return []
    found = await queries.in_force(
        tx, row_id, tool, task.agent, task.agent_version, MAX_BYTES_IN_FORCE
    )
    if not found or await trees.belongs_to_fork(tx, task):
        return []
    now = await dependencies_of(tx, found)
    found = [rule for rule in found if now.why_void(rule) is None]
    if found and (await accounts.policy(tx)).second_person:
        shaped = await _shapers(tx, task, row_id, tool)
        found = [rule for rule in found if rule.created_by not in shaped]
    return [Usable(rule, rule.conditions) for rule in found]


async def _shapers(tx: AccountReader, task: Task, server_id: UUID, tool: str) -> set[UUID]:
    """Who shaped the task, apart from those whose rules it has used, and who accepted the tool or
    shaped its server."""
    shapers = await shaping.shapers(tx, task.id)
    users = {user_id for user_id, how in shapers.items() if how - {"madeRule"}}
    accepted = await mcp.accepted_definitions(tx, [(server_id, tool)])
    return users.union(*[each.shapers for each in accepted.values()])


async def use(
    tx: AccountTransaction,
    task: Task,
    call: str,
    server_id: str,
    tool: str,
    arguments: dict[str, Any],
) -> Rule | None:
    """Counts a use of a rule that approves the call, which starts in this transaction. None if
    there is none."""
    for each in await usable(tx, task, server_id, tool):
        if not each.covers(arguments):
            continue
        rule = each.rule
        uses = await queries.use(tx, rule.id)
        if uses is not None:
            data = {"ruleId": ids.to_wire("rule", rule.id), "call": call, "uses": uses}
            await journal.append(tx, "rule.used", data, task.id)
            await shaping.record(tx, task.id, "madeRule", {rule.created_by})
            USES.inc()
            return rule
    return None
