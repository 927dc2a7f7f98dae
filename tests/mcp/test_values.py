"""A message of a tool server has a limited number of JSON values, in a body and in an event."""

import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2
import orjson
import pytest

from rota.mcp.transport import MAX_VALUES, _CheckedEvents
from rota.platform.egress import ResponseRejected
from tests.mcp import hostile
from tests.mcp.conftest import connect, try_to_connect
from tests.mcp.hostile import Writer
from tests.service import Person

MANY: list[list[int]] = [[]] * (MAX_VALUES + 1)
# Commas in a text are no values.
TEXT = ",[{" * MAX_VALUES


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def read(*chunks: bytes) -> bytes:
    stream = _CheckedEvents(Chunks(chunks))
    found = b"".join([chunk async for chunk in stream])
    await stream.aclose()
    return found


def event(value: Any, end: bytes = b"\n\n") -> bytes:
    return b"data: " + orjson.dumps(value) + end


def split(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


@pytest.mark.parametrize("size", [1_000, 10**7])
async def test_an_event_with_too_many_values_is_refused(size: int) -> None:
    with pytest.raises(ResponseRejected, match="more than 20000 JSON values"):
        await read(*split(event(MANY), size))
    # Also before it ends.
    with pytest.raises(ResponseRejected):
        await read(*split(event(MANY, end=b""), size))


@pytest.mark.parametrize("size", [1_000, 10**7])
async def test_texts_and_many_small_events_pass(size: int) -> None:
    raw = event({"text": TEXT}) * 2
    assert await read(*split(raw, size)) == raw


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_the_values_of_each_event_count_by_themselves(end: bytes) -> None:
    raw = event([1] * (MAX_VALUES - 10), end) * 3
    for size in (1_000, 10**7):
        assert await read(*split(raw, size)) == raw
    # The empty line arrives in parts.
    assert await read(*split(raw, len(raw) // 3 - 1)) == raw


async def test_a_server_with_such_a_list_is_not_connected(person: Person) -> None:
    async def many(message: dict[str, Any], writer: Writer) -> None:
        tool = {"name": "t", "inputSchema": {"type": "object", "x": MANY}}
        await hostile.answer(message, writer, {"tools": [tool]})

    async with hostile.served(hostile.mcp_handler(list=many)) as url:
        answer = await try_to_connect(person, url)
    assert answer.status_code == 400
    assert "more than 20000 JSON values" in answer.text


async def test_long_lists_of_tools_are_read_at_a_slow_pace(person: Person) -> None:
    async def long(message: dict[str, Any], writer: Writer) -> None:
        tool = {"name": "t", "inputSchema": {"type": "object", "x": [[]] * (MAX_VALUES // 3)}}
        await hostile.answer(message, writer, {"tools": [tool]})

    async with hostile.served(hostile.mcp_handler(list=long)) as url:
        server = await connect(person, url)
        started = time.monotonic()
        for _ in range(4):
            assert (await person.post(f"/api/mcp/{server['id']}/ping")).json()["ok"]
    # Each list costs more than 25 ms of processor time, which is a tenth of the time.
    assert time.monotonic() - started > 1
