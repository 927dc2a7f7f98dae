"""The SQL of steps: the model calls and tool calls of each run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from prometheus_client import Histogram

from rota.platform.canonical import digest
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks import seals
from rota.tasks.model import Task

DURATION_SECONDS = Histogram(
    "rota_run_step_seconds",
    "Duration of a model or tool call.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)

# A summary is a model call that shortens the conversation.
ModelCallKind = Literal["model", "summary"]
Kind = Literal["model", "summary", "tool"]
State = Literal["planned", "gated", "started", "delegated", "finished"]


@dataclass(frozen=True, slots=True)
class Step:
    run: int
    step: int
    call: int
    kind: Kind
    state: State
    name: str
    server: str | None
    call_id: str | None
    read_only: bool
    arguments: dict[str, Any] | None
    # The call as canonical JSON, and the digest of the text that was approved.
    sealed: str | None
    approved_digest: str | None
    # Whether the call may have taken effect: it was started, and its outcome is unknown.
    maybe_made: bool
    # The run that planned the call, if a retry copied it from there.
    planned_run: int | None
    result: Any
    outcome: str | None
    note: str | None
    child_task_id: UUID | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    # Whether Rota counted the tokens, because the provider did not report them.
    estimated: bool
    cost_micros: int
    price_version: str | None
    # Whether a retry or a fork copied it. A run that finishes a copied call has made it itself.
    copied: bool
    planned_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    # Failed attempts. A model call has a row in the state `planned` once it has failed.
    attempts: int = 0
    # Whether a standing rule gave the approval. Then it is for one start of the call.
    approved_by_rule: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether this is a model call with an answer."""
        return self.call == 0 and self.state != "planned"

    @property
    def is_refused(self) -> bool:
        """Whether this is an answer of this run that cannot be used."""
        return self.call == 0 and self.outcome == "failed" and not self.copied

    @property
    def may_have_effect(self) -> bool:
        """Whether this is a tool call that was started, in this run or before."""
        return self.maybe_made or self.started_at is not None

    @property
    def place(self) -> tuple[int, int, int]:
        """Where the call is among the calls of its task."""
        return self.run, self.step, self.call

    @property
    def item_id(self) -> str:
        """The ID of this call in a review."""
        return f"call-{self.run}-{self.step}-{self.call}"

    @property
    def item_ids(self) -> list[str]:
        """The IDs of this call in reviews of this run and of those that it was copied from."""
        runs = range(self.planned_run or self.run, self.run + 1)
        return [f"call-{run}-{self.step}-{self.call}" for run in runs]

    @property
    def key(self) -> str:
        """Names the call in its task. It stays the same in a retry from failure."""
        return f"call-{self.planned_run or self.run}-{self.step}-{self.call}"

    @property
    def sealed_arguments(self) -> dict[str, Any]:
        """The exact arguments of the call. A call of an earlier version has only `arguments`."""
        return seals.arguments_of(self.sealed) if self.sealed else self.arguments or {}

    @property
    def sealed_server_id(self) -> str | None:
        """The ID of the tool server that the call is for."""
        server = json.loads(self.sealed)["server"] if self.sealed else None
        return str(server["id"]) if server else None

    @property
    def is_approved(self) -> bool:
        """Whether a person approved the call as it is sealed."""
        if self.sealed is None or self.approved_digest is None or self.approved_by_rule:
            return False
        return self.approved_digest == digest(self.sealed)


COLUMNS = ", ".join(field.name for field in fields(Step))
_WITHOUT_TEXTS = ", ".join(
    f"NULL AS {field.name}" if field.name in ("arguments", "sealed", "result") else field.name
    for field in fields(Step)
)


