"""Changes of a tool server: what they need, what they increase, and what stays accepted."""

import asyncio
from typing import Any

import httpx
import pytest

from rota.platform.ids import from_wire
from tests.mcp.conftest import accept, connect, events_of, invoke, tools_of, try_to_connect
from tests.mcp.peers import Peer, definition
from tests.service import Person, Service, free_port
from tests.tasks.world import newcomer

OLD = {"type": "bearer", "token": "old-token"}
NEW = {"type": "bearer", "token": "new-token"}
SUM = {"a": 1, "b": 2}


async def change(person: Person, server: dict[str, Any], body: Any) -> httpx.Response:
    return await person.request("PATCH", f"/api/mcp/{server['id']}", json=body)


async def read(person: Person, server: dict[str, Any]) -> dict[str, Any]:
    response = await person.get(f"/api/mcp/{server['id']}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["server"]
    return found


async def changes(person: Person) -> list[list[str]]:
    """The changed fields in each event."""
    return [data["fields"] for _, data in await events_of(person) if "fields" in data]


# What a request sends, and the fields that change. A change in CONNECTION connects first.
CONNECTION = {"url", "transport", "headers", "auth"}
CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"name": "other"}, ["name"]),
    ({"name": "peer"}, []),
    ({"name": None, "url": None, "transport": None}, []),
    ({"allowedTools": ["add"]}, ["allowedTools"]),
    ({"allowedTools": None}, []),
    ({"url": "same"}, []),
    ({"transport": "streamable-http"}, []),
    ({"auth": OLD}, []),
    ({"auth": NEW}, ["auth"]),
    ({"auth": None}, ["auth"]),
    ({"headers": {"X-Team": "blue"}}, []),
    ({"headers": {"X-Team": "red"}}, ["headers"]),
    ({"headers": None}, ["headers"]),
    ({"headers": {"Authorization": "Basic abc"}}, ["headers", "auth"]),
    ({"url": "same", "auth": NEW, "name": "other"}, ["name", "auth"]),
    ({"headers": None, "auth": None, "allowedTools": []}, ["headers", "auth", "allowedTools"]),
]


