"""Public schemas of webhooks."""

from typing import Annotated
from urllib.parse import urlsplit

from typing_extensions import TypeAliasType

from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import ShownOnce, Timestamp, Total, Wire, doc
from rota.webhooks import model
from rota.webhooks.signing import public_text

URL = "https://example.com/webhooks/rota"
DESCRIPTION = "Ticket system"
TYPES = ["task.completed", "task.failed"]
_BODY = (
    f'{{"id":"{examples.EVENT_ID}","sequence":42,"type":"task.completed","taskId":'
    f'"{examples.TASK_ID}","data":{{"status":"COMPLETED"}},"createdAt":"{examples.FINISHED}",'
    f'"accountId":"{examples.ACCOUNT_ID}","webhookId":"{examples.WEBHOOK_ID}",'
    '"previousSequence":41}'
)

WebhookState = TypeAliasType(
    "WebhookState",
    Annotated[
        model.State,
        doc(
            "`active`: events are sent. `failing`: the last delivery failed and is tried again. "
            "`disabled`: nothing is sent until it is enabled.",
            "active",
        ),
    ],
)
DeliveryOutcome = TypeAliasType(
    "DeliveryOutcome",
    Annotated[model.DeliveryOutcome, doc("The result of the attempt.", "delivered")],
)
WebhookDisabledReason = TypeAliasType(
    "WebhookDisabledReason",
    Annotated[
        model.DisabledReason,
        doc(
            "`paused`: a user or a restore of the service disabled it. `failing`: deliveries "
            "failed for three days. `gone`: "
            "the endpoint responded with 410. `member_removed`: the user who chose its URL "
            "left, or can no longer manage webhooks. `key_ended`: the API key that chose its URL "
            "was revoked or has expired. `restored`: the service was restored from a backup, and "
            "the webhook was changed or disabled after the backup.",
            "failing",
        ),
    ],
)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"


class SkippedEvents(Wire):
    """Events that were deleted before they could be delivered."""

    from_sequence: Annotated[int, doc("The number of the first of them.", 12, ge=1)]
    to_sequence: Annotated[int, doc("The number of the last of them.", 40, ge=1)]


class Webhook(Wire):
    """An endpoint that receives the events of the account."""

    id: Annotated[str, doc("The ID of the webhook, `wh_…`.", examples.WEBHOOK_ID)]
    url: Annotated[
        str,
        doc(
            "Where events are sent. An API key without `webhooks:write` gets only its origin, such "
            "as `https://example.com/…`: the rest is often a secret.",
            URL,
        ),
    ]
    description: Annotated[str | None, doc("What it is for.", DESCRIPTION)]
    events: Annotated[
        list[str] | None, doc("The types of events that it receives. Null: all.", TYPES)
    ]
    families: Annotated[
        list[str] | None,
        doc(
            "It sends only types that begin with one of these: what the API key that set `events` "
            "can read. Null: a session set them, so there is no such limit.",
            None,
        ),
    ]
    enabled: Annotated[bool, doc("Whether events are sent.", True)]
    state: Annotated[WebhookState, doc("Whether deliveries succeed.", "active")]
    disabled_reason: Annotated[
        WebhookDisabledReason | None, doc("Why it is disabled. Null if it is enabled.", None)
    ]
    disabled_at: Annotated[
        Timestamp | None, doc("When it was disabled. Null if it is enabled.", None)
    ]
    confirmed_sequence: Annotated[
        int,
        doc(
            "Every event up to this number has been confirmed by the endpoint, or is not for it.",
            42,
            ge=0,
        ),
    ]
    skipped: Annotated[
        SkippedEvents | None,
        doc(
            "The events that retention deleted before they could be delivered. Null: none since "
            "the last replay.",
            None,
        ),
    ]
    failing_since: Annotated[
        Timestamp | None, doc("When deliveries began to fail. Null if they succeed.", None)
    ]
    next_attempt_at: Annotated[
        Timestamp | None, doc("When a failed delivery is tried again.", None)
    ]
    last_error: Annotated[str | None, doc("Why the last delivery failed.", None)]
    last_delivered_at: Annotated[
        Timestamp | None, doc("When an event was last confirmed.", examples.FINISHED)
    ]
    old_secret_until: Annotated[
        Timestamp | None,
        doc(
            "Until when secrets from before the last rotation also sign. The latest time, if there "
            "are several.",
            None,
        ),
    ]
    created_at: Annotated[Timestamp, doc("When the webhook was created.", examples.CREATED)]
    updated_at: Annotated[Timestamp, doc("When it was last changed.", examples.CREATED)]

    @classmethod
    def of(cls, webhook: model.Webhook, *, whole_url: bool = True) -> "Webhook":
        skipped = None
        if webhook.skipped_from is not None and webhook.skipped_to is not None:
            skipped = SkippedEvents(
                from_sequence=webhook.skipped_from, to_sequence=webhook.skipped_to
            )
        return cls(
            id=ids.to_wire("wh", webhook.id),
            url=webhook.url if whole_url else _origin(webhook.url),
            description=webhook.description,
            events=webhook.events,
            families=webhook.families,
            enabled=webhook.enabled,
            state=webhook.state,
            disabled_reason=webhook.disabled_reason,
            disabled_at=webhook.disabled_at,
            confirmed_sequence=webhook.confirmed_sequence,
            skipped=skipped,
            failing_since=webhook.failing_since,
            next_attempt_at=webhook.due_at if webhook.state == "failing" else None,
            last_error=webhook.last_error,
            last_delivered_at=webhook.delivered_at,
            old_secret_until=max((until for _, until in webhook.old_secrets), default=None),
            created_at=webhook.created_at,
            updated_at=webhook.updated_at,
        )


