"""The relay: handles the instructions in the outbox. Every worker has one for each lane.

It claims due instructions for a while, in one short transaction, calls their handlers without a
database connection, and deletes or reschedules them in a second transaction. If it dies between
the two, the lease ends and another relay handles the instructions again.
"""

import asyncio
import contextlib
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import structlog
from prometheus_client import Counter, Histogram

from rota.events.outbox import POLL_EVERY_S, Handler, Instruction, Unavailable, lane_of
from rota.events.wakes import Wakes
from rota.platform import clock
from rota.platform.db import DATABASE_ERRORS, Database, WriteConnection
from rota.platform.telemetry import without_secrets

log = structlog.get_logger()

RELAYED = Counter("rota_outbox_relayed_total", "Instructions handled.", ["kind"])
FAILED = Counter("rota_outbox_failed_total", "Instructions that failed and are retried.", ["kind"])
DEAD_LETTERS = Counter(
    "rota_outbox_dead_letters_total", "Instructions that became dead letters.", ["kind"]
)
WAIT_SECONDS = Histogram(
    "rota_outbox_wait_seconds",
    "Time from when an instruction is due until a relay takes it.",
    ["lane"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 5, 10, 60, 600),
)

# Instructions that one relay handles at the same time, and how many it claims at once.
ROOM = 40
BATCH = 20
LEASE_S = 15.0
RETRY_AFTER_ERROR_S = 1.0
MAX_BACKOFF_S = 60
# With the delays between them, about 14 minutes.
MAX_ATTEMPTS = 20
MAX_ERROR_LENGTH = 500

_OUTAGES = (Unavailable, TimeoutError, *DATABASE_ERRORS)
_NIL = UUID(int=0)

# The next accounts that have due instructions share the batch. Accounts are found by skipping
# through the index, so the length of an account's queue does not matter.
_CLAIM = """
    WITH RECURSIVE turns AS (
        (
            SELECT account_id, 1 AS number FROM outbox
            WHERE lane = $1 AND ready AND due_at <= now() AND kind = ANY($2) AND account_id > $3
            ORDER BY lane, account_id LIMIT 1
        )
        UNION ALL
        SELECT following.account_id, turns.number + 1
        FROM turns, LATERAL (
            SELECT o.account_id FROM outbox o
            WHERE o.lane = $1 AND o.ready AND o.due_at <= now() AND o.kind = ANY($2)
              AND o.account_id > turns.account_id
            ORDER BY o.lane, o.account_id LIMIT 1
        ) AS following
        WHERE turns.number < $4
    ), picked AS MATERIALIZED (
        SELECT share.id, share.due_at FROM turns, LATERAL (
            SELECT o.id, o.due_at FROM outbox o
            WHERE o.lane = $1 AND o.ready AND o.due_at <= now() AND o.kind = ANY($2)
              AND o.account_id = turns.account_id
            ORDER BY o.lane, o.account_id, o.due_at, o.id
            LIMIT (SELECT $4 / greatest(count(*), 1) FROM turns)
            FOR UPDATE SKIP LOCKED
        ) AS share
    ), claimed AS (
        UPDATE outbox SET ready = false, attempts = attempts + 1,
            due_at = now() + make_interval(secs => $5)
        WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING *
    )
    SELECT claimed.id, claimed.account_id, claimed.kind, claimed.task_id, claimed.payload,
        claimed.attempts, claimed.due_at, later.due_in, found.accounts,
        (SELECT extract(epoch FROM now() - picked.due_at)::float FROM picked
         WHERE picked.id = claimed.id) AS waited_s
    FROM (
        SELECT extract(epoch FROM min(due_at) - now())::float AS due_in FROM outbox
        WHERE lane = $1 AND NOT ready AND due_at < 'infinity'
    ) AS later
    CROSS JOIN (SELECT count(*)::integer AS accounts FROM turns) AS found
    LEFT JOIN claimed ON true
    """


@dataclass(frozen=True, slots=True)
class Claim:
    """An instruction that this relay handles until `until`. Its row has that time as its due_at."""

    id: int
    until: datetime
    attempts: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class _Saved:
    """What becomes of a claimed instruction that is kept. Without a delay it is a dead letter."""

    kind: str
    delay_s: float | None
    key: str | None = None
    attempts: int = 0
    error: str | None = None


Outcome = tuple[Claim, _Saved | None]


