"""A hostile schema of a tool server slows down nothing but its own check."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import mcp_types as types
import psutil
import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.mcp.conftest import LOCAL, connect, invoke
from tests.mcp.peers import Peer
from tests.mcp.test_agents import CATALOG
from tests.platform.hostile_schemas import doubling
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, conversation, says
from tests.service import Person, Service
from tests.tasks.world import newcomer

MAX_GROWTH = 64 * 1024 * 1024


# Each with arguments, and with a part of the error.
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "doubling": (doubling(60), {}, "too much time or memory"),
    "unique": (
        {"properties": {"list": {"allOf": [{"uniqueItems": True}] * 2_500}}},
        {"list": [{"n": n % 999} for n in range(1_000)]},
        "too much time or memory",
    ),
    "memory": (
        {
            "properties": {
                "a": {"allOf": [{"pattern": f"(\\w{{200}}){{9}}{n}"} for n in range(1_500)]}
            }
        },
        {"a": "a"},
        "too much time or memory",
    ),
    "names": (
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"a" * 40 + "!": 1},
        "was unexpected",
    ),
    "repeat": (
        {"properties": {"a": {"pattern": "a{99999999999999999999}"}}},
        {"a": "a"},
        "cannot be used",
    ),
}


class HostilePeer(Peer):
    def __init__(self) -> None:
        super().__init__()
        for name, (schema, _, _) in HOSTILE.items():
            self.tools[name] = types.Tool(
                name=name,
                input_schema={"type": "object", **schema},
                annotations=types.ToolAnnotations(read_only_hint=True),
            )


@pytest.fixture(scope="module", params=["a", "b"])
async def runner(
    request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    name = f"hostile_schemas_{request.param}"
    async with (
        Scripted.start() as scripted,
        Runner.start(
            stack, scripted, name, log, variant=request.param, egress_allow=LOCAL
        ) as started,
    ):
        await sync(started.service.database_url, CATALOG)
        yield started
    print(log.read_text()[-4000:])


@pytest.fixture
async def peer() -> AsyncIterator[HostilePeer]:
    peer = HostilePeer()
    async with peer.serve():
        yield peer


@pytest.mark.timed
async def test_other_requests_are_answered_while_a_hostile_schema_is_checked(
    runner: Runner, peer: HostilePeer
) -> None:
    async with runner.service.process() as service:
        assert service.running is not None
        other = await newcomer(service)
        # After a slow check, an account has to wait.
        attackers = {tool: await newcomer(service) for tool in HOSTILE}
        servers = {tool: await connect(person, peer.url) for tool, person in attackers.items()}
        tool, person = next(iter(attackers.items()))
        assert (await invoke(person, servers[tool], "add", {"a": 1, "b": 2})).status_code == 200
        process = psutil.Process(service.running.pid)
        before = process.memory_info().rss
        attack = asyncio.create_task(_attack(attackers, servers))
        beside = await _answer_times(service, other, attack)
        await attack
        # Inside the process, each of these schemas takes many seconds.
        assert len(beside) > 20
        assert max(beside) < 2
        assert process.memory_info().rss - before < MAX_GROWTH
        assert peer.calls == [("add", {"a": 1, "b": 2})]


async def _attack(attackers: dict[str, Person], servers: dict[str, dict[str, Any]]) -> None:
    """Calls every hostile tool at the same time."""

    async def attempt(tool: str) -> httpx.Response:
        return await invoke(attackers[tool], servers[tool], tool, HOSTILE[tool][1])

    answers = await asyncio.gather(*[attempt(tool) for tool in HOSTILE])
    for answer, (_, _, why) in zip(answers, HOSTILE.values(), strict=True):
        assert answer.status_code == 400, answer.text
        assert why in answer.json()["error"]["message"]


async def _answer_times(service: Service, other: Person, until: asyncio.Task[None]) -> list[float]:
    """How long requests take until a task is done."""
    found: list[float] = []
    while not until.done():
        started = time.perf_counter()
        assert (await service.http.get("/health/live")).status_code == 200
        assert (await other.get("/api/me")).status_code == 200
        found.append(time.perf_counter() - started)
        # Below the account's limit of requests.
        await asyncio.sleep(0.005)
    return found


async def test_a_run_continues_after_a_call_with_a_hostile_schema_and_is_charged(
    runner: Runner, peer: HostilePeer
) -> None:
    person = await newcomer(runner.service)
    await connect(person, peer.url)
    # The second call of the same tool is not checked again.
    attempts = [(f"peer__{name}", given) for name, (_, given, _) in HOSTILE.items()]
    script = await runner.scripted.script(
        calls(*attempts, attempts[0], ("peer__add", {"a": 1, "b": 2})), says("I give up.")
    )
    task = await runner.finish(person, "operator", script)
    assert task["output"] == "I give up."
    assert peer.calls == [("add", {"a": 1, "b": 2})]
    # Each model call was made once, and charged.
    assert await runner.scripted.count(script) == {0: 1, 1: 1}
    assert task["usage"]["costUsd"] == "0.000040"
    told = conversation((await runner.scripted.asked(script))[1])
    for _, _, why in HOSTILE.values():
        assert why in told
    assert "Continue without this tool." in told
