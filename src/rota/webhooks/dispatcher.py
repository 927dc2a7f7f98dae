"""Finds webhooks that have something to send, and gives each a place in this worker.

A process that commits events announces their account to all workers (`events/fanout.py`). A worker
that knows a webhook of the account tries to take it, and one of them succeeds. A lost message loses
nothing, because workers also look from time to time.

A webhook has one place, however slow it is, and those that failed before have half of the places at
most. The webhooks of an account beyond the tenth share half of the places with those of others. So
a few accounts cannot take all places. If many accounts take them, turns are shorter.
"""

import asyncio
from collections import Counter
from uuid import UUID

import structlog
from prometheus_client import Gauge

from rota.events.fanout import Fanout
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.loops import is_set
from rota.webhooks import progress
from rota.webhooks.progress import Claim
from rota.webhooks.turns import DeliveryTurns

log = structlog.get_logger()

DISABLED = Gauge("rota_webhooks_disabled", "Webhooks that are disabled because deliveries failed.")
FAILING = Gauge("rota_webhooks_failing", "Webhooks whose deliveries fail and are tried again.")
OLDEST_SECONDS = Gauge(
    "rota_webhook_oldest_seconds", "How long the oldest event with a failing delivery has waited."
)

# Webhooks that a worker sends for at the same time, and how many of them may have failed before.
PLACES, FAILING_PLACES = 200, 100
# How many of them an account can have, and how many all accounts share beyond that.
OWN_PLACES, SHARED_PLACES = 10, 100
# How often a worker looks without a message.
POLL_EVERY_S = 30.0
# Announcements that arrive within this time share a look.
GATHER_S = 0.02
RETRY_AFTER_ERROR_S = 5.0
# Old deliveries: how often some are deleted, and how many at a time.
DELETE_EVERY_S, DELETE_AT_ONCE = 600.0, 1_000


class Dispatcher:
    def __init__(self, db: Database, fanout: Fanout, turns: DeliveryTurns) -> None:
        self._db = db
        self._fanout = fanout
        self._turns = turns
        # Accounts with an enabled webhook, as of the last look at all of them.
        self._known: set[UUID] = set()
        # Those that were added during a look.
        self._added: set[UUID] = set()
        # Those that may have something to send.
        self._announced: set[UUID] = set()
        self._woken = asyncio.Event()
        self._sending: dict[asyncio.Task[None], Claim] = {}
        self._poll_at = 0.0

    async def run(self) -> None:
        """Sends until it is cancelled."""
        try:
            async with self._fanout.watching(self._on_events, self._on_webhook):
                while True:
                    self._woken.clear()
                    try:
                        wait_s = await self.look()
                    except Exception as error:
                        # Usually the database is down. The webhooks stay in it.
                        log.exception("webhook_dispatch_failed", error=repr(error))
                        wait_s = clock.about(RETRY_AFTER_ERROR_S)
                    if await is_set(self._woken, wait_s):
                        await asyncio.sleep(GATHER_S)
        finally:
            await self._stop()

    async def look(self) -> float:
        """Starts to send for webhooks that have something to send. Returns how long to wait."""
        loop = asyncio.get_running_loop()
        room = PLACES - len(self._sending)
        if not room:
            return POLL_EVERY_S  # A place that becomes free wakes it.
        accounts, self._announced = self._announced, set()
        try:
            claims, due_s = await self._claim(accounts, room)
        except BaseException:
            # The next look is for them, too.
            self._announced |= accounts
            self._poll_at = 0.0
            raise
        for claim in claims:
            task = asyncio.create_task(self._take(claim))
            self._sending[task] = claim
            task.add_done_callback(self._ended)
        if len(claims) == room:
            self._announced |= accounts
        until_poll_s = max(0.0, self._poll_at - loop.time())
        # Not at once: what is due now has no place, or another worker takes it at this moment.
        return until_poll_s if due_s is None else min(until_poll_s, max(due_s, 0.5))

    async def _claim(self, accounts: set[UUID], room: int) -> tuple[list[Claim], float | None]:
        """Takes webhooks. Adds accounts that are behind to `accounts`. Also returns how long until
        another webhook is due."""
        loop = asyncio.get_running_loop()
        failing = sum(claim.webhook.attempts > 0 for claim in self._sending.values())
        taken = Counter(claim.account_id for claim in self._sending.values())
        async with self._db.relay() as connection:
            if loop.time() >= self._poll_at:
                self._added.clear()
                known, behind = await progress.with_webhooks(connection)
                self._known = known | self._added
                accounts |= behind
                disabled, failing_now, oldest_s = await progress.count(connection)
                self._poll_at = loop.time() + clock.about(POLL_EVERY_S)
                DISABLED.set(disabled)
                FAILING.set(failing_now)
                OLDEST_SECONDS.set(oldest_s)
            claims: list[Claim] = []
            due_s: float | None = None
            if self._known or accounts:
                claims = await progress.claim(
                    connection,
                    accounts,
                    limit=room,
                    failing=max(0, FAILING_PLACES - failing),
                    lease_s=self._turns.lease_s,
                    taken=taken,
                    own=OWN_PLACES,
                    shared=max(0, SHARED_PLACES - _beyond_own(taken)),
                    sending=[claim.webhook.id for claim in self._sending.values()],
                )
                due_s = await progress.next_due_s(connection)
        return claims, due_s

    async def delete_old(self) -> None:
        """Deletes old deliveries of all accounts, in small pieces."""
        while True:
            async with self._db.relay() as connection:
                deleted = await progress.delete_old(connection, DELETE_AT_ONCE)
            if deleted < DELETE_AT_ONCE:
                return

    def _on_events(self, account_id: UUID) -> None:
        if account_id in self._known:
            self._announced.add(account_id)
            self._woken.set()

    def _on_webhook(self, account_id: UUID) -> None:
        self._known.add(account_id)
        self._added.add(account_id)
        self._on_events(account_id)

    async def _take(self, claim: Claim) -> None:
        try:
            await self._turns.take(claim, lambda: len(self._sending) >= PLACES)
        except Exception as error:
            # Another worker takes it when the lease ends.
            log.exception("webhook_failed", webhook_id=str(claim.webhook.id), error=repr(error))

    def _ended(self, task: asyncio.Task[None]) -> None:
        claim = self._sending.pop(task)
        # Events that were committed while it was given back were announced too early.
        self._announced.add(claim.account_id)
        self._woken.set()

    async def _stop(self) -> None:
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        await self._turns.aclose()


def _beyond_own(taken: Counter[UUID]) -> int:
    return sum(max(0, count - OWN_PLACES) for count in taken.values())
