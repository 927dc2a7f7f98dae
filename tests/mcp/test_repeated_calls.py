"""A call with an Idempotency-Key reaches the tool at most once, however often it is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from rota.mcp.health import Health
from rota.mcp.tool_calls import ToolCalls
from rota.platform import clock
from rota.platform.connection_shares import ShareExceeded
from rota.platform.pace import Pace
from tests.mcp import hostile
from tests.mcp.conftest import accept, connect
from tests.mcp.peers import Peer, definition
from tests.service import Person, Service
from tests.tasks.world import newcomer

SUM = {"a": 1, "b": 2}


async def call(
    person: Person, server: dict[str, Any], tool: str, arguments: Any = None, key: str = "k"
) -> httpx.Response:
    return await person.post(
        f"/api/mcp/{server['id']}/invoke",
        {"tool": tool, "arguments": arguments or {}},
        headers={"Idempotency-Key": key},
    )


def message(response: httpx.Response) -> str:
    text: str = response.json()["error"]["message"]
    return text


async def until_called(peer: Peer) -> None:
    async with asyncio.timeout(30):
        while not peer.calls:
            await asyncio.sleep(0.01)


async def test_a_repeated_call_gets_the_first_result(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    first = await call(person, server, "add", SUM)
    assert first.status_code == 200
    assert "Idempotent-Replayed" not in first.headers
    second = await call(person, server, "add", SUM)
    assert (second.status_code, second.content) == (200, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    # Also when the tool could not be called any more.
    peer.status = 503
    await person.post(f"/api/mcp/{server['id']}/ping")
    assert (await call(person, server, "add", SUM)).content == first.content
    await person.delete(f"/api/mcp/{server['id']}")
    assert (await call(person, server, "add", SUM)).content == first.content
    assert peer.calls == [("add", SUM)]


async def test_a_key_belongs_to_one_request(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    assert (await call(person, server, "add", SUM)).status_code == 200
    assert (await call(person, server, "add", {"a": 2, "b": 2})).status_code == 409
    assert (await call(person, server, "note")).status_code == 409
    async with Peer().serve() as second:
        other = await connect(person, second.url, "second")
        assert (await call(person, other, "add", SUM)).status_code == 409
        assert second.calls == []
    assert (await call(person, server, "add", SUM, key="other")).status_code == 200
    assert peer.calls == [("add", SUM)] * 2


async def test_a_call_under_way_is_not_repeated(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    slow = {"seconds": 1}
    calls = [asyncio.create_task(call(person, server, "wait", slow)) for _ in range(10)]
    await until_called(peer)
    refused = await call(person, server, "wait", slow)
    assert refused.status_code == 409
    assert refused.json()["error"]["details"] == {"reason": "in_progress"}
    responses = await asyncio.gather(*calls)
    assert sorted(each.status_code for each in responses) == [200, *[409] * 9]
    replayed = await call(person, server, "wait", slow)
    assert replayed.content in [each.content for each in responses]
    assert peer.calls == [("wait", slow)]


async def test_a_call_that_the_server_does_not_run_can_be_sent_again(
    person: Person, peer: Peer
) -> None:
    async def reject(_: Any) -> None:
        raise MCPError(types.METHOD_NOT_FOUND, "Not now")

    server = await connect(person, peer.url)
    peer.answers["note"] = reject
    first = await call(person, server, "note")
    assert first.status_code == 502
    assert message(first).endswith(
        "Not now. The tool did not run. Correct the call, then try again."
    )
    del peer.answers["note"]
    assert (await call(person, server, "note")).status_code == 200


@pytest.mark.parametrize(("tool", "status"), [("wait", 504), ("broken", 502)])
async def test_a_call_with_an_unknown_outcome_is_not_repeated(
    person: Person, peer: Peer, tool: str, status: int
) -> None:
    peer.tools["broken"] = definition("broken")

    async def explode(_: Any) -> None:
        raise RuntimeError("after it took effect")

    peer.answers["broken"] = explode
    server = await connect(person, peer.url)
    arguments = {"seconds": 10} if tool == "wait" else {}
    first = await call(person, server, tool, arguments)
    assert first.status_code == status
    second = await call(person, server, tool, arguments)
    assert (second.status_code, second.content) == (status, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.json()["error"]["path"].endswith("/invoke")
    assert len(peer.calls) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("200 OK", "text/plain"),
        ("202 Accepted", "text/event-stream"),
        ("303 See Other", "text/html"),
    ],
)
async def test_a_call_whose_response_is_not_mcp_is_not_repeated(
    person: Person, status: str, kind: str
) -> None:
    made = 0

    async def respond(_: dict[str, Any], writer: hostile.Writer) -> None:
        nonlocal made
        made += 1
        writer.write(hostile.head(kind, "Location: /done", "Content-Length: 0", status=status))
        await writer.drain()

    async with hostile.served(hostile.mcp_handler(call=respond)) as url:
        server = await connect(person, url)
        for _ in range(2):
            response = await call(person, server, "t")
            assert response.status_code == 502
            assert "is not valid MCP" in message(response)
            assert "may have taken effect" in message(response)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert made == 1


async def test_a_call_with_an_unknown_outcome_is_not_repeated_if_its_server_cannot_be_saved(
    person: Person, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the call was sent counts, and not what happened afterwards."""

    async def refuse(*_: Any) -> None:
        raise ShareExceeded

    server = await connect(person, peer.url)
    monkeypatch.setattr(Health, "record_failure", refuse)
    for _ in range(2):
        response = await call(person, server, "wait", {"seconds": 10})
        assert response.status_code == 504
    assert response.headers["Idempotent-Replayed"] == "true"
    assert len(peer.calls) == 1


