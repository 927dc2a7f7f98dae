"""Reads and changes what a user wants to be told, sends test messages and turns off emails."""

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

import structlog

from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.notifications import mail, queries
from rota.notifications.carriers import Carriers
from rota.notifications.channels import NotDelivered, Refused, shown
from rota.notifications.chat import shortened
from rota.notifications.errors import (
    InvalidChat,
    LinkNotValid,
    NoChat,
    NoVerifiedAddress,
    TestedTooSoon,
)
from rota.notifications.messages import Message, test_message
from rota.notifications.model import (
    Channel,
    ChatService,
    Preferences,
    Queue,
    seal_context,
)
from rota.notifications.schemas import PutChat, PutNotifications
from rota.notifications.smtp import Transport
from rota.notifications.unsubscribing import Subscription
from rota.platform import clock
from rota.platform.crypto import SealBroken
from rota.platform.db import AccountTransaction, Database
from rota.platform.egress import EgressRefused
from rota.platform.ids import to_wire

log = structlog.get_logger()

# Between two test messages of a user.
TEST_EVERY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Overview:
    """What a user is told about an account, and what has become of it."""

    preferences: Preferences
    address: str | None
    queues: list[Queue]


class Notifications:
    def __init__(self, db: Database, carriers: Carriers, *, digest_minutes: int) -> None:
        self._db = db
        self._carriers = carriers
        self.digest_minutes = digest_minutes

    @property
    def transport(self) -> Transport:
        return self._carriers.mailer.transport

    async def get(self, caller: Caller) -> Overview:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            preferences = await queries.preferences(tx, caller.user_id) or Preferences()
            address = await accounts.verified_email(tx, caller.user_id)
            return Overview(preferences, address, await queries.queues(tx, caller.user_id))

    async def put(self, caller: Caller, body: PutNotifications) -> Overview:
        """Replaces what the user is notified about. Queued messages of a kind that is turned off
        are deleted."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            before = await queries.preferences_for_change(tx, caller.user_id) or Preferences()
            after = self._changed_chat(caller, before, body.chat)
            after = replace(
                after,
                content=body.content,
                mail_kinds=tuple(dict.fromkeys(body.mail.kinds)),
                chat_kinds=tuple(dict.fromkeys(body.chat.kinds)),
            )
            if after.chat_kinds and after.sealed_chat_url is None:
                raise InvalidChat("url", "is needed for notifications in a chat")
            address = await accounts.verified_email(tx, caller.user_id)
            if after.mail_kinds and address is None:
                raise NoVerifiedAddress
            if after != before:
                await queries.save(tx, caller.user_id, after)
                await queries.drop_queues(tx, caller.user_id, "mail", after.mail_kinds)
                await queries.drop_queues(tx, caller.user_id, "chat", after.chat_kinds)
                _record(tx, "notifications.updated", after)
            return Overview(after, address, await queries.queues(tx, caller.user_id))

    def _changed_chat(self, caller: Caller, before: Preferences, body: PutChat) -> Preferences:
        """The webhook of the chat as the body wants it."""
        if "url" not in body.model_fields_set or (body.url and body.url == before.chat_url_shown):
            if before.sealed_chat_url is None:
                return before
            return replace(before, chat_service=body.service or before.chat_service)
        if body.url is None:
            return replace(before, chat_service=None, sealed_chat_url=None, chat_url_shown=None)
        if body.service is None:
            raise InvalidChat("service", "is needed with a URL")
        try:
            self._carriers.chat.check_url(body.url)
        except EgressRefused as error:
            raise InvalidChat("url", str(error)) from None
        context = seal_context(caller.account_id, caller.user_id)
        return replace(
            before,
            chat_service=body.service,
            sealed_chat_url=self._carriers.vault.seal(body.url.encode(), context),
            chat_url_shown=shortened(body.url),
        )

    async def test(self, caller: Caller, channel: Channel) -> str | None:
        """Sends a test message. Returns why it was not delivered."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            found = await queries.preferences_for_change(tx, caller.user_id) or Preferences()
            address = await accounts.verified_email(tx, caller.user_id)
            if channel == "mail" and address is None:
                raise NoVerifiedAddress
            if channel == "chat" and found.sealed_chat_url is None:
                raise NoChat
            now = clock.now()
            if found.last_test_at is not None and now - found.last_test_at < TEST_EVERY:
                left = TEST_EVERY - (now - found.last_test_at)
                raise TestedTooSoon(int(left.total_seconds()) + 1)
            await queries.note_test(tx, caller.user_id, now)
            tx.record("notifications.tested", {"channel": channel}, _resource(tx))
        home = f"/{to_wire('acct', caller.account_id)}"
        message = test_message(home, self._carriers.public_url, uuid4().hex)
        try:
            if channel == "mail":
                assert address is not None
                mailer = self._carriers.mailer
                await mailer.send(mail.render(message, mailer.sender, address))
            else:
                await self._send_chat(caller, found, message)
        except (NotDelivered, Refused) as error:
            if detail := getattr(error, "detail", None):
                log.warning("notification_test_failed", channel=channel, error=shown(detail))
            return shown(error)
        return None

    async def _send_chat(self, caller: Caller, found: Preferences, message: Message) -> None:
        assert found.sealed_chat_url is not None
        assert found.chat_service is not None
        service: ChatService = found.chat_service
        context = seal_context(caller.account_id, caller.user_id)
        try:
            url = self._carriers.vault.open(found.sealed_chat_url, context).decode()
        except SealBroken:
            raise Refused("The URL of the chat cannot be read. Save it again.") from None
        await self._carriers.chat.send(caller.account_id, url, service, message)

    async def subscription(self, token: str) -> tuple[Subscription, bool]:
        """What a link in an email turns off, and whether it is on. Changes nothing."""
        found = self._read(token)
        async with self._db.read(found.account_id, found.user_id) as tx:
            preferences = await queries.preferences(tx, found.user_id)
        return found, preferences is not None and found.kind in preferences.mail_kinds

    async def unsubscribe(self, token: str) -> Subscription:
        """Turns off the emails that the link is about."""
        found = self._read(token)
        user_id = found.user_id
        async with self._db.write(found.account_id, user_id, check_member=False) as tx:
            before = await queries.preferences_for_change(tx, user_id)
            if before is not None and found.kind in before.mail_kinds:
                kinds = tuple(kind for kind in before.mail_kinds if kind != found.kind)
                after = replace(before, mail_kinds=kinds)
                await queries.save(tx, user_id, after)
                await queries.drop_queues(tx, user_id, "mail", kinds)
                _record(tx, "notifications.unsubscribed", after)
        return found

    def _read(self, token: str) -> Subscription:
        found = self._carriers.tokens.read(token)
        if found is None:
            raise LinkNotValid
        return found


def _record(tx: AccountTransaction, action: str, after: Preferences) -> None:
    details = {
        "content": after.content,
        "mail": list(after.mail_kinds),
        "chat": list(after.chat_kinds),
        "chatUrl": after.chat_url_shown,
    }
    tx.record(action, details, _resource(tx))


def _resource(tx: AccountTransaction) -> str:
    return to_wire("user", tx.user_id)
