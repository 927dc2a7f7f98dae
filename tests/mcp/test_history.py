"""The history of a tool server's status."""

from datetime import timedelta
from typing import Any

import pytest

from rota.mcp import history
from rota.platform import ids
from rota.platform.db import Database
from tests.mcp.conftest import accept, connect, events_of, invoke
from tests.mcp.peers import Peer, definition
from tests.service import Person, Service
from tests.tasks.world import newcomer, newcomers


async def checks_of(person: Person, server: dict[str, Any], query: str = "") -> Any:
    response = await person.get(f"/api/mcp/{server['id']}/checks{query}")
    assert response.status_code == 200, response.text
    return response.json()


async def statuses(person: Person, server: dict[str, Any]) -> list[str]:
    return [each["status"] for each in (await checks_of(person, server))["checks"]]


async def test_the_history_has_every_change_of_the_status(person: Person, peer: Peer) -> None:
    server = await connect(person, peer.url)
    peer.status = 503
    await person.post(f"/api/mcp/{server['id']}/ping")
    peer.status = None
    await person.post(f"/api/mcp/{server['id']}/ping")
    peer.tools["extra"] = definition("extra")
    await person.get(f"/api/mcp/{server['id']}/tools")
    await accept(person, server)
    found = await checks_of(person, server)
    assert found["total"] == 5
    accepted, changed, back, down, connected = found["checks"]
    assert [each["status"] for each in (connected, down, back, changed, accepted)] == [
        "CONNECTED",
        "UNREACHABLE",
        "CONNECTED",
        "CHANGED",
        "CONNECTED",
    ]
    assert "503" in down["error"]
    assert down["latencyMs"] is None
    assert back["error"] is None
    assert 0 < back["latencyMs"] < 5_000
    times = [each["checkedAt"] for each in found["checks"]]
    assert times == sorted(times, reverse=True)
    page = await checks_of(person, server, "?limit=2&offset=1")
    assert (page["checks"], page["total"]) == ([changed, back], 5)


async def test_nothing_is_added_within_a_minute_while_the_status_stays(
    person: Person, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await connect(person, peer.url)
    for _ in range(3):
        await person.post(f"/api/mcp/{server['id']}/ping")
    assert await statuses(person, server) == ["CONNECTED"]
    peer.status = 503
    await person.post(f"/api/mcp/{server['id']}/ping")
    for _ in range(2):
        await invoke(person, server, "add", {"a": 1, "b": 2})
    assert await statuses(person, server) == ["UNREACHABLE", "CONNECTED"]
    # The failed calls did not find it connected in between.
    kinds = [kind for kind, _ in await events_of(person)]
    assert kinds == ["mcp.connected", "mcp.disconnected"]
    monkeypatch.setattr(history, "INTERVAL", timedelta())
    await person.post(f"/api/mcp/{server['id']}/ping")
    assert await statuses(person, server) == ["UNREACHABLE", "UNREACHABLE", "CONNECTED"]


async def test_only_the_newest_500_checks_are_kept(
    mcp_service: Service, person: Person, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, other = await connect(person, peer.url), None
    async with Peer().serve() as second:
        other = await connect(person, second.url, "second")
    server_id = ids.from_wire("mcp", server["id"])
    assert server_id is not None
    monkeypatch.setattr(history, "INTERVAL", timedelta())
    db = Database(mcp_service.database_url, pool_size=1)
    await db.open()
    async with db.write(person.user_id) as tx:
        for number in range(history.MAX_CHECKS + 3):
            await history.add(tx, server_id, "CONNECTED", latency_ms=number)
    await db.close()
    newest = await checks_of(person, server, "?limit=1")
    assert (newest["checks"][0]["latencyMs"], newest["total"]) == (502, 500)
    oldest = await checks_of(person, server, "?limit=1&offset=499")
    assert oldest["checks"][0]["latencyMs"] == 3
    assert (await checks_of(person, other))["total"] == 1


async def test_the_history_is_deleted_with_its_server_and_belongs_to_one_account(
    mcp_service: Service, person: Person, peer: Peer
) -> None:
    server = await connect(person, peer.url)
    path = f"/api/mcp/{server['id']}/checks"
    stranger = await newcomer(mcp_service)
    assert (await stranger.get(path)).status_code == 404
    assert (await person.get("/api/mcp/mcp_unknown/checks")).status_code == 404
    (worker,) = await newcomers(mcp_service, scopes=("tasks:read",))
    assert (await worker.get(path)).status_code == 403
    assert (await person.delete(f"/api/mcp/{server['id']}")).status_code == 200
    assert (await person.get(path)).status_code == 404
    async with mcp_service.owner() as connection:
        left = await connection.fetchval(
            "SELECT count(*) FROM mcp_checks WHERE account_id = $1", person.user_id
        )
    assert left == 0