async def _of_run(
    tx: AccountReader, task_id: UUID, run: int, condition: str, *values: object
) -> list[Step]:
    rows = await tx.fetch(
        f"""
        SELECT {COLUMNS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND {condition} ORDER BY step, call
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        *values,
    )
    return [Step(**row) for row in rows]


async def of_run(tx: AccountReader, task_id: UUID, run: int, *, first_step: int = 1) -> list[Step]:
    """The calls of a run, from this step on."""
    return await _of_run(tx, task_id, run, "step >= $4", first_step)


async def of_last_step(tx: AccountReader, task_id: UUID, run: int) -> list[Step]:
    """The calls of the last step of a run."""
    last = "SELECT max(step) FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $3"
    return await _of_run(tx, task_id, run, f"step = ({last})")


async def model_calls(tx: AccountReader, task_id: UUID, run: int) -> list[Step]:
    """The model calls of a run, without their texts."""
    rows = await tx.fetch(
        f"""
        SELECT {_WITHOUT_TEXTS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND call = 0 ORDER BY step
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
    )
    return [Step(**row) for row in rows]


async def after(
    tx: AccountReader, task_id: UUID, place: tuple[int, int, int], limit: int
) -> list[Step]:
    """The calls of a task after this run, step and call, at most `limit`."""
    rows = await tx.fetch(
        f"""
        SELECT {COLUMNS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND (run, step, call) > ($3, $4, $5)
        ORDER BY run, step, call LIMIT $6
        """,  # noqa: S608
        tx.account_id,
        task_id,
        *place,
        limit,
    )
    return [Step(**row) for row in rows]


async def progress(tx: AccountReader, task_id: UUID, run: int) -> tuple[int, int, int]:
    """The number of finished and unfinished calls of a run, and what the finished ones cost.

    A call that a retry copied was paid for in the run that planned it.
    """
    row = await tx.fetchrow(
        """
        SELECT count(*) FILTER (WHERE s.state = 'finished') AS finished,
               count(*) FILTER (WHERE s.state <> 'finished') AS unfinished,
               coalesce(sum(paid.cost_micros) FILTER (WHERE s.state = 'finished'), 0)::bigint
                   AS cost_micros
        FROM steps s
        JOIN steps paid ON paid.account_id = $1 AND paid.task_id = $2
            AND paid.run = coalesce(s.planned_run, s.run)
            AND paid.step = s.step AND paid.call = s.call
        WHERE s.account_id = $1 AND s.task_id = $2 AND s.run = $3
          AND NOT (s.kind = 'model' AND s.state = 'planned')
        """,
        tx.account_id,
        task_id,
        run,
    )
    return row["finished"], row["unfinished"], row["cost_micros"]


async def any_without_open_tool_call(tx: AccountReader, tasks: Sequence[Task]) -> bool:
    """Whether the current run of one of these tasks has no open tool call.

    Such a run may have a model call in progress.
    """
    found = await tx.fetchval(
        """
        SELECT true FROM unnest($2::uuid[], $3::integer[]) AS t (id, run)
        WHERE NOT EXISTS (
            SELECT FROM steps s WHERE s.account_id = $1 AND s.task_id = t.id AND s.run = t.run
                AND s.kind = 'tool' AND s.state <> 'finished')
        LIMIT 1
        """,
        tx.account_id,
        [task.id for task in tasks],
        [task.run for task in tasks],
    )
    return bool(found)


async def calls_of(tx: AccountReader, task_id: UUID, run: int, step: int) -> list[Step]:
    """The tool calls of one step."""
    return await _of_run(tx, task_id, run, "step = $4 AND call > 0", step)


async def delegated_calls(tx: AccountReader, task_id: UUID, run: int) -> list[Step]:
    """The calls of a run that wait for a subtask."""
    return await _of_run(tx, task_id, run, "state = 'delegated'")


async def gated_calls(tx: AccountReader, task_id: UUID, run: int) -> list[Step]:
    """The calls of a run that wait for a person."""
    return await _of_run(tx, task_id, run, "state = 'gated'")


async def delegated_tasks(tx: AccountReader, task_id: UUID, run: int) -> list[UUID]:
    """The subtasks that a run delegated, those that they delegated, and so on."""
    rows = await tx.fetch(
        """
        WITH RECURSIVE below (id) AS (
            SELECT child_task_id FROM steps
            WHERE account_id = $1 AND task_id = $2 AND run = $3 AND child_task_id IS NOT NULL
            UNION
            SELECT s.child_task_id FROM below b
            JOIN steps s ON s.account_id = $1 AND s.task_id = b.id
            WHERE s.child_task_id IS NOT NULL
        )
        SELECT id FROM below
        """,
        tx.account_id,
        task_id,
        run,
    )
    return [row["id"] for row in rows]


async def one(tx: AccountReader, task_id: UUID, run: int, step: int, call: int) -> Step | None:
    row = await tx.fetchrow(
        f"""
        SELECT {COLUMNS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        step,
        call,
    )
    return Step(**row) if row else None


async def finish_model_call(tx: AccountTransaction, task_id: UUID, run: int, step: int) -> bool:
    """Marks the answer of a stored model call as applied. False if it already is."""
    finished = await tx.fetchval(
        """
        UPDATE steps SET state = 'finished', outcome = 'ok'
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = 0
          AND state = 'started'
        RETURNING true
        """,
        tx.account_id,
        task_id,
        run,
        step,
    )
    return bool(finished)


async def refuse_answer(tx: AccountTransaction, task_id: UUID, at: Step, note: str | None) -> None:
    """Marks an answer as unusable. The model gets the note after it."""
    await tx.execute(
        """
        UPDATE steps SET note = $5, outcome = 'failed'
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = 0
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        note,
    )


async def add_note(tx: AccountTransaction, task_id: UUID, at: Step, text: str) -> None:
    """Adds a message from a person, which the model gets after this step."""
    await tx.execute(
        """
        UPDATE steps SET note = $6
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        text,
    )


async def kept_run(tx: AccountReader, task: Task, before: int) -> int:
    """The run whose steps the run `before` keeps, if it continues from the failed step.

    It is not always the run before: that one may have ended before it began, at its deadline. Runs
    from before the last retry from the start do not count.
    """
    first = task.start_run or before - 1
    found: int = await tx.fetchval(
        """
        SELECT coalesce(max(run), $3) FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run >= $3 AND run < $4
        """,
        tx.account_id,
        task.id,
        first,
        before,
    )
    return found


async def copy_kept(tx: AccountTransaction, task: Task) -> None:
    """Copies the steps that a retry from failure keeps into the current run, without their cost.

    A call without a result counts as planned again, by this run. If it delegates again, that is to
    another subtask. An answer that the earlier run could not apply is not copied: the model is
    asked again.
    """
    await tx.execute(
        f"""
        INSERT INTO steps (account_id, task_id, {COLUMNS})
        SELECT account_id, task_id, $3, step, call, kind, state, name, server, call_id, read_only,
            arguments, sealed, approved_digest, maybe_made, coalesce(planned_run, run), result,
            outcome, note, CASE WHEN state <> 'planned' THEN child_task_id END, 0, 0, 0, 0, 0,
            estimated, 0, price_version, true,
            CASE WHEN state = 'finished' THEN planned_at ELSE clock_timestamp() END, started_at,
            finished_at, 0, approved_by_rule
        FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $4
          AND NOT (call = 0 AND state IN ('planned', 'started'))
        ON CONFLICT DO NOTHING
        """,  # noqa: S608
        tx.account_id,
        task.id,
        task.run,
        await kept_run(tx, task, task.run),
    )