async def test_a_call_before_which_the_database_failed_can_be_repeated(
    person: Person, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise asyncpg.DiskFullError

    server = await connect(person, peer.url)
    with monkeypatch.context() as broken:
        broken.setattr(ToolCalls, "_record", fail)
        assert (await call(person, server, "add", SUM)).status_code == 500
    assert (await call(person, server, "add", SUM)).status_code == 200
    assert peer.calls == [("add", SUM)]


async def test_a_call_that_was_not_sent_can_be_repeated(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url, allowedTools=["add", "note"])
    peer.status = 429  # The server did not run the call.
    assert (await call(person, server, "add", SUM)).status_code == 502
    peer.status = None
    assert (await call(person, server, "add", SUM)).status_code == 200
    # Nor if it could not list its tools first, which it has to after a failure.
    peer.status = 503
    await person.post(f"/api/mcp/{server['id']}/ping")
    assert (await call(person, server, "note", key="503")).status_code == 502
    peer.status = None
    assert (await call(person, server, "note", key="503")).status_code == 200
    # Errors before the call do not use up the key either.
    assert (await call(person, server, "add", {}, key="400")).status_code == 400
    assert (await call(person, server, "add", SUM, key="400")).status_code == 200
    assert (await call(person, server, "fail", key="403")).status_code == 403
    await person.request("PATCH", f"/api/mcp/{server['id']}", json={"allowedTools": None})
    assert (await call(person, server, "fail", key="403")).status_code == 200
    assert (await call(person, server, "fresh", key="404")).status_code == 404
    peer.tools["fresh"] = definition("fresh")
    assert (await call(person, server, "fresh", key="404")).status_code == 409
    await accept(person, server, "fresh")
    assert (await call(person, server, "fresh", key="404")).status_code == 200
    assert [name for name, _ in peer.calls] == ["add", "note", "add", "fail", "fresh"]


class LosesItsSession:
    """A server that was restarted, so that it does not run the first call in the old session."""

    def __init__(self) -> None:
        self.restarted = False
        # What the restart changes, if anything.
        self.tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        self.tools_then = self.tools
        self.calls = 0

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        handle = hostile.mcp_handler(initialize=self._initialize, list=self._list, call=self._call)
        async with hostile.served(handle) as url:
            yield url

    async def _initialize(self, message: dict[str, Any], writer: hostile.Writer) -> None:
        body = hostile.result(message, hostile.INITIALIZED)
        length = f"Content-Length: {len(body)}"
        writer.write(hostile.head("application/json", "Mcp-Session-Id: one", length) + body)

    async def _list(self, message: dict[str, Any], writer: hostile.Writer) -> None:
        tools = self.tools_then if self.restarted else self.tools
        await hostile.answer(message, writer, {"tools": tools})

    async def _call(self, message: dict[str, Any], writer: hostile.Writer) -> None:
        if not self.restarted:
            self.restarted = True
            writer.write(hostile.head(status="404 Not Found"))
            return
        self.calls += 1
        await hostile.answer(message, writer, {"content": []})


@pytest.mark.parametrize("then", ["changed", "gone", "busy", "the same"])
async def test_a_call_in_a_lost_session_that_is_not_made_in_a_new_one_can_be_repeated(
    person: Person, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    lost = LosesItsSession()
    wait = Pace.wait

    async def busy(self: Pace, account_id: UUID, *cpu_s: float) -> None:
        if lost.restarted:
            self.refuse(account_id)
        await wait(self, account_id, *cpu_s)

    if then == "changed":
        lost.tools_then = [lost.tools[0] | {"description": "Does something else."}]
    elif then == "gone":
        lost.tools_then = [lost.tools[0] | {"name": "other"}]
    async with lost.serve() as url:
        server = await connect(person, url)
        with monkeypatch.context() as patch:
            if then == "busy":
                patch.setattr(Pace, "wait", busy)
            first = await call(person, server, "t")
        expected = {"changed": 409, "gone": 404, "busy": 429, "the same": 200}
        assert first.status_code == expected[then], first.text
        assert lost.calls == (then == "the same")
        if then == "gone":
            lost.tools_then = lost.tools
            await person.post(f"/api/mcp/{server['id']}/ping")
        elif then == "changed":
            assert (await accept(person, server, "t")).status_code == 200
        again = await call(person, server, "t")
    assert again.status_code == 200, again.text
    assert ("Idempotent-Replayed" in again.headers) == (then == "the same")
    assert lost.calls == 1


async def test_after_a_crash_the_outcome_is_unknown_and_nothing_is_called_again(
    mcp_service: Service, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(mcp_service)
    server = await connect(person, peer.url)
    slow = {"seconds": 2}
    # The longest time that a call can take: more than half a minute, and less than one and a half.
    async with mcp_service.process(mcp_connect_s=10.0, mcp_call_s=1.0) as doomed:
        there = Person(doomed, "p", person.token, person.user_id)
        lost = asyncio.create_task(call(there, server, "wait", slow))
        await until_called(peer)
        assert doomed.running is not None
        doomed.running.kill()
        with pytest.raises(httpx.TransportError):
            await lost
    refused = await call(person, server, "wait", slow)
    assert refused.status_code == 409
    assert "in progress" in message(refused)
    killed = clock.now()
    monkeypatch.setattr(clock, "now", lambda: killed + timedelta(seconds=30))
    assert "in progress" in message(await call(person, server, "wait", slow))
    monkeypatch.setattr(clock, "now", lambda: killed + timedelta(seconds=90))
    refused = await call(person, server, "wait", slow)
    assert refused.status_code == 409
    assert "unknown whether it took effect" in message(refused)
    assert refused.json()["error"]["details"] == {"reason": "outcome_unknown"}
    assert peer.calls == [("wait", slow)]
    assert (await call(person, server, "wait", slow, key="new")).status_code == 200
