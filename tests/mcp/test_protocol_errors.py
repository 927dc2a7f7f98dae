"""Errors of the protocol with which a server responds to a call of an agent."""

from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.mcp import hostile
from tests.mcp.conftest import LOCAL, connect
from tests.mcp.peers import Peer, definition
from tests.mcp.test_agents import CATALOG
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, last_message, says


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "mcp_errors", log, egress_allow=LOCAL) as started:
        await sync(started.service.database_url, CATALOG)
        yield started
    print(log.read_text()[-4000:])


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


REPORT = definition("report")
REPORT.output_schema = {"type": "object"}
ADD = ("add", {"a": 1, "b": 2})
NOTE: tuple[str, dict[str, Any]] = ("note", {})


@pytest.mark.parametrize(
    ("code", "call", "asks"),
    [
        (types.INTERNAL_ERROR, NOTE, True),
        (0, NOTE, True),
        (types.INTERNAL_ERROR, ADD, False),
        (types.METHOD_NOT_FOUND, NOTE, False),
        (types.INVALID_PARAMS, NOTE, False),
        # The arguments may be valid, and the result is not.
        (types.INVALID_PARAMS, ("report", {}), True),
        (types.MISSING_REQUIRED_CLIENT_CAPABILITY, NOTE, False),
    ],
)
async def test_a_person_decides_about_a_writing_call_that_may_have_run_before_its_error(
    runner: Runner, scripted: Scripted, code: int, call: tuple[str, dict[str, Any]], asks: bool
) -> None:
    name, arguments = call
    person = await runner.newcomer()
    peer = Peer()
    peer.tools["report"] = REPORT

    async def fail(_: Any) -> None:
        raise MCPError(code, "The disk is full")

    peer.answers[name] = fail
    async with peer.serve():
        await connect(person, peer.url)
        script = await scripted.script(calls((f"peer__{name}", arguments)), says("Done."))
        task = await runner.begin(person, "trusting", script)
        if asks:
            [item] = (await runner.waiting(person, task, "tool"))["items"]
            assert "an error: The disk is full. It is unknown" in item["reason"]
            await runner.reject(person, task, resume=True)
        await runner.until(person, task, "COMPLETED")
        told = last_message((await scripted.asked(script))[-1])
        assert ("may have taken effect" if asks else "rejected the call: The disk is full") in told
        assert len(peer.calls) == 1
    assert "The disk is full" not in runner.worker.log.read_text()


async def test_a_person_decides_about_a_writing_call_whose_response_is_not_mcp(
    runner: Runner, scripted: Scripted
) -> None:
    person = await runner.newcomer()

    async def page(_: dict[str, Any], writer: hostile.Writer) -> None:
        writer.write(hostile.head("text/plain", "Content-Length: 4") + b"Done")
        await writer.drain()

    async with hostile.served(hostile.mcp_handler(call=page)) as url:
        await connect(person, url)
        script = await scripted.script(calls(("peer__t", {})), says("Done."))
        task = await runner.begin(person, "trusting", script)
        [item] = (await runner.waiting(person, task, "tool"))["items"]
        assert "it is unknown whether it took effect" in item["reason"]
        await runner.reject(person, task, resume=True)
        await runner.until(person, task, "COMPLETED")


async def test_the_model_learns_that_a_server_refuses_a_tool(
    runner: Runner, scripted: Scripted
) -> None:
    """It is told at once, because the server has just listed its tools with these credentials."""
    person = await runner.newcomer()

    async def refuse(_: dict[str, Any], writer: hostile.Writer) -> None:
        writer.write(hostile.head("text/plain", "Content-Length: 0", status="403 Forbidden"))
        await writer.drain()

    async with hostile.served(hostile.mcp_handler(call=refuse)) as url:
        await connect(person, url)
        script = await scripted.script(calls(("peer__t", {})), says("Done."))
        task = await runner.begin(person, "trusting", script)
        await runner.until(person, task, "COMPLETED")
        told = last_message((await scripted.asked(script))[-1])
        assert "The server refused the call: The server responded with 403." in told
