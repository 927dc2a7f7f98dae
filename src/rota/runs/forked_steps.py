"""The SQL of forks: from which steps a task can be forked, and the copies of its steps."""

from dataclasses import dataclass
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.runs.steps import COLUMNS
from rota.tasks.model import Task


@dataclass(frozen=True, slots=True)
class Point:
    """A step of a run, as a fork sees it."""

    step: int
    # Whether all calls of the step have their results.
    finished: bool
    # Whether the model has something to answer: tool results, a summary, or a note.
    continues: bool
    # What the database stores of the results of this step and those before it.
    stored_bytes: int


async def points(tx: AccountReader, task: Task) -> list[Point]:
    """The steps of the current run, in order."""
    rows = await tx.fetch(
        """
        SELECT step, bool_and(state = 'finished') AS finished,
               bool_or(kind IN ('tool', 'summary') OR note IS NOT NULL) AS continues,
               (sum(sum(coalesce(pg_column_size(result), 0))) OVER (ORDER BY step))::bigint
                   AS stored_bytes
        FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $3
        GROUP BY step ORDER BY step
        """,
        tx.account_id,
        task.id,
        task.run,
    )
    return [Point(**row) for row in rows]


async def count(tx: AccountReader, fork: Task) -> int:
    """How many calls a fork began with."""
    found: int = await tx.fetchval(
        """
        SELECT count(*) FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = 1 AND step <= $3
        """,
        tx.account_id,
        fork.id,
        fork.forked_step,
    )
    return found


async def copy(tx: AccountTransaction, original: Task, fork_id: UUID, last_step: int) -> None:
    """Copies the finished steps of the original's current run into the first run of its fork.

    The copies have no cost. They have no approval either: a decision is about one task. They keep
    the text of each call, so that the model reads the arguments that it was made with.
    """
    await tx.execute(
        f"""
        INSERT INTO steps (account_id, task_id, {COLUMNS})
        SELECT account_id, $4, 1, step, call, kind, state, name, server, call_id, read_only,
            arguments, sealed, NULL, maybe_made, NULL, result, outcome, note, NULL, 0, 0, 0, 0, 0,
            estimated, 0, price_version, true, planned_at, started_at, finished_at, 0, false
        FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step <= $5
        """,  # noqa: S608
        tx.account_id,
        original.id,
        original.run,
        fork_id,
        last_step,
    )


async def copy_again(tx: AccountTransaction, fork: Task) -> None:
    """Copies the steps that a fork began with into its current run, after a retry."""
    await tx.execute(
        f"""
        INSERT INTO steps (account_id, task_id, {COLUMNS})
        SELECT account_id, task_id, $3, step, call, kind, state, name, server, call_id, read_only,
            arguments, sealed, NULL, maybe_made, 1, result, outcome, note, NULL, 0, 0, 0, 0, 0,
            estimated, 0, price_version, true, planned_at, started_at, finished_at, 0, false
        FROM steps WHERE account_id = $1 AND task_id = $2 AND run = 1 AND step <= $4
        ON CONFLICT DO NOTHING
        """,  # noqa: S608
        tx.account_id,
        fork.id,
        fork.run,
        fork.forked_step,
    )
