"""How a worker takes turns, and what it does when something changes while it sends."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rota.composition import Composition
from rota.webhooks import dispatcher, progress, turns
from rota.webhooks.model import HOLD_S
from rota.webhooks.reading import Journal, Page
from tests.service import Person, Service
from tests.webhooks.receiver import OK, Received, Receiver, hang, response
from tests.webhooks.world import (
    create,
    deliveries,
    happen,
    make_due,
    patch,
    read,
    replay,
    sending,
    until,
    uuid_of,
)


async def taken(parts: Composition, person: Person, webhook: dict[str, Any]) -> progress.Claim:
    """Takes a webhook as a worker does."""
    async with parts.db.relay() as connection:
        claims = await progress.claim(
            connection,
            {person.user_id},
            limit=10,
            failing=10,
            lease_s=60,
            taken={},
            own=10,
            shared=0,
        )
    [claim] = [each for each in claims if each.webhook.id == uuid_of(webhook)]
    return claim


async def fail(*_: object) -> set[UUID]:
    raise OSError


async def slowly(_: Received) -> bytes:
    await asyncio.sleep(0.02)
    return OK


class SlowlyOnce:
    """Answers the first request when it is released, and the others at once."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def __call__(self, _: Received) -> bytes:
        await self.release.wait()
        return OK


