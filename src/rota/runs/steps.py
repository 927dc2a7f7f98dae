"""The transcript of a run: its steps in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction

State = Literal["planned", "gated", "started", "delegated", "finished"]


@dataclass(frozen=True, slots=True)
class Step:
    run: int
    step: int
    call: int
    kind: Literal["model", "tool"]
    state: State
    name: str
    server: str | None
    call_id: str | None
    read_only: bool
    arguments: dict[str, Any] | None
    definition_hash: str | None
    result: Any
    outcome: str | None
    note: str | None
    child_task_id: UUID | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    price_version: str | None
    copied: bool
    planned_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def item_id(self) -> str:
        """How a review names this call."""
        return f"call-{self.run}-{self.step}-{self.call}"


_COLUMNS = (
    "run, step, call, kind, state, name, server, call_id, read_only, arguments, definition_hash,"
    " result, outcome, note, child_task_id, input_tokens, output_tokens, cost_micros,"
    " price_version, copied, planned_at, started_at, finished_at"
)


async def of_run(tx: AccountReader, task_id: UUID, run: int) -> list[Step]:
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $3
        ORDER BY step, call
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
    )
    return [Step(**row) for row in rows]


async def asks_above(tx: AccountReader, task_id: UUID) -> bool:
    """Whether a run above this task may have a model call under way: no tool call of it is open."""
    asking = await tx.fetchval(
        """
        WITH RECURSIVE above (id) AS (
            SELECT parent_task_id FROM tasks WHERE account_id = $1 AND id = $2
            UNION ALL
            SELECT t.parent_task_id FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        )
        SELECT true FROM above a JOIN tasks t ON t.account_id = $1 AND t.id = a.id
        WHERE t.hosted AND t.status = 'RUNNING' AND NOT EXISTS (
            SELECT FROM steps s WHERE s.account_id = $1 AND s.task_id = t.id AND s.run = t.run
                AND s.kind = 'tool' AND s.state <> 'finished')
        LIMIT 1
        """,
        tx.account_id,
        task_id,
    )
    return bool(asking)


async def calls_of(tx: AccountReader, task_id: UUID, run: int, step: int) -> list[Step]:
    """The tool calls that one step asked for."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call > 0
        ORDER BY call
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        step,
    )
    return [Step(**row) for row in rows]


async def one(tx: AccountReader, task_id: UUID, run: int, step: int, call: int) -> Step | None:
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM steps
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        step,
        call,
    )
    return Step(**row) if row else None


@dataclass(frozen=True, slots=True)
class ModelCallRecord:
    """A finished model call, ready to be written down."""

    model: str
    response: Any
    input_tokens: int
    output_tokens: int
    cost_micros: int
    price_version: str
    started_at: datetime


async def record_thought(
    tx: AccountTransaction,
    task_id: UUID,
    run: int,
    step: int,
    thought: ModelCallRecord,
) -> bool:
    """Writes a model call down and counts it, once: False when it was there already."""
    recorded = await tx.fetchval(
        """
        WITH recorded AS (
            INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, result,
                outcome, input_tokens, output_tokens, cost_micros, price_version,
                planned_at, started_at, finished_at)
            VALUES ($1, $2, $3, $4, 0, 'model', 'finished', $5, $6, 'ok', $7, $8, $9, $10,
                $11, $11, clock_timestamp())
            ON CONFLICT DO NOTHING RETURNING true
        )
        UPDATE tasks SET steps = steps + 1, input_tokens = input_tokens + $7,
            output_tokens = output_tokens + $8, cost_micros = cost_micros + $9
        WHERE account_id = $1 AND id = $2 AND (SELECT true FROM recorded)
        RETURNING true
        """,
        tx.account_id,
        task_id,
        run,
        step,
        thought.model,
        thought.response,
        thought.input_tokens,
        thought.output_tokens,
        thought.cost_micros,
        thought.price_version,
        thought.started_at,
    )
    return bool(recorded)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    name: str
    server: str | None
    call_id: str
    read_only: bool
    arguments: dict[str, Any]
    definition_hash: str
    gated: bool


async def plan_calls(
    tx: AccountTransaction,
    task_id: UUID,
    run: int,
    step: int,
    calls: Sequence[PlannedCall],
) -> None:
    await tx.executemany(
        """
        INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, server,
            call_id, read_only, arguments, definition_hash)
        VALUES ($1, $2, $3, $4, $5, 'tool', $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT DO NOTHING
        """,
        [
            (
                tx.account_id,
                task_id,
                run,
                step,
                number,
                "gated" if call.gated else "planned",
                call.name,
                call.server,
                call.call_id,
                call.read_only,
                call.arguments,
                call.definition_hash,
            )
            for number, call in enumerate(calls, 1)
        ],
    )


async def set_state(
    tx: AccountTransaction,
    task_id: UUID,
    at: Step,
    state: State,
    *,
    arguments: dict[str, Any] | None = None,
    child_task_id: UUID | None = None,
    definition: tuple[str, bool] | None = None,
) -> None:
    """`definition` is the tool's as it is now: the hash of it, and whether it only reads."""
    await tx.execute(
        """
        UPDATE steps SET state = $6, arguments = coalesce($7, arguments),
            child_task_id = coalesce($8, child_task_id),
            definition_hash = coalesce($9, definition_hash),
            read_only = coalesce($10, read_only),
            started_at = CASE WHEN $6 IN ('started', 'delegated') THEN clock_timestamp()
                              WHEN $6 = 'planned' THEN NULL ELSE started_at END
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        state,
        arguments,
        child_task_id,
        *(definition or (None, None)),
    )


async def finish(
    tx: AccountTransaction,
    task_id: UUID,
    at: Step,
    result: Any,
    outcome: str,
) -> None:
    """The result of a tool call. The first one stays."""
    await tx.execute(
        """
        UPDATE steps SET state = 'finished', result = $6, outcome = $7,
            finished_at = clock_timestamp()
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
          AND state <> 'finished'
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        result,
        outcome,
    )


async def note(tx: AccountTransaction, task_id: UUID, at: Step, text: str) -> None:
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


async def take_over(tx: AccountTransaction, task_id: UUID, run: int) -> None:
    """Copies the steps of the run before into this one. What they cost was paid there."""
    await tx.execute(
        f"""
        INSERT INTO steps (account_id, task_id, {_COLUMNS})
        SELECT account_id, task_id, $3, step, call, kind, state, name, server, call_id, read_only,
            arguments, definition_hash, result, outcome, note, child_task_id, 0, 0, 0,
            price_version, true, planned_at, started_at, finished_at
        FROM steps WHERE account_id = $1 AND task_id = $2 AND run = $3 - 1
        ON CONFLICT DO NOTHING
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
    )
