"""Sends the events of a webhook that this worker has taken, one after the other.

Confirmed deliveries are saved together, at least once a second. If the worker dies before that,
another one sends them again. A webhook that has everything is kept for a moment, because events
often follow each other: the next one then needs neither another claim nor another connection.
"""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import httpx2
import structlog
from prometheus_client import Counter, Histogram

from rota.accounts import queries as accounts
from rota.events import journal, notices
from rota.events.fanout import Fanout
from rota.platform import clock, ids
from rota.platform.cache import SharedCalls
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import RateLimited
from rota.webhooks import progress, queries
from rota.webhooks.model import Delivery, DisabledReason
from rota.webhooks.progress import Claim, Position
from rota.webhooks.sender import Attempt, Sender

log = structlog.get_logger()

DELIVERIES = Counter("rota_webhook_deliveries_total", "Attempts to deliver an event.", ["outcome"])
for _outcome in ("delivered", "refused", "unreachable"):
    DELIVERIES.labels(_outcome)
DELAY = Histogram(
    "rota_webhook_delay_seconds",
    "Time from an event to the response that confirms it.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 600, 3600, 86400),
)
DISABLED = Counter("rota_webhook_disabled_total", "Webhooks that were disabled.", ["reason"])
for _reason in ("failing", "gone"):
    DISABLED.labels(_reason)
SKIPPED = Counter("rota_webhook_skipped_total", "Events that were deleted before their delivery.")

# Events read at a time.
PAGE = 100
# Confirmed deliveries are saved when there are this many, or after this long.
SAVE_AFTER, SAVE_AFTER_S = 20, 1.0
LEASE_MARGIN_S = 5.0
# For how long a webhook without further events is kept.
KEEP_S = 1.0
# After this long, another webhook can have the place.
TURN_S = 30.0
# How soon a webhook continues that would exceed a limit of its account.
LIMITED_S = 5.0
# The pauses after each failed attempt. Later ones are as long as the last.
PAUSES_S = (2, 10, 60, 300, 1_800, 7_200, 18_000, 36_000)
# A webhook that fails for this long is disabled.
GIVE_UP_AFTER = timedelta(days=3)


# How soon a webhook is looked at again whose account cannot be used. Usually it is deleted by then.
ACCOUNT_GONE_S = 3_600.0


class _Lost(Exception):
    """The webhook was changed or deleted, or another worker has it."""


class _Gone(Exception):
    """The account was deleted or cannot be used any more, so nothing is sent for it."""


class Turns:
    def __init__(self, db: Database, fanout: Fanout, sender: Sender) -> None:
        self._journal = _Journal(db)
        self._db = db
        self._fanout = fanout
        self._sender = sender
        # Longer than an attempt takes, so that a worker that lives keeps its webhooks.
        self.lease_s = 2 * sender.timeout_s + LEASE_MARGIN_S

    async def take(self, claim: Claim) -> None:
        """Sends until nothing is left, a delivery fails, or the turn is over."""
        turn = _Turn(self._db, self._journal, self._sender, claim, self.lease_s)
        try:
            async with self._fanout.listening(claim.account_id) as woken:
                await turn.run(woken)
        except _Lost:
            await turn.give_back()
        except _Gone:
            await turn.give_back(ACCOUNT_GONE_S)
        except asyncio.CancelledError:
            # The worker stops. What is confirmed is not sent again.
            await turn.stop()
            raise


@dataclass(frozen=True, slots=True)
class _Page:
    events: list[journal.Event]
    # The number of the first event that is stored, or of the next one to come.
    first: int
    # The revisions of the account's enabled webhooks.
    revisions: dict[UUID, int]


