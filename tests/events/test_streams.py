"""Live streams: each event arrives once and in order, also after interruptions."""

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from rota.auth.authenticator import Authenticator
from rota.events import journal, messages, reading
from rota.events.reading import JournalReads
from rota.platform.db import Database
from rota.platform.errors import RateLimited
from tests.events.reader import Message, Reader
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.wire import Wire, wires
from tests.tasks.world import create, newcomer, newcomers, patch, picture, uuid_of

EVENTS = size(600, 2_000)
DISCONNECTS = size(50, 200)


async def cycle(wire: Wire, task_id: str, events: int) -> None:
    """Renames a task. Each change is an event."""
    for number in range(events):
        body = {"name": f"Name {number}"}
        response = await wire.request("PATCH", f"/api/tasks/{task_id}", body)
        assert response.status == 200, response.body


async def read_with_interruptions(
    service: Service, person: Person, path: str, last: asyncio.Future[int], chance: random.Random
) -> list[Message]:
    """All messages up to number `last`, over a connection that is cut at random positions."""
    received: list[Message] = []
    after, cuts = 0, 0
    while not (last.done() and after >= last.result()):
        bytes_to_go = chance.randint(1, 4_500) if cuts < DISCONNECTS else 2**30
        cuts += 1
        async with Reader.open(service.settings.port, person.token, path, after) as reader:
            if chance.random() < 0.05:
                continue  # Disconnected before the response started.
            while reader.taken < bytes_to_go and not (last.done() and after >= last.result()):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await reader.read(min(bytes_to_go - reader.taken, 65536))
                after = reader.messages[-1].id if reader.messages else after
            assert reader.status == 200
        received += reader.messages
    assert cuts > DISCONNECTS
    return received


async def test_a_stream_resumed_many_times_delivers_each_event_once_and_in_order(
    board: Service,
) -> None:
    person = await newcomer(board)
    task = await create(person)
    beside = await create(person)
    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    chance = random.Random(3)
    async with wires(board.settings.port, [person.token], 2) as [one, other]:
        account, own = (
            asyncio.create_task(read_with_interruptions(board, person, path, last, chance))
            for path in ("/api/events?after=0", f"/api/tasks/{task['id']}/events")
        )
        await asyncio.gather(
            cycle(one, task["id"], EVENTS - 200), cycle(other, beside["id"], 200 - 3)
        )
        # One more event of this task, so that both streams end at the same number.
        await cycle(one, task["id"], 1)
        async with board.owner() as connection:
            events = (await picture(connection, person.user_id))["events"]
        last.set_result(events[-1]["sequence"])
        async with asyncio.timeout(60):
            received, of_task = await account, await own
    assert len(events) == EVENTS
    assert [(m.id, m.type) for m in received] == [(e["sequence"], e["type"]) for e in events]
    assert [m.id for m in of_task] == [
        e["sequence"] for e in events if e["task_id"] == uuid_of(task)
    ]


async def test_an_event_contains_its_task_its_change_and_its_user(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, status="WAITING_APPROVAL")
    await person.post(f"/api/tasks/{task['id']}/reject", {"reason": "No."})
    async with Reader.open(board.settings.port, person.token, "/api/events?after=2") as reader:
        await reader.until(4)
    assert reader.comments == ["open"]
    message, cancelled = reader.messages
    user = "user_" + person.user_id.hex
    assert message.data == {
        "id": message.data["id"],
        "sequence": 3,
        "type": "task.rejected",
        "taskId": task["id"],
        "data": {
            "status": "CANCELLED",
            "previousStatus": "WAITING_APPROVAL",
            "by": user,
            "reason": "No.",
        },
        "createdAt": message.data["createdAt"],
    }
    assert message.data["id"].startswith("evt_")
    # A client may listen for the status only, so the end of the task has an event of its own.
    assert (cancelled.type, cancelled.data["data"]) == ("task.cancelled", message.data["data"])