class Relay:
    def __init__(
        self,
        db: Database,
        handlers: Mapping[str, Handler],
        wakes: Wakes | None = None,
        *,
        lease_s: float = LEASE_S,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        [self.lane] = {lane_of(kind) for kind in handlers}
        self._db = db
        self._handlers = handlers
        for kind in handlers:
            for metric in (RELAYED, FAILED, DEAD_LETTERS):
                metric.labels(kind)
        self._wakes = wakes
        self._lease_s = lease_s
        # A handler ends in time to save what it did before the lease ends.
        self._timeout_s = lease_s * 2 / 3
        self._max_attempts = max_attempts
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._handling: dict[asyncio.Task[None], Claim] = {}
        self._outcomes: list[Outcome] = []
        self._saver: asyncio.Task[None] | None = None
        # The last account that had its turn, if there are more than fit into a batch.
        self._last_account = _NIL

    async def run(self) -> None:
        """Handles due instructions until it is cancelled."""
        listener = asyncio.create_task(self._wakes.listen(self)) if self._wakes else None
        try:
            while True:
                await self.room()
                self._woken.clear()
                if wait_s := await self._look():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(wait_s):
                            await self._woken.wait()
        finally:
            if listener is not None:
                listener.cancel()
            await self._release()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def room(self) -> None:
        """Waits until the relay can handle another instruction."""
        await self._room.wait()

    def wake(self) -> None:
        self._woken.set()

    async def step(self) -> bool:
        """Handles one batch of due instructions. Returns whether there were any."""
        claims, _ = await self._claim(BATCH)
        outcomes = await asyncio.gather(*map(self._handle, claims))
        await self._save(list(zip(claims, outcomes, strict=True)))
        return bool(claims)

    async def _look(self) -> float:
        """Starts to handle due instructions. Returns how long to wait before the next look."""
        asked = min(BATCH, ROOM - len(self._handling))
        try:
            claims, wait_s = await self._claim(asked)
        except Exception:
            # Usually the database is down. The instructions stay in it.
            log.exception("relay_failed")
            return clock.about(RETRY_AFTER_ERROR_S)
        for claim in claims:
            task = asyncio.create_task(self._work(claim))
            self._handling[task] = claim
            task.add_done_callback(self._finished)
        if len(self._handling) >= ROOM:
            self._room.clear()
        if claims and not wait_s and self._wakes is not None:
            # Another worker may have room for the rest.
            self._wakes.wake_others(self.lane)
        return wait_s

    async def _claim(self, limit: int) -> tuple[list[Claim], float]:
        """Claims due instructions. Also returns how long to wait for more."""
        arguments = (self.lane, list(self._handlers), self._last_account, limit, self._lease_s)
        async with self._db.relay(by_index=True) as connection:
            rows = await connection.fetch(_CLAIM, *arguments)
            if (due_in_s := rows[0]["due_in"]) is not None and due_in_s <= 0:
                await self._make_ready(connection)
                if rows[0]["id"] is None:
                    rows = await connection.fetch(_CLAIM, *arguments)
        claims = [_claim_of(row) for row in rows if row["id"] is not None]
        if not claims and self._last_account != _NIL:
            self._last_account = _NIL
            return await self._claim(limit)
        for row in rows[: len(claims)]:
            WAIT_SECONDS.labels(self.lane).observe(row["waited_s"])
        started_at, self._last_account = self._last_account, _NIL
        taken = Tally(claim.instruction.account_id for claim in claims)
        accounts: int = rows[0]["accounts"]
        if taken and accounts == limit:
            self._last_account = max(taken)
        if started_at != _NIL or (taken and max(taken.values()) >= limit // accounts):
            return claims, 0  # Other accounts have not had their turn, or one has more.
        poll_s = clock.about(POLL_EVERY_S)
        due_in_s = rows[0]["due_in"]
        return claims, poll_s if due_in_s is None else min(poll_s, max(due_in_s, 0.001))

    async def _make_ready(self, connection: WriteConnection) -> None:
        """Makes instructions ready that have become due, or whose relay has died."""
        await connection.execute(
            """
            UPDATE outbox SET ready = true WHERE id = ANY(ARRAY(
                SELECT id FROM outbox WHERE lane = $1 AND NOT ready AND due_at <= now()
                ORDER BY lane, due_at LIMIT 500 FOR UPDATE SKIP LOCKED
            ))
            """,
            self.lane,
        )

    async def _work(self, claim: Claim) -> None:
        outcome = await self._handle(claim)
        self._outcomes.append((claim, outcome))
        if self._saver is None or self._saver.done():
            self._saver = asyncio.create_task(self._save_outcomes())

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._handling[task]
        self._room.set()

    async def _handle(self, claim: Claim) -> _Saved | None:
        """Calls the handler. A failed instruction is rescheduled with a growing delay."""
        kind, attempts = claim.instruction.kind, claim.attempts
        if attempts > self._max_attempts:
            return self._dead_letter(claim, "The process ended during every attempt.")
        try:
            async with asyncio.timeout(self._timeout_s):
                outcome = await self._handlers[kind](claim.instruction)
        except Exception as error:
            FAILED.labels(kind).inc()
            log.warning("instruction_failed", kind=kind, id=claim.id, error=repr(error))
            text = without_secrets(f"{type(error).__name__}: {error}")[:MAX_ERROR_LENGTH]
            if isinstance(error, _OUTAGES):
                # After an outage, everything continues by itself: no dead letters.
                attempts = min(attempts, self._max_attempts // 2)
            elif attempts >= self._max_attempts:
                return self._dead_letter(claim, text)
            delay_s = min(MAX_BACKOFF_S, 2 ** min(claim.attempts - 1, 6))
            return _Saved(kind, delay_s, attempts=attempts, error=text)
        RELAYED.labels(kind).inc()
        return _Saved(outcome.kind, outcome.delay_s, outcome.key) if outcome else None

    def _dead_letter(self, claim: Claim, why: str) -> _Saved:
        kind = claim.instruction.kind
        DEAD_LETTERS.labels(kind).inc()
        log.error(
            "instruction_dead",
            id=claim.id,
            kind=kind,
            account_id=str(claim.instruction.account_id),
            task_id=str(claim.instruction.task_id),
            attempts=claim.attempts,
            error=why,
        )
        return _Saved(kind, None, attempts=claim.attempts, error=why)

    async def _save_outcomes(self) -> None:
        """Saves what is finished, one transaction at a time. Later outcomes share the next."""
        while self._outcomes:
            outcomes, self._outcomes = self._outcomes, []
            try:
                await self._save(outcomes)
            except Exception:
                # The instructions are handled again when their leases end.
                log.exception("relay_failed")
            if any(saved and (saved.delay_s or 0) < POLL_EVERY_S for _, saved in outcomes):
                self.wake()  # To know when the next one is due.

    async def _save(self, outcomes: Sequence[Outcome]) -> None:
        if not outcomes:
            return
        while True:
            try:
                async with self._db.relay(by_index=True) as connection:
                    await _write(connection, _once_per_key(outcomes))
                return
            except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
                # Another relay saved an instruction with the same key at the same moment.
                continue

    async def _release(self) -> None:
        """Gives back what is not finished, so that another relay can take it at once."""
        claims = list(self._handling.values())
        for task in self._handling:
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        if self._saver is not None:
            await self._saver
        if not claims:
            return
        with contextlib.suppress(*DATABASE_ERRORS):
            async with self._db.relay(by_index=True) as connection:
                await connection.execute(
                    """
                    UPDATE outbox SET ready = true, due_at = now(), attempts = attempts - 1
                    WHERE id = ANY($1)
                      AND due_at = ($2::timestamptz[])[array_position($1::bigint[], id)]
                    """,
                    [claim.id for claim in claims],
                    [claim.until for claim in claims],
                )


def _claim_of(row: Any) -> Claim:
    instruction = Instruction(row["account_id"], row["kind"], row["task_id"], row["payload"])
    return Claim(row["id"], row["due_at"], row["attempts"], instruction)


def _once_per_key(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Keeps only the first of the instructions that would have the same key."""
    seen: set[tuple[UUID, str]] = set()
    kept: list[Outcome] = []
    for claim, saved in outcomes:
        if saved is not None and saved.key is not None:
            key = (claim.instruction.account_id, saved.key)
            kept.append((claim, None if key in seen else saved))
            seen.add(key)
        else:
            kept.append((claim, saved))
    return kept


async def _write(connection: WriteConnection, outcomes: Sequence[Outcome]) -> None:
    """Deletes or reschedules instructions whose lease is still that of the claim."""
    # It skips instructions that are being deleted, so it never waits for a lock.
    rows = await connection.fetch(
        """
        SELECT id FROM outbox WHERE id = ANY($1)
            AND due_at = ($2::timestamptz[])[array_position($1::bigint[], id)]
        FOR UPDATE SKIP LOCKED
        """,
        [claim.id for claim, _ in outcomes],
        [claim.until for claim, _ in outcomes],
    )
    ours = {row["id"] for row in rows}
    kept = [(claim.id, saved) for claim, saved in outcomes if saved and claim.id in ours]
    done = [claim.id for claim, saved in outcomes if not saved and claim.id in ours]
    if done:
        # First, since one of them can have the key that another takes over.
        await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", done)
    if keyed := [(row_id, saved.key) for row_id, saved in kept if saved.key]:
        await connection.execute(
            """
            DELETE FROM outbox o WHERE o.id = ANY($1) AND EXISTS (
                SELECT FROM outbox other WHERE other.account_id = o.account_id
                AND other.key = ($2::text[])[array_position($1::bigint[], o.id)]
                AND other.id <> o.id
            )
            """,
            [row_id for row_id, _ in keyed],
            [key for _, key in keyed],
        )
    if kept:
        await connection.execute(
            """
            UPDATE outbox SET kind = r.kind, key = coalesce(r.key, outbox.key),
                attempts = r.attempts, error = r.error,
                dead_at = CASE WHEN r.delay_s IS NULL THEN now() END,
                due_at = coalesce(now() + make_interval(secs => r.delay_s), 'infinity')
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[],
                $6::float[]) AS r (id, kind, key, attempts, error, delay_s)
            WHERE outbox.id = r.id AND outbox.id = ANY($1)
            """,
            [row_id for row_id, _ in kept],
            [saved.kind for _, saved in kept],
            [saved.key for _, saved in kept],
            [saved.attempts for _, saved in kept],
            [saved.error for _, saved in kept],
            [saved.delay_s for _, saved in kept],
        )
