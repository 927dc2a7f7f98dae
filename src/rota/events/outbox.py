"""The outbox: instructions written with the change that wants them, carried out after it.

The relay is a loop in every worker. It takes rows that nobody else has, hands
each to the handler of its kind and deletes them, all in one transaction, so a
crash anywhere means the rows are taken again. Handlers must not mind that, nor
that an instruction which failed before comes after a later one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Counter

from rota.platform.db import AccountTransaction, Database, WriteConnection

log = structlog.get_logger()

RELAYED = Counter("rota_outbox_relayed_total", "Instructions carried out.", ["kind"])
FAILED = Counter("rota_outbox_failed_total", "Instructions that will be tried again.", ["kind"])

LOOK_EVERY_S = 0.5
MAX_BACKOFF_S = 60
# Instructions that one loop has in hand, in one transaction.
AT_ONCE = 20
# Among this many that are due the longest, accounts take turns: one that has put in hundreds
# does not hold up another's few.
LOOK_AHEAD = 1_000
# A handler holds a row and a connection, so it has to end some time.
HANDLER_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Instruction:
    account_id: UUID
    kind: str
    task_id: UUID | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Later:
    """What a handler answers that wants to look again: as which kind, and after how long."""

    kind: str
    after_s: float
    # How often it has failed in a row.
    attempts: int = 0


Handler = Callable[[Instruction], Awaitable[Later | None]]


async def put(tx: AccountTransaction, instruction: Instruction) -> None:
    await tx.execute(
        "INSERT INTO outbox (account_id, kind, task_id, payload) VALUES ($1, $2, $3, $4)",
        instruction.account_id,
        instruction.kind,
        instruction.task_id,
        instruction.payload,
    )


class Relay:
    def __init__(self, db: Database, handlers: Mapping[str, Handler]) -> None:
        self._db = db
        self._handlers = handlers

    async def run(self) -> None:
        """Carries out what is due, for ever."""
        while True:
            try:
                if not await self.step():
                    await asyncio.sleep(LOOK_EVERY_S)
            except Exception:
                # The database is away, most likely. The rows are safe in it.
                log.exception("relay stumbled")
                await asyncio.sleep(LOOK_EVERY_S)

    async def step(self) -> bool:
        """Takes some instructions that are due, if there are any, and carries them out together."""
        async with self._db.relay() as connection:
            rows = await connection.fetch(
                """
                SELECT o.id, o.account_id, o.kind, o.task_id, o.payload, o.attempts
                FROM (
                    SELECT id, row_number()
                        OVER (PARTITION BY account_id ORDER BY due_at, id) AS turn
                    FROM (
                        SELECT id, account_id, due_at FROM outbox
                        WHERE due_at <= now() AND kind = ANY($1) ORDER BY due_at, id LIMIT $3
                    ) AS oldest
                ) AS fair
                JOIN outbox AS o USING (id)
                WHERE o.due_at <= now() AND o.kind = ANY($1)
                ORDER BY fair.turn, o.due_at, o.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
                """,
                list(self._handlers),
                AT_ONCE,
                LOOK_AHEAD,
            )
            outcomes = await asyncio.gather(*map(self._carry_out, rows))
            await _put_away(connection, list(zip(rows, outcomes, strict=True)))
        return bool(rows)

    async def _carry_out(self, row: Any) -> Later | None:
        """What comes after it: nothing, or another look. A failure is looked at again, too."""
        kind = row["kind"]
        instruction = Instruction(row["account_id"], kind, row["task_id"], row["payload"])
        try:
            async with asyncio.timeout(HANDLER_TIMEOUT_S):
                later = await self._handlers[kind](instruction)
        except Exception as error:
            FAILED.labels(kind).inc()
            log.warning("instruction failed", kind=kind, reason=repr(error))
            wait_s = min(MAX_BACKOFF_S, 2 ** min(row["attempts"], 6))
            return Later(kind, wait_s, attempts=row["attempts"] + 1)
        RELAYED.labels(kind).inc()
        return later


async def _put_away(connection: WriteConnection, outcomes: list[tuple[Any, Later | None]]) -> None:
    if done := [row["id"] for row, later in outcomes if later is None]:
        await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", done)
    if again := [(row["id"], later) for row, later in outcomes if later is not None]:
        await connection.execute(
            """
            UPDATE outbox SET kind = l.kind, attempts = l.attempts,
                due_at = now() + make_interval(secs => l.after_s)
            FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::float[])
                AS l (id, kind, attempts, after_s)
            WHERE outbox.id = l.id
            """,
            [row_id for row_id, _ in again],
            [later.kind for _, later in again],
            [later.attempts for _, later in again],
            [later.after_s for _, later in again],
        )
