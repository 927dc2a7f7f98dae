"""What clients do with webhooks: create, list, read, change, delete, test and replay them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from rota.accounts import members
from rota.auth import queries as credentials
from rota.auth.caller import Caller
from rota.events import journal
from rota.events.access import EventVisibility, visibility_of
from rota.platform import clock, ids
from rota.platform.crypto import Vault
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.egress import Egress, EgressRefused
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.shares import Shares
from rota.webhooks import progress, queries, schemas
from rota.webhooks.bodies import CreateWebhook, PatchWebhook, ReplayWebhook, RotateSecret
from rota.webhooks.errors import (
    BeyondLastEvent,
    InvalidUrl,
    SendsMore,
    TooManyWebhooks,
    TypesNotVisible,
    WebhookNotFound,
)
from rota.webhooks.events import record
from rota.webhooks.model import MAX_SECRETS, Delivery, DeliveryOutcome, Webhook, seal_context
from rota.webhooks.progress import Claim
from rota.webhooks.schemas import WebhookSecretResponse
from rota.webhooks.sender import Sender, test_event
from rota.webhooks.signing import new_secret

MAX_WEBHOOKS = 50


class Webhooks:
    def __init__(
        self,
        db: Database,
        vault: Vault,
        idempotency: Idempotency,
        egress: Egress,
        sender: Sender,
        announce: Callable[[UUID], None],
    ) -> None:
        self._db = db
        self._vault = vault
        self._idempotency = idempotency
        self._egress = egress
        self._sender = sender
        # Tells the workers, after a commit, that a webhook may have something to send.
        self._announce = announce
        self._tests = Shares(
            "webhook_tests",
            "This account sends too many test deliveries at once. Try again later.",
            total=32,
            per_account=2,
            waiting=8,
            wait_s=sender.timeout_s,
        )

    async def all(self, caller: Caller) -> list[Webhook]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.all_of(tx)

    async def get(self, caller: Caller, webhook_id: UUID | None) -> Webhook:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await _get(tx, webhook_id)

    async def create(self, caller: Caller, body: CreateWebhook, key: str | None) -> Outcome:
        """Creates a webhook. Only this response contains its secret."""
        self._check_url(body.url)
        visibility = _checked_visibility(caller, body.events)
        async with self._changing(caller) as tx:

            async def work() -> WebhookSecretResponse:
                # The account's lock makes the count exact.
                await journal.lock_account(tx)
                if await queries.count(tx) >= MAX_WEBHOOKS:
                    raise TooManyWebhooks(MAX_WEBHOOKS)
                webhook, secret = self._new(
                    caller, body, visibility, await journal.last_sequence(tx)
                )
                await queries.insert(tx, webhook)
                await record(tx, "webhook.created", webhook.id)
                return WebhookSecretResponse(webhook=schemas.Webhook.of(webhook), secret=secret)

            outcome = await self._idempotency.once(tx, key, ("POST /api/webhooks", body), 201, work)
        self._announce(caller.account_id)
        return outcome

    async def patch(self, caller: Caller, webhook_id: UUID | None, body: PatchWebhook) -> Webhook:
        """Changes the fields that are present. Null clears `events` and `description`."""
        if body.url is not None:
            self._check_url(body.url)
        async with self._changing(caller) as tx:
            before = await _lock(tx, webhook_id)
            after = _patched(before, body, caller)
            if after != before:
                changed = _changed(before, after)
                if after.url != before.url:
                    after = replace(after, saved_by=caller.user_id, saved_with=caller.key_id)
                after = await queries.change(tx, after)
                await record(tx, "webhook.updated", after.id, **changed)
            if body.enabled is True and not after.enabled:
                after = await queries.enable(
                    tx,
                    after.id,
                    caller.user_id,
                    caller.key_id,
                    unclaimed=not await _is_responsible(tx, after),
                )
                await record(tx, "webhook.enabled", after.id)
            elif body.enabled is True and after.failing_since is not None:
                after = await queries.retry(tx, after.id)
            elif body.enabled is False and after.enabled:
                after = await queries.disable(tx, after.id, "paused")
                await record(tx, "webhook.disabled", after.id, reason="paused", error=None)
        self._announce(caller.account_id)
        return after

    async def delete(self, caller: Caller, webhook_id: UUID | None) -> None:
        async with self._changing(caller) as tx:
            await journal.lock_account(tx)
            if webhook_id is None or not await queries.delete(tx, webhook_id):
                raise WebhookNotFound
            await record(tx, "webhook.deleted", webhook_id)

    async def rotate_secret(
        self, caller: Caller, webhook_id: UUID | None, body: RotateSecret, key: str | None
    ) -> Outcome:
        """Replaces the secret. Only this response contains the new one.

        Those before it sign until their own time is over, also the one that receivers still use
        when somebody rotates again, for example because a response was lost.
        """
        async with self._changing(caller) as tx:

            async def work() -> WebhookSecretResponse:
                before = await _lock(tx, webhook_id)
                _check_sees(caller, before)
                secret = new_secret()
                sealed = self._vault.seal(
                    secret.encode(), seal_context(caller.account_id, before.id)
                )
                old = _still_signing(before, timedelta(hours=body.overlap_hours))
                after = await queries.set_secret(tx, before.id, sealed, old)
                await record(tx, "webhook.secret_rotated", after.id)
                return WebhookSecretResponse(webhook=schemas.Webhook.of(after), secret=secret)

            operation = f"POST /api/webhooks/{webhook_id}/rotate-secret"
            return await self._idempotency.once(tx, key, (operation, body), 200, work)

    async def replay(self, caller: Caller, webhook_id: UUID | None, body: ReplayWebhook) -> Webhook:
        """Sends all events from this one on again, or skips those before it."""
        async with self._changing(caller) as tx:
            before = await _lock(tx, webhook_id)
            _check_sees(caller, before)
            last = await journal.last_sequence(tx)
            if body.from_sequence > last + 1:
                raise BeyondLastEvent(last)
            after = await queries.move(tx, before.id, body.from_sequence - 1)
            await record(tx, "webhook.replayed", after.id, fromSequence=body.from_sequence)
        self._announce(caller.account_id)
        return after

    async def test(self, caller: Caller, webhook_id: UUID | None) -> Delivery:
        """Sends an event of the type `webhook.test` now, whether or not the webhook is enabled."""
        account_id = caller.account_id
        webhook = await self.get(caller, webhook_id)
        async with self._tests.place(account_id), self._sender.client(account_id) as client:
            attempt = await self._sender.send(
                client, account_id, webhook, test_event(clock.now()), attempt=1, previous=0
            )
        async with self._changing(caller) as tx:
            await progress.add_test(tx, Claim(account_id, webhook), attempt.delivery)
            details = {"delivered": attempt.delivery.delivered}
            tx.record("webhook.tested", details, ids.to_wire("wh", webhook.id))
        return attempt.delivery

    async def deliveries(
        self,
        caller: Caller,
        webhook_id: UUID | None,
        outcome: DeliveryOutcome | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Delivery], int]:
        delivered = None if outcome is None else outcome == "delivered"
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            webhook = await _get(tx, webhook_id)
            visibility = visibility_of(caller)
            return await queries.deliveries(tx, webhook.id, visibility, delivered, limit, offset)

    def _changing(self, caller: Caller) -> AbstractAsyncContextManager[AccountTransaction]:
        return self._db.write(caller.account_id, caller.user_id, right=caller.right)

    def _check_url(self, url: str) -> None:
        try:
            self._egress.check_url(url)
        except EgressRefused as error:
            raise InvalidUrl(str(error)) from None

    def _new(
        self, caller: Caller, body: CreateWebhook, visibility: EventVisibility, last_sequence: int
    ) -> tuple[Webhook, str]:
        """The webhook, which begins with the next event, and its secret."""
        now, webhook_id, secret = clock.now(), ids.new_uuid(), new_secret()
        sealed = self._vault.seal(secret.encode(), seal_context(caller.account_id, webhook_id))
        return (
            Webhook(
                id=webhook_id,
                url=body.url,
                description=body.description,
                events=body.events,
                families=_families(visibility),
                sealed_secret=sealed,
                sealed_old_secret=None,
                old_secret_until=None,
                sealed_older_secrets=[],
                older_secrets_until=[],
                enabled=True,
                disabled_reason=None,
                disabled_at=None,
                confirmed_sequence=last_sequence,
                previous_sequence=last_sequence,
                skipped_from=None,
                skipped_to=None,
                due_at=None,
                leased_until=None,
                revision=1,
                attempts=0,
                failing_since=None,
                behind_since=None,
                last_error=None,
                delivered_at=None,
                saved_by=caller.user_id,
                saved_with=caller.key_id,
                created_at=now,
                updated_at=now,
            ),
            secret,
        )


def _checked_visibility(caller: Caller, types: list[str] | None) -> EventVisibility:
    """What the caller sees. A webhook sends no more than that."""
    visibility = visibility_of(caller)
    if hidden := [each for each in types or () if not visibility.covers(each)]:
        raise TypesNotVisible(hidden)
    return visibility


def _families(visibility: EventVisibility) -> list[str] | None:
    # A session that can manage webhooks sees everything.
    return None if visibility.families is None else sorted(visibility.families)


def _still_signing(webhook: Webhook, overlap: timedelta) -> list[tuple[bytes, datetime]]:
    """The secrets that also sign when there is a new one. Without an overlap, none: the secrets may
    be known to others."""
    if not overlap:
        return []
    now = clock.now()
    old = [(sealed, until) for sealed, until in webhook.old_secrets if until > now]
    return [(webhook.sealed_secret, now + overlap), *old][: MAX_SECRETS - 1]


def _patched(webhook: Webhook, body: PatchWebhook, caller: Caller) -> Webhook:
    sent = body.model_fields_set
    after = webhook
    if body.url is not None:
        after = replace(after, url=body.url)
    if "description" in sent:
        after = replace(after, description=body.description)
    if "events" in sent:
        after = replace(after, events=body.events)
    if after == webhook and not body.enabled:
        return after
    visibility = _checked_visibility(caller, after.events)
    if after.events != webhook.events:
        # It sends what the caller sees, from now on.
        return replace(after, families=_families(visibility))
    _check_sees(caller, after)
    return after


def _check_sees(caller: Caller, webhook: Webhook) -> None:
    """Refuses a caller who cannot see all that the webhook sends."""
    visibility = _checked_visibility(caller, webhook.events)
    if webhook.events is None and not _sees(visibility, webhook.families):
        raise SendsMore


def _sees(visibility: EventVisibility, families: list[str] | None) -> bool:
    """Whether the caller sees all of these families. None: all that exist."""
    if visibility.families is None:
        return True
    return families is not None and visibility.families.issuperset(families)


def _changed(before: Webhook, after: Webhook) -> dict[str, str]:
    """What an update says about itself: the fields, and the new host. The rest of a URL is often
    a secret."""
    names = ("url", "events", "description")
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    told = {"changed": ", ".join(changed)}
    return told | {"host": urlsplit(after.url).netloc} if "url" in changed else told


async def _is_responsible(tx: AccountReader, webhook: Webhook) -> bool:
    """Whether the user and the key that chose the URL can still manage webhooks."""
    if not await members.can_manage(tx, webhook.saved_by):
        return False
    keys = {webhook.saved_with} if webhook.saved_with else set()
    return keys == await credentials.working_keys(tx, keys, "webhooks:write")


async def _get(tx: AccountReader, webhook_id: UUID | None) -> Webhook:
    webhook = await queries.find(tx, webhook_id) if webhook_id else None
    if webhook is None:
        raise WebhookNotFound
    return webhook


async def _lock(tx: AccountTransaction, webhook_id: UUID | None) -> Webhook:
    await journal.lock_account(tx)
    webhook = await queries.find(tx, webhook_id, for_change=True) if webhook_id else None
    if webhook is None:
        raise WebhookNotFound
    return webhook