async def test_a_turn_that_is_over_continues_with_the_next_one(
    worker: Composition, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_S", 0.0)
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    await happen(worker, person, 10)
    await until(person, webhook, confirmedSequence=start + 11)
    assert receiver.sequences() == list(range(start + 1, start + 12))


async def test_a_replay_while_events_are_sent_starts_after_they_have_stopped(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = slowly
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    await happen(worker, person, 90)
    await receiver.until(lambda: len(receiver.received) > 30)
    await replay(person, webhook, 1)
    await until(person, webhook, confirmedSequence=start + 92)
    sequences = receiver.sequences()
    again = sequences.index(1)
    # What was sent before the replay ended before it began, and nothing is mixed.
    assert sequences[:again] == list(range(start + 1, start + 1 + again))
    assert sequences[again:] == list(range(1, start + 93))


async def test_a_url_that_is_changed_while_events_are_sent_gets_the_rest(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/old"] = slowly
    webhook, _ = await create(person, receiver.url + "/old")
    start = webhook["confirmedSequence"]
    await happen(worker, person, 90)
    await receiver.until(lambda: len(receiver.received) > 10)
    await patch(person, webhook, url=receiver.url + "/new")
    await until(person, webhook, confirmedSequence=start + 92)
    old, new = receiver.sequences("/old"), receiver.sequences("/new")
    assert sorted({*old, *new}) == list(range(start + 1, start + 93))
    assert len(old) < 60
    assert receiver.received[-1].path == "/new"


async def test_a_webhook_that_is_changed_while_a_delivery_fails_is_given_back(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/old")

    async def change_then_fail(_: Received) -> bytes:
        await patch(person, webhook, url=receiver.url + "/new")
        return response(500)

    receiver.answers["/old"] = change_then_fail
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 1)
        claim = await taken(parts, person, webhook)
        sender = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        await sender.take(claim)
        await sender.aclose()
        # Another worker can have it at once.
        await taken(parts, person, webhook)
    assert len(receiver.received) == 1
    assert [each["response"]["status"] for each in await deliveries(person, webhook)] == [500]


async def test_a_worker_that_stops_sends_nothing_again_that_was_confirmed(
    office: Service, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = slowly
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    async with sending(office) as parts:
        await happen(parts, person, 60)
        await receiver.until(lambda: len(receiver.received) > 25)
    assert (await read(person, webhook))["confirmedSequence"] > start + 20
    receiver.answers.clear()
    # The webhook was given back, so the next worker need not wait for the end of a lease.
    async with sending(office):
        await until(person, webhook, 4, confirmedSequence=start + 61)
    # At most the one that was under way when the worker stopped arrives twice.
    assert len(receiver.received) <= 62
    assert sorted(set(receiver.sequences())) == list(range(start + 1, start + 62))


async def test_what_was_confirmed_is_saved_when_the_next_events_cannot_be_read(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    after = Journal.after

    async def fails_later(journal: Journal, account_id: UUID, sequence: int) -> Page:
        if sequence > start:
            raise OSError("the database is down")
        return await after(journal, account_id, sequence)

    monkeypatch.setattr(Journal, "after", fails_later)
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        sender = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        with pytest.raises(OSError, match="database is down"):
            await sender.take(await taken(parts, person, webhook))
        await sender.aclose()
    assert receiver.sequences() == list(range(start + 1, start + 7))
    assert (await read(person, webhook))["confirmedSequence"] == start + 6
    assert len(await deliveries(person, webhook)) == 6
    # Not at once: what fails may fail again.
    async with office.owner() as connection:
        assert await connection.fetchval("SELECT leased_until IS NOT NULL FROM webhooks")


async def test_a_worker_that_was_paused_does_not_send_for_a_webhook_that_another_one_has(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        claim = await taken(parts, person, webhook)
        await make_due(office, webhook)
        await taken(parts, person, webhook)
        paused = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        await paused.take(replace(claim, taken_at=claim.taken_at - 2 * HOLD_S))
        await paused.aclose()
        assert receiver.received == []
        # Another worker has it now, and what the first one saves has no effect.
        async with parts.db.relay() as connection:
            position = progress.Position(99, 99)
            assert await progress.save(connection, claim, position, [], lease_s=60) is None
    found = await read(person, webhook)
    assert found["confirmedSequence"] == webhook["confirmedSequence"]


async def test_a_worker_that_was_paused_continues_if_no_other_one_has_the_webhook(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        claim = await taken(parts, person, webhook)
        paused = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        await paused.take(replace(claim, taken_at=claim.taken_at - 2 * HOLD_S))
        await paused.aclose()
    assert receiver.sequences() == list(range(start + 1, start + 7))
    assert (await read(person, webhook))["confirmedSequence"] == start + 6


async def test_a_request_in_progress_ends_when_another_worker_has_the_webhook(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "renew", fail)
    receiver.answers["/"] = hang
    webhook, _ = await create(person, receiver.url + "/")
    settings = office.settings.model_copy(update={"webhook_timeout_s": 60.0})
    async with Composition(settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        claim = await taken(parts, person, webhook)
        first = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        sending_first = asyncio.create_task(first.take(claim))
        await receiver.until(lambda: len(receiver.received) == 1)
        await make_due(office, webhook)
        await taken(parts, person, webhook)
        # Long before the endpoint's time is over.
        async with asyncio.timeout(20):
            await sending_first
        await first.aclose()
    assert len(receiver.received) == 1


async def test_a_worker_does_not_take_a_webhook_that_it_is_sending_for(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "renew", fail)
    receiver.answers["/"] = slowly_once = SlowlyOnce()
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    async with sending(office, webhook_timeout_s=60.0) as parts:
        await receiver.until(lambda: len(receiver.received) == 1)
        for _ in range(5):
            # Its time is over, as after a pause of the process.
            await make_due(office, webhook)
            await parts.webhook_dispatcher.look()
        slowly_once.release.set()
        await happen(parts, person, 3)
        await until(person, webhook, 40, confirmedSequence=start + 4)
    assert receiver.sequences() == list(range(start + 1, start + 5))


async def test_another_worker_continues_soon_after_the_death_of_one(
    office: Service, person: Person, receiver: Receiver
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 5)
        await taken(parts, person, webhook)  # By a worker that is never heard of again.
    async with sending(office):
        await until(person, webhook, 20, confirmedSequence=webhook["confirmedSequence"] + 6)


async def test_a_worker_keeps_a_webhook_while_its_endpoint_is_slow(
    office: Service, person: Person, receiver: Receiver
) -> None:
    async def very_slowly(_: Received) -> bytes:
        await asyncio.sleep(3 * HOLD_S)
        return OK

    receiver.answers["/"] = very_slowly
    webhook, _ = await create(person, receiver.url + "/")
    async with sending(office, webhook_timeout_s=20.0), sending(office, webhook_timeout_s=20.0):
        await until(person, webhook, 40, confirmedSequence=webhook["confirmedSequence"] + 1)
    assert len(receiver.received) == 1


async def test_a_worker_that_cannot_renew_its_webhooks_loses_no_event(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "renew", fail)
    monkeypatch.setattr(turns, "RENEW_EVERY_S", 0.01)
    receiver.answers["/"] = slowly
    webhook, _ = await create(person, receiver.url + "/")
    start = webhook["confirmedSequence"]
    async with sending(office) as parts:
        await happen(parts, person, 90)
        await until(person, webhook, confirmedSequence=start + 91)
    assert sorted(set(receiver.sequences())) == list(range(start + 1, start + 92))


async def test_a_look_that_fails_is_repeated(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = await create(person, receiver.url + "/")
    failures = [OSError("the database is down")]
    looked = progress.with_webhooks

    async def fails_once(connection: object) -> object:
        if failures:
            raise failures.pop()
        return await looked(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(progress, "with_webhooks", fails_once)
    monkeypatch.setattr(dispatcher, "RETRY_AFTER_ERROR_S", 0.05)
    async with sending(office):
        await until(person, webhook, confirmedSequence=webhook["confirmedSequence"] + 1)
    assert not failures


async def test_a_secret_that_cannot_be_read_is_a_failure_of_its_webhook_only(
    worker: Composition, office: Service, person: Person, receiver: Receiver
) -> None:
    broken, _ = await create(person, receiver.url + "/broken", events=["task.failed"])
    good, _ = await create(person, receiver.url + "/good")
    async with office.owner() as connection:
        # A secret that no key can open. A worker that has the webhook already reads it again.
        await connection.execute(
            "UPDATE webhooks SET sealed_secret = '\\x00', revision = revision + 1 WHERE id = $1",
            uuid_of(broken),
        )
    await happen(worker, person, 3, "task.failed")
    await until(person, good, confirmedSequence=good["confirmedSequence"] + 4)
    found = await until(person, broken, state="failing")
    assert "Rotate it" in found["lastError"]
    assert receiver.at("/broken") == []


async def test_a_webhook_with_nothing_left_to_send_does_not_fail(
    worker: Composition, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = lambda _: response(500)
    webhook, _ = await create(person, receiver.url + "/", events=["task.failed"])
    await happen(worker, person, 1, "task.failed")
    await until(person, webhook, state="failing")
    await patch(person, webhook, events=["credits.depleted"])
    found = await until(person, webhook, state="active")
    assert (found["failingSince"], found["lastError"]) == (None, None)


async def test_a_failing_webhook_that_is_enabled_tries_again_at_once(
    worker: Composition, office: Service, person: Person, receiver: Receiver
) -> None:
    receiver.answers["/"] = lambda _: response(500)
    webhook, _ = await create(person, receiver.url + "/", events=["task.failed"])
    await happen(worker, person, 1, "task.failed")
    await until(person, webhook, state="failing")
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET due_at = now() + interval '1 day' WHERE id = $1", uuid_of(webhook)
        )
    receiver.answers.clear()
    await patch(person, webhook, enabled=True)
    await until(person, webhook, 10, state="active")


async def test_a_failure_that_a_stopping_worker_saves_confirms_nothing(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.answers["/"] = lambda _: response(500)
    reached = asyncio.Event()

    async def waits(*_: object, **__: object) -> bool:
        reached.set()
        await asyncio.Event().wait()
        return True

    webhook, _ = await create(person, receiver.url + "/")
    async with office.owner() as connection:
        await connection.execute(
            "UPDATE webhooks SET attempts = 3, failing_since = now(), last_error = 'Down' "
            "WHERE id = $1",
            uuid_of(webhook),
        )
    monkeypatch.setattr(progress, "save_failure", waits)
    async with sending(office), asyncio.timeout(20):
        await reached.wait()
    found = await read(person, webhook)
    assert (found["state"], found["lastDeliveredAt"]) == ("failing", None)
    assert found["lastError"] == "Down"
    assert found["confirmedSequence"] == webhook["confirmedSequence"]
