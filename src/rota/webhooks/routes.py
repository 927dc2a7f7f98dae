"""Endpoints: webhooks."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, public_router, secured_router
from rota.auth.schemas import DeletedResponse
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, path_id
from rota.platform.idempotency import IdempotencyKey
from rota.webhooks import schemas
from rota.webhooks.bodies import CreateWebhook, PatchWebhook, ReplayWebhook, RotateSecret
from rota.webhooks.schemas import (
    DeliveredResponse,
    DeliveriesResponse,
    DeliveryOutcome,
    WebhookKeysResponse,
    WebhookResponse,
    WebhookSecretResponse,
    WebhooksResponse,
)
from rota.webhooks.service import Webhooks
from rota.webhooks.signing import Signer

Reader = Annotated[Caller, Depends(allowed("webhooks:read", right="webhooks"))]
Writer = Annotated[Caller, Depends(allowed("webhooks:write", right="webhooks"))]
WebhookId = Annotated[Text, path_id("webhook", examples.WEBHOOK_ID)]


def webhook_routes(webhooks: Webhooks) -> APIRouter:
    router = secured_router("Webhooks")

    @router.get("/api/webhooks", summary="List webhooks")
    async def list_webhooks(caller: Reader) -> WebhooksResponse:
        """Returns every webhook of the account."""
        found = await webhooks.all(caller)
        return WebhooksResponse(
            webhooks=[
                schemas.Webhook.of(each, whole_url=caller.has_scope("webhooks:write"))
                for each in found
            ],
            total=len(found),
        )

    @router.post(
        "/api/webhooks",
        status_code=201,
        response_model=WebhookSecretResponse,
        summary="Create a webhook",
        responses=documented(409),
    )
    async def create_webhook(
        caller: Writer, body: CreateWebhook, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a webhook, and returns the secret that signs its deliveries.

        It begins with the next event. An API key cannot subscribe to events that it cannot read
        (403). An account has at most 50 webhooks (409).
        """
        return respond(await webhooks.create(caller, body, idempotency_key))

    @router.get("/api/webhooks/{id}", summary="Get a webhook", responses=documented(404))
    async def get_webhook(caller: Reader, id: WebhookId) -> WebhookResponse:  # noqa: A002
        """Returns the webhook. `confirmedSequence` shows how far deliveries have progressed."""
        webhook = await webhooks.get(caller, ids.from_wire("wh", id))
        whole_url = caller.has_scope("webhooks:write")
        return WebhookResponse(webhook=schemas.Webhook.of(webhook, whole_url=whole_url))

    @router.patch("/api/webhooks/{id}", summary="Change a webhook", responses=documented(404))
    async def patch_webhook(
        caller: Writer,
        id: WebhookId,  # noqa: A002
        body: PatchWebhook,
    ) -> WebhookResponse:
        """Changes the fields that are present. With `enabled`, a disabled webhook continues after
        the last confirmed event and catches up, and a failing one tries again at once. An API key
        cannot change a webhook that sends events that it cannot read (403)."""
        webhook = await webhooks.patch(caller, ids.from_wire("wh", id), body)
        return WebhookResponse(webhook=schemas.Webhook.of(webhook))

    @router.delete("/api/webhooks/{id}", summary="Delete a webhook", responses=documented(404))
    async def delete_webhook(caller: Writer, id: WebhookId) -> DeletedResponse:  # noqa: A002
        """Deletes the webhook and the history of its deliveries."""
        await webhooks.delete(caller, ids.from_wire("wh", id))
        return DeletedResponse(id=id)

    @router.post(
        "/api/webhooks/{id}/rotate-secret",
        response_model=WebhookSecretResponse,
        summary="Replace the secret of a webhook",
        responses=documented(404, 409),
    )
    async def rotate_webhook_secret(
        caller: Writer,
        id: WebhookId,  # noqa: A002
        body: RotateSecret | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Creates a new secret. For `overlapHours`, deliveries have signatures of both secrets, so
        that receivers can change to the new one at any time. Secrets of earlier rotations also sign
        until their own overlap ends, except those before the ten newest. With 0, only the new
        secret signs."""
        return respond(
            await webhooks.rotate_secret(
                caller, ids.from_wire("wh", id), body or RotateSecret(), idempotency_key
            )
        )

    @router.post(
        "/api/webhooks/{id}/test",
        summary="Send a test delivery",
        responses=documented(404, 429),
    )
    async def test_webhook(caller: Writer, id: WebhookId) -> DeliveredResponse:  # noqa: A002
        """Sends an event of the type `webhook.test` with the number 0, and waits for the response.
        The response of this request is 200 even if the endpoint fails; `delivered` is then
        false."""
        delivery = await webhooks.test(caller, ids.from_wire("wh", id))
        return DeliveredResponse(delivery=schemas.Delivery.of(delivery))

    @router.post(
        "/api/webhooks/{id}/replay",
        summary="Replay events",
        responses=documented(404),
    )
    async def replay_webhook(
        caller: Writer,
        id: WebhookId,  # noqa: A002
        body: ReplayWebhook,
    ) -> WebhookResponse:
        """Continues with this event: sends it and all later ones again, in order. A later number
        than the next one to deliver skips events."""
        webhook = await webhooks.replay(caller, ids.from_wire("wh", id), body)
        return WebhookResponse(webhook=schemas.Webhook.of(webhook))

    @router.get(
        "/api/webhooks/{id}/deliveries",
        summary="List the deliveries of a webhook",
        responses=documented(404),
    )
    async def list_deliveries(
        caller: Reader,
        id: WebhookId,  # noqa: A002
        outcome: Annotated[
            DeliveryOutcome | None,
            Query(description="Only attempts that succeeded, or that failed.", examples=["failed"]),
        ] = None,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> DeliveriesResponse:
        """Returns every attempt, newest first, with its request and response. The last 1,000 of
        the last seven days are kept. An API key gets those of events that it can read."""
        found, total = await webhooks.deliveries(
            caller, ids.from_wire("wh", id), outcome, limit, offset
        )
        whole_url = caller.has_scope("webhooks:write")
        return DeliveriesResponse(
            deliveries=[schemas.Delivery.of(each, whole_url=whole_url) for each in found],
            total=total,
        )

    return router


def webhook_key_routes(signer: Signer) -> APIRouter:
    router = public_router("Webhooks")

    @router.get("/.well-known/webhook-keys.json", summary="Get the public keys of webhooks")
    async def webhook_keys() -> WebhookKeysResponse:
        """Returns the keys that verify the signature `v1a` of webhooks. While a key is replaced,
        there are several, and deliveries have a signature of each."""
        return WebhookKeysResponse.of(signer.public_keys)

    return router
