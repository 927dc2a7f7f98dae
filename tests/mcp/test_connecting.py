"""Connecting a tool server: what is checked, what an error says, and what is unique."""

import asyncio
from typing import Any

import pytest

from rota.dev.stack import Stack
from tests.mcp import hostile
from tests.mcp.conftest import LOCAL, connect, events_of, try_to_connect
from tests.mcp.peers import Peer
from tests.service import Person, Service, free_port
from tests.tasks.world import newcomer

SERVER_FIELDS = {
    *("id", "name", "url", "transport", "status", "toolCount", "lastCheckedAt", "lastError"),
    *("createdAt", "updatedAt", "allowedTools", "missingTools", "revision"),
}


async def test_connecting_returns_the_server_and_its_tools(person: Person, peer: Peer) -> None:
    response = await try_to_connect(person, peer.url)
    assert response.status_code == 201
    server = response.json()["server"]
    assert server.keys() == SERVER_FIELDS
    assert server["id"].startswith("mcp_")
    assert (server["transport"], server["status"]) == ("streamable-http", "CONNECTED")
    assert (server["toolCount"], server["lastError"], server["allowedTools"]) == (4, None, None)
    [add, *_] = response.json()["tools"]
    assert add["name"] == "add"
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert add["annotations"] == {"readOnlyHint": True}
    assert (add["allowed"], add["accepted"], add["changed"]) == (True, True, False)
    assert add["difference"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Not Good"}, "name"),
        ({"name": "a" * 33}, "name"),
        ({"name": "-a"}, "name"),
        ({"name": 5}, "name"),
        ({"url": "ftp://127.0.0.1/x"}, "url"),
        ({"url": "http://user:pass@127.0.0.1/x"}, "url"),
        ({"url": "nonsense"}, "url"),
        ({"url": "http://127.0.0.1/a b"}, "url"),
        ({"transport": "stdio"}, "transport"),
        ({"headers": {"Host": "x"}}, "headers"),
        ({"headers": {"X-A": "a\r\nb: c"}}, "headers"),
        ({"headers": {"X A": "a"}}, "headers"),
        ({"headers": {"X-A": "a", "x-a": "b"}}, "headers"),
        ({"headers": {"Mcp-Session-Id": "a"}}, "headers"),
        ({"auth": {"type": "basic", "token": "x"}}, "auth.type"),
        ({"auth": {"type": "bearer", "token": "a\nb"}}, "auth.token"),
        ({"auth": {"type": "bearer"}}, "auth.token"),
        (
            {"auth": {"type": "bearer", "token": "x"}, "headers": {"authorization": "y"}},
            "auth",
        ),
        ({"allowedTools": ["x"] * 501}, "allowedTools"),
        ({"allowedTools": "add"}, "allowedTools"),
    ],
)
async def test_an_error_names_the_invalid_field(
    person: Person, peer: Peer, change: dict[str, Any], field: str
) -> None:
    body = {"name": "peer", "url": peer.url} | change
    response = await person.post("/api/mcp", body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["details"][0]["field"] == field
    assert (await person.get("/api/mcp")).json() == {"servers": [], "total": 0}


async def test_a_server_that_cannot_be_connected_is_not_saved(person: Person, peer: Peer) -> None:
    response = await try_to_connect(person, f"http://127.0.0.1:{free_port()}/mcp")
    assert response.status_code == 400
    assert "Could not connect" in response.json()["error"]["message"]
    peer.status = 401
    response = await try_to_connect(person, peer.url)
    assert response.status_code == 400
    assert "401" in response.json()["error"]["message"]
    peer.status = 500
    assert (await try_to_connect(person, peer.url)).status_code == 400
    assert (await person.get("/api/mcp")).json()["total"] == 0
    assert await events_of(person) == []


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.parametrize(
    ("status", "kind", "body", "shown"),
    [
        ("404 Not Found", "text/html; charset=utf-8", b"<h1>No</h1>", "HTTP 404, text/html"),
        ("404 Not Found", "application/json", b'{"no": 1}', "HTTP 404, application/json"),
        ("405 No", "text/plain", b"no", "HTTP 405, text/plain"),
        ("200 OK", "text/html", b"<h1>Hello</h1>", "HTTP 200, text/html"),
        ("200 OK", "application/json", b'{"hello": 1}', "HTTP 200, application/json"),
        ("302 Found", "text/html", b"", "HTTP 302, text/html"),
        ("200 OK", "{secret}", b"", "HTTP 200, no valid content type"),
    ],
)
async def test_the_error_for_a_wrong_path_says_what_was_reached(
    person: Person, transport: str, status: str, kind: str, body: bytes, shown: str
) -> None:
    async with hostile.served(hostile.fixed(status, kind, body)) as url:
        response = await try_to_connect(person, url, transport=transport)
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert f"({shown}) is not valid MCP. Check that the URL" in message, message
    assert "MCPError" not in message


async def test_the_error_for_a_bad_name_states_the_rule(person: Person, peer: Peer) -> None:
    for name in ("Not Good", "-a", "a-", "ä", "", "a\n"):
        response = await try_to_connect(person, peer.url, name)
        assert response.status_code == 400
        [detail] = response.json()["error"]["details"]
        assert "lowercase letters, digits and hyphens" in detail["message"], name
        assert "^" not in response.json()["error"]["message"]


async def test_a_name_and_a_url_are_unique_in_an_account(person: Person, peer: Peer) -> None:
    await connect(person, peer.url)
    assert (await try_to_connect(person, peer.url, "other")).status_code == 409
    async with Peer().serve() as second:
        assert (await try_to_connect(person, second.url, "peer")).status_code == 409
        await connect(person, second.url, "second")
    # Another account can use the same name and URL.
    await connect(await newcomer(person.service), peer.url)


async def test_only_one_of_two_concurrent_requests_gets_a_name(person: Person, peer: Peer) -> None:
    async with Peer().serve() as second:
        responses = await asyncio.gather(
            try_to_connect(person, peer.url), try_to_connect(person, second.url)
        )
    assert sorted(response.status_code for response in responses) == [201, 409]


async def test_a_repeated_request_returns_the_stored_response(person: Person, peer: Peer) -> None:
    key = {"Idempotency-Key": "k1"}
    first = await try_to_connect(person, peer.url, headers=key)
    peer.status = 500  # The server is not contacted again.
    second = await try_to_connect(person, peer.url, headers=key)
    assert second.status_code == 201
    assert second.json() == first.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    other = await try_to_connect(person, peer.url, "other", headers=key)
    assert other.status_code == 409
    assert (await person.get("/api/mcp")).json()["total"] == 1


async def test_without_the_connect_pass_an_account_can_connect_one_server(
    stack: Stack, peer: Peer
) -> None:
    async with (
        Service.start(stack, variant="b", name="mcp_b", egress_allow=LOCAL) as service,
        Peer().serve() as second,
        Peer().serve() as third,
    ):
        basic = await newcomer(service, tier="basic")
        await connect(basic, peer.url, "one")
        refused = await try_to_connect(basic, second.url, "two")
        assert refused.status_code == 403
        assert "connect pass" in refused.json()["error"]["message"]
        async with service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET trial_ends_at = now() + interval '1 day' WHERE id = $1",
                basic.user_id,
            )
        await connect(basic, second.url, "two")
        async with service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET trial_ends_at = now() - interval '1 s' WHERE id = $1",
                basic.user_id,
            )
        # Connected servers stay, but no more can be added.
        assert (await try_to_connect(basic, third.url, "three")).status_code == 403
        assert (await basic.get("/api/mcp")).json()["total"] == 2
        paying = await newcomer(service, tier="business")
        await connect(paying, peer.url, "one")
        await connect(paying, second.url, "two")
