"""Several things at once: workers, notices, accounts and channels do not disturb each other."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from rota.notifications import delivery as deliveries
from rota.notifications import queries
from rota.notifications import sender as senders
from rota.notifications.delivery import MAX_ATTEMPTS
from rota.notifications.model import QueueId
from tests.notifications.receivers import Channel
from tests.notifications.world import Desk, delivery, failed, program, waiting
from tests.runs.runner import until
from tests.service import Person


def queue_of(person: Person) -> QueueId:
    return QueueId(person.user_id, person.user_id, "approval_waiting", "mail")


async def test_what_arrives_while_a_message_is_recorded_is_sent_later(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.sender()._take_notices(set())
    desk.mailbox.answers.clear()
    delivering = asyncio.create_task(desk.parts.notifications.delivery().deliver(queue_of(person)))

    async def is_sent() -> bool:
        return bool(desk.mails(person))

    async with desk.service.owner() as connection, desk.service.owner() as watching:

        async def waits() -> bool:
            found: bool = await watching.fetchval(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database() AND query LIKE '%notification_%')"
            )
            return found

        await until(is_sent)
        # As a worker that adds a notice: the queue first, then the item.
        async with connection.transaction():
            mine = "user_id = $1 AND kind = 'approval_waiting'"
            touch = f"UPDATE notification_queues SET due_at = due_at WHERE {mine}"
            await connection.execute(touch, person.user_id)
            desk.mailbox.answers.set()
            await until(waits)
            await connection.execute(
                "INSERT INTO notification_items "
                "VALUES ($1, $2, 'approval_waiting', 'mail', $3, 999999999, now())",
                person.user_id,
                person.user_id,
                uuid4(),
            )
        await delivering
    found = await delivery(person, "approval_waiting")
    assert (found["state"], found["waiting"]) == ("waiting", 1)
    assert found["lastSentAt"] is not None


@pytest.mark.parametrize(
    ("answer", "state"), [("250 OK", "idle"), ("451 Try later", "retrying"), ("554 Spam", "failed")]
)
async def test_what_became_of_a_message_is_saved_when_the_database_works_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: str, state: str
) -> None:
    monkeypatch.setattr(deliveries, "RECORD_AGAIN_S", 0.0)
    failures = [OSError("the database is down") for _ in range(3)]
    for name in ("rest", "retry"):
        change = getattr(queries, name)

        async def fails(*values: Any, change: Any = change, **more: Any) -> None:
            if failures:
                raise failures.pop()
            await change(*values, **more)

        monkeypatch.setattr(queries, name, fails)
    person = await desk.person()
    await waiting(await program(person))
    desk.mailbox.data_answers = [answer]
    await desk.send()
    assert not failures
    assert (await delivery(person, "approval_waiting"))["state"] == state


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        # PostgreSQL can never store the value.
        (asyncpg.DataError("invalid value"), 3_000),
        (OSError("the database is down"), 0),
    ],
)
async def test_what_cannot_be_saved_does_not_take_the_place_of_others_for_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception, seconds: int
) -> None:
    monkeypatch.setattr(deliveries, "RECORD_AGAIN_S", 0.0)
    monkeypatch.setattr(deliveries, "RECORD_FOR", timedelta(seconds=seconds))
    calls = 0

    async def fails(*_: Any, **__: Any) -> None:
        nonlocal calls
        calls += 1
        raise error

    monkeypatch.setattr(queries, "rest", fails)
    person = await desk.person()
    await waiting(await program(person))
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        # The worker has the queue for an hour.
        tire = "UPDATE notification_queues SET attempts = 10 WHERE user_id = $1"
        await connection.execute(tire, person.user_id)
    async with asyncio.timeout(20):
        await desk.send()
    assert (calls, len(desk.mails(person))) == (1, 1)


async def test_an_account_that_is_blocked_does_not_stop_the_others(desk: Desk) -> None:
    blocked, other = await desk.person(), await desk.person()
    await waiting(await program(blocked))
    await waiting(await program(other))
    async with desk.service.owner() as connection, connection.transaction():
        # Its notices cannot be added: another transaction has the lock.
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtext('notices'), hashtext($1::text))",
            str(blocked.user_id),
        )
        await desk.send()
        assert len(desk.mails(other)) == 1
        assert desk.mails(blocked) == []
    await desk.send()
    assert len(desk.mails(blocked)) == 1


async def test_a_mail_server_that_hangs_does_not_delay_chat(desk: Desk, channel: Channel) -> None:
    chat = {"kinds": ["approval_waiting"], "url": channel.url, "service": "slack"}
    mails = [await desk.person() for _ in range(senders.ROOM + 1)]
    for person in mails:
        await waiting(await program(person))
    chatter = await desk.person(mail={"kinds": []}, chat=chat)
    await waiting(await program(chatter))
    desk.mailbox.answers.clear()
    sending = asyncio.create_task(desk.send())

    async def is_told() -> bool:
        return bool(channel.messages)

    try:
        await until(is_told)
    finally:
        desk.mailbox.answers.set()
        await sending
    assert [len(desk.mails(person)) for person in mails] == [1] * len(mails)


async def test_receivers_that_fail_leave_room_for_others(desk: Desk) -> None:
    failing = [await desk.person() for _ in range(senders.ROOM + 1)]
    for person in failing:
        await waiting(await program(person))
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        await connection.execute("UPDATE notification_queues SET attempts = 1")
    other = await desk.person()
    await waiting(await program(other))
    sender = desk.sender()
    await sender._look()
    handled = list(sender._handling.values())
    assert sum(each.failing for each in handled) == senders.FAILING_ROOM
    assert queue_of(other) in [each.id for each in handled]
    await sender.step()
    assert [len(desk.mails(person)) for person in [*failing, other]] == [1] * (len(failing) + 1)


async def test_many_messages_of_an_account_do_not_delay_one_that_failed(desk: Desk) -> None:
    busy, other = await desk.person(), await desk.person()
    for person in (busy, other):
        await waiting(await program(person))
    sender = desk.sender()
    await sender._take_notices(set())
    async with desk.service.owner() as connection:
        await connection.execute(
            "UPDATE notification_queues SET attempts = 1, due_at = now() - interval '2 hours' "
            "WHERE user_id = $1",
            other.user_id,
        )
        # Of users who do not exist.
        await connection.execute(
            "INSERT INTO notification_queues (account_id, user_id, kind, channel, due_at) "
            "SELECT $1, gen_random_uuid(), 'task_failed', 'mail', now() - interval '1 hour' "
            "FROM generate_series(1, 5 * $2::integer)",
            busy.user_id,
            senders.ROOM,
        )
        await sender._look()
        assert senders.OLDEST_SECONDS._value.get() >= 7200
        assert queue_of(other) in [each.id for each in sender._handling.values()]
        await sender.step()
        assert [len(desk.mails(person)) for person in (busy, other)] == [1, 1]


async def test_a_worker_that_stops_lets_its_messages_end(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    desk.mailbox.answers.clear()
    sender = desk.sender()
    running = asyncio.create_task(sender.run())

    async def is_sent() -> bool:
        return bool(desk.mails(person))

    await until(is_sent)
    running.cancel()
    asyncio.get_running_loop().call_later(0.2, desk.mailbox.answers.set)
    await asyncio.wait([running])
    await desk.later(person, timedelta(hours=1))
    await desk.send()
    assert len(desk.mails(person)) == 1


async def test_a_sender_goes_on_after_an_error_in_a_look(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await desk.person()
    await waiting(await program(person))
    due, errors = queries.due, [ZeroDivisionError]

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise errors.pop()

    async def broken_once(connection: Any, limit: int) -> Any:
        return Broken() if errors else await due(connection, limit)

    monkeypatch.setattr(queries, "due", broken_once)
    monkeypatch.setattr(senders, "RETRY_AFTER_ERROR_S", 0.05)
    running = asyncio.create_task(desk.sender().run())

    async def is_sent() -> bool:
        return bool(desk.mails(person))

    try:
        await until(is_sent)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert not errors


async def test_what_is_given_up_is_given_up_as_a_whole(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await failed(bot)
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        await connection.execute(
            "INSERT INTO notification_items SELECT $1, $2, 'task_failed', 'mail', "
            "gen_random_uuid(), 0, now() FROM generate_series(1, 250)",
            person.user_id,
            person.user_id,
        )
        tire = "UPDATE notification_queues SET attempts = $2 WHERE user_id = $1"
        await connection.execute(tire, person.user_id, MAX_ATTEMPTS)
    await desk.send()
    found = await delivery(person, "task_failed")
    assert (found["state"], found["waiting"]) == ("failed", 0)


async def test_what_came_later_is_tried_for_a_day_of_its_own(desk: Desk) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot, "Old")
    renewed = await failed(bot)
    desk.mailbox.data_answers = ["451 Try later"] * 8
    await desk.send()
    await desk.later(person, timedelta(hours=23))
    await waiting(bot, "New")
    # Something new has happened to a task that waits already.
    assert (await bot.post(f"/api/tasks/{renewed['id']}/retry", {})).status_code == 200
    again = await bot.request("PATCH", f"/api/tasks/{renewed['id']}", json={"status": "FAILED"})
    assert again.status_code == 200, again.text
    await desk.send()
    await desk.later(person, timedelta(hours=2))
    await desk.send()
    for kind in ("approval_waiting", "task_failed"):
        found = await delivery(person, kind)
        assert (found["state"], found["waiting"]) == ("retrying", 1), kind
    assert (await delivery(person, "approval_waiting"))["failedAt"] is not None
    await desk.later(person, timedelta(hours=20))
    await desk.send()
    assert (await delivery(person, "approval_waiting"))["waiting"] == 1
    await desk.later(person, timedelta(hours=3))
    desk.mailbox.data_answers = ["451 Try later"] * 2
    await desk.send()
    for kind in ("approval_waiting", "task_failed"):
        found = await delivery(person, kind)
        assert (found["state"], found["waiting"]) == ("failed", 0), kind


async def test_attempts_that_end_do_not_count_as_workers_that_died(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        tire = "UPDATE notification_queues SET attempts = $2 WHERE user_id = $1"
        await connection.execute(tire, person.user_id, MAX_ATTEMPTS - 1)
    for _ in range(3):
        desk.mailbox.data_answers = ["451 Try later"]
        await desk.send()
        await desk.later(person, timedelta(hours=2))
    await desk.send()
    assert len(desk.mails(person)) == 1


async def test_a_message_that_is_refused_takes_only_its_items_along(
    desk: Desk, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = {"kinds": ["approval_waiting"], "url": channel.url, "service": "slack"}
    person = await desk.person(mail={"kinds": []}, chat=chat)
    bot = await program(person)
    await waiting(bot, "In the message")
    deliver = desk.parts.notifications.delivery()
    send = deliver._send

    async def meanwhile(*arguments: Any) -> None:
        await waiting(bot, "Too late for it")
        await desk.sender()._take_notices(set())
        await send(*arguments)

    monkeypatch.setattr(deliver, "_send", meanwhile)
    await desk.sender()._take_notices(set())
    channel.answers = [(400, "")]
    await deliver.deliver(replace(queue_of(person), channel="chat"))
    found = await delivery(person, "approval_waiting", "chat")
    assert (found["state"], found["waiting"]) == ("waiting", 1)
    assert "400" in found["error"]
    await desk.later(person)
    await desk.send()
    [message] = channel.messages
    assert "Too late for it" in message["text"]
