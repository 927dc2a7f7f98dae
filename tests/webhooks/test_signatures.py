"""Receivers can verify what arrives, with the usual library, our SDK and the published keys."""

import base64
import json
import os
import time

import pytest
from pydantic import SecretStr
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from rota.composition import Composition
from rota.dev.stack import Stack
from rota_sdk import errors, webhooks
from tests.service import Person, Service
from tests.webhooks.receiver import Received, Receiver
from tests.webhooks.world import LOCAL, create, events_of, happen, sending, until


async def delivered(worker: Composition, person: Person, receiver: Receiver) -> Received:
    """A new event. An event before it can arrive again, since the webhook has changed."""
    await happen(worker, person, 1)
    newest = (await events_of(person))[-1]["sequence"]
    await receiver.until(lambda: newest in receiver.sequences())
    return next(each for each in receiver.at("/") if each.event["sequence"] == newest)


async def public_keys(person: Person) -> list[str]:
    found = await person.service.http.get("/.well-known/webhook-keys.json")
    return [each["publicKey"] for each in found.json()["keys"]]


async def test_both_signatures_are_valid(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, secret = await create(person, receiver.url + "/")
    got = await delivered(worker, person, receiver)
    assert Webhook(secret).verify(got.body, got.headers) == got.event
    keys = await public_keys(person)
    for key in ({"secret": secret}, {"public_key": keys}):
        event = webhooks.verify(got.body, got.headers, webhook_id=webhook["id"], **key)
        assert (event.sequence, event.webhook_id) == (got.event["sequence"], webhook["id"])
        assert event.previous_sequence == got.event["previousSequence"]


async def test_forged_stale_and_altered_deliveries_are_refused(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, secret = await create(person, receiver.url + "/")
    other, other_secret = await create(person, receiver.url + "/other")
    got = await delivered(worker, person, receiver)
    keys = await public_keys(person)
    stamp = int(got.headers["webhook-timestamp"])
    changes: list[tuple[bytes, dict[str, str]]] = []
    for field in ("id", "sequence", "type", "accountId", "webhookId", "previousSequence"):
        altered = json.dumps(got.event | {field: "other"}).encode()
        changes.append((altered, {}))
    places = (0, len(got.body) // 2, len(got.body) - 1)
    changes += [(got.body[:at] + b"x" + got.body[at + 1 :], {}) for at in places]
    changes += [(got.body + b" ", {}), (b"", {}), (b"{}", {}), (got.body[:-1], {})]
    stale = (301, 600, 86_400, -301, -86_400)
    changes += [(got.body, {"webhook-timestamp": str(stamp - late)}) for late in stale]
    changes += [
        (got.body, {"webhook-timestamp": "now"}),
        (got.body, {"webhook-timestamp": str(stamp + 1)}),
        (got.body, {"webhook-id": "evt_other"}),
        (got.body, {"webhook-id": ""}),
        (got.body, {"webhook-signature": ""}),
        (got.body, {"webhook-signature": "v1," + "A" * 44}),
        (got.body, {"webhook-signature": "v1 v1a"}),
        (got.body, {"webhook-signature": "v1a," + base64.b64encode(os.urandom(64)).decode()}),
        (got.body, {"webhook-signature": got.headers["webhook-signature"].replace("v1", "v2")}),
    ]
    refused = 0
    for body, headers in changes:
        with pytest.raises(errors.WebhookVerificationError):
            webhooks.verify(
                body,
                got.headers | headers,
                webhook_id=webhook["id"],
                secret=secret,
                public_key=keys,
            )
        refused += 1
        if "v1a" not in headers.get("webhook-signature", "v1"):
            with pytest.raises((WebhookVerificationError, ValueError)):
                Webhook(secret).verify(body, got.headers | headers)
            refused += 1
    # Another receiver's delivery, and another receiver's secret.
    with pytest.raises(errors.WebhookVerificationError, match="another receiver"):
        webhooks.verify(got.body, got.headers, webhook_id=other["id"], public_key=keys)
    with pytest.raises(errors.WebhookVerificationError):
        webhooks.verify(got.body, got.headers, webhook_id=webhook["id"], secret=other_secret)
    assert refused + 2 >= 40


async def test_a_rotated_secret_and_the_one_before_it_both_sign_for_a_while(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, old = await create(person, receiver.url + "/")
    path = f"/api/webhooks/{webhook['id']}/rotate-secret"
    rotated = (await person.post(path, {"overlapHours": 1})).json()
    new = rotated["secret"]
    assert rotated["webhook"]["oldSecretUntil"] is not None
    got = await delivered(worker, person, receiver)
    for secret in (old, new):
        Webhook(secret).verify(got.body, got.headers)
    async with office.owner() as connection:
        # As if the hour were over. Another revision, since a worker may keep what it has read.
        await connection.execute(
            "UPDATE webhooks SET old_secret_until = now(), revision = revision + 1"
        )
    await until(person, webhook, state="active")
    got = await delivered(worker, person, receiver)
    Webhook(new).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(got.body, got.headers)
    newest = (await person.post(path, {"overlapHours": 0})).json()
    assert newest["webhook"]["oldSecretUntil"] is None
    got = await delivered(worker, person, receiver)
    Webhook(newest["secret"]).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(got.body, got.headers)


async def test_while_a_key_of_the_service_is_replaced_both_sign(
    stack: Stack, receiver: Receiver
) -> None:
    keys = tuple(SecretStr(base64.b64encode(bytes([n]) * 32).decode()) for n in (1, 2))
    async with Service.start(
        stack, variant="a", name="webhooks_keys", egress_allow=LOCAL, webhook_keys=keys
    ) as service:
        person = await service.sign_in()
        webhook, _ = await create(person, receiver.url + "/")
        published = await public_keys(person)
        assert len(set(published)) == 2
        async with sending(service) as parts:
            got = await delivered(parts, person, receiver)
    for key in published:
        webhooks.verify(got.body, got.headers, webhook_id=webhook["id"], public_key=key)
    assert abs(time.time() - int(got.headers["webhook-timestamp"])) < 60