class WebhookResponse(Wire):
    """One webhook."""

    webhook: Annotated[Webhook, doc("The webhook.")]


class WebhookSecretResponse(Wire):
    """A webhook and its new secret."""

    webhook: Annotated[Webhook, doc("The webhook.")]
    secret: Annotated[
        ShownOnce,
        doc(
            "The secret that signs deliveries. It is shown only once: a repeated request with the "
            "same Idempotency-Key gets null.",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ),
    ]


class WebhooksResponse(Wire):
    """The webhooks of an account."""

    webhooks: Annotated[list[Webhook], doc("All webhooks, newest first.")]
    total: Total


class DeliveryRequest(Wire):
    """What was sent."""

    url: Annotated[str, doc("Where it was sent. Without `webhooks:write`, only the origin.", URL)]
    body: Annotated[str, doc("The body, up to 4,096 characters of it.", _BODY)]


class DeliveryResponse(Wire):
    """What the endpoint responded."""

    status: Annotated[int, doc("The HTTP status.", 200)]
    body: Annotated[str, doc("The beginning of the body, up to 1,024 characters.", "ok")]


class Delivery(Wire):
    """One attempt to deliver one event."""

    id: Annotated[str, doc("The ID of the attempt, `dlv_…`.", examples.DELIVERY_ID)]
    event_id: Annotated[
        str, doc("The event. Also sent in the webhook-id header.", examples.EVENT_ID)
    ]
    sequence: Annotated[int, doc("The number of the event. 0: a test.", 42, ge=0)]
    type: Annotated[str, doc("The type of the event.", "task.completed")]
    attempt: Annotated[int, doc("Which attempt it was, starting at 1.", 1, ge=1)]
    delivered: Annotated[bool, doc("Whether the endpoint confirmed the event.", True)]
    error: Annotated[str | None, doc("Why the attempt failed, and what to do.", None)]
    sent_at: Annotated[Timestamp, doc("When it was sent.", examples.FINISHED)]
    duration_ms: Annotated[int, doc("How long it took, in milliseconds.", 85, ge=0)]
    request: Annotated[DeliveryRequest, doc("The request to the endpoint.")]
    response: Annotated[
        DeliveryResponse | None, doc("The response of the endpoint. Null: none arrived.")
    ]

    @classmethod
    def of(cls, delivery: model.Delivery, *, whole_url: bool = True) -> "Delivery":
        response = None
        if delivery.status is not None:
            response = DeliveryResponse(status=delivery.status, body=delivery.response_body or "")
        return cls(
            id=ids.to_wire("dlv", delivery.id),
            event_id=ids.to_wire("evt", delivery.event_id),
            sequence=delivery.sequence,
            type=delivery.type,
            attempt=delivery.attempt,
            delivered=delivery.delivered,
            error=delivery.error,
            sent_at=delivery.sent_at,
            duration_ms=delivery.duration_ms,
            request=DeliveryRequest(
                url=delivery.url if whole_url else _origin(delivery.url),
                body=delivery.request_body,
            ),
            response=response,
        )


class DeliveredResponse(Wire):
    """One attempt."""

    delivery: Annotated[Delivery, doc("The attempt. `delivered` says whether it succeeded.")]


class DeliveriesResponse(Wire):
    """A page of deliveries."""

    deliveries: Annotated[list[Delivery], doc("The attempts on this page, newest first.")]
    total: Total


class WebhookKey(Wire):
    """A public key that verifies the signature `v1a`."""

    alg: Annotated[str, doc("Always `Ed25519`.", "Ed25519")] = "Ed25519"
    public_key: Annotated[
        str,
        doc(
            "The key as the SDKs and Standard Webhooks write it.",
            "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        ),
    ]


class WebhookKeysResponse(Wire):
    """The keys of the service that sign webhooks."""

    keys: Annotated[list[WebhookKey], doc("The newest first. Each of them signs.")]

    @classmethod
    def of(cls, keys: list[bytes]) -> "WebhookKeysResponse":
        return cls(keys=[WebhookKey(public_key=public_text(key)) for key in keys])
