"""Looks up the run that an input names: its task in the database, and its agent.

A slice raises the task's fence when it begins, and keeps the number in its input. Whoever raises
the fence later takes the run over, so a worker that was paused or cut off cannot change it.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Set
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from opentelemetry.trace import Span

from rota.agents import queries as agents
from rota.agents.model import AgentVersion
from rota.platform import audit, clock, ids, tracing
from rota.platform.db import AccountReader, AccountTransaction, Database, ReadConnection
from rota.runs import compaction, steps
from rota.runs.contracts import CallInput, RunInput
from rota.runs.steps import Step
from rota.tasks import cancellation, queries, review_queries, trees
from rota.tasks.creation import for_task
from rota.tasks.model import Task
from rota.tasks.queries import Fence
from rota.tasks.states import TERMINAL, Trigger


class FencedOut(Exception):
    """This slice no longer carries the run. It stores what it has in hand, and nothing else."""


@dataclass(slots=True)
class History:
    """The calls of a run that its slice has read and that cannot change anymore.

    Only the slice that holds the fence writes the rows of its run, so it reads each of them once.
    """

    rows: list[Step] = field(default_factory=list)
    # Every earlier step is in `rows`.
    next_step: int = 1
    # Set when the slice has lost its run. Then it starts no call.
    lost: bool = False
    # The characters of all results in `rows`.
    result_characters: int = 0

    def settle(self, rows: list[Step], before_step: int) -> None:
        """Keeps the rows of the steps before this one. The first are those that it has."""
        known = len(self.rows)
        self.rows = [row for row in rows if row.step < before_step]
        self.next_step = before_step
        new_calls = (row for row in self.rows[known:] if row.kind == "tool")
        self.result_characters += sum(len(compaction.text_of(row)) for row in new_calls)


class RunContext:
    def __init__(self, db: Database) -> None:
        self.db = db
        self._agents: dict[tuple[str, int], AgentVersion] = {}

    @contextlib.asynccontextmanager
    async def locked(
        self, run_input: RunInput
    ) -> AsyncIterator[tuple[AccountTransaction, Task | None]]:
        """Locks the task. The task is None if a newer run has replaced this one.

        Raises if the input has a fence that is not the task's. A task below a cancelled one is
        cancelled, or if the input has a fence, the slice stops first.
        """
        account_id, task_id = ids_of(run_input)
        async with self.db.write(account_id) as tx:
            task = await queries.find_for_change(tx, task_id)
            current = task if task and task.run == run_input.run else None
            check_fence(run_input, current)
            if current is not None and await cancelled_parents(tx, [current]):
                if run_input.fence is not None:
                    raise FencedOut
                why = cancellation.PARENT_CANCELLED
                current = await cancellation.cancel(
                    tx, current, current, Trigger.CANCEL, reason=why
                )
            yield tx, current
            if current is not None and not tx.entries:
                # The state of its calls may have changed, or another slice has taken it over.
                tx.record("run.advanced", {"run": run_input.run}, run_input.task_id)

    async def holds_fence(self, run_input: RunInput) -> bool:
        """Whether the slice with this input still carries its run."""
        return not await self.lost(ids_of(run_input)[0], {run_input})

    async def lost(self, account_id: UUID, run_inputs: Set[RunInput]) -> set[RunInput]:
        """Those whose slices no longer carry their runs. All are of one account."""
        task_ids = {run_input: ids_of(run_input)[1] for run_input in run_inputs}
        async with self.db.read(account_id) as tx:
            found = await queries.fences(tx, list(task_ids.values()))
            cancelled = await cancelled_parents(tx, found.values())
        return {
            run_input
            for run_input, task_id in task_ids.items()
            if (task := found.get(task_id)) is None
            or (task.run, task.fence) != (run_input.run, run_input.fence)
            or (task.status not in TERMINAL and task.parent_task_id in cancelled)
        }

    async def agent(self, connection: ReadConnection, task: Task) -> AgentVersion:
        assert task.agent is not None
        assert task.agent_version is not None
        key = (task.agent, task.agent_version)
        if key not in self._agents:
            # A version never changes, so it is read once.
            agent = await agents.find_version(connection, *key)
            assert agent is not None
            self._agents[key] = agent
        return for_task(self._agents[key], task)


async def cancelled_parents(tx: AccountReader, tasks: Iterable[Task | Fence]) -> set[UUID]:
    """The parents of open tasks that are cancelled themselves, or below a cancelled task."""
    parents = {
        task.parent_task_id
        for task in tasks
        if task.parent_task_id is not None and task.status not in TERMINAL
    }
    return await trees.below_cancelled(tx, parents)


async def may_make_calls(tx: AccountReader, run_input: RunInput) -> bool:
    """Whether the run has not ended, and its slice still carries it."""
    task = await queries.find(tx, ids_of(run_input)[1])
    if task is None or task.run != run_input.run or task.status in TERMINAL:
        return False
    if run_input.fence not in (None, task.fence):
        return False
    return not await cancelled_parents(tx, [task])


def check_fence(run_input: RunInput, task: Task | None) -> None:
    if run_input.fence is not None and (task is None or task.fence != run_input.fence):
        raise FencedOut


async def has_worked_longer_than(tx: AccountReader, task: Task, limit: timedelta) -> bool:
    """Whether the run has worked for longer than this.

    The time in which it, or a subtask that it delegated, waits for a person does not count.
    """
    started_at = task.started_at
    if started_at is None or clock.now() - started_at <= limit:
        return False
    waiting = [task.id, *await steps.delegated_tasks(tx, task.id, task.run)]
    waited = await review_queries.time_waited(tx, waiting, started_at)
    return clock.now() - started_at - waited > limit


def act_as_agent(run_input: RunInput) -> None:
    """What the activity does from now on is recorded for the agent of this task."""
    audit.act_as(audit.Actor("agent", via=run_input.task_id))


def span_of(name: str, call_input: CallInput) -> contextlib.AbstractContextManager[Span]:
    attributes: dict[str, str | int | float] = {
        "rota.task": call_input.run.task_id,
        "rota.run": call_input.run.run,
        "rota.step": call_input.step,
    }
    return tracing.span(name, parent=call_input.run.trace, attributes=attributes)


def ids_of(run_input: RunInput) -> tuple[UUID, UUID]:
    """The account's ID and the task's ID."""
    account_id = ids.from_wire("acct", run_input.account_id)
    task_id = ids.from_wire("task", run_input.task_id)
    assert account_id is not None
    assert task_id is not None
    return account_id, task_id
