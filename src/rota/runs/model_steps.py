"""The SQL of model calls: how an answer and a failed attempt are stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.db import AccountTransaction
from rota.platform.ids import to_wire
from rota.runs.prices import TokenUsage
from rota.runs.steps import ModelCallKind


@dataclass(frozen=True, slots=True)
class ModelCallRecord:
    """A finished model call that is not stored yet."""

    model: str
    # None if the response cannot be stored.
    response: Any
    usage: TokenUsage
    cost_micros: int
    price_version: str
    started_at: datetime
    kind: ModelCallKind = "model"
    # `throughStep`: the last step that a summary replaces. `insteadOf`: the models before
    # it in the chain. `bytesPerToken`: the new estimate of the bytes per token, if it is lower.
    arguments: dict[str, Any] | None = None


async def record(
    tx: AccountTransaction, task_id: UUID, run: int, step: int, record: ModelCallRecord
) -> bool:
    """Stores a model call whose answer is not applied yet. False if it is already stored.

    The first answer stays, whoever stores it.
    """
    usage = record.usage
    recorded = await tx.fetchval(
        """
        INSERT INTO steps AS s (account_id, task_id, run, step, call, kind, state, name, result,
            input_tokens, output_tokens, cost_micros, price_version, planned_at, started_at,
            finished_at, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated,
            arguments)
        VALUES ($1, $2, $3, $4, 0, $16, 'started', $5, $6, $7, $8, $9, $10, $11, $11,
            clock_timestamp(), $12, $13, $14, $15, $17)
        ON CONFLICT (account_id, task_id, run, step, call) DO UPDATE
        SET kind = excluded.kind, state = excluded.state, name = excluded.name,
            result = excluded.result, arguments = excluded.arguments,
            input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
            cost_micros = excluded.cost_micros, price_version = excluded.price_version,
            started_at = excluded.started_at, finished_at = excluded.finished_at,
            cache_read_tokens = excluded.cache_read_tokens,
            cache_write_tokens = excluded.cache_write_tokens,
            reasoning_tokens = excluded.reasoning_tokens, estimated = excluded.estimated
        WHERE s.state = 'planned'
        RETURNING true
        """,
        tx.account_id,
        task_id,
        run,
        step,
        record.model,
        record.response,
        usage.input_tokens,
        usage.output_tokens,
        record.cost_micros,
        record.price_version,
        record.started_at,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        usage.estimated,
        record.kind,
        record.arguments,
    )
    return bool(recorded)


async def count_failure(
    tx: AccountTransaction, task_id: UUID, run: int, step: int, model: str
) -> int:
    """Counts a failed attempt of a model call. Returns how many have failed."""
    attempts: int | None = await tx.fetchval(
        """
        INSERT INTO steps AS s (account_id, task_id, run, step, call, kind, state, name, attempts)
        VALUES ($1, $2, $3, $4, 0, 'model', 'planned', $5, 1)
        ON CONFLICT (account_id, task_id, run, step, call)
            DO UPDATE SET attempts = s.attempts + 1
        RETURNING attempts
        """,
        tx.account_id,
        task_id,
        run,
        step,
        model,
    )
    assert attempts is not None
    details = {"run": run, "step": step, "call": 0, "kind": "model"}
    tx.record("step.attempt_failed", details, to_wire("task", task_id))
    return attempts