class _Journal:
    """Reads events. Webhooks of an account that are equally far share a read."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._reads: SharedCalls[tuple[UUID, int], _Page] = SharedCalls()

    async def after(self, account_id: UUID, sequence: int) -> _Page:
        key = (account_id, sequence)
        return await self._reads.run(key, lambda: self._read(account_id, sequence))

    async def _read(self, account_id: UUID, sequence: int) -> _Page:
        async with self._db.snapshot(account_id) as tx:
            if not await accounts.is_open(tx):
                raise _Gone
            events = await journal.after(tx, sequence, limit=PAGE)
            first = events[0].sequence if events else await journal.last_sequence(tx) + 1
            return _Page(events, first, await queries.revisions(tx))


class _Turn:
    def __init__(
        self, db: Database, events: _Journal, sender: Sender, claim: Claim, lease_s: float
    ) -> None:
        self._db = db
        self._journal = events
        self._sender = sender
        self._claim = claim
        self._lease_s = lease_s
        self._lease_ends = time.monotonic() + lease_s
        webhook = claim.webhook
        self._position = Position(webhook.confirmed_sequence, webhook.previous_sequence)
        self._attempts = webhook.attempts
        self._failing_since = webhook.failing_since
        self._unsaved: list[Delivery] = []
        self._unsaved_since = 0.0

    async def run(self, woken: asyncio.Event) -> None:
        """`woken` is set when the account may have more events."""
        ends = time.monotonic() + TURN_S
        async with self._sender.client(self._claim.account_id) as client:
            while True:
                woken.clear()
                events = await self._read()
                for event in events:
                    if not self._claim.webhook.wants(event.type):
                        self._position = replace(self._position, confirmed=event.sequence)
                        continue
                    try:
                        attempt = await self._send(client, event)
                    except RateLimited:
                        # A limit of this worker, not a failure of the endpoint.
                        await self._save(self._lease_s)
                        return await self.give_back(LIMITED_S)
                    if not attempt.delivery.delivered:
                        return await self._failed(attempt, event)
                    await self._confirmed(event)
                    if time.monotonic() > ends:
                        return await self._save(None, again=True)
                if not events and not await _follows(woken):
                    return await self._save(None)
                if self._lease_ends - time.monotonic() < self._lease_s / 2:
                    # Many events that it does not want.
                    await self._save(self._lease_s)

    async def give_back(self, delay_s: float = 0) -> None:
        async with self._db.relay() as connection:
            await progress.give_back(connection, self._claim, self._unsaved, delay_s)

    async def stop(self) -> None:
        try:
            await self._save(None, again=True)
        except _Lost:
            await self.give_back()

    async def _read(self) -> list[journal.Event]:
        """The next events. Skips those that are no longer stored."""
        confirmed, webhook = self._position.confirmed, self._claim.webhook
        page = await self._journal.after(self._claim.account_id, confirmed)
        if page.revisions.get(webhook.id) != webhook.revision:
            raise _Lost  # It was changed, disabled or deleted before these events.
        if page.first > confirmed + 1:
            await self._skip(confirmed + 1, page.first - 1)
        return page.events

    async def _send(self, client: httpx2.AsyncClient, event: journal.Event) -> Attempt:
        if time.monotonic() > self._lease_ends:
            # The process was paused. Another worker may have the webhook.
            raise _Lost
        if not self._unsaved:
            # Before the request: a slow one is saved at once, which renews the lease.
            self._unsaved_since = time.monotonic()
        attempt = await self._sender.send(
            client,
            self._claim.account_id,
            self._claim.webhook,
            event,
            attempt=self._attempts + 1,
            previous=self._position.previous,
        )
        delivery = attempt.delivery
        self._unsaved.append(delivery)
        outcome = "delivered" if delivery.delivered else "refused"
        DELIVERIES.labels(outcome if delivery.status is not None else "unreachable").inc()
        return attempt

    async def _confirmed(self, event: journal.Event) -> None:
        self._position = Position(event.sequence, event.sequence)
        self._attempts, self._failing_since = 0, None
        DELAY.observe(max(0.0, (clock.now() - event.created_at).total_seconds()))
        waited_s = time.monotonic() - self._unsaved_since
        if len(self._unsaved) >= SAVE_AFTER or waited_s >= SAVE_AFTER_S:
            await self._save(self._lease_s)

    async def _save(self, lease_s: float | None, *, again: bool = False) -> None:
        """Saves the position. Without a lease, the turn is over."""
        claim, unsaved = self._claim, self._unsaved
        started = time.monotonic()
        async with self._db.relay() as connection:
            saved = await progress.save(
                connection, claim, self._position, unsaved, lease_s=lease_s, again=again
            )
            self._unsaved = []
        if saved is None:
            raise _Lost
        self._claim = replace(claim, webhook=saved)
        self._lease_ends = started + (lease_s or 0)

    async def _failed(self, attempt: Attempt, event: journal.Event) -> None:
        since = self._failing_since or attempt.delivery.sent_at
        reason: DisabledReason | None = "gone" if attempt.gone else None
        if attempt.delivery.sent_at - since >= GIVE_UP_AFTER:
            reason = reason or "failing"
        pause_s = clock.about(PAUSES_S[min(self._attempts, len(PAUSES_S) - 1)])
        async with self._db.relay() as connection:
            saved = await progress.save_failure(
                connection,
                self._claim,
                self._position,
                self._unsaved,
                happened_at=event.created_at,
                failing_since=since,
                attempts=self._attempts + 1,
                delay_s=max(pause_s, attempt.retry_after_s),
            )
        if not saved:
            raise _Lost
        if reason is not None:
            await self._disable(reason, attempt)

    async def _disable(self, reason: DisabledReason, attempt: Attempt) -> None:
        webhook_id = self._claim.webhook.id
        async with self._db.write(self._claim.account_id) as tx:
            await journal.lock_account(tx)
            found = await queries.find(tx, webhook_id, for_change=True)
            if found is None or found.revision != self._claim.webhook.revision:
                return  # Somebody has just changed it. The next attempt decides.
            await queries.disable(tx, webhook_id, reason)
            data = {"reason": reason, "error": attempt.delivery.error}
            await record(tx, "webhook.disabled", webhook_id, **data)
        DISABLED.labels(reason).inc()
        log.warning("webhook_disabled", webhook_id=str(webhook_id), reason=reason)

    async def _skip(self, first: int, last: int) -> None:
        """Continues after events that were deleted, and says so. The next delivery names the last
        of them as the one before it, so the receiver notices, too."""
        claim = self._claim
        self._position = Position(last, last)
        self._attempts, self._failing_since = 0, None
        async with self._db.write(claim.account_id) as tx:
            await journal.lock_account(tx)
            moved = await queries.skip(tx, claim.webhook, first, last)
            if not moved:
                raise _Lost
            data = {"fromSequence": first, "toSequence": last}
            await record(tx, "webhook.skipped", claim.webhook.id, **data)
        SKIPPED.inc(last - first + 1)
        log.warning("webhook_skipped", webhook_id=str(claim.webhook.id), first=first, last=last)


async def _follows(woken: asyncio.Event) -> bool:
    """Waits a moment for another event. False: none came."""
    try:
        async with asyncio.timeout(KEEP_S):
            await woken.wait()
    except TimeoutError:
        return False
    return True


async def record(
    tx: AccountTransaction, kind: str, webhook_id: UUID, **data: str | int | None
) -> None:
    """Appends an event about a webhook, and tells those who want to know that it is disabled. `by`
    is the user who caused it."""
    by = {"by": ids.to_wire("user", tx.user_id) if tx.user_id.int else None}
    await journal.append(tx, kind, {"webhookId": ids.to_wire("wh", webhook_id), **data, **by})
    if kind == "webhook.disabled":
        await notices.put(tx, "webhook_disabled", webhook_id)
