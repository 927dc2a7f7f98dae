"""The SQL of tool calls: how a call is planned, approved, started and finished."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform import json
from rota.platform.canonical import canonical_json, digest
from rota.platform.db import AccountTransaction
from rota.platform.ids import to_wire
from rota.runs import step_events, steps, transcript
from rota.runs.steps import COLUMNS, State, Step
from rota.tasks.model import ReviewItem


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


async def store_planned(
    tx: AccountTransaction,
    task_id: UUID,
    run: int,
    step: int,
    calls: Sequence[PlannedCall],
) -> list[Step]:
    """Stores the calls that an answer requests, in one statement."""
    rows = await tx.fetch(
        f"""
        INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, server,
            call_id, read_only, arguments, sealed, result, outcome, finished_at)
        SELECT $1, $2, $3, $4, c.call, 'tool', c.state, c.name, c.server, c.call_id, c.read_only,
            c.arguments::jsonb, c.sealed, to_jsonb(c.problem),
            CASE WHEN c.state = 'finished' THEN 'failed' END,
            CASE WHEN c.state = 'finished' THEN clock_timestamp() END
        FROM unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::text[],
                    $11::text[], $12::text[]) WITH ORDINALITY
            AS c (state, name, server, call_id, read_only, arguments, sealed, problem, call)
        RETURNING {COLUMNS}
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        step,
        ["finished" if call.problem else "gated" if call.gated else "planned" for call in calls],
        [call.name for call in calls],
        [call.server for call in calls],
        [call.call_id for call in calls],
        [call.read_only for call in calls],
        [json.dumps(call.arguments).decode() for call in calls],
        [call.sealed for call in calls],
        [call.problem for call in calls],
    )
    return sorted((Step(**row) for row in rows), key=lambda row: row.call)


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


async def count_failure(tx: AccountTransaction, task_id: UUID, at: Step) -> int:
    """Counts a failed attempt of a call that can be repeated. Returns how many have failed."""
    attempts: int = await tx.fetchval(
        """
        UPDATE steps SET attempts = attempts + 1, state = 'planned', started_at = NULL
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        RETURNING attempts
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
    )
    tx.record("step.attempt_failed", step_events.of_tool(at), to_wire("task", task_id))
    return attempts


async def start(
    tx: AccountTransaction, task_id: UUID, run: int, step: int, calls: Sequence[int]
) -> dict[int, datetime]:
    """Marks calls of a step as started. The time identifies this attempt of a call."""
    rows = await tx.fetch(
        """
        UPDATE steps SET state = 'started', started_at = clock_timestamp()
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = ANY($5)
        RETURNING call, started_at
        """,
        tx.account_id,
        task_id,
        run,
        step,
        calls,
    )
    return {row["call"]: row["started_at"] for row in rows}


async def approve(tx: AccountTransaction, task_id: UUID, at: Step, item: ReviewItem) -> None:
    """Lets a call start, exactly as the item of a review that a person approved says."""
    await tx.execute(
        """
        UPDATE steps SET state = 'planned', arguments = $6, sealed = $7, approved_digest = $8,
            approved_by_rule = false, started_at = NULL
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


async def idempotency_key(tx: AccountTransaction, task_id: UUID, at: Step) -> str:
    """What identifies a call for its tool server. It stays the same when the call is repeated.

    Arguments that a person edited have another key: a server may have stored the result of the
    first ones.
    """
    key = f"{task_id.hex}-{at.key}"
    # Only a person who approves a call can edit it.
    model_call = await steps.one(tx, task_id, at.run, at.step, 0) if at.is_approved else None
    if model_call is None or model_call.result is None:
        return key
    if not transcript.is_edited(transcript.response_of(model_call), at):
        return key
    return f"{key}-{digest(canonical_json(at.sealed_arguments))[:16]}"


async def approve_start(tx: AccountTransaction, task_id: UUID, at: Step) -> None:
    """Stores that a standing rule approved this start of the call."""
    assert at.sealed is not None
    await tx.execute(
        """
        UPDATE steps SET approved_digest = $6, approved_by_rule = true
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        digest(at.sealed),
    )


async def undo_start(tx: AccountTransaction, task_id: UUID, at: Step) -> None:
    """Lets a call that did not reach its tool start again. A rule has to approve that again."""
    await tx.execute(
        """
        UPDATE steps SET state = 'planned', started_at = NULL, approved_by_rule = false,
            approved_digest = CASE WHEN approved_by_rule THEN NULL ELSE approved_digest END
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
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
    """Sends a call back to a person. An earlier approval no longer counts.

    Unless it may have been made, it counts as not started.
    """
    await tx.execute(
        """
        UPDATE steps SET state = 'gated', sealed = $6::text,
            arguments = $6::text::jsonb -> 'arguments', approved_digest = NULL,
            approved_by_rule = false, read_only = $7, maybe_made = maybe_made OR $8,
            started_at = CASE WHEN maybe_made OR $8 THEN started_at END
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
) -> bool:
    """Stores the result of a tool call. A stored result is never replaced.

    A call that a retry copied without a result belongs to the run that finishes it. Returns whether
    this was the last open call of its step.
    """
    was_last = await tx.fetchval(
        """
        UPDATE steps AS s SET state = 'finished', result = $6, outcome = $7,
            finished_at = clock_timestamp(), copied = false
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND step = $4 AND call = $5
          AND state <> 'finished'
        RETURNING NOT EXISTS (
            SELECT FROM steps o WHERE o.account_id = $1 AND o.task_id = $2 AND o.run = $3
              AND o.step = $4 AND o.call NOT IN (0, $5) AND o.state <> 'finished')
        """,
        tx.account_id,
        task_id,
        at.run,
        at.step,
        at.call,
        result,
        outcome,
    )
    if was_last is None:
        return False
    await step_events.tool_calls_finished(tx, task_id, [replace(at, outcome=outcome)])
    return bool(was_last)
