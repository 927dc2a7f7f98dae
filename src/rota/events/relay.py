"""The relay: handles the instructions in the outbox. Every worker has one for each lane.

It claims due instructions for a while, in one short transaction, calls their handlers without a
database connection, and deletes or reschedules them in a second transaction. If it dies between
the two, the lease ends and another relay handles the instructions again.
"""

import asyncio
import contextlib
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg
import structlog
from prometheus_client import Counter, Histogram

from rota.events import outbox
from rota.events.outbox import POLL_EVERY_S, Claim, Handler, Outcome, Saved, Unavailable, lane_of
from rota.events.wakes import Wakes
from rota.platform import clock
from rota.platform.db import DATABASE_ERRORS, Database
from rota.platform.loops import is_set
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
                    await is_set(self._woken, wait_s)
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
            rows = await connection.fetch(outbox.CLAIM, *arguments)
            if (due_in_s := rows[0]["due_in"]) is not None and due_in_s <= 0:
                await outbox.make_ready(connection, self.lane)
                if rows[0]["id"] is None:
                    rows = await connection.fetch(outbox.CLAIM, *arguments)
        claims = [outbox.claim_of(row) for row in rows if row["id"] is not None]
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

    async def _work(self, claim: Claim) -> None:
        outcome = await self._handle(claim)
        self._outcomes.append((claim, outcome))
        if self._saver is None or self._saver.done():
            self._saver = asyncio.create_task(self._save_outcomes())

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._handling[task]
        self._room.set()

    async def _handle(self, claim: Claim) -> Saved | None:
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
            return Saved(kind, delay_s, attempts=attempts, error=text)
        RELAYED.labels(kind).inc()
        return Saved(outcome.kind, outcome.delay_s, outcome.key) if outcome else None

    def _dead_letter(self, claim: Claim, why: str) -> Saved:
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
        return Saved(kind, None, attempts=claim.attempts, error=why)

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
                    await outbox.save_outcomes(connection, outcomes)
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
                await outbox.give_back(connection, claims)