async def test_without_a_number_the_account_stream_starts_with_the_next_event(
    board: Service,
) -> None:
    person = await newcomer(board)
    await create(person)
    async with Reader.open(board.settings.port, person.token, "/api/events") as reader:
        await reader.read()
        task = await create(person)
        await reader.until(2)
    assert [(m.id, m.data["taskId"]) for m in reader.messages] == [(2, task["id"])]


@pytest.mark.parametrize("number", ["-1", "x", "1.5", str(2**60)])
async def test_an_invalid_number_is_refused(board: Service, number: str) -> None:
    person = await newcomer(board)
    task = await create(person)
    for path in ("/api/events", f"/api/tasks/{task['id']}/events"):
        assert (await person.get(path, headers={"Last-Event-ID": number})).status_code == 400
        assert (await person.get(path, params={"after": number})).status_code == 400


@pytest.mark.parametrize("final", ["COMPLETED", "FAILED", "CANCELLED"])
async def test_the_stream_of_a_task_ends_with_the_task(board: Service, final: str) -> None:
    person = await newcomer(board)
    task = await create(person)
    path = f"/api/tasks/{task['id']}/events"
    async with Reader.open(board.settings.port, person.token, path) as reader:
        await reader.until(1)
        await patch(person, task["id"], status="RUNNING")
        await patch(person, task["id"], logs="Last words.", status=final)
        async with asyncio.timeout(5):
            await reader.to_end()
    assert [m.id for m in reader.messages] == [1, 2, 3, 4]
    assert reader.messages[-1].data["data"]["status"] == final
    # A client that connects later, even after the last event, does not wait.
    for after in (0, 2, 4):
        response = await person.get(path, headers={"Last-Event-ID": str(after)}, timeout=5)
        assert response.text.count("id: ") == 4 - after


async def test_a_stream_opened_after_a_retry_continues_with_it(board: Service) -> None:
    person = await newcomer(board)
    task = await create(person, status="FAILED")
    path = f"/api/tasks/{task['id']}/events"
    response = await person.get(path, timeout=5)
    assert response.text.count("id: ") == 2
    await person.post(f"/api/tasks/{task['id']}/retry")
    async with Reader.open(board.settings.port, person.token, path, 2) as reader:
        await reader.until(3)
        await patch(person, task["id"], status="COMPLETED")
        async with asyncio.timeout(5):
            await reader.to_end()
    assert [m.type for m in reader.messages] == ["task.retried", "task.completed"]


