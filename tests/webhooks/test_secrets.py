"""Secrets that are replaced: every one signs until its own time is over."""

import os
from dataclasses import replace
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from structlog.testing import capture_logs

from rota import secret_rotation
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform.crypto import Vault
from rota.webhooks.model import MAX_SECRETS, seal_context
from tests.service import Person, Service
from tests.webhooks.receiver import Received, Receiver
from tests.webhooks.test_signatures import delivered
from tests.webhooks.world import LOCAL, create, happen, patch, until, uuid_of


async def rotate(person: Person, webhook: dict[str, Any], **body: Any) -> str:
    path = f"/api/webhooks/{webhook['id']}/rotate-secret"
    response = await person.post(path, body)
    assert response.status_code == 200, response.text
    secret: str = response.json()["secret"]
    return secret


def signs(secret: str, got: Received) -> bool:
    try:
        Webhook(secret).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


async def test_a_secret_signs_until_its_own_end_however_often_it_is_replaced(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, first = await create(person, receiver.url + "/")
    path, key = f"/api/webhooks/{webhook['id']}/rotate-secret", {"Idempotency-Key": "k"}
    # The response was lost, and the repeated request does not return the secret.
    second = (await person.post(path, {}, headers=key)).json()["secret"]
    assert (await person.post(path, {}, headers=key)).json()["secret"] is None
    third = await rotate(person, webhook, overlapHours=1)
    secrets = [first, second, third]
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [True, True, True]
    async with office.owner() as connection:
        # As if the day of the first one were over.
        await connection.execute(
            "UPDATE webhooks SET older_secrets_until = ARRAY[now()], revision = revision + 1"
        )
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [False, True, True]
    secrets.append(await rotate(person, webhook, overlapHours=0))
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [False, False, False, True]


async def test_secrets_that_the_release_before_ends_sign_no_more(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, first = await create(person, receiver.url + "/")
    secrets = [first, await rotate(person, webhook), await rotate(person, webhook)]
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [True, True, True]
    async with office.owner() as connection:
        # As a process of that release does without an overlap. It does not know the older ones.
        await connection.execute(
            "UPDATE webhooks SET sealed_old_secret = NULL, old_secret_until = NULL, "
            "revision = revision + 1"
        )
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [False, False, True]
    secrets.append(await rotate(person, webhook))
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [False, False, True, True]


async def test_an_old_secret_that_cannot_be_read_is_logged_once(
    office: Service,
    worker: Composition,
    person: Person,
    receiver: Receiver,
) -> None:
    webhook, first = await create(person, receiver.url + "/")
    second = await rotate(person, webhook)
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET sealed_old_secret = '\\x00', revision = revision + 1"
        )
    with capture_logs() as logs:
        for _ in range(3):
            got = await delivered(worker, person, receiver)
            assert [signs(each, got) for each in (first, second)] == [False, True]
    found = [each for each in logs if each["event"] == "webhook_old_secret_unreadable"]
    assert [each["webhook_id"] for each in found] == [str(uuid_of(webhook))]


async def test_the_response_says_when_the_last_earlier_secret_ends(person: Person) -> None:
    webhook, _ = await create(person, "https://example.com/hook")
    path = f"/api/webhooks/{webhook['id']}/rotate-secret"
    ends = [
        (await person.post(path, {"overlapHours": hours})).json()["webhook"]["oldSecretUntil"]
        for hours in (24, 1, 0)
    ]
    assert ends[0] == ends[1]
    assert ends[2] is None


async def test_one_rotation_too_many_drops_the_oldest_secret(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, first = await create(person, receiver.url + "/")
    secrets = [first] + [await rotate(person, webhook) for _ in range(MAX_SECRETS)]
    got = await delivered(worker, person, receiver)
    assert [signs(each, got) for each in secrets] == [False] + [True] * MAX_SECRETS
    assert got.headers["webhook-signature"].count("v1,") == MAX_SECRETS


async def test_a_secret_that_cannot_be_read_can_be_replaced(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/", events=["task.failed"])
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET sealed_secret = '\\x00', revision = revision + 1"
        )
    await happen(worker, person, 1, "task.failed")
    await until(person, webhook, state="failing")
    secret = await rotate(person, webhook)
    await patch(person, webhook, enabled=True)
    await until(person, webhook, state="active")
    assert signs(secret, receiver.received[-1])


async def test_old_secrets_survive_a_rotation_of_the_service_key(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces = replace(secret_rotation._OLDER_WEBHOOK_SECRETS, batch=2)
    monkeypatch.setattr(secret_rotation, "_OLDER_WEBHOOK_SECRETS", in_pieces)
    async with Service.start(
        stack, variant="a", name="webhooks_secrets", egress_allow=LOCAL
    ) as service:
        person = await service.sign_in()
        webhook, first = await create(person, "https://example.com/hook")
        secrets = [first] + [await rotate(person, webhook) for _ in range(5)]
        key = os.urandom(32)
        both = Vault(key, *service.settings.secret_keys)
        async with Composition(service.settings, pool_size=4) as parts:
            counts = await secret_rotation.rotate_all(parts.db, service.database_url, both)
        async with service.owner() as connection:
            row = await connection.fetchrow(
                "SELECT sealed_secret, sealed_old_secret, sealed_older_secrets FROM webhooks"
            )
    assert counts["older webhook secrets"] == (4, 0)
    sealed = [row["sealed_secret"], row["sealed_old_secret"], *row["sealed_older_secrets"]]
    new, context = Vault(key), seal_context(person.user_id, uuid_of(webhook))
    assert [new.open(each, context).decode() for each in reversed(sealed)] == secrets
