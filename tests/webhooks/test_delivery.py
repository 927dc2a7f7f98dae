"""Events arrive in order and at least once, and an endpoint that fails delays no other one."""

import asyncio

from rota.composition import Composition
from rota.events import journal
from rota.restore.queries import skip_numbers
from tests.service import Person, Service
from tests.webhooks.receiver import OK, Received, Receiver, hang, response
from tests.webhooks.world import (
    create,
    deliveries,
    events_of,
    happen,
    make_due,
    patch,
    read,
    replay,
    sending,
    until,
    uuid_of,
)


async def test_events_arrive_in_order_each_with_the_one_before_it(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    for _ in range(5):
        await happen(worker, person, 30)
    last = start + 151  # The creation of the webhook is an event, too.
    await receiver.until(lambda: last in receiver.sequences())
    assert receiver.sequences() == list(range(start + 1, last + 1))
    for each in receiver.at("/"):
        assert each.event["previousSequence"] == each.event["sequence"] - 1
        assert each.event["webhookId"] == webhook["id"]
        assert each.event["accountId"] == "acct_" + person.user_id.hex
        assert each.headers["webhook-id"] == each.event["id"]
        assert each.headers["content-type"] == "application/json"
    found = await until(person, webhook, confirmedSequence=last)
    assert found["state"] == "active"
    assert found["lastDeliveredAt"] is not None


async def test_a_change_through_the_api_is_delivered_without_waiting_for_a_look(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/", events=["task.created"])
    task = (await person.post("/api/tasks", {"name": "Tidy up", "status": "COMPLETED"})).json()
    # A look without a message comes only every 30 s.
    await receiver.until(lambda: bool(receiver.received), deadline_s=15)
    [received] = receiver.received
    assert received.event["type"] == "task.created"
    assert received.event["taskId"] == task["task"]["id"]
    assert received.event["previousSequence"] == webhook["confirmedSequence"]


async def test_events_that_are_filtered_out_leave_a_chain_without_gaps(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/", events=["task.failed"])
    for kind in ("task.updated", "task.failed", "task.updated", "task.failed", "task.updated"):
        await happen(worker, person, 3, kind)
    start = webhook["confirmedSequence"]
    await until(person, webhook, confirmedSequence=start + 16)
    sent = [each.event for each in receiver.received]
    assert [each["sequence"] for each in sent] == [start + n for n in (5, 6, 7, 11, 12, 13)]
    chain = [each["previousSequence"] for each in sent]
    assert chain == [start, *(each["sequence"] for each in sent[:-1])]


async def test_a_failed_delivery_is_tried_again_and_nothing_overtakes_it(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    refused = [response(500, body="broken"), response(503, "Retry-After: 7")]
    receiver.answers["/"] = lambda _: refused.pop(0) if refused else OK
    webhook, _ = await create(person, receiver.url + "/")
    found = await until(person, webhook, state="failing")
    assert "500" in found["lastError"]
    assert found["nextAttemptAt"] > found["failingSince"]
    await happen(worker, person, 2)
    await make_due(office, webhook)
    await receiver.until(lambda: len(receiver.received) == 2)
    async with asyncio.timeout(20):
        while len(await deliveries(person, webhook)) < 2:
            await asyncio.sleep(0.02)
    await make_due(office, webhook)
    start = webhook["confirmedSequence"]
    found = await until(person, webhook, state="active", confirmedSequence=start + 3)
    assert found["lastError"] is None
    assert found["failingSince"] is None
    assert receiver.sequences() == [start + 1, start + 1, start + 1, start + 2, start + 3]
    ids = {each.headers["webhook-id"] for each in receiver.received[:3]}
    assert len(ids) == 1
    history = await deliveries(person, webhook)
    assert [each["attempt"] for each in reversed(history)] == [1, 2, 3, 1, 1]
    assert history[-1]["response"] == {"status": 500, "body": "broken"}
    failed = await deliveries(person, webhook, "?outcome=failed")
    assert [each["attempt"] for each in failed] == [2, 1]


async def test_a_dead_endpoint_that_comes_back_after_two_days_gets_everything(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = lambda _: response(502)
    webhook, _ = await create(person, receiver.url + "/")
    await until(person, webhook, state="failing")
    await happen(worker, person, 120)
    for hours in ("6 hours", "18 hours", "23 hours"):
        before = len(receiver.received)
        await make_due(office, webhook, earlier=hours)
        await worker_looks(worker, person)
        await receiver.until(lambda before=before: len(receiver.received) > before)  # type: ignore[misc]
        await settled(person, webhook, len(receiver.received))
    assert (await read(person, webhook))["state"] == "failing"
    receiver.answers.clear()
    seen = len(receiver.received)
    await make_due(office, webhook, earlier="1 hour")
    await worker_looks(worker, person)
    start = webhook["confirmedSequence"]
    await until(person, webhook, state="active", confirmedSequence=start + 121)
    assert receiver.sequences()[seen:] == list(range(start + 1, start + 122))


async def test_an_endpoint_that_fails_for_three_days_is_disabled_and_catches_up_when_enabled(
    office: Service, worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = lambda _: response(500)
    webhook, _ = await create(person, receiver.url + "/")
    await until(person, webhook, state="failing")
    await make_due(office, webhook, earlier="3 days")
    await worker_looks(worker, person)
    found = await until(person, webhook, state="disabled")
    assert (found["disabledReason"], found["enabled"]) == ("failing", False)
    assert "500" in found["lastError"]
    told = [each for each in await events_of(person) if each["type"] == "webhook.disabled"]
    assert [each["data"]["webhookId"] for each in told] == [webhook["id"]]
    assert told[0]["data"]["reason"] == "failing"
    await happen(worker, person, 10)
    receiver.answers.clear()
    seen = len(receiver.received)
    enabled = await patch(person, webhook, enabled=True)
    assert (enabled["state"], enabled["disabledReason"]) == ("active", None)
    start = webhook["confirmedSequence"]
    # Created, disabled, ten more, enabled.
    await until(person, webhook, confirmedSequence=start + 13)
    assert receiver.sequences()[seen:] == list(range(start + 1, start + 14))


async def test_an_endpoint_that_responds_with_410_is_disabled_at_once(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = lambda _: response(410)
    webhook, _ = await create(person, receiver.url + "/")
    found = await until(person, webhook, state="disabled")
    assert found["disabledReason"] == "gone"
    assert len(receiver.received) == 1


async def test_endpoints_that_misbehave_do_not_delay_a_good_one(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    async def slowly(_: Received) -> bytes:
        await asyncio.sleep(0.3)
        return OK

    async def endless(_: Received) -> bytes:
        return b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000_000

    receiver.answers |= {
        "/slow": slowly,
        "/hang": hang,
        "/nonsense": lambda _: b"\x00\xff not http at all\r\n\r\n",
        "/redirect": lambda _: response(302, f"Location: {receiver.url}/elsewhere"),
        "/endless": endless,
        "/zip": lambda _: response(200, "Content-Encoding: gzip", body="no"),
    }
    bad = {path: (await create(person, receiver.url + path))[0] for path in receiver.answers}
    good, _ = await create(person, receiver.url + "/good")
    async with asyncio.timeout(20):
        await happen(worker, person, 40)
        await until(person, good, confirmedSequence=good["confirmedSequence"] + 41)
    hanging = await until(person, bad["/hang"], state="failing")
    assert "did not respond within 2 s" in hanging["lastError"]
    for path, words in (("/nonsense", "valid HTTP"), ("/redirect", "redirects"), ("/zip", "gzip")):
        found = await until(person, bad[path], state="failing")
        assert words in found["lastError"], found
    assert not receiver.at("/elsewhere")
    # The status decides, and of the body only the beginning is read.
    await until(person, bad["/endless"], state="active")
    [*_, first] = await deliveries(person, bad["/endless"])
    assert len(first["response"]["body"]) == 1_024


async def test_a_closed_port_and_an_unknown_name_are_tried_again(
    worker: Composition, person: Person
) -> None:
    closed, _ = await create(person, "http://127.0.0.1:9/")
    unknown, _ = await create(person, "http://name.invalid/")
    for webhook in (closed, unknown):
        found = await until(person, webhook, state="failing")
        assert "connection failed" in found["lastError"]


async def test_a_replay_sends_events_again_and_can_skip_some(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    await happen(worker, person, 5)
    await until(person, webhook, confirmedSequence=start + 6)
    await replay(person, webhook, 1)
    last = start + 7  # The replay is an event, too.
    await until(person, webhook, confirmedSequence=last)
    assert receiver.sequences() == [*range(start + 1, start + 7), *range(1, last + 1)]
    assert receiver.received[6].event["previousSequence"] == 0
    receiver.answers["/"] = lambda _: response(400)
    await happen(worker, person, 1)
    await until(person, webhook, state="failing")
    await happen(worker, person, 1)
    receiver.answers.clear()
    moved = await replay(person, webhook, last + 2)
    assert moved["state"] == "active"
    await until(person, webhook, confirmedSequence=last + 3)
    assert receiver.sequences()[-2:] == [last + 2, last + 3]


async def test_a_disabled_webhook_gets_nothing_and_a_deleted_one_neither(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    paused, _ = await create(person, receiver.url + "/paused")
    deleted, _ = await create(person, receiver.url + "/deleted")
    other, _ = await create(person, receiver.url + "/other")
    await until(person, paused, confirmedSequence=other["confirmedSequence"] + 1)
    await until(person, deleted, confirmedSequence=other["confirmedSequence"] + 1)
    assert (await patch(person, paused, enabled=False))["disabledReason"] == "paused"
    assert (await person.delete(f"/api/webhooks/{deleted['id']}")).status_code == 200
    before = len(receiver.at("/paused")), len(receiver.at("/deleted"))
    await happen(worker, person, 5)
    # Both were created before it, the two changes, and five more.
    await until(person, other, confirmedSequence=other["confirmedSequence"] + 8)
    after = len(receiver.at("/paused")), len(receiver.at("/deleted"))
    # What was under way while it was disabled may still arrive.
    assert after[0] - before[0] <= 1
    assert after[1] - before[1] <= 1
    assert (await person.get(f"/api/webhooks/{deleted['id']}")).status_code == 404


async def test_events_that_are_gone_are_skipped_and_the_webhook_says_so(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    async with Composition(office.settings, pool_size=2) as parts:
        await happen(parts, person, 9)
    async with office.owner() as connection:
        await connection.execute(
            "DELETE FROM events WHERE account_id = $1 AND sequence <= $2", person.user_id, start + 6
        )
    async with sending(office):
        found = await until(person, webhook, confirmedSequence=start + 11)
    assert found["skipped"] == {"fromSequence": start + 1, "toSequence": start + 6}
    assert receiver.sequences() == list(range(start + 7, start + 12))
    # The receiver has nothing with this number, so it notices as well.
    assert receiver.received[0].event["previousSequence"] == start + 6
    assert receiver.received[-1].event["type"] == "webhook.skipped"


async def test_events_that_a_restore_has_lost_do_not_count_as_skipped(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    lost = {"restoredTo": "2026-11-17T09:30:00.000Z", "lostFrom": start + 2}
    async with Composition(office.settings, pool_size=2) as parts:
        async with parts.db.write(person.user_id) as tx:
            await skip_numbers(tx, start + 50)
            await journal.append(tx, "account.restored", lost | {"lostThrough": start + 50})
        async with sending(office):
            found = await until(person, webhook, confirmedSequence=start + 51)
    assert found["skipped"] is None
    assert [each.event["type"] for each in receiver.received] == [
        "webhook.created",
        "account.restored",
    ]
    # The webhook was behind: there was an event before it that was not lost.
    assert [each.event["previousSequence"] for each in receiver.received] == [start, start + 50]


async def test_a_webhook_whose_events_are_all_gone_continues_with_the_next(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    async with office.owner() as connection:
        await connection.execute("DELETE FROM events WHERE account_id = $1", person.user_id)
    async with sending(office):
        found = await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 2)
    assert found["skipped"]["toSequence"] == webhook["confirmedSequence"] + 1
    assert [each.event["type"] for each in receiver.received] == ["webhook.skipped"]


async def test_an_erased_account_sends_nothing(
    office: Service, worker: Composition, receiver: Receiver
) -> None:
    leaving, staying = await office.sign_in(), await office.sign_in()
    webhook, _ = await create(leaving, receiver.url + "/leaving")
    await until(leaving, webhook, confirmedSequence=webhook["confirmedSequence"] + 1)
    other, _ = await create(staying, receiver.url + "/staying")
    receiver.answers["/leaving"] = lambda _: response(500)
    await happen(worker, leaving, 50)
    await until(leaving, webhook, state="failing")
    sent = len(receiver.at("/leaving"))
    async with office.owner() as connection:
        await connection.execute(
            "SET session_replication_role = replica; "
            f"DELETE FROM accounts WHERE id = '{leaving.user_id}'; "
            "SET session_replication_role = DEFAULT; "
            f"UPDATE webhooks SET due_at = now() WHERE id = '{uuid_of(webhook)}'"
        )
    await happen(worker, staying, 5)
    await until(staying, other, confirmedSequence=other["confirmedSequence"] + 6)
    async with office.owner() as connection, asyncio.timeout(20):
        while await connection.fetchval(
            "SELECT leased_until > now() FROM webhooks WHERE id = $1", uuid_of(webhook)
        ):
            await asyncio.sleep(0.02)
    assert len(receiver.at("/leaving")) == sent


async def test_deleting_an_account_deletes_its_webhooks(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    async with office.owner() as connection:
        kind = await connection.fetchval(
            "SELECT confdeltype FROM pg_constraint WHERE conrelid = 'webhooks'::regclass "
            "AND confrelid = 'accounts'::regclass"
        )
    assert kind == b"c"
    assert (await read(person, webhook))["enabled"]


async def worker_looks(worker: Composition, person: Person) -> None:
    """A worker sleeps until the time that it knew. A message makes it look again."""
    worker.fanout.announce_webhook(person.user_id)


async def settled(person: Person, webhook: dict[str, object], attempts: int) -> None:
    """Waits until the attempts are in the history, so that the webhook is given back."""
    async with asyncio.timeout(20):
        while len(await deliveries(person, webhook)) < attempts:
            await asyncio.sleep(0.02)
