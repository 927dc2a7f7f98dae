"""`rota mcp` at the end of its input: it answers what it was asked, if somebody reads it."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.mcp_server.clients import call, connected
from tests.mcp_server.test_program import COMMAND, ended, url_of, variables
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Service

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def waiting(task_id: str) -> bytes:
    arguments = {"taskId": task_id, "waitSeconds": 300}
    params = {"name": "wait_for_task", "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    return json.dumps(request).encode() + b"\n"


async def open_streams(service: Service, count: int) -> None:
    async def seen() -> bool:
        return f"rota_event_streams {count}.0" in (await service.http.get("/metrics")).text

    await until(seen)


async def test_requests_are_answered_after_the_input_has_ended(
    runner: Runner, scripted: Scripted, key: str, tmp_path: Path
) -> None:
    script = await scripted.script(says("Late.", hold=True))
    async with connected(runner.service, key) as client:
        task = (await call(client, "create_task", agent="writer", input=script))["task"]
    environment = variables(tmp_path, ROTA_URL=url_of(runner.service), ROTA_API_KEY=key)
    asked = asyncio.create_task(ended(environment, sent=PING + waiting(task["id"])))
    await open_streams(runner.service, 1)
    await scripted.release(script)
    code, messages, errors = await asked
    assert (code, errors) == (0, "")
    answers = {each["id"]: each["result"] for each in messages if "id" in each}
    assert answers[1] == {}
    assert answers[2]["structuredContent"]["task"]["output"] == "Late."


async def test_a_program_whose_output_nobody_reads_ends_with_its_input(
    runner: Runner, scripted: Scripted, key: str, tmp_path: Path
) -> None:
    script = await scripted.script(says("Late.", hold=True))
    async with connected(runner.service, key) as client:
        task = (await call(client, "create_task", agent="writer", input=script))["task"]
    read_end, write_end = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        env=variables(tmp_path, ROTA_URL=url_of(runner.service), ROTA_API_KEY=key),
        stdin=asyncio.subprocess.PIPE,
        stdout=write_end,
    )
    os.close(write_end)
    assert process.stdin is not None
    process.stdin.write(waiting(task["id"]))
    await open_streams(runner.service, 1)
    os.close(read_end)
    process.stdin.close()
    async with asyncio.timeout(30):
        await process.wait()
    await open_streams(runner.service, 0)
    await scripted.release(script)
