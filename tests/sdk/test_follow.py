"""Streams that are cut off again and again: every event arrives once and in order."""

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from rota_sdk import Event, _retries, errors
from tests.sdk.any_client import AnyClient
from tests.sdk.proxy import CuttingProxy
from tests.sdk.test_contract import DESCRIPTIONS
from tests.service import Person
from tests.sizes import size
from tests.tasks.world import create, patch

CUTS = size(10, 100)


async def work(person: Person, task: dict[str, Any], changes: int) -> None:
    """Changes the task so often, and completes it."""
    for number in range(changes):
        answer = await patch(person, task["id"], logs=f"{number}\u2028")
        assert answer.status_code == 200, answer.text
    await patch(person, task["id"], status="COMPLETED")


async def test_every_event_arrives_once_and_in_order_however_often_the_connection_breaks(
    cut_rota: AnyClient, proxy: CuttingProxy, owner: Person
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


async def test_following_continues_after_a_number(rota: AnyClient, owner: Person) -> None:
    task = await create(owner, status="RUNNING")
    await work(owner, task, 3)
    events = await rota.all(lambda c: c.tasks.follow(task["id"], after=3))
    assert [event.sequence for event in events] == [4, 5, 6]
    # Nothing is left, and the task has ended.
    assert await rota.all(lambda c: c.tasks.follow(task["id"], after=6)) == []


async def test_following_goes_through_a_retry(rota: AnyClient, owner: Person) -> None:
    task = await create(owner, status="FAILED")
    await rota(lambda c: c.tasks.retry(task["id"]))
    await patch(owner, task["id"], status="CANCELLED")
    events = await rota.all(lambda c: c.tasks.follow(task["id"]))
    assert [event.type for event in events] == [
        *("task.created", "task.failed", "task.retried", "task.cancelled"),
    ]


async def test_the_events_of_the_account_start_now_and_survive_cuts(
    cut_rota: AnyClient, proxy: CuttingProxy, owner: Person
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
    rota: AnyClient, owner: Person
) -> None:
    await create(owner, name="Before")
    stream = rota.wrapped.events.follow()

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


class Hanging(httpx.AsyncByteStream):
    """A response that says nothing."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
FORBIDDEN = httpx.Response(403, json={"error": {"code": "AUTHORIZATION_ERROR", "message": "No."}})


def sse(sequence: int, status: str) -> str:
    """An event of a stream."""
    event = {"id": f"evt_{sequence}", "sequence": sequence, "type": "task.updated"}
    event |= {"taskId": "task_1", "createdAt": "2026-11-15T02:46:35.123Z"}
    event["data"] = {"status": status}
    return f"id: {sequence}\ndata: {json.dumps(event)}\n\n"


def stream_of(text: str) -> httpx.Response:
    return httpx.Response(200, headers=SSE, text=text)


def example(name: str, **changes: Any) -> httpx.Response:
    body = copy.deepcopy(DESCRIPTIONS["a"]["components"]["examples"][name]["value"])
    for field, value in changes.items():
        body[field] = body[field] | value if isinstance(value, dict) else value
    return httpx.Response(200, json=body)


def streams(kind: str, *answers: httpx.Response | Exception, **options: Any) -> AnyClient:
    """A client that gets these responses."""
    given = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        options.get("seen", []).append(request)
        found = next(given)
        if isinstance(found, Exception):
            raise found
        if isinstance(found.stream, (Breaking, Hanging)):
            return found
        # A response can be read by one client only.
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    transport = httpx.MockTransport(answer)
    http = {"sync": httpx.Client, "async": httpx.AsyncClient}[kind](transport=transport)
    others = {name: value for name, value in options.items() if name != "seen"}
    return AnyClient.open(kind, "http://x", "rota_x", http_client=http, **others)


async def following(client: AnyClient, stream: Any) -> Any:
    """The next event of a stream, or None at its end."""
    if client.is_async:
        return await anext(stream, None)
    return await asyncio.to_thread(next, stream, None)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams connect again without a pause."""
    monkeypatch.setattr(_retries, "MOST_S", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_a_stream_continues_after_an_error(kind: str) -> None:
    client = streams(kind, stream_of(sse(1, "RUNNING")), FORBIDDEN, stream_of(sse(2, "COMPLETED")))
    stream = client.wrapped.tasks.follow("task_1")
    assert (await following(client, stream)).sequence == 1
    with pytest.raises(errors.PermissionDeniedError):
        await following(client, stream)
    assert (await following(client, stream)).sequence == 2
    assert await following(client, stream) is None
    assert await following(client, stream) is None


async def test_a_stream_continues_after_a_timeout_of_its_caller() -> None:
    silent = httpx.Response(200, headers=SSE, stream=Hanging())
    client = streams("async", silent, stream_of(sse(1, "COMPLETED")))
    stream = client.wrapped.tasks.follow("task_1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.05)
    assert [event.sequence async for event in stream] == [1]


async def test_a_closed_stream_has_ended(kind: str) -> None:
    client = streams(kind, stream_of(sse(1, "RUNNING")))
    stream = client.wrapped.tasks.follow("task_1")
    await following(client, stream)
    await (stream.aclose() if client.is_async else asyncio.to_thread(stream.close))
    assert await following(client, stream) is None


async def test_an_account_stream_begins_when_it_is_entered(kind: str) -> None:
    seen: list[httpx.Request] = []
    newest = example("EventsResponse", events=[], lastSequence=7)
    client = streams(kind, newest, stream_of(sse(8, "RUNNING")), seen=seen)
    if client.is_async:
        async with client.wrapped.events.follow() as stream:
            assert stream.last_sequence == 7
            assert (await anext(stream)).sequence == 8
    else:
        with client.wrapped.events.follow() as stream:
            assert stream.last_sequence == 7
            assert next(stream).sequence == 8
    assert [request.headers.get("Last-Event-ID") for request in seen] == [None, "7"]


@pytest.mark.usefixtures("at_once")
async def test_an_account_stream_stays_with_its_company(kind: str) -> None:
    seen: list[httpx.Request] = []
    me = example("MeResponse", account={"id": "acct_1"})
    newest = example("EventsResponse", events=[], lastSequence=7)
    both = stream_of(sse(8, "RUNNING")), stream_of(sse(9, "RUNNING"))
    client = streams(kind, me, newest, *both, FORBIDDEN, account="company", seen=seen)
    stream = client.wrapped.events.follow()
    assert [(await following(client, stream)).sequence for _ in range(2)] == [8, 9]
    with pytest.raises(errors.PermissionDeniedError):
        await following(client, stream)
    accounts = [request.headers["X-Service-Account"] for request in seen]
    assert accounts == ["company", *["acct_1"] * 4]


DOWN: list[httpx.Response | Exception] = [
    httpx.ConnectError("refused"),
    httpx.ReadError("cut"),
    httpx.Response(503, text="Down."),
]


@pytest.mark.usefixtures("at_once")
async def test_a_stream_is_patient_from_its_first_connection_on(kind: str) -> None:
    client = streams(kind, *DOWN, *DOWN, stream_of(sse(1, "COMPLETED")))
    assert len(await client.all(lambda c: c.tasks.follow("task_1"))) == 1
    newest = example("EventsResponse", events=[], lastSequence=7)
    client = streams(kind, *DOWN, *DOWN, newest, *DOWN, *DOWN, stream_of(sse(8, "RUNNING")))
    assert (await following(client, client.wrapped.events.follow())).sequence == 8


async def test_a_client_without_retries_connects_once(kind: str) -> None:
    seen: list[httpx.Request] = []
    client = streams(kind, httpx.ConnectError("refused"), max_retries=0, seen=seen)
    with pytest.raises(errors.APIConnectionError):
        await client.all(lambda c: c.tasks.follow("task_1"))
    assert len(seen) == 1


@pytest.mark.usefixtures("at_once")
async def test_a_task_that_starts_again_is_not_over(kind: str) -> None:
    over, runs = (example("TaskResponse", task={"status": s}) for s in ("FAILED", "RUNNING"))
    again, end = stream_of(sse(8, "RUNNING")), stream_of(sse(9, "COMPLETED"))
    client = streams(kind, stream_of(": open\n\n"), over, again, runs, end)
    events = await client.all(lambda c: c.tasks.follow("task_1", after=7))
    assert [event.sequence for event in events] == [8, 9]


@pytest.mark.usefixtures("at_once")
async def test_a_stream_that_waits_for_long_survives_any_number_of_cuts(kind: str) -> None:
    # An ID without data belongs to no message.
    last = ": open\n\nid: 7\n\nevent: new\ndata: {}\n\n" + sse(1, "COMPLETED")
    # More than 1,023, the largest exponent of a float.
    many = range(1100)
    cuts = [httpx.Response(200, headers=SSE, stream=Breaking(b": open\n\n")) for _ in many]
    client = streams(kind, *cuts, stream_of(last))
    events = await client.all(lambda c: c.tasks.follow("task_1"))
    assert [each.sequence for each in events] == [1]


@pytest.mark.parametrize(
    ("content_type", "text"),
    [("text/html", "<html>"), ("text/event-stream", "id: 1\ndata: {}\n\n")],
)
async def test_a_stream_that_is_not_of_rota_is_an_error(
    kind: str, content_type: str, text: str
) -> None:
    client = streams(kind, httpx.Response(200, headers={"Content-Type": content_type}, text=text))
    with pytest.raises(errors.UnreadableResponseError):
        await client.all(lambda c: c.tasks.follow("task_1"))


async def test_a_task_that_does_not_exist_cannot_be_followed(rota: AnyClient) -> None:
    with pytest.raises(errors.NotFoundError):
        await rota.all(lambda c: c.tasks.follow("task_01a19b981dc0709986b0d5496f03675a"))


async def test_a_service_that_is_gone_ends_the_stream_with_an_error(kind: str) -> None:
    client = AnyClient.open(kind, "http://127.0.0.1:9", "rota_x", max_retries=0)
    with pytest.raises(errors.APIConnectionError):
        await client.all(lambda c: c.tasks.follow("task_1"))
    await client.close()
