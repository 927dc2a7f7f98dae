"""The SQL of tool calls: how a call is planned, approved, started and finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.db import AccountTransaction
from rota.runs.steps import State, Step


@dataclass(frozen=True, slots=True)
class PlannedCall:
    name: str
    server: str | None
    call_id: str
    read_only: bool
    arguments: dict[str, Any]
    sealed: str | None
    gated: bool
    # Why the call is not made. The model gets this as the result.
    problem: str | None = None


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
            call_id, read_only, arguments, sealed, result, outcome, finished_at)
        VALUES ($1, $2, $3, $4, $5, 'tool', $6, $7, $8, $9, $10, $11, $12, $13,
            CASE WHEN $6 = 'finished' THEN 'failed' END,
            CASE WHEN $6 = 'finished' THEN clock_timestamp() END)
        ON CONFLICT DO NOTHING
        """,
        [
            (
                tx.account_id,
                task_id,
                run,
                step,
                number,
                "finished" if call.problem else "gated" if call.gated else "planned",
                call.name,
                call.server,
                call.call_id,
                call.read_only,
                call.arguments,
                call.sealed,
                call.problem,
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
    child_task_id: UUID | None = None,
) -> None:
    """Sets a call's state, and the subtask that it created."""
    await tx.execute(
        """
        UPDATE steps SET state = $6, child_task_id = coalesce($7, child_task_id),
            started_at = CASE WHEN $6 = 'delegated' THEN clock_timestamp()
                              WHEN $6 = 'planned' THEN NULL ELSE started_at END
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        state,
        child_task_id,
    )


async def start(tx: AccountTransaction, task_id: UUID, at: Step) -> datetime:
    """Marks a call as started. The time identifies this attempt."""
    started_at: datetime = await tx.fetchval(
        """
        UPDATE steps SET state = 'started', started_at = clock_timestamp()
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        RETURNING started_at
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
    )
    return started_at


async def approve(tx: AccountTransaction, task_id: UUID, at: Step, item: Mapping[str, Any]) -> None:
    """Lets a call start, exactly as the item of a review that a person approved says."""
    await tx.execute(
        """
        UPDATE steps SET state = 'planned', arguments = $6, sealed = $7, approved_digest = $8,
            started_at = NULL
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        item["arguments"],
        # An item of an earlier version is not sealed. The model has to call the tool again.
        item.get("sealed"),
        item.get("digest"),
    )


async def gate_again(
    tx: AccountTransaction,
    task_id: UUID,
    at: Step,
    sealed: str,
    *,
    read_only: bool,
    maybe_made: bool,
) -> None:
    """Sends a call back to a person. An earlier approval no longer counts."""
    await tx.execute(
        """
        UPDATE steps SET state = 'gated', sealed = $6, approved_digest = NULL, read_only = $7,
            maybe_made = maybe_made OR $8
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        sealed,
        read_only,
        maybe_made,
    )


async def finish(
    tx: AccountTransaction,
    task_id: UUID,
    at: Step,
    result: Any,
    outcome: str,
) -> None:
    """Stores the result of a tool call. A stored result is never replaced."""
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
