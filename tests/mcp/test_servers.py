"""Real tool servers can be connected, listed, called, checked and disconnected."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.mcp.conftest import connect, events_of, invoke
from tests.mcp.peers import Peer, everything_server, time_server
from tests.service import Person

Opened = Callable[[], AbstractAsyncContextManager[str]]

CASES: dict[str, tuple[Opened, str, str, dict[str, Any], str]] = {
    "everything": (
        everything_server,
        "streamable-http",
        "get-sum",
        {"a": 2, "b": 3},
        "5",
    ),
    "everything over an event stream": (
        lambda: everything_server("sse"),
        "sse",
        "echo",
        {"message": "hello"},
        "hello",
    ),
    "time": (
        time_server,
        "streamable-http",
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "21:00",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_real_server_can_be_used_from_connect_to_disconnect(
    person: Person, case: str
) -> None:
    opened, transport, tool, arguments, expected = CASES[case]
    async with opened() as url:
        server = await connect(person, url, "real", transport=transport)
        assert server["status"] == "CONNECTED"
        listed = (await person.get("/api/mcp")).json()
        assert listed == {"servers": [server], "total": 1}
        tools = (await person.get(f"/api/mcp/{server['id']}/tools")).json()
        assert tools["total"] == server["toolCount"] > 0
        assert all(each["allowed"] and each["accepted"] for each in tools["tools"])
        response = await invoke(person, server, tool, arguments)
        assert response.status_code == 200, response.text
        result = response.json()["result"]
        assert not result["isError"]
        assert expected in result["content"][0]["text"]
        ping = (await person.post(f"/api/mcp/{server['id']}/ping")).json()
        assert ping["ok"]
        assert ping["status"] == "CONNECTED"
        assert ping["latencyMs"] > 0
    down = (await person.post(f"/api/mcp/{server['id']}/ping")).json()
    assert (down["ok"], down["status"]) == (False, "UNREACHABLE")
    gone = await person.delete(f"/api/mcp/{server['id']}")
    assert gone.json() == {"deleted": True, "id": server["id"]}
    assert (await person.get("/api/mcp")).json()["total"] == 0
    kinds = [kind for kind, _ in await events_of(person)]
    assert kinds == ["mcp.connected", "mcp.disconnected", "mcp.disconnected"]


async def test_a_server_with_an_event_stream_can_be_called(person: Person) -> None:
    async with Peer().serve("sse") as peer:
        server = await connect(person, peer.url, transport="sse")
        response = await invoke(person, server, "add", {"a": 20, "b": 22})
        assert response.json()["result"]["structuredContent"] == {"sum": 42}


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_a_restarted_server_gets_a_new_session(person: Person, transport: str) -> None:
    async with everything_server(transport) as url:
        server = await connect(person, url, "real", transport=transport)
    port = int(url.split(":")[2].split("/")[0])
    async with everything_server(transport, port):
        response = await invoke(person, server, "get-sum", {"a": 2, "b": 3})
        assert response.status_code == 200, response.text
    async with everything_server(transport, port):
        ping = (await person.post(f"/api/mcp/{server['id']}/ping")).json()
        assert ping["ok"], ping
