"""Streams that are cut off again and again: every event arrives once and in order."""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from rota_sdk import Event, errors
from rota_sdk._async import streams as async_streams
from rota_sdk._sync import streams as sync_streams
from tests.sdk.doors import Door
from tests.sdk.proxy import CuttingProxy
from tests.service import Person
from tests.tasks.world import create, patch

CUTS = int(os.environ.get("ROTA_TEST_SDK_CUTS", "10"))


async def work(person: Person, task: dict[str, Any], changes: int) -> None:
    """Changes the task so often, and completes it."""
    for number in range(changes):
        answer = await patch(person, task["id"], logs=f"{number}\u2028")
        assert answer.status_code == 200, answer.text
    await patch(person, task["id"], status="COMPLETED")


async def test_every_event_arrives_once_and_in_order_however_often_the_connection_breaks(
    cut_rota: Door, proxy: CuttingProxy, owner: Person
) -> None:
    task = await create(owner, status="RUNNING")
    chance = random.Random(7)
    limits = iter([chance.randint(600, 3000) for _ in range(CUTS)])
    proxy.limit = lambda: next(limits, None)
    working = asyncio.create_task(work(owner, task, 6 * CUTS))
    events = await cut_rota.all(lambda c: c.tasks.follow(task["id"]))
    await working
    assert proxy.cuts == CUTS
    # The account has only this task.
    stored = (await owner.get("/api/tasks/" + task["id"])).json()["task"]
    assert stored["status"] == "COMPLETED"
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert [event.type for event in events[-2:]] == ["task.updated", "task.completed"]
    assert len(events) == 6 * CUTS + 3


async def test_following_continues_after_a_number(rota: Door, owner: Person) -> None:
    task = await create(owner, status="RUNNING")
    await work(owner, task, 3)
    events = await rota.all(lambda c: c.tasks.follow(task["id"], after=3))
    assert [event.sequence for event in events] == [4, 5, 6]
    # Nothing is left, and the task has ended.
    assert await rota.all(lambda c: c.tasks.follow(task["id"], after=6)) == []


async def test_following_goes_through_a_retry(rota: Door, owner: Person) -> None:
    task = await create(owner, status="FAILED")
    await rota(lambda c: c.tasks.retry(task["id"]))
    await patch(owner, task["id"], status="CANCELLED")
    events = await rota.all(lambda c: c.tasks.follow(task["id"]))
    assert [event.type for event in events] == [
        *("task.created", "task.failed", "task.retried", "task.cancelled"),
    ]


async def test_the_events_of_the_account_start_now_and_survive_cuts(
    cut_rota: Door, proxy: CuttingProxy, owner: Person
) -> None:
    await create(owner, name="Before")
    limits = iter([900, 1200, 1500])
    proxy.limit = lambda: next(limits, None)
    seen: list[Event] = []
    opened = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def tell() -> None:
        await opened.wait()
        for number in range(9):
            await create(owner, name=f"New {number}")

    def take(event: Event) -> Any:
        seen.append(event)
        if len(seen) == 10:
            raise StopFollowing
        return None

    telling = asyncio.create_task(tell())
    last = (await owner.get("/api/events", headers={"Accept": "application/json"})).json()

    def follow(client: Any) -> Any:
        stream = client.events.follow(after=last["lastSequence"] - 1)
        loop.call_soon_threadsafe(opened.set)
        return stream

    with pytest.raises(StopFollowing):
        await cut_rota.each(follow, take)
    await telling
    assert proxy.cuts == 3
    assert [event.sequence for event in seen] == list(range(1, 11))


class StopFollowing(Exception):
    pass


async def test_an_account_stream_without_a_number_begins_after_the_newest_event(
    rota: Door, owner: Person
) -> None:
    await create(owner, name="Before")
    stream = rota.client.events.follow()

    async def first() -> Event:
        found: Event = await (anext(stream) if rota.is_async else asyncio.to_thread(next, stream))
        return found

    waiting = asyncio.create_task(first())
    async with asyncio.timeout(30):
        # The client has read where it begins, at the latest before its first event.
        while stream.last_sequence is None:
            await asyncio.sleep(0.01)
        await create(owner, name="After")
        event = await waiting
    assert event.sequence == 2
    await (stream.aclose() if rota.is_async else asyncio.to_thread(stream.close))


class Breaking(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A response that breaks off after its content."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def streams(kind: str, *answers: httpx.Response) -> Door:
    """A client that gets these responses."""
    given = iter(answers)
    transport = httpx.MockTransport(lambda _: next(given))
    http = {"sync": httpx.Client, "async": httpx.AsyncClient}[kind](transport=transport)
    return Door.open(kind, "http://x", "rota_x", http_client=http)


async def test_a_stream_that_waits_for_long_survives_any_number_of_cuts(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (async_streams, sync_streams):
        monkeypatch.setattr(module, "backoff_s", lambda *_: 0.0)
    sse = {"Content-Type": "text/event-stream; charset=utf-8"}
    event = {"id": "evt_1", "sequence": 1, "type": "task.completed", "taskId": "task_1"}
    event |= {"data": {"status": "COMPLETED"}, "createdAt": "2026-11-15T02:46:35.123Z"}
    # An ID without data belongs to no message.
    last = f": open\n\nid: 7\n\nevent: new\ndata: {{}}\n\nid: 1\ndata: {json.dumps(event)}\n\n"
    cuts = [httpx.Response(200, headers=sse, stream=Breaking(b": open\n\n")) for _ in range(50)]
    door = streams(kind, *cuts, httpx.Response(200, headers=sse, text=last))
    events = await door.all(lambda c: c.tasks.follow("task_1"))
    assert [each.sequence for each in events] == [1]


@pytest.mark.parametrize(
    ("content_type", "text"),
    [("text/html", "<html>"), ("text/event-stream", "id: 1\ndata: {}\n\n")],
)
async def test_a_stream_that_is_not_of_rota_is_an_error(
    kind: str, content_type: str, text: str
) -> None:
    door = streams(kind, httpx.Response(200, headers={"Content-Type": content_type}, text=text))
    with pytest.raises(errors.UnreadableResponseError):
        await door.all(lambda c: c.tasks.follow("task_1"))


async def test_a_task_that_does_not_exist_cannot_be_followed(rota: Door) -> None:
    with pytest.raises(errors.NotFoundError):
        await rota.all(lambda c: c.tasks.follow("task_01a19b981dc0709986b0d5496f03675a"))


async def test_a_service_that_is_gone_ends_the_stream_with_an_error(kind: str) -> None:
    door = Door.open(kind, "http://127.0.0.1:9", "rota_x", max_retries=1)
    with pytest.raises(errors.APIConnectionError):
        await door.all(lambda c: c.tasks.follow("task_1"))
    await door.close()
