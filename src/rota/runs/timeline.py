"""The timeline of a task: each model call, tool call and approval, ordered by start time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.auth.caller import Caller
from rota.platform.db import AccountReader, Database
from rota.tasks import queries as tasks
from rota.tasks import review_queries


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    kind: Literal["model", "tool", "approval"]
    run: int
    step: int | None
    name: str | None
    server: str | None
    state: str
    outcome: str | None
    arguments: Any
    result: Any
    child_task_id: UUID | None
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated: bool
    cost_micros: int
    price_version: str | None
    started_at: datetime
    finished_at: datetime | None
    decided_by: UUID | None
    decided_with: dict[str, Any] | None


# Steps that a retry copied from the previous run appear once, in the run that made them. The
# database sorts steps and reviews together, so the reviews' part comes from their own package.
_ENTRIES = f"""
    SELECT format('call-%s-%s-%s', run, step, call) AS id, kind, run, step, name, server, state,
           outcome, arguments, result, child_task_id, input_tokens, output_tokens,
           cache_read_tokens AS cached_input_tokens, cache_write_tokens, reasoning_tokens,
           estimated, cost_micros, price_version, coalesce(started_at, planned_at) AS started_at,
           finished_at, NULL::uuid AS decided_by, NULL::jsonb AS decided_with
    FROM steps WHERE account_id = $1 AND task_id = $2 AND NOT copied
      AND NOT (kind = 'model' AND state = 'planned')
    UNION ALL
    {review_queries.TIMELINE_ENTRIES}
"""  # noqa: S608


async def page(
    tx: AccountReader, task_id: UUID, limit: int, offset: int
) -> tuple[list[Entry], int]:
    """A page of entries, and how many there are in total."""
    total: int = await tx.fetchval(
        f"SELECT count(*) FROM ({_ENTRIES}) AS entries",  # noqa: S608
        tx.account_id,
        task_id,
    )
    rows = await tx.fetch(
        f"{_ENTRIES} ORDER BY started_at, id LIMIT $3 OFFSET $4",
        tx.account_id,
        task_id,
        limit,
        offset,
    )
    return [Entry(**row) for row in rows], total


class Timelines:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def page(
        self, caller: Caller, task_id: UUID | None, limit: int, offset: int
    ) -> tuple[list[Entry], int]:
        """A page of one task's timeline, if the task belongs to the caller's account."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            task = await tasks.get(tx, task_id)
            return await page(tx, task.id, limit, offset)
