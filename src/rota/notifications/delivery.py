"""Sends what waits in one queue, as one message.

A first transaction claims the queue and finds out what is still news for the user. The message is
sent without a transaction. A second transaction removes what was sent. If the worker dies between
the two, the lease ends and the message is sent again, with the same Message-ID.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import structlog
from prometheus_client import Counter

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.notifications import mail, queries
from rota.notifications.carriers import Carriers
from rota.notifications.channels import NotDelivered, Refused, shown
from rota.notifications.messages import Message, compose
from rota.notifications.model import CHANNELS, Item, Preferences, QueueId, seal_context
from rota.notifications.news import SHOWN, SUBJECTS, News
from rota.notifications.queries import Claim
from rota.notifications.unsubscribing import Subscription
from rota.platform import clock
from rota.platform.crypto import SealBroken
from rota.platform.db import DATABASE_ERRORS, REJECTED_VALUES, AccountTransaction, Database

T = TypeVar("T")

log = structlog.get_logger()

# Longer than a message can take. Doubles with each attempt.
LEASE = timedelta(seconds=60)
MAX_DELAY = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=1)
# About a day of workers that die while they send.
MAX_ATTEMPTS = 60
# The first and the longest pause before what became of a message is saved again, and for how long
# this is tried: meanwhile, the place is not free for other messages. Not in the last moments of a
# claim.
RECORD_AGAIN_S, MAX_RECORD_AGAIN_S, RECORD_FOR = 0.5, 5.0, timedelta(minutes=1)
RECORD_MARGIN = timedelta(seconds=5)
# What one message is about at most, and how much of it is looked up at a time. Of a longer queue,
# the rest goes into the next message.
MAX_ITEMS, PAGE = 5_000, 200

SENT = Counter("rota_notifications_sent_total", "Notifications that were sent.", ["channel"])
FAILED = Counter(
    "rota_notifications_failed_total",
    "Notifications that could not be sent, and are tried again (retried) or not (given_up).",
    ["channel", "outcome"],
)
for _channel in CHANNELS:
    SENT.labels(_channel)
    for _outcome in ("retried", "given_up"):
        FAILED.labels(_channel, _outcome)


@dataclass(frozen=True, slots=True)
class Prepared:
    message: Message
    preferences: Preferences
    # The address of a mail, or the URL of a webhook.
    to: str
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Timing:
    """After a message, the next one of the queue waits this long."""

    digest: timedelta
    lease: timedelta = LEASE
    max_delay: timedelta = MAX_DELAY
    give_up_after: timedelta = GIVE_UP_AFTER


class Delivery:
    def __init__(self, db: Database, carriers: Carriers, timing: Timing) -> None:
        self._db = db
        self._carriers = carriers
        self._timing = timing

    async def deliver(self, queue: QueueId) -> None:
        timing = self._timing
        async with self._db.write(queue.account_id) as tx:
            claim = await queries.claim(tx, queue, timing.lease, timing.max_delay)
        if claim is None:
            return  # Another worker was faster.
        items = None
        try:
            if claim.attempts > MAX_ATTEMPTS:
                raise Refused("The process ended during every attempt.")
            prepared = await self._prepare(claim)
            if prepared is None:
                return
            items = prepared.items
            await self._send(queue, prepared)
        except NotDelivered as error:
            await self._retry(claim, error)
        except Refused as error:
            await self._give_up(claim, str(error), items)
        else:
            await self._sent(claim, items)

    async def _prepare(self, claim: Claim) -> Prepared | None:
        """The message. None: there is nothing to tell any more."""
        queue = claim.id
        async with self._db.write(queue.account_id, queue.user_id, check_member=False) as tx:
            items = await queries.items(tx, queue, MAX_ITEMS)
            preferences = await queries.preferences(tx, queue.user_id) or Preferences()
            to = await self._receiver(tx, queue, preferences)
            news = await _news(tx, queue, items) if to else News([], [])
            told = {item.subject for item in news.items}
            # Not before: thousands of items take a while, and new ones wait for the lock.
            await queries.lock(tx, queue)
            await queries.remove_items(tx, queue, [i for i in items if i.subject not in told])
            if to is None or not news.items:
                await queries.rest(tx, claim, timedelta(0), sent=False, error=None)
                return None
            account = await accounts.name(tx)
        message = compose(queue, news, preferences.content, account, self._carriers.public_url)
        return Prepared(message, preferences, to, news.items)

    async def _receiver(
        self, tx: AccountTransaction, queue: QueueId, preferences: Preferences
    ) -> str | None:
        """Where the message goes. None: the user has left, or does not want it any more."""
        if queue.kind not in preferences.kinds(queue.channel):
            return None
        if not await accounts.is_open(tx) or not await members.is_member(tx, queue.user_id):
            return None
        if queue.channel == "mail":
            return await accounts.verified_email(tx, queue.user_id)
        if preferences.sealed_chat_url is None:
            return None
        context = seal_context(queue.account_id, queue.user_id)
        try:
            return self._carriers.vault.open(preferences.sealed_chat_url, context).decode()
        except SealBroken:
            raise Refused("The stored URL cannot be read. Save it again.") from None

    async def _send(self, queue: QueueId, prepared: Prepared) -> None:
        message = prepared.message
        if queue.channel == "chat":
            service = prepared.preferences.chat_service or "slack"
            await self._carriers.chat.send(queue.account_id, prepared.to, service, message)
            return
        subscription = Subscription(queue.account_id, queue.user_id, queue.kind)
        token = self._carriers.tokens.sign(subscription)
        url = f"{self._carriers.public_url}/api/unsubscribe/{token}"
        message = replace(message, unsubscribe_url=url)
        mailer = self._carriers.mailer
        await mailer.send(mail.render(message, mailer.sender, prepared.to))

    async def _record(
        self, claim: Claim, change: Callable[[AccountTransaction], Awaitable[T]]
    ) -> T:
        """Saves what became of a message, and tries again while the database fails. Otherwise the
        message would be sent again. Near the end of the claim it gives up: another worker can have
        the queue then."""
        pause_s = RECORD_AGAIN_S
        end = min(clock.now() + RECORD_FOR, claim.until - RECORD_MARGIN)
        while True:
            try:
                async with self._db.write(claim.id.account_id) as tx:
                    return await change(tx)
            except REJECTED_VALUES:
                raise
            except DATABASE_ERRORS as error:
                if clock.now() > end:
                    raise
                log.warning("notification_not_recorded", **_fields(claim), error=repr(error))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_RECORD_AGAIN_S)

    async def _sent(self, claim: Claim, items: list[Item]) -> None:
        async def done(tx: AccountTransaction) -> None:
            await queries.lock(tx, claim.id)
            await queries.remove_items(tx, claim.id, items)
            await queries.rest(tx, claim, self._timing.digest, sent=True, error=None)

        await self._record(claim, done)
        SENT.labels(claim.id.channel).inc()

    async def _retry(self, claim: Claim, error: NotDelivered) -> None:
        """Tries again with a growing delay. What has waited for a day is given up."""
        timing, reason = self._timing, shown(error)
        since = claim.first_failed_at
        delay = min(timing.lease / 2 * 2 ** min(claim.attempts - 1, 20), timing.max_delay)
        if error.retry_after_s is not None:
            delay = max(delay, timedelta(seconds=error.retry_after_s))

        async def later(tx: AccountTransaction) -> int:
            """How many items were given up."""
            dropped = 0
            if since is not None and clock.now() - since >= timing.give_up_after:
                await queries.lock(tx, claim.id)
                dropped = await queries.remove_old_items(tx, claim.id, timing.give_up_after)
            if dropped and not await queries.items(tx, claim.id, 1):
                await queries.rest(tx, claim, timing.digest, sent=False, error=reason)
            else:
                await queries.retry(tx, claim, delay, reason, gave_up=bool(dropped))
            return dropped

        if await self._record(claim, later):
            _report_given_up(claim, reason)
            return
        FAILED.labels(claim.id.channel, "retried").inc()
        log.warning("notification_retried", **_fields(claim), error=shown(error.detail or reason))

    async def _give_up(self, claim: Claim, reason: str, items: list[Item] | None) -> None:
        """Drops what a message was about. None: everything, because none can be sent. The user sees
        why in the settings."""
        reason = shown(reason)

        async def drop(tx: AccountTransaction) -> None:
            await queries.lock(tx, claim.id)
            if items is None:
                await queries.remove_all_items(tx, claim.id)
            else:
                await queries.remove_items(tx, claim.id, items)
            await queries.rest(tx, claim, self._timing.digest, sent=False, error=reason)

        await self._record(claim, drop)
        _report_given_up(claim, reason)


async def _news(tx: AccountTransaction, queue: QueueId, items: list[Item]) -> News:
    """What is still news. The message counts all of it, and shows the beginning."""
    news = News([], [])
    for start in range(0, len(items), PAGE):
        found = await SUBJECTS[queue.kind].find(tx, queue.user_id, items[start : start + PAGE])
        news = News(news.items + found.items, (news.lines + found.lines)[:SHOWN])
    return news


def _report_given_up(claim: Claim, reason: str) -> None:
    FAILED.labels(claim.id.channel, "given_up").inc()
    log.error("notification_given_up", **_fields(claim), error=reason)


def _fields(claim: Claim) -> dict[str, object]:
    queue = claim.id
    return {
        "account_id": str(queue.account_id),
        "user_id": str(queue.user_id),
        "kind": queue.kind,
        "channel": queue.channel,
        "attempts": claim.attempts,
    }
