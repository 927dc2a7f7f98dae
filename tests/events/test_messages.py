"""What a client gets while the database is slow or busy, and for how long after its last check."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from rota.events import journal, messages
from rota.events.fanout import Woken
from rota.events.journal import Event
from rota.events.live_text import Version
from rota.events.live_watch import Topic, Watcher
from rota.events.messages import Messages, Wanted
from rota.events.reading import Batch
from rota.platform.errors import RateLimited
from rota.platform.ids import new_uuid

ACCOUNT, TASK = new_uuid(), new_uuid()
STEP = {"kind": "model", "run": 1, "step": 1}


def event(sequence: int, kind: str = "task.test") -> Event:
    data = STEP if kind == journal.STEP_FINISHED else {}
    return Event(sequence, new_uuid(), kind, TASK, dict(data), datetime.now(UTC))


class Client:
    """The stream of a task, with what it reads, and how long that takes."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.stored = "text"
        # Cleared: reads and checks do not end.
        self.database = asyncio.Event()
        self.database.set()
        self.is_busy = False
        self.allowed = True
        self.checks: list[float | None] = []
        self.woken, self._topic = Woken(), Topic("live:x")
        watcher = Watcher(self._topic, resumes=False)
        self._topic.waking[watcher] = self.woken.by_text
        wanted = Wanted(ACCOUNT, 0, self._still_allowed, task_id=TASK)
        self._each = Messages(
            wanted, self.woken, watcher, self._read, self._stored_text, lambda: False
        ).each()
        # A slow client takes no message after the one that it has until it resumes.
        self.is_slow = False
        self.resumed = asyncio.Event()
        self.received = b""
        self.at: list[float] = []
        self.ended = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        async for message in self._each:
            self.received += message
            self.at.append(time.monotonic())
            if self.is_slow:
                await self.resumed.wait()

    async def _read(self, account: UUID, after: int, task: UUID | None, since: float) -> Batch:
        await self.database.wait()
        events = [each for each in self.events if each.sequence > after]
        return Batch(after, max(after, len(self.events)), events, False, since)

    async def _still_allowed(self, since: float | None) -> bool:
        self.checks.append(since)
        await self.database.wait()
        return self.allowed

    async def _stored_text(self, account: UUID, task: UUID, run: int, step: int) -> str:
        if self.is_busy:
            raise RateLimited("Busy.")
        return self.stored

    def write(self, text: str) -> None:
        size = len(self._topic.newest.data)
        assert self._topic.add(Version(1, 1, 1, 0), size, text.encode())

    async def is_checked(self) -> None:
        """Waits until the stream is open, and its client was checked."""
        async with asyncio.timeout(10):
            while not self.checks:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)

    async def hang(self) -> None:
        """Waits until the client was checked. From then on, the database does not answer, and the
        stream waits for a read that needs no check of its own."""
        await self.is_checked()
        self.database.clear()
        self.woken.set()
        await asyncio.sleep(0.05)

    async def gets(self, text: bytes, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                while text not in self.received:
                    await asyncio.sleep(0.005)
        except TimeoutError:
            return False
        return True


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    opened = Client()
    yield opened
    opened.ended.cancel()
    await asyncio.wait({opened.ended})


async def test_a_slow_database_delays_no_text_for_as_long_as_the_last_check_counts(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "CHECKED_FOR_S", 60.0)
    await client.hang()
    for number in range(10):
        # The stream waits for the database from its next poll on at the latest.
        await asyncio.sleep(messages.POLL_EVERY_S / 8)
        client.write(f"<{number}>")
        assert await client.gets(f"<{number}>".encode(), 10)


async def test_no_text_is_sent_before_the_first_check() -> None:
    client = Client()
    client.database.clear()
    client.write("<early>")
    assert not await client.gets(b"<early>", 0.3)
    client.database.set()
    assert await client.gets(b"<early>", 10)
    assert client.checks[0] is not None
    client.ended.cancel()


async def test_no_text_is_sent_a_second_after_the_last_check(client: Client) -> None:
    await client.is_checked()
    await asyncio.sleep(2 * messages.POLL_EVERY_S)
    checked_at = client.checks[-1]
    assert checked_at is not None
    client.database.clear()
    while time.monotonic() < checked_at + 2.5:
        client.write("x")
        await asyncio.sleep(0.02)
    late = [at for at in client.at if at > checked_at + messages.CHECKED_FOR_S + 0.1]
    assert late == []
    client.write("<end>")
    client.database.set()
    assert await client.gets(b"<end>", 10)


@pytest.mark.parametrize("is_reading", [False, True])
async def test_a_client_that_may_not_read_gets_no_more_text(
    client: Client, is_reading: bool
) -> None:
    if is_reading:
        await client.hang()
    else:
        await client.is_checked()
        client.database.clear()
    client.allowed = False
    client.woken.by_removal()
    await asyncio.sleep(0.05)
    client.write("<secret>")
    assert not await client.gets(b"<secret>", 0.3)
    client.database.set()
    async with asyncio.timeout(10):
        await client.ended
    assert b"<secret>" not in client.received


async def test_a_client_that_received_slowly_is_checked_before_it_gets_events(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "CHECKED_FOR_S", 60.0)
    await client.hang()
    client.is_slow = True
    client.write("<text>")
    assert await client.gets(b"<text>", 10)
    # While the client receives the text, its events are read and it is checked.
    client.events = [event(1)]
    client.database.set()
    await asyncio.sleep(2 * messages.SLOW_CLIENT_S)
    client.allowed = False
    client.resumed.set()
    async with asyncio.timeout(10):
        await client.ended
    assert b"id: 1\n" not in client.received


async def test_events_before_one_whose_text_cannot_be_read_are_not_lost(client: Client) -> None:
    client.is_busy = True
    client.events = [event(1), event(2, journal.STEP_FINISHED), event(3)]
    client.woken.set()
    assert await client.gets(b"id: 1\n", 10)
    assert b"id: 2\n" not in client.received
    client.is_busy = False
    assert await client.gets(b"id: 3\n", 10)
    assert [client.received.count(b"id: %d\n" % number) for number in (1, 2, 3)] == [1, 1, 1]
    assert client.received.index(b'"text":"text"') < client.received.index(b"id: 2\n")
