"""The outbox: instructions written in the transaction of a change and handled after its commit.

The relay is a loop in every worker. In one transaction it locks due rows, calls the handler of
each and deletes the rows. After a crash, the rows are handled again. So a handler must
tolerate being called twice, and being called after the handler of a later instruction.
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

RELAYED = Counter("rota_outbox_relayed_total", "Instructions handled.", ["kind"])
FAILED = Counter("rota_outbox_failed_total", "Instructions that failed and are retried.", ["kind"])

POLL_EVERY_S = 0.5
MAX_BACKOFF_S = 60
# Instructions that one relay handles at the same time, in one transaction.
BATCH = 20
# Accounts take turns among this many of the oldest due instructions, so that an account with
# hundreds of instructions does not delay the others.
CANDIDATES = 1_000
# A handler keeps a row locked and a connection in use, so its time is limited.
HANDLER_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Instruction:
    account_id: UUID
    kind: str
    task_id: UUID | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Returned by a handler to keep the instruction: its next kind, and the delay until then."""

    kind: str
    delay_s: float
    # Failures in a row.
    attempts: int = 0


Handler = Callable[[Instruction], Awaitable[Reschedule | None]]


async def put(tx: AccountTransaction, instruction: Instruction, delay_s: float = 0) -> None:
    await tx.execute(
        """
        INSERT INTO outbox (account_id, kind, task_id, payload, due_at)
        VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))
        """,
        instruction.account_id,
        instruction.kind,
        instruction.task_id,
        instruction.payload,
        delay_s,
    )


class Relay:
    def __init__(self, db: Database, handlers: Mapping[str, Handler]) -> None:
        self._db = db
        self._handlers = handlers

    async def run(self) -> None:
        """Handles due instructions until it is cancelled."""
        while True:
            try:
                if not await self.step():
                    await asyncio.sleep(POLL_EVERY_S)
            except Exception:
                # Usually the database is down. The rows stay in it.
                log.exception("relay_failed")
                await asyncio.sleep(POLL_EVERY_S)

    async def step(self) -> bool:
        """Handles one batch of due instructions. Returns whether there were any."""
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
                BATCH,
                CANDIDATES,
            )
            outcomes = await asyncio.gather(*map(self._handle, rows))
            await _save_outcomes(connection, list(zip(rows, outcomes, strict=True)))
        return bool(rows)

    async def _handle(self, row: Any) -> Reschedule | None:
        """Calls the handler. A failed instruction is rescheduled with a growing delay."""
        kind = row["kind"]
        instruction = Instruction(row["account_id"], kind, row["task_id"], row["payload"])
        try:
            async with asyncio.timeout(HANDLER_TIMEOUT_S):
                outcome = await self._handlers[kind](instruction)
        except Exception as error:
            FAILED.labels(kind).inc()
            log.warning("instruction_failed", kind=kind, error=repr(error))
            delay_s = min(MAX_BACKOFF_S, 2 ** min(row["attempts"], 6))
            return Reschedule(kind, delay_s, attempts=row["attempts"] + 1)
        RELAYED.labels(kind).inc()
        return outcome


async def _save_outcomes(
    connection: WriteConnection, outcomes: list[tuple[Any, Reschedule | None]]
) -> None:
    if done := [row["id"] for row, outcome in outcomes if outcome is None]:
        await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", done)
    if again := [(row["id"], outcome) for row, outcome in outcomes if outcome is not None]:
        await connection.execute(
            """
            UPDATE outbox SET kind = r.kind, attempts = r.attempts,
                due_at = now() + make_interval(secs => r.delay_s)
            FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::float[])
                AS r (id, kind, attempts, delay_s)
            WHERE outbox.id = r.id
            """,
            [row_id for row_id, _ in again],
            [outcome.kind for _, outcome in again],
            [outcome.attempts for _, outcome in again],
            [outcome.delay_s for _, outcome in again],
        )
