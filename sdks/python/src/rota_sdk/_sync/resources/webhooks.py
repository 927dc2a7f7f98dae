# Generated from rota_sdk/_async: do not edit.
"""Webhooks: the events of the account, sent to an endpoint of yours."""

from collections.abc import Sequence
from typing import TypeAlias

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, change, creation, id_of, parameters
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.resource import Resource

WebhookRef: TypeAlias = str | models.Webhook


class Webhooks(Resource):
    """Endpoints that receive events. `rota_sdk.webhooks.verify` checks what they receive."""

    def list(self) -> Pages[models.Webhook]:
        """The webhooks, newest first."""
        return self._whole_list(operations.list_webhooks, lambda r: r.webhooks)

    def create(
        self,
        *,
        url: str,
        events: Sequence[str] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookSecretResponse:
        """Creates a webhook for events of these types, or for all. `secret` is shown only here.

        If the connection breaks before the response arrives, `secret` is None: replace it with
        `rotate_secret`.
        """
        body = creation(models.CreateWebhook, url=url, events=events, description=description)
        return self._call(operations.create_webhook, body=body, idempotency_key=idempotency_key)

    def get(self, webhook: WebhookRef) -> models.Webhook:
        """The webhook. `confirmed_sequence` shows how far deliveries have progressed."""
        return (self._call(operations.get_webhook, {"id": id_of(webhook)})).webhook

    def update(
        self,
        webhook: WebhookRef,
        *,
        url: str | Unset = UNSET,
        events: Sequence[str] | Unset | None = UNSET,
        description: str | Unset | None = UNSET,
        enabled: bool | Unset = UNSET,
    ) -> models.Webhook:
        """Changes the fields that are given. A webhook that is enabled again catches up."""
        body = change(
            models.PatchWebhook, url=url, events=events, description=description, enabled=enabled
        )
        response = self._call(operations.patch_webhook, {"id": id_of(webhook)}, body=body)
        return response.webhook

    def delete(self, webhook: WebhookRef) -> None:
        """Deletes the webhook and the history of its deliveries."""
        self._end(operations.delete_webhook, {"id": id_of(webhook)})

    def rotate_secret(
        self,
        webhook: WebhookRef,
        *,
        overlap_hours: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookSecretResponse:
        """Replaces the secret. For `overlap_hours` (default: 24), both of them sign. Secrets of
        earlier rotations sign until their own overlap ends. With 0, only the new one signs.

        If the connection breaks before the response arrives, `secret` is None: call it again.
        """
        body = creation(models.RotateSecret, overlap_hours=overlap_hours)
        return self._call(
            operations.rotate_webhook_secret,
            {"id": id_of(webhook)},
            body=body,
            idempotency_key=idempotency_key,
        )

    def test(self, webhook: WebhookRef) -> models.Delivery:
        """Sends an event of the type `webhook.test` now. `delivered` says whether it arrived."""
        return (self._call(operations.test_webhook, {"id": id_of(webhook)})).delivery

    def replay(self, webhook: WebhookRef, *, from_sequence: int) -> models.Webhook:
        """Sends this event and all later ones again, in order."""
        body = models.ReplayWebhook(from_sequence=from_sequence)
        response = self._call(operations.replay_webhook, {"id": id_of(webhook)}, body=body)
        return response.webhook

    def deliveries(
        self,
        webhook: WebhookRef,
        *,
        outcome: models.DeliveryOutcome | None = None,
        page_size: int | None = None,
    ) -> Pages[models.Delivery]:
        """The attempts of the last seven days, newest first."""
        return self._offset_list(
            operations.list_deliveries,
            lambda r: r.deliveries,
            page_size,
            lambda each: each.id,
            path={"id": id_of(webhook)},
            query=parameters(outcome=outcome),
        )

    def public_keys(self) -> models.WebhookKeysResponse:
        """The keys that verify the signature `v1a`. Needs no credentials."""
        return self._call(operations.webhook_keys)
