"""A service that can connect to tool servers on this machine, and people who use it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from rota.dev.stack import Stack
from tests.mcp.peers import Peer
from tests.service import Person, Service
from tests.tasks.world import newcomer

LOCAL = ("127.0.0.0/8",)


@pytest.fixture(scope="session")
async def mcp_service(stack: Stack) -> AsyncIterator[Service]:
    """A service that can connect to this machine."""
    async with Service.start(
        stack, variant="a", name="mcp", egress_allow=LOCAL, mcp_connect_s=5.0, mcp_call_s=3.0
    ) as started:
        yield started


@pytest.fixture
async def person(mcp_service: Service) -> Person:
    return await newcomer(mcp_service)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer().serve() as served:
        yield served


async def connect(person: Person, url: str, name: str = "peer", **body: Any) -> dict[str, Any]:
    response = await try_to_connect(person, url, name, **body)
    assert response.status_code == 201, response.text
    server: dict[str, Any] = response.json()["server"]
    return server


async def try_to_connect(
    person: Person, url: str, name: str = "peer", headers: Any = None, **body: Any
) -> httpx.Response:
    return await person.post("/api/mcp", {"name": name, "url": url, **body}, headers=headers or {})


async def invoke(
    person: Person, server: dict[str, Any], tool: str, arguments: Any = None
) -> httpx.Response:
    return await person.post(
        f"/api/mcp/{server['id']}/invoke", {"tool": tool, "arguments": arguments or {}}
    )


async def tools_of(person: Person, server: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tools by name."""
    response = await person.get(f"/api/mcp/{server['id']}/tools")
    return {tool["name"]: tool for tool in response.json()["tools"]}


async def accept(person: Person, server: dict[str, Any], *names: str) -> httpx.Response:
    """Accepts the tools as they are now: those with these names, or all of them."""
    shown = await tools_of(person, server)
    pairs = [{"name": name, "hash": shown[name]["hash"]} for name in names or shown]
    return await person.post(f"/api/mcp/{server['id']}/accept", {"tools": pairs})


async def events_of(person: Person) -> list[tuple[str, dict[str, Any]]]:
    async with person.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT type, data FROM events WHERE account_id = $1 ORDER BY sequence",
            person.user_id,
        )
    return [(row["type"], orjson.loads(row["data"])) for row in rows]
