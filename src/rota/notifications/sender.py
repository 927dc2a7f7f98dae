"""Turns notices into messages and sends them. Every worker has one, for all accounts.

A commit with a notice wakes one of them through Redis. Without a message they look rarely, and when
the next queue is due.
"""

import asyncio
from collections import Counter as Tally
from datetime import timedelta
from uuid import UUID

import structlog
from prometheus_client import Gauge

from rota.events import notices
from rota.events.notices import LANE, Notice
from rota.events.wakes import Wakes, WakeSignal
from rota.notifications import queries
from rota.notifications.delivery import Delivery
from rota.notifications.model import CHANNELS, KINDS, Channel, QueueId
from rota.notifications.news import SUBJECTS
from rota.notifications.queries import DueQueue
from rota.platform import clock
from rota.platform.db import AccountTransaction, Database

log = structlog.get_logger()

# How often a sender looks for what no message told it of.
POLL_EVERY_S = 20.0
RETRY_AFTER_ERROR_S = 5.0
PAUSE_S = 0.2
# How long messages that are being sent can take when the worker stops.
GRACE_S = 4.0
# Messages at the same time through one channel, and of one account through it. A mail server that
# does not respond does not delay chat messages.
ROOM, ROOM_OF_ACCOUNT = 8, 4
# How many of them may have failed before, so that receivers that do not respond leave room.
FAILING_ROOM = 4
# For a connection and the lock of one account. Others must not wait for an account that is blocked.
ACCOUNT_LIMIT_S = 5.0
# Accounts, and notices of one account, in one transaction.
ACCOUNTS, PAGE = 50, 200

OLDEST_SECONDS = Gauge(
    "rota_notifications_oldest_seconds",
    "How long the oldest notification that is due has waited for a worker.",
)
FAILING_SECONDS = Gauge(
    "rota_notifications_failing_seconds",
    "For how long the notification that fails longest has been tried again.",
)


class Sender:
    def __init__(
        self,
        db: Database,
        delivery: Delivery,
        wakes: Wakes | None,
        *,
        digest: timedelta,
        has_mail: bool,
    ) -> None:
        self._db = db
        self._delivery = delivery
        self._wakes = wakes
        self._digest = digest
        self._has_mail = has_mail
        self._wake_signal = WakeSignal(LANE)
        self._handling: dict[asyncio.Task[None], DueQueue] = {}

    async def run(self) -> None:
        """Sends what is due until it is cancelled."""
        listener = (
            asyncio.create_task(self._wakes.listen(self._wake_signal)) if self._wakes else None
        )
        try:
            while True:
                self._wake_signal.clear()
                try:
                    wait_s = await self._look()
                except Exception as error:
                    # Usually the database is down. Everything stays in it.
                    log.exception("notifications_failed", error=repr(error))
                    wait_s = clock.about(RETRY_AFTER_ERROR_S)
                # Many commits at once cost one look.
                await asyncio.sleep(PAUSE_S)
                await self._wake_signal.wait(wait_s)
        finally:
            if listener is not None:
                listener.cancel()
            await self._end()

    async def _end(self) -> None:
        """Lets messages that are being sent end, so that they are not sent again."""
        try:
            if self._handling:
                await asyncio.wait(self._handling, timeout=GRACE_S)
        finally:
            for task in self._handling:
                task.cancel()
            await asyncio.gather(*self._handling, return_exceptions=True)

    async def step(self) -> None:
        """Handles everything that is due now."""
        await self._look()
        while self._handling:
            await asyncio.wait(self._handling)
            await self._look()

    async def _look(self) -> float:
        """Starts to send what is due. Returns how long to wait before the next look."""
        blocked: set[UUID] = set()
        while await self._take_notices(blocked):
            pass
        async with self._db.relay() as connection:
            due = await queries.due(connection, ROOM * 4)
        OLDEST_SECONDS.set(due.oldest_s)
        FAILING_SECONDS.set(due.failing_s)
        handled = {each.id for each in self._handling.values()}
        used = Tally(queue.channel for queue in handled)
        busy = Tally((queue.channel, queue.account_id) for queue in handled)
        failing = Tally(each.id.channel for each in self._handling.values() if each.failing)
        for each in due.queues:
            queue = each.id
            share = (queue.channel, queue.account_id)
            if used[queue.channel] >= ROOM or busy[share] >= ROOM_OF_ACCOUNT or queue in handled:
                continue
            if each.failing and failing[queue.channel] >= FAILING_ROOM:
                continue
            used[queue.channel] += 1
            busy[share] += 1
            failing[queue.channel] += each.failing
            task = asyncio.create_task(self._deliver(queue))
            self._handling[task] = each
            task.add_done_callback(self._finished)
        poll_s = clock.about(RETRY_AFTER_ERROR_S if blocked else POLL_EVERY_S)
        return poll_s if due.next_in_s is None else min(poll_s, due.next_in_s + 0.01)

    async def _deliver(self, queue: QueueId) -> None:
        try:
            await self._delivery.deliver(queue)
        except Exception as error:
            # It is due again when its lease ends.
            log.exception("notification_failed", queue=repr(queue), error=repr(error))

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._handling[task]
        # Others may have waited for room.
        self._wake_signal.wake()

    async def _take_notices(self, blocked: set[UUID]) -> bool:
        """Adds notices of some accounts to the queues of their users. Whether there may be more.

        Leaves out the blocked accounts, and adds those whose notices cannot be added now. Notices
        of a kind that this version does not know stay for workers of a later one.
        """
        async with self._db.relay() as connection:
            accounts = await notices.accounts_with_some(connection, KINDS, ACCOUNTS, blocked)
        taken = 0
        for account_id in accounts:
            try:
                taken = max(taken, await self._take_notices_of(account_id))
            except Exception as error:
                blocked.add(account_id)
                log.exception("notices_failed", account_id=str(account_id), error=repr(error))
        return len(accounts) == ACCOUNTS or taken == PAGE

    async def _take_notices_of(self, account_id: UUID) -> int:
        async with asyncio.timeout(ACCOUNT_LIMIT_S) as limit, self._db.write(account_id) as tx:
            await queries.lock_adding(tx)
            # Many notices to many users take longer, and are not blocked.
            limit.reschedule(None)
            taken = await notices.take(tx, KINDS, PAGE)
            if taken:
                subscribers = await queries.subscribers(tx)
                # Each user's queues in the order of their kinds, as all others lock them.
                for notice in sorted(taken, key=lambda notice: (notice.kind, notice.id)):
                    await self._add(tx, notice, subscribers)
        return len(taken)

    async def _add(
        self, tx: AccountTransaction, notice: Notice, subscribers: list[queries.Subscriber]
    ) -> None:
        kind = notice.kind
        recipients: list[tuple[UUID, Channel]] = [
            (user_id, channel)
            for user_id, preferences in subscribers
            if notice.only_for in (None, user_id)
            if SUBJECTS[kind].tells_causer or user_id != notice.caused_by
            for channel in CHANNELS
            if kind in preferences.kinds(channel) and (channel == "chat" or self._has_mail)
        ]
        await queries.add(tx, notice, recipients, self._digest)
