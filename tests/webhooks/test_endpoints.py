"""What clients can do with webhooks through the API, and what is refused."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.companies.world import Company
from tests.service import Person, Service
from tests.webhooks.receiver import Receiver, response
from tests.webhooks.world import (
    company_with_admin,
    create,
    deliveries,
    events_of,
    happen,
    patch,
    read,
    until,
)

URL = "https://example.com/hook"


async def key_of(person: Person, *scopes: str) -> Person:
    made = await person.post("/api/keys", {"name": "Key", "scopes": list(scopes)})
    return Person(person.service, person.subject, made.json()["secret"], person.user_id)


async def test_a_webhook_is_created_listed_read_changed_and_deleted(person: Person) -> None:
    webhook, secret = await create(person, URL, events=["task.failed"], description="Tickets")
    assert webhook["id"].startswith("wh_")
    assert secret.startswith("whsec_")
    assert (webhook["url"], webhook["events"]) == (URL, ["task.failed"])
    assert (webhook["state"], webhook["enabled"], webhook["skipped"]) == ("active", True, None)
    listed = (await person.get("/api/webhooks")).json()
    assert ([each["id"] for each in listed["webhooks"]], listed["total"]) == ([webhook["id"]], 1)
    assert "secret" not in str(listed).replace("oldSecretUntil", "")
    changed = await patch(person, webhook, events=None, description=None, url=URL + "/2")
    assert (changed["events"], changed["description"]) == (None, None)
    assert changed["url"] == URL + "/2"
    # An object that was read can be sent back, and a change of nothing is no change.
    same = await patch(person, webhook, **changed)
    assert same["updatedAt"] == changed["updatedAt"]
    gone = await person.delete(f"/api/webhooks/{webhook['id']}")
    assert gone.json() == {"deleted": True, "id": webhook["id"]}
    assert (await person.get(f"/api/webhooks/{webhook['id']}")).status_code == 404
    kinds = [each["type"] for each in await events_of(person)]
    assert kinds[-3:] == ["webhook.created", "webhook.updated", "webhook.deleted"]
    assert secret not in str(await events_of(person))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": ""}, "url"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "http://user:password@example.com/"}, "url"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"url": "http://10.0.0.1/"}, "url"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "url"),
        ({"url": URL, "events": []}, "events"),
        ({"url": URL, "events": ["everything"]}, "events"),
        ({"url": URL, "description": " "}, "description"),
        ({"url": URL, "event": ["task.failed"]}, "event"),
    ],
)
async def test_a_wrong_webhook_is_refused(person: Person, body: Any, field: str) -> None:
    refused = await person.post("/api/webhooks", body)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["details"][0]["field"] == field


async def test_other_accounts_find_nothing(office: Service, person: Person) -> None:
    webhook, _ = await create(person, URL)
    stranger = await office.sign_in()
    path = f"/api/webhooks/{webhook['id']}"
    for method, end, body in (
        ("GET", "", None),
        ("PATCH", "", {"enabled": False}),
        ("DELETE", "", None),
        ("POST", "/test", None),
        ("POST", "/replay", {"fromSequence": 1}),
        ("POST", "/rotate-secret", None),
        ("GET", "/deliveries", None),
    ):
        for target in (path, "/api/webhooks/wh_unknown"):
            refused = await stranger.request(method, target + end, json=body)
            assert refused.status_code == 404, (method, end)
    assert (await read(person, webhook))["enabled"]


async def test_the_secret_is_shown_once_also_when_the_request_is_repeated(person: Person) -> None:
    headers = {"Idempotency-Key": "the same"}
    first = await person.post("/api/webhooks", {"url": URL}, headers=headers)
    again = await person.post("/api/webhooks", {"url": URL}, headers=headers)
    assert first.json()["secret"] is not None
    assert again.json()["secret"] is None
    assert again.json()["webhook"]["id"] == first.json()["webhook"]["id"]


async def test_an_account_has_at_most_50_webhooks(person: Person) -> None:
    for _ in range(50):
        await create(person, URL)
    refused = await person.post("/api/webhooks", {"url": URL})
    assert refused.status_code == 409
    assert "50 webhooks" in refused.json()["error"]["message"]


async def test_a_key_needs_the_scopes_and_sends_no_more_than_it_can_read(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    reader = await key_of(person, "tasks:read", "webhooks:read")
    assert (await reader.get("/api/webhooks")).status_code == 200
    assert (await reader.post("/api/webhooks", {"url": URL})).status_code == 403
    writer = await key_of(person, "tasks:read", "webhooks:write")
    assert (await writer.get("/api/webhooks")).status_code == 403
    for kind in ("key.created", "credits.depleted", "session.created"):
        refused = await writer.post("/api/webhooks", {"url": URL, "events": [kind]})
        assert refused.status_code == 403
        assert kind in refused.json()["error"]["message"]
    webhook, _ = await create(writer, receiver.url + "/")
    for kind in ("key.created", "task.updated", "credits.depleted", "session.created"):
        await happen(worker, person, 1, kind)
    await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 5)
    assert [each.event["type"] for each in receiver.received] == ["task.updated"]


async def test_a_key_gets_deliveries_only_of_events_that_it_can_read(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    reader = await key_of(person, "webhooks:read")
    billing = await key_of(person, "webhooks:read", "billing:read")
    for kind in ("session.created", "task.updated", "credits.depleted"):
        await happen(worker, person, 1, kind)
    await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 6)
    await person.post(f"/api/webhooks/{webhook['id']}/test")
    path = f"/api/webhooks/{webhook['id']}/deliveries"
    for caller, families in ((reader, {"webhook"}), (billing, {"webhook", "credits"})):
        found = (await caller.get(path)).json()
        assert {each["type"].partition(".")[0] for each in found["deliveries"]} == families
        assert found["total"] == len(found["deliveries"])
        assert "webhook.test" in {each["type"] for each in found["deliveries"]}
    assert (await person.get(path)).json()["total"] == 7


async def test_only_a_change_of_the_types_changes_what_a_webhook_may_send(person: Person) -> None:
    writer = await key_of(person, "tasks:read", "webhooks:write")
    narrow, _ = await create(writer, URL)
    assert narrow["families"] == ["account", "rule", "schedule", "step", "task"]
    # A session that changes something else, or sends back what it read, widens nothing.
    for change in ({"description": "New"}, {**narrow, "url": URL + "/2"}, {"enabled": False}):
        assert (await patch(person, narrow, **change))["families"] == narrow["families"]
    assert (await patch(writer, narrow, enabled=True))["families"] == narrow["families"]
    assert (await patch(person, narrow, events=["session.created"]))["families"] is None
    # A key narrows nothing either, and does not send what it cannot read to another URL.
    wide, _ = await create(person, URL)
    await patch(writer, wide, enabled=False)
    for change in ({"enabled": True}, {"description": "New"}, {"url": URL + "/2"}):
        path = f"/api/webhooks/{wide['id']}"
        refused = await writer.request("PATCH", path, json=change)
        assert refused.status_code == 403, change
        assert "cannot read" in refused.json()["error"]["message"]
    found = await patch(writer, wide, events=["task.failed"], enabled=True)
    assert found["families"] == narrow["families"]
    assert found["enabled"]


async def test_an_update_says_what_changed(person: Person) -> None:
    webhook, _ = await create(person, URL)
    await patch(person, webhook, url="https://other.example/secret", description="New")
    await patch(person, webhook, events=["task.failed"])
    first, second = [
        each["data"] for each in await events_of(person) if each["type"] == "webhook.updated"
    ]
    assert first["changed"] == "url, description"
    assert first["host"] == "other.example"
    assert (second["changed"], "host" in second) == ("events", False)


async def test_members_of_a_company_cannot_manage_its_webhooks_and_leave_none_behind(
    office: Service,
) -> None:
    owner, admin, company = await company_with_admin(office)
    headers = {"X-Service-Account": company}
    made = await admin.post("/api/webhooks", {"url": URL}, headers=headers)
    assert made.status_code == 201, made.text
    kept = await owner.post("/api/webhooks", {"url": URL}, headers=headers)
    path = f"/api/companies/{company}/members/user_{admin.user_id.hex}"
    demoted = await owner.request("PATCH", path, json={"role": "member"}, headers=headers)
    assert demoted.status_code == 200, demoted.text
    for refused in (
        await admin.get("/api/webhooks", headers=headers),
        await admin.post("/api/webhooks", {"url": URL}, headers=headers),
    ):
        assert refused.status_code == 403

    async def reasons() -> tuple[str | None, ...]:
        found = (await owner.get("/api/webhooks", headers=headers)).json()["webhooks"]
        by_id = {each["id"]: each["disabledReason"] for each in found}
        return tuple(by_id[each.json()["webhook"]["id"]] for each in (made, kept))

    # The endpoint may be the admin's own.
    assert await reasons() == ("member_removed", None)
    hook = f"/api/webhooks/{made.json()['webhook']['id']}"
    promoted = await owner.request("PATCH", path, json={"role": "admin"}, headers=headers)
    assert promoted.status_code == 200
    enabled = await admin.request("PATCH", hook, json={"enabled": True}, headers=headers)
    assert enabled.status_code == 200, enabled.text
    # Another user who changes the description does not make it theirs.
    await owner.request("PATCH", hook, json={"description": "Orders"}, headers=headers)
    assert (await owner.delete(path, headers=headers)).status_code == 200
    assert await reasons() == ("member_removed", None)


@pytest.mark.parametrize("how", ["removed", "removed by the operator", "demoted"])
async def test_a_paused_webhook_of_a_member_who_has_left_belongs_to_who_enables_it(
    office: Service, how: str
) -> None:
    company = await Company.create(office)
    leaver, heir = [await company.join(role="admin") for _ in range(2)]
    made = await leaver.post("/api/webhooks", {"url": URL}, headers=company.selected)
    hook = f"/api/webhooks/{made.json()['webhook']['id']}"

    async def enable(person: Person, enabled: bool) -> None:
        changed = await person.request(
            "PATCH", hook, json={"enabled": enabled}, headers=company.selected
        )
        assert changed.status_code == 200, changed.text

    async def end(person: Person) -> None:
        if how == "removed":
            assert (await company.remove(person)).status_code == 200
        elif how == "removed by the operator":
            company_id = UUID(company.id.removeprefix("acct_"))
            async with Composition(office.settings, pool_size=2) as parts:
                await parts.members.remove(company_id, person.user_id, by=None)
        else:
            assert (await company.change(person, role="member")).status_code == 200

    async def reason() -> str | None:
        found = (await company.owner.get(hook, headers=company.selected)).json()["webhook"]
        why: str | None = found["disabledReason"]
        return why

    # As long as the user can manage it, it stays the user's.
    await enable(heir, False)
    await enable(heir, True)
    await enable(leaver, False)
    await end(leaver)
    assert await reason() == "paused"
    await enable(heir, True)
    assert await reason() is None
    await end(heir)
    assert await reason() == "member_removed"
    disabled = [each for each in await company.events() if each["type"] == "webhook.disabled"]
    owner = f"user_{company.owner.user_id.hex}"
    assert disabled[-1]["data"]["by"] == (None if "operator" in how else owner)


async def test_a_test_delivery_shows_request_and_response(
    person: Person, receiver: Receiver
) -> None:
    webhook, secret = await create(person, receiver.url + "/hook")
    path = f"/api/webhooks/{webhook['id']}/test"
    receiver.answers["/hook"] = lambda _: response(200, body=f"got it, {secret}")
    sent = (await person.post(path)).json()["delivery"]
    assert (sent["delivered"], sent["type"], sent["sequence"]) == (True, "webhook.test", 0)
    assert sent["request"]["body"].encode() == receiver.received[0].body
    assert sent["response"]["status"] == 200
    assert secret not in str(await deliveries(person, webhook))
    receiver.answers["/hook"] = lambda _: response(404, body="nothing here")
    failed = (await person.post(path)).json()["delivery"]
    assert not failed["delivered"]
    assert "404" in failed["error"]
    await patch(person, webhook, url="http://127.0.0.1:9/")
    unreachable = (await person.post(path)).json()["delivery"]
    assert unreachable["response"] is None
    assert "failed" in unreachable["error"]
    assert [each["id"] for each in await deliveries(person, webhook)] == [
        unreachable["id"],
        failed["id"],
        sent["id"],
    ]


async def test_a_replay_beyond_the_next_event_is_refused(person: Person) -> None:
    webhook, _ = await create(person, URL)
    path = f"/api/webhooks/{webhook['id']}/replay"
    for wrong in (0, 10_000, "1", None):
        refused = await person.post(path, {"fromSequence": wrong})
        assert refused.status_code == 400, wrong


async def test_every_change_is_in_the_audit_trail(person: Person, receiver: Receiver) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    path = f"/api/webhooks/{webhook['id']}"
    await patch(person, webhook, enabled=False)
    await patch(person, webhook, enabled=True, description="New")
    await person.post(f"{path}/rotate-secret")
    await person.post(f"{path}/replay", {"fromSequence": 1})
    await person.post(f"{path}/test")
    await person.delete(path)
    listed = await person.get(f"/api/audit?resource={webhook['id']}")
    actions = [each["action"] for each in reversed(listed.json()["entries"])]
    assert actions == [
        "webhook.created",
        "webhook.disabled",
        "webhook.updated",
        "webhook.enabled",
        "webhook.secret_rotated",
        "webhook.replayed",
        "webhook.tested",
        "webhook.deleted",
    ]


async def test_old_deliveries_are_deleted(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    await happen(worker, person, 1_100)
    await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 1_101)
    listed = await person.get(f"/api/webhooks/{webhook['id']}/deliveries?limit=1")
    assert listed.json()["total"] == 1_000
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhook_deliveries SET sent_at = sent_at - interval '8 days'"
        )
    await worker.webhook_dispatcher.delete_old()
    assert await deliveries(person, webhook) == []


async def test_forbidden_addresses_get_no_connection(stack: Stack, receiver: Receiver) -> None:
    """The address is checked when a connection is opened, whatever its name was when saved."""
    port = receiver.url.rpartition(":")[2]
    async with Service.start(
        stack, variant="a", name="webhooks_guarded", webhook_timeout_s=2.0
    ) as guarded:
        person = await guarded.sign_in()
        refused = await person.post("/api/webhooks", {"url": f"{receiver.url}/"})
        assert refused.status_code == 400
        names = (f"http://localhost:{port}/", f"http://localhost.:{port}/")
        made = [(await create(person, url))[0] for url in names]
        made.append((await create(person, "http://127.1.nip.invalid/"))[0])
        tested = await person.post(f"/api/webhooks/{made[0]['id']}/test")
        assert "not allowed" in tested.json()["delivery"]["error"]
        from tests.webhooks.world import sending

        async with sending(guarded) as parts, asyncio.timeout(30):
            await happen(parts, person, 3)
            for webhook in made:
                await until(person, webhook, state="failing")
    assert receiver.connections == 0
