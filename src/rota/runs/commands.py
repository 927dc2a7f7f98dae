"""`rota admin agents compare`: what another version of an agent does with past tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rota.agents import queries as agents
from rota.agents.model import AgentVersion
from rota.credits.money import exact_usd
from rota.mcp.usable_tools import UsableTools
from rota.platform import ids, json
from rota.platform.db import Database
from rota.platform.errors import NotFound
from rota.platform.schema import SchemaChecks
from rota.platform.settings import Settings
from rota.runs import steps
from rota.runs.bounds import Bounds
from rota.runs.comparison import Outcome, Replays, outcome_of
from rota.runs.mcp_tools import offered_tools
from rota.runs.model_errors import GiveUp
from rota.runs.models import Models
from rota.runs.tools import built_in
from rota.tasks import list_queries
from rota.tasks.creation import for_task
from rota.tasks.model import Task
from rota.tasks.retrying import has_lost_steps

# What a cell of the table shows of an output.
MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Pair:
    task: Task
    before: Outcome
    after: Outcome

    @property
    def failed(self) -> bool:
        return self.after.error is not None

    @property
    def differs(self) -> bool:
        """False for a replay that failed: it has nothing to compare."""
        return not self.failed and (self.before.output, self.before.tool_calls) != (
            self.after.output,
            self.after.tool_calls,
        )


async def compare_command(
    db: Database,
    checks: SchemaChecks,
    settings: Settings,
    account_id: UUID,
    versions: tuple[str, int, int],
    *,
    limit: int,
    as_json: bool,
) -> None:
    """Compares the newest completed tasks of a version with what another version does."""
    name, before, after = versions
    async with db.read(account_id) as tx:
        newest = await list_queries.completed(tx, name, before, limit)
        found = [task for task in newest if not await has_lost_steps(tx, task)]
        agent = await agents.find_version(tx, name, after)
    if agent is None:
        raise NotFound(f"The agent {name} has no version {after}. Sync the catalog first.")
    if not found:
        raise NotFound(
            f"The account has no completed tasks of the agent {name} in version {before}, apart "
            "from forks, tasks that were retried, and tasks whose steps may have been deleted."
        )
    # How long the models take is not limited.
    bounds = Bounds(settings.run_max_tokens, timedelta.max)
    replays = Replays(Models(settings.models, settings.model_url), checks, bounds)
    pairs = [await _pair(db, replays, account_id, task, agent) for task in reversed(found)]
    if as_json:
        typer.echo(json.dumps(_as_json(pairs)).decode())
    else:
        Console().print(_table(pairs))
        differing = sum(pair.differs for pair in pairs)
        failed = sum(pair.failed for pair in pairs)
        typer.echo(f"Tasks: {len(pairs)}. Different (*): {differing}. Failed: {failed}.")
    for pair in pairs:
        if pair.failed:
            typer.echo(f"{pair.task.name}: {pair.after.error}", err=True)
    if all(pair.failed for pair in pairs):
        raise typer.Exit(1)


async def _pair(
    db: Database, replays: Replays, account_id: UUID, task: Task, agent: AgentVersion
) -> Pair:
    async with db.read(account_id) as tx:
        rows = await steps.of_run(tx, task.id, task.run)
    assert task.agent_version is not None
    before = outcome_of(task.agent_version, task.output, None, rows)
    try:
        found = await offered_tools(db, account_id, agent, UsableTools())
        offered = [tool for tool in found if tool.offered]
    except GiveUp as error:
        failed = outcome_of(agent.version, None, f"{error.code}: {error.message}", [])
        return Pair(task, before, failed)
    tools = {tool.model_name: tool for tool in (*offered, *built_in(agent))}
    after = await replays.replay(account_id, task, for_task(agent, task), tools, rows)
    return Pair(task, before, after)


def _as_json(pairs: Sequence[Pair]) -> dict[str, Any]:
    return {
        "tasks": [
            {
                "taskId": ids.to_wire("task", pair.task.id),
                "name": pair.task.name,
                "differs": pair.differs,
                "failed": pair.failed,
                "from": _outcome(pair.before),
                "to": _outcome(pair.after),
            }
            for pair in pairs
        ],
        "total": len(pairs),
        "differing": sum(pair.differs for pair in pairs),
        "failed": sum(pair.failed for pair in pairs),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "version": outcome.version,
        "output": outcome.output,
        "error": outcome.error,
        "modelCalls": outcome.model_calls,
        "toolCalls": outcome.tool_calls,
        "notRecorded": outcome.not_recorded,
        "costUsd": exact_usd(outcome.cost_micros),
    }


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"


def _table(pairs: Sequence[Pair]) -> Table:
    table = Table("Task", "Version", "Output", "Model calls", "Tool calls", "Not recorded", "USD")
    for pair in pairs:
        label = f"{pair.task.name[:MAX_SHOWN]}{' *' if pair.differs else ''}"
        for outcome in (pair.before, pair.after):
            text = outcome.output if outcome.output is not None else "failed"
            cells = (
                label,
                str(outcome.version),
                _shortened(text),
                str(outcome.model_calls),
                ", ".join(outcome.tool_calls),
                str(outcome.not_recorded),
                exact_usd(outcome.cost_micros),
            )
            # Texts of others are not markup.
            table.add_row(*map(Text, cells))
            label = ""
    return table
