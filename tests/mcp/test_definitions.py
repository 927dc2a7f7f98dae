"""Definitions of tools: what an account can store, and what a worker reads of them."""

import asyncio
from collections.abc import AsyncIterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.mcp import definitions, offers, queries, session
from rota.mcp.usable_tools import UsableTools
from rota.platform.ids import from_wire
from tests.mcp.conftest import LOCAL, accept, connect, try_to_connect
from tests.mcp.peers import Peer, definition
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, says
from tests.service import Person, Service
from tests.tasks.world import newcomer

CATALOG = Path(__file__).parent / "catalog"
MAX_GROWTH = 200 * 1024 * 1024


def big_tools(count: int = 30) -> dict[str, Any]:
    """About 60 KiB of small values for each tool."""
    values = [f"value-{n:034}" for n in range(1_400)]
    tools = [definition(f"big_{n}", properties={"choice": {"enum": values}}) for n in range(count)]
    return {tool.name: tool for tool in tools}


@pytest.fixture(scope="module")
async def big() -> AsyncIterator[Peer]:
    """A server with nearly 2 MiB of definitions."""
    peer = Peer()
    peer.tools = big_tools()
    async with peer.serve() as served:
        yield served


@pytest.fixture(scope="module", params=["a", "b"])
async def service(stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    name = f"mcp_definitions_{request.param}"
    async with Service.start(stack, variant=request.param, name=name, egress_allow=LOCAL) as it:
        yield it


async def connect_until_full(person: Person, big: Peer) -> list[dict[str, Any]]:
    """Connects servers until the next one of the same size has no room."""
    return [await connect(person, f"{big.url}?{n}", f"big-{n}") for n in range(4)]


async def stored_bytes(service: Service, person: Person) -> int:
    async with (
        Composition(service.settings, pool_size=1) as parts,
        parts.db.read(person.user_id) as tx,
    ):
        return await queries.definition_bytes(tx)


async def test_tools_are_shown_in_the_order_in_which_the_server_lists_them_now(
    service: Service, peer: Peer
) -> None:
    person = await newcomer(service)
    server = await connect(person, peer.url)

    async def shown() -> list[dict[str, Any]]:
        found = await person.get(f"/api/mcp/{server['id']}/tools")
        tools: list[dict[str, Any]] = found.json()["tools"]
        return tools

    before = await shown()
    assert len(before) > 1
    peer.tools = dict(reversed(list(peer.tools.items())))
    assert await shown() == before[::-1]


async def test_an_account_can_store_a_limited_size_of_definitions(
    service: Service, big: Peer
) -> None:
    person = await newcomer(service)
    servers = await connect_until_full(person, big)
    before = await stored_bytes(service, person)
    assert definitions.MAX_BYTES * 0.75 < before <= definitions.MAX_BYTES
    refused = await try_to_connect(person, f"{big.url}?more", "more")
    assert refused.status_code == 409, refused.text
    error = refused.json()["error"]
    assert error["code"] == "TOOLS_TOO_LARGE"
    assert "8 MiB" in error["message"]
    assert "Disconnect" in error["message"]
    assert await stored_bytes(service, person) == before
    assert (await person.get("/api/mcp")).json()["total"] == 4
    # A small one has room, and a big one has after another was disconnected.
    async with Peer().serve() as small:
        await connect(person, small.url, "small")
    assert (await person.delete(f"/api/mcp/{servers[0]['id']}")).status_code == 200
    await connect(person, f"{big.url}?more", "more")


async def test_a_server_that_grows_too_large_is_refused(service: Service, big: Peer) -> None:
    person = await newcomer(service)
    await connect_until_full(person, big)
    async with Peer().serve() as growing:
        server = await connect(person, growing.url, "growing")
        path = f"/api/mcp/{server['id']}"
        before = await stored_bytes(service, person)
        small = growing.tools
        growing.tools = small | big_tools()
        for answer in (
            await person.post(f"{path}/ping"),
            await person.get(f"{path}/tools"),
            await person.post(f"{path}/invoke", {"tool": "big_1", "arguments": {}}),
        ):
            assert answer.status_code == 409, answer.text
            assert answer.json()["error"]["code"] == "TOOLS_TOO_LARGE"
        assert await stored_bytes(service, person) == before
        found = (await person.get(path)).json()["server"]
        assert found["status"] == "UNREACHABLE"
        assert "8 MiB" in found["lastError"]
        # A changed connection is refused, too, and the server stays as it was.
        moved = await person.request("PATCH", path, json={"url": f"{growing.url}?moved"})
        assert moved.status_code == 409
        assert moved.json()["error"]["code"] == "TOOLS_TOO_LARGE"
        assert (await person.get(path)).json()["server"]["url"] == growing.url
        growing.tools = small
        assert (await person.post(f"{path}/ping")).json()["status"] == "CONNECTED"


async def test_an_account_over_the_limit_can_store_less(
    service: Service, big: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that connected its servers before there was a limit."""
    person = await newcomer(service)
    async with Peer().serve() as peer:
        peer.tools = big_tools(3)
        server = await connect(person, peer.url)
        monkeypatch.setattr(definitions, "MAX_BYTES", 1_000)
        assert (await person.post(f"/api/mcp/{server['id']}/ping")).json()["ok"] is True
        peer.tools = big_tools(2)
        assert (await person.post(f"/api/mcp/{server['id']}/ping")).json()["ok"] is True
        peer.tools = big_tools(4)
        assert (await person.post(f"/api/mcp/{server['id']}/ping")).status_code == 409


NAMES = ("peer/add", "peer/a_b", "peer/axb", "peer/100%", "pe_er/x", "peer/a/b", "PEER/add", "p/\\")
PATTERNS = ("peer/*", "peer/a_b", "*/*", "*/a*", "pe*/x", "pe_er/*", "peer/a/*", "*/add", "peer/*b")


async def test_patterns_mean_the_same_in_the_database(service: Service) -> None:
    async with service.owner() as connection:
        for name in NAMES:
            for pattern in PATTERNS:
                like = offers.like(pattern)
                found = await connection.fetchval("SELECT $1::text LIKE $2", name, like)
                assert found == fnmatchcase(name, pattern), (name, pattern)


async def test_only_the_tools_that_the_patterns_name_are_read(service: Service, big: Peer) -> None:
    person = await newcomer(service)
    await connect(person, big.url, "big")
    async with Peer().serve() as peer, Composition(service.settings, pool_size=1) as parts:
        await connect(person, peer.url, "peer", allowedTools=["add", "note"])

        async def read(
            *patterns: str, max_bytes: int = 10**6, usable: UsableTools | None = None
        ) -> dict[str, bool]:
            """The names of the tools, and whether their definitions were read."""
            async with parts.db.read(person.user_id) as tx:
                found = await (usable or UsableTools()).find(tx, patterns, max_bytes)
            return {
                f"{server.name}/{tool.name}": tool.accepted is not None for server, tool in found
            }

        assert await read("peer/*") == {"peer/add": True, "peer/note": True}
        assert await read("peer/a*", "*/big_1") == {"peer/add": True, "big/big_1": True}
        assert await read("peer/wait", "other/*") == {}
        # The definitions that exceed the limit are not read.
        sizes = await read("big/*", max_bytes=200_000)
        assert len(sizes) == 30
        assert 2 <= sum(sizes.values()) <= 4
        # The latest definitions are kept, and count toward the limit like others.
        usable = UsableTools()
        assert await read("big/big_1", usable=usable) == {"big/big_1": True}
        assert sum((await read("big/*", max_bytes=200_000, usable=usable)).values()) == 3
        assert sum((await read("big/*", max_bytes=60_000, usable=usable)).values()) <= 1
        assert sum((await read("big/*", max_bytes=10**7, usable=usable)).values()) == 30


async def test_a_kept_definition_is_that_of_the_server_now(service: Service) -> None:
    person, other, usable = await newcomer(service), await newcomer(service), UsableTools()
    async with Peer().serve() as peer, Composition(service.settings, pool_size=1) as parts:

        async def found(who: Person) -> dict[str, Any]:
            async with parts.db.read(who.user_id) as tx:
                tools = await usable.find(tx, ["peer/add"], 10**6)
            [definition] = [tool.accepted for _, tool in tools]
            assert definition is not None
            return definition

        server = await connect(person, peer.url)
        await connect(other, peer.url)
        first = await found(person)
        assert await found(person) is first
        assert await found(other) == first
        assert await found(other) is not first
        peer.tools["add"] = definition("add", "Adds in another way.", read_only=True)
        await person.post(f"/api/mcp/{server['id']}/ping")
        async with parts.db.read(person.user_id) as tx:
            assert await usable.find(tx, ["peer/add"], 10**6) == []
        assert (await accept(person, server, "add")).status_code == 200
        assert (await found(person))["description"] == "Adds in another way."
        assert (await found(other))["description"] == "Adds."


async def test_calls_at_the_same_time_share_a_list_of_tools(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(service)
    lists = 0
    async with Peer().serve() as peer, Composition(service.settings, pool_size=2) as parts:

        async def listed() -> None:
            nonlocal lists
            lists += 1
            await asyncio.sleep(0.1)

        server_id = from_wire("mcp", (await connect(person, peer.url))["id"])
        assert server_id is not None
        async with parts.db.read(person.user_id) as tx:
            found = await queries.find_with_tool(tx, server_id, "add")
        assert found is not None
        server, tool = found
        assert tool is not None
        peer.before_list = listed

        async def call(number: int) -> Any:
            arguments = {"a": number, "b": 1}
            return await parts.tool_client.call(server, tool, arguments, max_list_age_s=0)

        # The first call opens the session, which lists the tools, too.
        await call(0)
        lists = 0
        await asyncio.gather(*[call(number) for number in range(6)])
        # The server itself reads its list for every call.
        assert lists == 1 + 6
        await call(7)
        assert lists == 1 + 6 + 2
        # One that began too long ago is not shared.
        monkeypatch.setattr(session, "SHARED_LIST_S", -1)
        await asyncio.gather(*[call(number) for number in range(6)])
        assert lists == 1 + 6 + 2 + 12
        assert len(peer.calls) == 14


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "mcp_big", log, egress_allow=LOCAL) as started:
        await sync(started.service.database_url, CATALOG)
        yield started
    print(log.read_text()[-4000:])


async def connect_before_there_was_a_limit(person: Person, big: Peer) -> None:
    """Gives the account 20 servers with nearly 2 MiB of definitions each."""
    server = await connect(person, big.url, "big")
    server_id = from_wire("mcp", server["id"])
    async with person.service.owner() as connection:
        await connection.execute(
            "INSERT INTO mcp_servers SELECT (jsonb_populate_record(s, jsonb_build_object("
            " 'id', gen_random_uuid(), 'name', 'big-' || n, 'url', s.url || '?' || n))).*"
            " FROM mcp_servers s, generate_series(2, 20) AS n WHERE s.id = $1",
            server_id,
        )
        await connection.execute(
            "INSERT INTO mcp_tools"
            " SELECT (jsonb_populate_record(t, jsonb_build_object('server_id', s.id))).*"
            " FROM mcp_tools t JOIN mcp_servers s USING (account_id)"
            " WHERE t.server_id = $1 AND s.name LIKE 'big-%'",
            server_id,
        )


async def run_all(
    runner: Runner, person: Person, agent: str, scripts: list[str]
) -> list[dict[str, Any]]:
    tasks = await asyncio.gather(*[runner.begin(person, agent, script) for script in scripts])
    return list(
        await asyncio.gather(*[runner.until(person, task, "COMPLETED", "FAILED") for task in tasks])
    )


@pytest.mark.long
async def test_a_worker_does_not_grow_with_definitions_that_its_runs_do_not_use(
    runner: Runner, scripted: Scripted, big: Peer
) -> None:
    person = await runner.newcomer()
    process = runner.worker._process
    assert process is not None
    worker = psutil.Process(process.pid)

    async with Peer().serve() as peer:
        await connect(person, peer.url)
        # Whatever a worker loads once.
        await run_all(runner, person, "operator", [await scripted.script(says("ok"))])
        await connect_before_there_was_a_limit(person, big)
        before = worker.memory_info().rss
        highest = before

        async def watch() -> None:
            nonlocal highest
            while True:
                highest = max(highest, worker.memory_info().rss)
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        scripts = [await scripted.script(says("ok")) for _ in range(10)]
        tasks = await run_all(runner, person, "operator", scripts)
        assert [task["status"] for task in tasks] == ["COMPLETED"] * 10
        # An agent that names all of them cannot run, because no model could read them.
        tasks = await run_all(runner, person, "collector", scripts)
        assert {task["status"] for task in tasks} == {"FAILED"}
        assert {task["error"]["code"] for task in tasks} == {"TOOLS_TOO_LARGE"}
        watching.cancel()
        assert highest - before < MAX_GROWTH, highest - before
