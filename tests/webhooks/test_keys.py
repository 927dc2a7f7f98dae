"""What API keys see of webhooks, and what becomes of webhooks when their key ends."""

from typing import Any

import pytest

from rota.composition import Composition
from rota.webhooks import turns
from tests.service import Person, Service
from tests.webhooks.receiver import Receiver
from tests.webhooks.test_turns import slowly
from tests.webhooks.world import (
    company_with_admin,
    create,
    deliveries,
    events_of,
    happen,
    patch,
    until,
)

SCOPES = ["tasks:read", "webhooks:read", "webhooks:write"]


async def key_of(person: Person, scopes: list[str], **headers: Any) -> tuple[Person, str]:
    """A person who uses the key, and the key's ID."""
    made = await person.post("/api/keys", {"name": "Key", "scopes": scopes}, **headers)
    assert made.status_code == 201, made.text
    user = Person(person.service, person.subject, made.json()["secret"], person.user_id)
    return user, made.json()["key"]["id"]


async def test_a_key_that_cannot_change_webhooks_sees_only_the_origins_of_their_urls(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    url = receiver.url + "/path-secret?token=query-secret"
    webhook, _ = await create(person, url)
    await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 1)
    reader, _ = await key_of(person, ["webhooks:read"])
    path = f"/api/webhooks/{webhook['id']}"
    for found in ("/api/webhooks", path, f"{path}/deliveries"):
        shown = (await reader.get(found)).json()
        assert f"{receiver.url}/…" in str(shown), found
        assert "-secret" not in str(shown), found
    writer, _ = await key_of(person, SCOPES)
    assert (await writer.get(path)).json()["webhook"]["url"] == url
    assert (await deliveries(writer, webhook))[0]["request"]["url"] == url


async def end_key(office: Service, person: Person, key_id: str, how: str) -> None:
    if how == "revoked":
        assert (await person.delete(f"/api/keys/{key_id}")).status_code == 200
        return
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE api_keys SET expires_at = now() WHERE id = $1", key_id.removeprefix("key_")
        )


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_webhook_stops_with_the_key_that_chose_its_url(
    office: Service, worker: Composition, person: Person, receiver: Receiver, how: str
) -> None:
    writer, key_id = await key_of(person, SCOPES)
    webhook, _ = await create(writer, receiver.url + "/")
    kept, _ = await create(person, receiver.url + "/kept")
    await happen(worker, person, 1)
    await receiver.until(lambda: len(receiver.at("/")) == 1)
    await end_key(office, person, key_id, how)
    await happen(worker, person, 1)
    found = await until(person, webhook, state="disabled")
    assert found["disabledReason"] == "key_ended"
    disabled = [each for each in await events_of(person) if each["type"] == "webhook.disabled"]
    assert disabled[-1]["data"]["reason"] == "key_ended"
    # Whoever enables it is responsible for it from then on.
    await patch(person, webhook, enabled=True)
    await happen(worker, person, 1)
    last = (await events_of(person))[-1]["sequence"]
    await until(person, webhook, confirmedSequence=last)
    await until(person, kept, confirmedSequence=last)
    assert receiver.sequences("/kept")[-1] == last


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_key_that_ends_while_events_are_sent_ends_the_turn(
    office: Service,
    worker: Composition,
    person: Person,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    monkeypatch.setattr(turns, "KEY_CHECK_S", 0.0)
    receiver.answers["/"] = slowly
    writer, key_id = await key_of(person, SCOPES)
    webhook, _ = await create(writer, receiver.url + "/")
    await happen(worker, person, 90)
    await receiver.until(lambda: len(receiver.received) > 5)
    await end_key(office, person, key_id, how)
    sent = len(receiver.received)
    found = await until(person, webhook, state="disabled")
    assert found["disabledReason"] == "key_ended"
    # One request was being sent, and one can have passed its check.
    assert len(receiver.received) <= sent + 2
    # The rest is sent after somebody else has become responsible.
    await patch(person, webhook, enabled=True)
    last = (await events_of(person))[-1]["sequence"]
    await until(person, webhook, confirmedSequence=last)
    assert receiver.sequences() == sorted(receiver.sequences())


async def test_a_paused_webhook_whose_key_has_ended_can_be_enabled(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    writer, key_id = await key_of(person, SCOPES)
    webhook, _ = await create(writer, receiver.url + "/")
    await patch(person, webhook, enabled=False)
    assert (await person.delete(f"/api/keys/{key_id}")).status_code == 200
    await patch(person, webhook, enabled=True)
    await happen(worker, person, 1)
    last = (await events_of(person))[-1]["sequence"]
    await until(person, webhook, confirmedSequence=last, enabled=True)


async def test_a_session_that_changes_the_url_frees_a_webhook_from_its_key(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    writer, key_id = await key_of(person, SCOPES)
    webhook, _ = await create(writer, receiver.url + "/old")
    await patch(person, webhook, url=receiver.url + "/new")
    assert (await person.delete(f"/api/keys/{key_id}")).status_code == 200
    await happen(worker, person, 1)
    await receiver.until(lambda: len(receiver.at("/new")) > 0)


async def test_a_key_of_a_member_sees_no_events_about_webhooks(office: Service) -> None:
    owner, admin, company = await company_with_admin(office)
    headers = {"X-Service-Account": company}
    key, _ = await key_of(admin, ["tasks:read", "webhooks:read"], headers=headers)
    await owner.post("/api/webhooks", {"url": "https://example.com/hook"}, headers=headers)
    assert "webhook.created" in [each["type"] for each in await events_of(key)]
    path = f"/api/companies/{company}/members/user_{admin.user_id.hex}"
    demoted = await owner.request("PATCH", path, json={"role": "member"}, headers=headers)
    assert demoted.status_code == 200, demoted.text
    assert [each["type"] for each in await events_of(key)] == []
