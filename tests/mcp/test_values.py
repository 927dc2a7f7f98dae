"""A message of a tool server has a limited number of JSON values, in a body and in an event."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from rota.mcp.messages import MAX_VALUES
from tests.mcp import hostile
from tests.mcp.conftest import connect, invoke, try_to_connect
from tests.mcp.hostile import Behaviour, Writer
from tests.service import Person

MANY: list[list[int]] = [[]] * (MAX_VALUES + 1)
# Commas in a text are no values.
TEXT = ",[{" * MAX_VALUES


def as_body(body: bytes) -> bytes:
    return hostile.head("application/json", f"Content-Length: {len(body)}") + body


def as_event(body: bytes) -> bytes:
    return hostile.head("text/event-stream") + b"data: " + body + b"\n\n"


def hidden_by_a_comment(body: bytes) -> bytes:
    return hostile.head("text/event-stream") + b': "\ndata: ' + body + b"\n\n"


def hidden_by_a_charset(body: bytes) -> bytes:
    head = hostile.head("text/event-stream; charset=cp037")
    return head + (b"data: " + body + b"\n\n").decode().encode("cp037")


def listing(form: Callable[[bytes], bytes], schema: Any) -> Behaviour:
    async def listed(message: dict[str, Any], writer: Writer) -> None:
        tool = {"name": "t", "inputSchema": {"type": "object", "x": schema}}
        writer.write(form(hostile.result(message, {"tools": [tool]})))
        await writer.drain()

    return listed


@pytest.mark.parametrize("form", [as_body, as_event, hidden_by_a_comment, hidden_by_a_charset])
async def test_a_message_with_too_many_values_is_refused(
    person: Person, form: Callable[[bytes], bytes]
) -> None:
    async with hostile.served(hostile.mcp_handler(list=listing(form, MANY))) as url:
        answer = await try_to_connect(person, url)
    assert answer.status_code == 400
    expected = "more than 50000 JSON values" if form is as_body else "is not valid MCP"
    assert expected in answer.text


@pytest.mark.parametrize("form", [as_body, as_event])
async def test_commas_and_brackets_in_a_text_are_no_values(
    person: Person, form: Callable[[bytes], bytes]
) -> None:
    async def text(message: dict[str, Any], writer: Writer) -> None:
        result = {"content": [{"type": "text", "text": TEXT}]}
        writer.write(form(hostile.result(message, result)))
        await writer.drain()

    async with hostile.served(hostile.mcp_handler(call=text)) as url:
        server = await connect(person, url)
        answer = await invoke(person, server, "t", {})
    assert answer.json()["result"]["content"][0]["text"] == TEXT


@pytest.mark.parametrize("form", [as_body, as_event])
async def test_large_messages_slow_down_the_next_calls(
    person: Person, form: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock that says that every message costs 30 ms of processor time.
    costs = iter(range(1_000_000))
    monkeypatch.setattr("rota.mcp.messages.time.thread_time", lambda: next(costs) * 0.03)
    async with hostile.served(hostile.mcp_handler(list=listing(form, []))) as url:
        server = await connect(person, url)
        started = time.monotonic()
        for _ in range(3):
            assert (await person.post(f"/api/mcp/{server['id']}/ping")).json()["ok"]
    # Three messages each, which are a tenth of the time. The first ping waits for `connect`.
    assert time.monotonic() - started > 1.5