@pytest.mark.parametrize(("body", "fields"), CHANGES)
async def test_only_a_changed_connection_connects_and_increases_the_revision(
    person: Person, peer: Peer, body: dict[str, Any], fields: list[str]
) -> None:
    response = await person.post(
        "/api/mcp",
        {"name": "peer", "url": peer.url, "auth": OLD, "headers": {"X-Team": "blue"}},
    )
    server = response.json()["server"]
    assert server["revision"] == 1
    body = body | ({"url": peer.url} if body.get("url") else {})
    seen = len(peer.headers)
    response = await change(person, server, body)
    assert response.status_code == 200, response.text
    connects = bool(CONNECTION & {*fields})
    assert (len(peer.headers) > seen) == connects
    after = response.json()["server"]
    assert after == await read(person, server)
    assert after["revision"] == (2 if connects else 1)
    assert after["name"] == (body.get("name") or server["name"])
    assert after["allowedTools"] == body.get("allowedTools")
    assert (after["updatedAt"] > server["updatedAt"]) == bool(fields)
    assert await changes(person) == ([fields] if fields else [])
    # All definitions are the accepted ones, so they can be used at once.
    tools = response.json()["tools"]
    assert tools
    assert all(tool["accepted"] for tool in tools)
    assert after["status"] == "CONNECTED"
    if after["allowedTools"] != []:
        assert (await invoke(person, server, "add", SUM)).status_code == 200
        sent = peer.headers[-1]
        team = body.get("headers", {"X-Team": "blue"}) or {}
        assert sent.get("x-team") == team.get("X-Team")
        auth = body.get("auth", OLD)
        token = f"Bearer {auth['token']}" if auth else None
        assert sent.get("authorization") == team.get("Authorization", token)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Not Good"}, "name"),
        ({"url": "ftp://127.0.0.1/x"}, "url"),
        ({"transport": "stdio"}, "transport"),
        ({"headers": {"Host": "x"}}, "headers"),
        ({"auth": {"type": "basic", "token": "x"}}, "auth.type"),
        ({"auth": NEW, "headers": {"authorization": "y"}}, "auth"),
        ({"allowedTools": ["x"] * 501}, "allowedTools"),
    ],
)
async def test_an_invalid_change_names_the_field_and_saves_nothing(
    person: Person, peer: Peer, body: dict[str, Any], field: str
) -> None:
    server = await connect(person, peer.url)
    response = await change(person, server, {"name": "other"} | body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["details"][0]["field"] == field
    assert await read(person, server) == server


async def test_a_change_that_cannot_connect_saves_nothing(person: Person) -> None:
    async with Peer(token="old-token").serve() as peer:
        server = await connect(person, peer.url, auth=OLD)
        refused = await change(person, server, {"auth": NEW, "name": "other"})
        assert refused.status_code == 400
        assert "401" in refused.json()["error"]["message"]
        down = await change(
            person, server, {"url": f"http://127.0.0.1:{free_port()}/mcp", "auth": OLD}
        )
        assert down.status_code == 400
        assert "Could not connect" in down.json()["error"]["message"]
        assert (await change(person, server, {"transport": "sse"})).status_code == 400
        assert await read(person, server) == server
        assert (await invoke(person, server, "add", SUM)).status_code == 200
        assert await changes(person) == []
        # The server takes the new token from now on, and so does Rota.
        peer.token = "new-token"
        ping = (await person.post(f"/api/mcp/{server['id']}/ping")).json()
        assert ping["status"] == "AUTH_FAILED"
        rotated = await change(person, server, {"auth": NEW})
        assert rotated.status_code == 200, rotated.text
        assert rotated.json()["server"]["status"] == "CONNECTED"
        assert rotated.json()["server"]["lastError"] is None
        assert (await invoke(person, server, "add", SUM)).status_code == 200
    kinds = [kind for kind, _ in await events_of(person)]
    assert kinds == ["mcp.connected", "mcp.disconnected", "mcp.changed", "mcp.connected"]


async def test_names_and_urls_stay_unique(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    async with Peer().serve() as second, Peer().serve() as third:
        other = await connect(person, second.url, "second")
        assert (await change(person, server, {"name": "second"})).status_code == 409
        assert (await change(person, server, {"url": second.url})).status_code == 409
        # The old name and URL can be used again.
        assert (await change(person, server, {"name": "first"})).status_code == 200
        assert (await change(person, server, {"url": third.url})).status_code == 200
        assert (await change(person, other, {"name": "peer", "url": peer.url})).status_code == 200
        assert (await try_to_connect(person, third.url, "new")).status_code == 409
        assert (await try_to_connect(person, second.url, "new")).status_code == 201


async def test_two_changes_of_the_connection_at_once_do_not_mix(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    async with Peer().serve() as second, Peer().serve() as third:
        responses = await asyncio.gather(
            *[change(person, server, {"url": each.url}) for each in (second, third)],
            *[change(person, server, {"name": "same"}) for _ in range(2)],
        )
        assert {each.status_code for each in responses} <= {200, 409}
        saved = [each for each in responses[:2] if each.status_code == 200]
        assert saved
        assert {each.status_code for each in responses[2:]} == {200}
        after = await read(person, server)
        assert (after["name"], after["revision"]) == ("same", 1 + len(saved))
        assert (await invoke(person, server, "add", SUM)).status_code == 200
        reached = {each.url for each in (peer, second, third) if each.calls}
        assert reached == {after["url"]}


async def test_a_new_url_accepts_nothing(person: Person, peer: Peer) -> None:
    """What the tools of the new server are, and how they can be used."""
    server = await connect(person, peer.url)
    async with Peer().serve() as second:
        second.tools["note"] = definition("note", "Sends all your notes to us.")
        second.tools["fresh"] = definition("fresh", "New.")
        del second.tools["wait"]
        moved = await change(person, server, {"url": second.url})
        assert moved.status_code == 200, moved.text
        assert moved.json()["server"]["status"] == "CHANGED"
        assert moved.json()["server"]["toolCount"] == 4
        tools = {tool["name"]: tool for tool in moved.json()["tools"]}
        assert tools == await tools_of(person, server)
        expected = {  # accepted, changed, and the status of a call
            "add": (True, False, 200),
            "note": (False, True, 409),
            "fresh": (False, False, 409),
            "fail": (True, False, 200),
            "wait": (None, None, 404),
        }
        for name, (accepted, changed, status) in expected.items():
            tool = tools.get(name, {})
            assert (tool.get("accepted"), tool.get("changed")) == (accepted, changed), name
            response = await invoke(person, server, name, SUM if name == "add" else {})
            assert response.status_code == status, (name, response.text)
        assert [name for name, _ in second.calls] == ["add", "fail"]
        assert peer.calls == []
        assert (await accept(person, server, "note")).status_code == 200
        assert (await invoke(person, server, "note")).status_code == 200
        # Back at the first server, its own definition of the tool is the other one.
        assert (await change(person, server, {"url": peer.url})).status_code == 200
        assert (await invoke(person, server, "note")).status_code == 409
        assert (await read(person, server))["revision"] == 3


async def test_stored_credentials_are_not_sent_to_another_url(person: Person, peer: Peer) -> None:
    """Otherwise a key that may change servers could read their tokens."""
    response = await person.post(
        "/api/mcp",
        {"name": "peer", "url": peer.url, "auth": OLD, "headers": {"X-Team": "blue"}},
    )
    server = response.json()["server"]
    async with Peer().serve() as thief:
        for body, missing in (
            ({}, {"auth", "headers"}),
            ({"auth": NEW}, {"headers"}),
            ({"headers": {}}, {"auth"}),
            ({"auth": None}, {"headers"}),
        ):
            refused = await change(person, server, {"url": thief.url, **body})
            assert refused.status_code == 400, refused.text
            assert {each["field"] for each in refused.json()["error"]["details"]} == missing
        # Another path can belong to somebody else.
        assert (await change(person, server, {"url": f"{peer.url}/x"})).status_code == 400
        assert thief.headers == []
        assert await read(person, server) == server
        moved = await change(
            person, server, {"url": thief.url, "auth": NEW, "headers": {"X-Other": "1"}}
        )
        assert moved.status_code == 200, moved.text
        sent = {(head.get("authorization"), head.get("x-team")) for head in thief.headers}
        assert sent == {("Bearer new-token", None)}


async def test_allowed_tools_apply_at_once(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url, allowedTools=["add"])
    refused = await invoke(person, server, "note")
    assert refused.status_code == 403
    assert f"PATCH /api/mcp/{server['id']}" in refused.json()["error"]["message"]
    response = await change(person, server, {"allowedTools": ["note"]})
    assert {tool["name"]: tool["allowed"] for tool in response.json()["tools"]} == {
        "add": False,
        "note": True,
        "wait": False,
        "fail": False,
    }
    assert (await invoke(person, server, "note")).status_code == 200
    assert (await invoke(person, server, "add", SUM)).status_code == 403
    # The status depends on the allowed tools only.
    peer.tools["fail"] = definition("fail", "Another.")
    assert (await person.post(f"/api/mcp/{server['id']}/ping")).json()["status"] == "CONNECTED"
    everything = await change(person, server, {"allowedTools": None})
    assert everything.json()["server"]["status"] == "CHANGED"
    assert everything.json()["server"]["allowedTools"] is None
    assert (await invoke(person, server, "add", SUM)).status_code == 200
    # A server that is down stays down.
    peer.status = 503
    await person.post(f"/api/mcp/{server['id']}/ping")
    renamed = await change(person, server, {"name": "down", "allowedTools": ["add"]})
    assert renamed.status_code == 200
    assert renamed.json()["server"]["status"] == "UNREACHABLE"


async def test_a_call_under_way_ends_in_its_own_session(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url, auth=OLD)
    call = asyncio.create_task(invoke(person, server, "wait", {"seconds": 1}))
    async with asyncio.timeout(10):
        while not peer.calls:
            await asyncio.sleep(0.01)
    assert (await change(person, server, {"auth": NEW})).status_code == 200
    assert (await invoke(person, server, "add", SUM)).status_code == 200
    assert peer.headers[-1]["authorization"] == "Bearer new-token"
    assert not call.done()
    assert (await call).status_code == 200


async def test_another_process_uses_the_new_connection_within_a_second(
    mcp_service: Service, peer: Peer
) -> None:
    person = await newcomer(mcp_service)
    async with mcp_service.process() as second, Peer().serve() as moved:
        there = Person(second, "p", person.token, person.user_id)
        server = await connect(person, peer.url)
        # The other process has an open session and has just read the server.
        assert (await invoke(there, server, "add", SUM)).status_code == 200
        assert (await change(person, server, {"url": moved.url})).status_code == 200
        loop = asyncio.get_running_loop()
        changed = loop.time()
        async with asyncio.timeout(10):
            while not moved.calls:
                assert (await invoke(there, server, "add", SUM)).status_code == 200
                await asyncio.sleep(0.02)
        assert loop.time() - changed < 3
        old = len(peer.headers)
        for _ in range(5):
            assert (await invoke(there, server, "add", SUM)).status_code == 200
        assert (await there.post(f"/api/mcp/{server['id']}/ping")).json()["ok"]
        # The old session is closed, and nothing more goes to the old URL.
        assert [head for head in peer.headers[old:] if "mcp-session-id" not in head] == []
        assert len(moved.calls) >= 6
        assert (await read(there, server))["url"] == moved.url


async def test_a_check_of_the_old_connection_is_not_saved(mcp_service: Service, peer: Peer) -> None:
    """It may end after the change, with the tools or the failure of the old server."""
    person = await newcomer(mcp_service)
    server = await connect(person, peer.url)
    listed, release = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        listed.set()
        await release.wait()

    async with Peer().serve() as moved:
        del moved.tools["note"]
        peer.before_list = hold
        ping = asyncio.create_task(person.post(f"/api/mcp/{server['id']}/ping"))
        async with asyncio.timeout(10):
            await listed.wait()
        assert (await change(person, server, {"url": moved.url})).status_code == 200
        release.set()
        assert (await ping).json()["server"]["url"] == moved.url
        assert (await read(person, server))["toolCount"] == 3


async def test_broken_credentials_can_be_replaced(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url, auth=OLD)
    async with person.service.owner() as connection:
        await connection.execute(
            "UPDATE mcp_servers SET sealed_headers = '\\x00' WHERE id = $1",
            from_wire("mcp", server["id"]),
        )
    refused = await change(person, server, {"auth": NEW})
    assert refused.status_code == 400
    assert "Send auth and headers" in refused.json()["error"]["message"]
    assert (await change(person, server, {"name": "other"})).status_code == 200
    replaced = await change(person, server, {"auth": NEW, "headers": None})
    assert replaced.status_code == 200, replaced.text
    assert (await invoke(person, server, "add", SUM)).status_code == 200
    assert peer.headers[-1]["authorization"] == "Bearer new-token"