async def test_a_stream_does_not_end_before_the_last_of_a_final_tasks_events(
    board: Service, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(board)
    task = await create(person)
    await patch(person, task["id"], status="COMPLETED")
    async with db.write(person.user_id) as tx:
        data = {"status": "COMPLETED"}
        await journal.append(tx, "task.repeated", data, uuid_of(task))
    # The first event with a final status is the last of its batch.
    monkeypatch.setattr(reading, "BATCH", 2)
    response = await person.get(f"/api/tasks/{task['id']}/events", timeout=5)
    assert response.text.count("id: ") == 3


@pytest.mark.timed
async def test_logging_out_ends_the_stream(board: Service) -> None:
    person = await board.sign_in()
    task = await create(person)
    path = f"/api/tasks/{task['id']}/events"
    async with (
        Reader.open(board.settings.port, person.token, "/api/events") as account,
        Reader.open(board.settings.port, person.token, path) as own,
    ):
        await asyncio.gather(account.read(), own.read())
        assert (await person.post("/api/auth/logout")).status_code == 200
        left = time.monotonic()
        async with asyncio.timeout(10):
            await asyncio.gather(account.to_end(), own.to_end())
        assert time.monotonic() - left < 2.5


async def test_a_reader_that_is_catching_up_is_checked_too(
    board: Service, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 10)
    person = await board.sign_in()
    async with db.write(person.user_id) as tx:
        for _ in range(50):
            await journal.append(tx, "task.test", {"text": "x" * 8_000})
    path = "/api/events?after=0"
    async with Reader.open(board.settings.port, person.token, path, buffer=4096) as reader:
        await reader.read(1000)
        await person.post("/api/auth/logout")
        async with asyncio.timeout(10):
            await reader.to_end()
    assert len(reader.messages) < 50


LOOKUPS = {"session": "_load_session_callers", "key": "_load_key_caller"}


async def signed_in_with(board: Service, credential: str) -> Person:
    return await (board.sign_in() if credential == "session" else newcomer(board))


@pytest.mark.timed
@pytest.mark.parametrize("credential", LOOKUPS)
async def test_the_streams_of_an_account_share_what_they_poll(
    board: Service, monkeypatch: pytest.MonkeyPatch, credential: str
) -> None:
    person = await signed_in_with(board, credential)
    calls: Counter[str] = Counter()

    def counted(where: Any, name: str) -> None:
        real = getattr(where, name)

        async def count(*given: Any) -> Any:
            calls[name] += 1
            return await real(*given)

        monkeypatch.setattr(where, name, count)

    async with AsyncExitStack() as readers:
        for _ in range(20):
            reader = Reader.open(board.settings.port, person.token, "/api/events")
            await (await readers.enter_async_context(reader)).read()
        # Their first polls are over.
        await asyncio.sleep(2 * messages.POLL_EVERY_S)
        counted(Authenticator, LOOKUPS[credential])
        counted(JournalReads, "_read_next")
        counted(JournalReads, "_catch_up")
        began = time.monotonic()
        await asyncio.sleep(4 * messages.POLL_EVERY_S)
        polls = (time.monotonic() - began) / messages.POLL_EVERY_S + 1
    assert 3 <= calls[LOOKUPS[credential]] <= polls
    assert 3 <= calls["_read_next"] <= polls
    assert calls["_catch_up"] == 0


BUSY: dict[str, tuple[Any, str]] = {
    "session": (Authenticator, "_load_session_callers"),
    "key": (Authenticator, "_load_key_caller"),
    "read": (journal, "after"),
}


@pytest.mark.parametrize("where", BUSY)
async def test_a_busy_database_ends_no_stream_and_shows_no_unchecked_client_an_event(
    board: Service, db: Database, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    person = await signed_in_with(board, where)
    refused, is_busy = asyncio.Event(), True
    load = getattr(*BUSY[where])

    async def refuse(*given: Any, **named: Any) -> Any:
        if not is_busy:
            return await load(*given, **named)
        refused.set()
        raise RateLimited("Too many requests of this account wait.")

    async with Reader.open(board.settings.port, person.token, "/api/events") as reader:
        await reader.read()
        monkeypatch.setattr(*BUSY[where], refuse)
        async with db.write(person.user_id) as tx:
            await journal.append(tx, "task.test", {})
        async with asyncio.timeout(10):
            await refused.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * messages.POLL_EVERY_S):
                await reader.until(1)
        assert reader.messages == []
        is_busy = False
        async with asyncio.timeout(10):
            await reader.until(1)


async def test_events_are_numbered_without_gaps_under_twenty_writers(board: Service) -> None:
    people = await newcomers(board, 4)
    tokens = [person.token for person in people]
    async with wires(board.settings.port, tokens, 20) as connections:

        async def write(wire: Wire) -> None:
            body = {"name": "x", "status": "FAILED"}
            task = (await wire.request("POST", "/api/tasks", body)).json()["task"]
            assert (await wire.request("POST", f"/api/tasks/{task['id']}/retry")).status == 200
            await cycle(wire, task["id"], 7)

        await asyncio.gather(*[write(wire) for wire in connections])
    async with board.owner() as connection:
        events = (await picture(connection, people[0].user_id))["events"]
    assert [event["sequence"] for event in events] == list(range(1, 201))
    times = [event["created_at"] for event in events]
    assert times == sorted(times)
