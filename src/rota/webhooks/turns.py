"""Sends the events of a webhook that this worker has taken, one after the other.

Confirmed deliveries are saved together, at least once a second. If the worker dies before that,
another one sends them again. A webhook that has everything is kept for a moment, because events
often follow each other: the next one then needs neither another claim nor another connection.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import asyncpg
import httpx2
import structlog
from prometheus_client import Counter, Histogram

from rota.events import journal
from rota.events.fanout import Fanout
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.errors import RateLimited
from rota.platform.loops import is_set
from rota.webhooks import progress, queries
from rota.webhooks.events import record
from rota.webhooks.model import HOLD_S, Delivery, DisabledReason
from rota.webhooks.progress import Claim, Position
from rota.webhooks.reading import AccountGone, Journal
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
for _reason in ("failing", "gone", "key_ended"):
    DISABLED.labels(_reason)
SKIPPED = Counter("rota_webhook_skipped_total", "Events that were deleted before their delivery.")

# Confirmed deliveries are saved when there are this many, or after this long.
SAVE_AFTER, SAVE_AFTER_S = 20, 1.0
LEASE_MARGIN_S = 5.0
# How often this worker renews what it has. Three renewals can fail before another worker takes it.
RENEW_EVERY_S = 0.4
# If that was too late, a turn has this long to renew alone before it ends its request.
RENEW_WITHIN_S = 0.5
# A request that begins this long after the last check first checks the key that chose the URL.
KEY_CHECK_S = 0.5
# For how long a webhook without further events is kept.
KEEP_S = 1.0
# After this long, another webhook can have the place. Sooner if no place is free.
TURN_S, CROWDED_TURN_S = 30.0, 5.0
# How soon a webhook that would exceed a limit of its account continues.
LIMITED_S = 5.0
# The pauses after each failed attempt. Later ones are as long as the last.
PAUSES_S = (2, 10, 60, 300, 1_800, 7_200, 18_000, 36_000)
# A webhook that fails for this long is disabled.
GIVE_UP_AFTER = timedelta(days=3)
# How soon a webhook whose account cannot be used is checked again. Usually it is deleted by then.
ACCOUNT_GONE_S = 3_600.0


class _Lost(Exception):
    """The webhook was changed or deleted, or another worker has it."""


class DeliveryTurns:
    def __init__(self, db: Database, fanout: Fanout, sender: Sender) -> None:
        self.journal = Journal(db)
        self.db = db
        self._fanout = fanout
        self.sender = sender
        # Longer than an attempt takes: a change of a webhook waits for a worker that sends.
        self.lease_s = 2 * sender.timeout_s + LEASE_MARGIN_S
        self._running: set[_Turn] = set()
        self._renewal: asyncio.Task[None] | None = None

    async def take(self, claim: Claim, is_crowded: Callable[[], bool] = lambda: False) -> None:
        """Sends until nothing is left, a delivery fails, or the turn is over. `is_crowded`: whether
        the worker has no place for another webhook."""
        turn = _Turn(self, claim, is_crowded)
        self._running.add(turn)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew())
        try:
            async with self._fanout.listening(claim.account_id) as woken:
                await turn.run(woken)
        except _Lost:
            await turn.give_back()
        except AccountGone:
            await turn.give_back(ACCOUNT_GONE_S)
        except asyncio.CancelledError:
            # The worker stops. What is confirmed is not sent again.
            await turn.stop()
            raise
        except Exception:
            # Usually a read failed. What is confirmed can perhaps be saved. Not given back at once:
            # the next turn may fail the same way.
            with contextlib.suppress(Exception):
                await turn.stop(self.lease_s)
            raise
        finally:
            self._running.discard(turn)

    async def aclose(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    async def _renew(self) -> None:
        """Keeps other workers away while this one sends. It ends with the last turn, so a worker
        with nothing to send does nothing."""
        while self._running:
            await asyncio.sleep(RENEW_EVERY_S)
            running = [(turn, turn.claim) for turn in self._running]
            if not running:
                return
            started = time.monotonic()
            try:
                async with self.db.relay() as connection:
                    held = await progress.renew(connection, [claim for _, claim in running])
            except Exception as error:
                # Turns end when their time is over. Another worker continues.
                log.warning("webhook_renewal_failed", error=repr(error))
                continue
            for turn, claim in running:
                if claim.webhook.id in held:
                    turn.held_since(claim, started)


class _Turn:
    def __init__(self, owner: DeliveryTurns, claim: Claim, is_crowded: Callable[[], bool]) -> None:
        self._db = owner.db
        self._journal = owner.journal
        self._sender = owner.sender
        self._lease_s = owner.lease_s
        self.claim = claim
        self._is_crowded = is_crowded
        self._held_until = claim.taken_at + HOLD_S
        self._saved_at = claim.taken_at
        webhook = claim.webhook
        self._position = Position(webhook.confirmed_sequence, webhook.previous_sequence)
        self._attempts = webhook.attempts
        self._failing_since = webhook.failing_since
        self._unsaved: list[Delivery] = []
        self._unsaved_since = 0.0
        self._key_checked_at = 0.0

    async def run(self, woken: asyncio.Event) -> None:
        """`woken` is set when the account may have more events."""
        began = time.monotonic()
        async with self._sender.client(self.claim.account_id) as client:
            while True:
                woken.clear()
                events = await self._read()
                for event in events:
                    if not self.claim.webhook.wants(event.type):
                        self._position = replace(self._position, confirmed=event.sequence)
                        continue
                    if event.type == "account.restored":
                        # What the restore has lost came before it, also if the webhook is behind.
                        lost = event.data["lostThrough"]
                        self._position = Position(lost, lost)
                    try:
                        attempt = await self._send(client, event)
                    except RateLimited:
                        # A limit of this worker, not a failure of the endpoint.
                        await self._save(self._lease_s)
                        return await self.give_back(LIMITED_S)
                    if not attempt.delivery.delivered:
                        return await self._failed(attempt, event)
                    await self._confirmed(event)
                    if self._is_over(began):
                        return await self._save(None, again=True)
                if not events and not await is_set(woken, KEEP_S):
                    return await self._save(None)
                if self._is_over(began):
                    return await self._save(None, again=True)
                if time.monotonic() - self._saved_at > self._lease_s / 2:
                    # Many events that it does not want.
                    await self._save(self._lease_s)

    def _is_over(self, began: float) -> bool:
        lasts_s = CROWDED_TURN_S if self._is_crowded() else TURN_S
        return time.monotonic() > began + lasts_s

    def held_since(self, claim: Claim, at: float) -> None:
        """This worker had the webhook at this time, if the claim has not changed since."""
        if self.claim is claim:
            self._held_until = at + HOLD_S

    async def give_back(self, delay_s: float = 0) -> None:
        async with self._db.relay() as connection:
            await progress.give_back(connection, self.claim, self._unsaved, delay_s)

    async def stop(self, lease_s: float | None = None) -> None:
        """Saves what is confirmed. Without a lease, another worker can continue at once."""
        try:
            await self._save(lease_s, again=True)
        except _Lost:
            await self.give_back()

    async def _read(self) -> list[journal.Event]:
        """The next events. Skips those that are no longer stored."""
        confirmed, webhook = self._position.confirmed, self.claim.webhook
        started = time.monotonic()
        page = await self._journal.after(self.claim.account_id, confirmed)
        if page.revisions.get(webhook.id) != webhook.revision:
            raise _Lost  # It was changed, disabled or deleted before these events.
        if webhook.id in page.ended:
            await self._end_with_key()
        self._key_checked_at = started
        if page.first > confirmed + 1:
            last = page.first_lost - 1
            if last > confirmed:
                await self._skip(confirmed + 1, last)
            # What a restore has lost was not deleted, and the first event says so.
            self._position = Position(page.first - 1, page.first - 1)
        return page.events

    async def _check_key(self) -> None:
        """The key can end while the events of a page are sent, which can take most of a minute."""
        key_id, started = self.claim.webhook.saved_with, time.monotonic()
        if key_id is None or started - self._key_checked_at < KEY_CHECK_S:
            return
        if not await self._journal.key_works(self.claim.account_id, key_id):
            await self._end_with_key()
        self._key_checked_at = started

    async def _end_with_key(self) -> NoReturn:
        """Nobody else has chosen this address, so nothing more is sent to it."""
        await self._save(self._lease_s)
        await self._disable("key_ended", None)
        raise _Lost

    async def _send(self, client: httpx2.AsyncClient, event: journal.Event) -> Attempt:
        await self._check_key()
        if time.monotonic() > self._held_until:
            # The process was paused, or could not renew. Unless another worker has the webhook by
            # now, it continues.
            await self._save(self._lease_s)
        if not self._unsaved:
            # Before the request: a slow one is saved at once, which renews the lease.
            self._unsaved_since = time.monotonic()
        attempt = await self._while_held(
            self._sender.send(
                client,
                self.claim.account_id,
                self.claim.webhook,
                event,
                attempt=self._attempts + 1,
                previous=self._position.previous,
            )
        )
        delivery = attempt.delivery
        self._unsaved.append(delivery)
        outcome = "delivered" if delivery.delivered else "refused"
        DELIVERIES.labels(outcome if delivery.status is not None else "unreachable").inc()
        return attempt

    async def _while_held(self, request: Coroutine[None, None, Attempt]) -> Attempt:
        """Ends the request if another worker can have the webhook: it sends the event as well."""
        sending = asyncio.create_task(request)
        try:
            while not sending.done():
                left_s = self._held_until - time.monotonic()
                if left_s > 0:
                    await asyncio.wait((sending,), timeout=left_s)
                    continue
                try:
                    async with asyncio.timeout(RENEW_WITHIN_S):
                        await self._save(self._lease_s)
                except (TimeoutError, OSError, asyncpg.PostgresError) as error:
                    raise _Lost from error
            return sending.result()
        finally:
            sending.cancel()
            await asyncio.wait((sending,))

    async def _confirmed(self, event: journal.Event) -> None:
        self._position = Position(event.sequence, event.sequence)
        self._attempts, self._failing_since = 0, None
        DELAY.observe(max(0.0, (clock.now() - event.created_at).total_seconds()))
        waited_s = time.monotonic() - self._unsaved_since
        if len(self._unsaved) >= SAVE_AFTER or waited_s >= SAVE_AFTER_S:
            await self._save(self._lease_s)

    async def _save(self, lease_s: float | None, *, again: bool = False) -> None:
        """Saves the position. Without a lease, the turn is over."""
        claim, unsaved = self.claim, self._unsaved
        started = time.monotonic()
        async with self._db.relay() as connection:
            saved = await progress.save(
                connection, claim, self._position, unsaved, lease_s=lease_s, again=again
            )
        # Not before the commit, which can fail.
        self._unsaved = []
        if saved is None:
            raise _Lost
        self.claim = replace(claim, webhook=saved)
        self._held_until = started + HOLD_S
        self._saved_at = started

    async def _failed(self, attempt: Attempt, event: journal.Event) -> None:
        since = self._failing_since or attempt.delivery.sent_at
        reason: DisabledReason | None = "gone" if attempt.gone else None
        if attempt.delivery.sent_at - since >= GIVE_UP_AFTER:
            reason = reason or "failing"
        pause_s = clock.about(PAUSES_S[min(self._attempts, len(PAUSES_S) - 1)])
        async with self._db.relay() as connection:
            saved = await progress.save_failure(
                connection,
                self.claim,
                self._position,
                self._unsaved,
                happened_at=event.created_at,
                failing_since=since,
                attempts=self._attempts + 1,
                delay_s=max(pause_s, attempt.retry_after_s),
            )
        # Also if the webhook was changed: its deliveries are saved then, too.
        self._unsaved = []
        if not saved:
            raise _Lost
        if reason is not None:
            await self._disable(reason, attempt.delivery.error)

    async def _disable(self, reason: DisabledReason, error: str | None) -> None:
        webhook_id = self.claim.webhook.id
        async with self._db.write(self.claim.account_id) as tx:
            await journal.lock_account(tx)
            found = await queries.find(tx, webhook_id, for_change=True)
            if found is None or found.revision != self.claim.webhook.revision:
                return  # Somebody has just changed it. The next attempt decides.
            await queries.disable(tx, webhook_id, reason)
            await record(tx, "webhook.disabled", webhook_id, reason=reason, error=error)
        DISABLED.labels(reason).inc()
        log.warning("webhook_disabled", webhook_id=str(webhook_id), reason=reason)

    async def _skip(self, first: int, last: int) -> None:
        """Continues after events that were deleted, and says so. The next delivery names the last
        of them as the one before it, so the receiver notices, too."""
        claim = self.claim
        async with self._db.write(claim.account_id) as tx:
            await journal.lock_account(tx)
            moved = await queries.skip(tx, claim.webhook, first, last)
            if not moved:
                raise _Lost
            data = {"fromSequence": first, "toSequence": last}
            await record(tx, "webhook.skipped", claim.webhook.id, **data)
        self._position = Position(last, last)
        self._attempts, self._failing_since = 0, None
        SKIPPED.inc(last - first + 1)
        log.warning("webhook_skipped", webhook_id=str(claim.webhook.id), first=first, last=last)
