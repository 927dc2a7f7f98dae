"""The timeline of a task: each model call, tool call and approval, ordered by start time."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.auth.caller import Caller
from rota.platform.db import AccountReader, Database
from rota.tasks import queries as tasks
from rota.tasks import review_queries
from rota.tasks.model import Credential
from rota.tasks.pages import PAGE_BYTES, WHOLE, Fit, fitting

CutValue = Literal["arguments", "result"]


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    kind: Literal["model", "summary", "tool", "approval"]
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
    decided_with: Credential | None
    # What the model was told after this call.
    note: str | None
    # Whether a fork copied the call from the task that it was forked from.
    copied: bool
    # What was cut, because the page would have been too large.
    truncated: list[CutValue]


# A call that a retry copied from the previous run appears once. A finished one is in the run that
# made it. Any other is in the run that goes on with it, from the time of the copy. The row of the
# earlier run is then left out, unless it delegated to a subtask of its own. The copies in a first
# run are those of a fork: another task made them, so they appear here too. The database sorts steps
# and reviews together, so the reviews' part comes from their own package.
_ENTRIES = f"""
    SELECT format('call-%s-%s-%s', run, step, call) AS id, kind, run, step, name, server, state,
           outcome, arguments, result, child_task_id, input_tokens, output_tokens,
           cache_read_tokens AS cached_input_tokens, cache_write_tokens, reasoning_tokens,
           estimated, cost_micros, price_version,
           CASE WHEN planned_run IS NULL THEN coalesce(started_at, planned_at)
                ELSE greatest(started_at, planned_at) END AS started_at,
           finished_at, NULL::uuid AS decided_by, NULL::jsonb AS decided_with, note,
           copied AND run = 1 AS copied
    FROM steps WHERE account_id = $1 AND task_id = $2
      AND NOT (copied AND run > 1 AND state = 'finished')
      AND NOT (kind = 'model' AND state = 'planned')
      AND (state = 'finished' OR NOT EXISTS (
        SELECT FROM steps later WHERE later.account_id = $1 AND later.task_id = $2
          AND later.run > steps.run AND later.step = steps.step AND later.call = steps.call
          AND later.planned_run = coalesce(steps.planned_run, steps.run)
          AND NOT (later.copied AND later.state = 'finished')
          AND (steps.child_task_id IS NULL OR later.child_task_id = steps.child_task_id)))
    UNION ALL
    {review_queries.TIMELINE_ENTRIES}
"""  # noqa: S608


_SHORT = ", ".join(
    f.name for f in fields(Entry) if f.name not in ("arguments", "result", "truncated")
)
# A page of entries. $5 and $6 are the fields of `Fit`. A cut value becomes the beginning of its
# text, except for the answer of a model, whose texts are cut.
_CUT = r"""
    to_jsonb(left({0} #>> '{{}}', $6) ||
        format(E'\n[truncated from %s characters]', length({0} #>> '{{}}')))
"""
_PAGE = f"""
    SELECT {_SHORT},
        CASE WHEN cut_arguments THEN {_CUT.format("arguments")} ELSE arguments END AS arguments,
        CASE WHEN NOT cut_result THEN result
            WHEN kind IN ('model', 'summary') THEN jsonb_build_object('parts', (
                SELECT jsonb_agg((part - 'args') || CASE WHEN part ? 'content' THEN
                    jsonb_build_object('content', left(part ->> 'content', $6)) ELSE '{{}}' END
                    ORDER BY number)
                FROM jsonb_array_elements(result -> 'parts') WITH ORDINALITY AS p (part, number)))
            ELSE {_CUT.format("result")} END AS result,
        array_remove(ARRAY[CASE WHEN cut_arguments THEN 'arguments' END,
            CASE WHEN cut_result THEN 'result' END], NULL) AS truncated
    FROM (
        SELECT *, NOT whole AND coalesce(octet_length(arguments::text) > $6::integer, false)
                AS cut_arguments,
            NOT whole AND coalesce(octet_length(result::text) > $6, false) AS cut_result
        FROM (
            SELECT *, sum(coalesce(octet_length(arguments::text), 0)
                + coalesce(octet_length(result::text), 0)) OVER () <= $5::bigint AS whole
            FROM ({_ENTRIES} ORDER BY started_at, id LIMIT $3 OFFSET $4) AS entries
        ) AS weighed
    ) AS page
    ORDER BY started_at, id
"""  # noqa: S608


async def page(
    tx: AccountReader, task_id: UUID, limit: int, offset: int
) -> tuple[list[Entry], int]:
    """A page of entries, and how many there are in total. A page of one entry is whole."""
    total: int = await tx.fetchval(
        f"SELECT count(*) FROM ({_ENTRIES}) AS entries",  # noqa: S608
        tx.account_id,
        task_id,
    )

    async def read(fit: Fit) -> list[Entry]:
        rows = await tx.fetch(
            _PAGE, tx.account_id, task_id, limit, offset, fit.whole_bytes, fit.cut
        )
        return [Entry(**row) for row in rows]

    if limit == 1:
        return await read(WHOLE), total
    return await fitting(read, lambda entry: (entry.arguments, entry.result), PAGE_BYTES), total


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
