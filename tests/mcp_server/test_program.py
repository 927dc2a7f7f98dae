"""`rota mcp`: the program that desktop assistants start, driven by the official client."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from mcp import Client
from rota.dev.stack import Stack
from tests.cli.terminal import UNSET
from tests.mcp_server.clients import Generation, call
from tests.programs import PROGRAM, new_key
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person, Service

COMMAND = ("-m", "rota.cli", "mcp")


def variables(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    return {**kept, "XDG_CONFIG_HOME": str(home), **more}


def url_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}"


@asynccontextmanager
async def desktop(
    environment: dict[str, str], generation: Generation, *arguments: str
) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, *arguments], env=environment
    )
    async with Client(server, mode=generation) as client:
        yield client


async def rota(
    environment: dict[str, str], *arguments: str, sent: bytes = b""
) -> tuple[int | None, bytes, str]:
    """The exit code, the output and the errors of a command after its input has ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rota.cli",
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(sent)
    return process.returncode, out, err.decode()


async def ended(
    environment: dict[str, str], *arguments: str, sent: bytes = b""
) -> tuple[int | None, list[dict[str, Any]], str]:
    """The exit code, the messages and the errors of the MCP program."""
    code, out, err = await rota(environment, "mcp", *arguments, sent=sent)
    return code, [json.loads(line) for line in out.splitlines()], err


async def test_a_desktop_program_works_with_a_key(
    runner: Runner, scripted: Scripted, key: str, generation: Generation, tmp_path: Path
) -> None:
    script = await scripted.script(says("Written."))
    environment = variables(tmp_path, ROTA_URL=url_of(runner.service), ROTA_API_KEY=key)
    reports: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message or "")

    async with desktop(environment, generation) as client:
        assert "create_task" in [tool.name for tool in (await client.list_tools()).tools]
        wanted = {"agent": "writer", "input": f"Please. {script}", "name": "Grüße ✓"}
        task = (await call(client, "create_task", **wanted))["task"]
        assert task["name"] == "Grüße ✓"
        waited = await client.call_tool(
            "wait_for_task",
            {"taskId": task["id"], "afterSequence": 0, "waitSeconds": 120},
            progress_callback=report,
        )
        shown: dict[str, Any] = waited.structured_content or {}
        assert shown["task"]["output"] == "Written."
        # The client calls back in tasks of their own, which can run after the result.
        async with asyncio.timeout(60):
            while "task.completed" not in reports:
                await asyncio.sleep(0.01)


async def test_a_wait_does_not_delay_other_requests_and_can_be_cancelled(
    runner: Runner, scripted: Scripted, key: str, generation: Generation, tmp_path: Path
) -> None:
    script = await scripted.script(says("Late.", hold=True))
    environment = variables(tmp_path, ROTA_URL=url_of(runner.service), ROTA_API_KEY=key)
    async with desktop(environment, generation) as client:
        task = (await call(client, "create_task", agent="writer", input=script))["task"]
        waiting = asyncio.create_task(
            call(client, "wait_for_task", taskId=task["id"], waitSeconds=300)
        )

        async def open_now() -> bool:
            return "rota_event_streams 1.0" in (await runner.service.http.get("/metrics")).text

        await until(open_now)
        assert (await call(client, "get_task", taskId=task["id"]))["task"]["id"] == task["id"]
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        async def closed() -> bool:
            return "rota_event_streams 0.0" in (await runner.service.http.get("/metrics")).text

        await until(closed)
        assert (await call(client, "list_tasks"))["total"] == 1
    await scripted.release(script)


async def test_a_profile_gets_a_key_of_its_own_which_cannot_approve(
    office: Service, person: Person, tmp_path: Path
) -> None:
    folder = tmp_path / "rota"
    folder.mkdir()
    stored = folder / "profiles.json"
    profile = {"url": url_of(office), "token": person.token, "account": None}
    stored.write_text(json.dumps({"current": "default", "profiles": {"default": profile}}))
    stored.chmod(0o600)
    environment = variables(tmp_path)
    for _ in range(2):
        async with desktop(environment, "legacy") as client:
            assert (await call(client, "list_tasks"))["total"] == 0
    [key] = (await person.get("/api/keys")).json()["keys"]
    assert key["scopes"] == PROGRAM
    assert stored.stat().st_mode & 0o077 == 0
    # A key that was revoked is not replaced by itself.
    await person.delete(f"/api/keys/{key['id']}")
    code, _, errors = await ended(environment)
    assert code == 1
    assert "rota mcp --new-key" in errors
    code, _, errors = await ended(environment, "--new-key")
    assert (code, "Created the API key key_" in errors) == (0, True)
    # Signing out revokes it.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rota.cli", "logout", env=environment
    )
    assert await process.wait() == 0
    other = await office.sign_in(person.subject)
    assert (await other.get("/api/keys")).json()["total"] == 0


async def test_a_credential_that_is_refused_ends_the_program_with_one_line(
    office: Service, person: Person, tmp_path: Path
) -> None:
    approver = await new_key(person, [*PROGRAM, "tasks:approve"])
    refused = {
        "rota_" + "a" * 38: "The API key is not valid.",
        "rota_wrong": "The API key is not valid.",
        approver: "tasks:approve cannot use /mcp",
    }
    for secret, words in refused.items():
        environment = variables(tmp_path, ROTA_URL=url_of(office), ROTA_API_KEY=secret)
        code, messages, errors = await ended(environment)
        assert (code, messages) == (1, [])
        assert words in errors
        assert "Traceback" not in errors
        assert len(errors.splitlines()) == 1
        assert secret not in errors


async def test_what_goes_wrong_with_a_request_is_its_answer(
    office: Service, key: str, tmp_path: Path
) -> None:
    environment = variables(tmp_path, ROTA_URL=url_of(office), ROTA_API_KEY=key)
    sent = b'not json\n\n{"jsonrpc":"2.0","id":7,"method":"nothing/here"}\n'
    sent += b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    sent += b'{"jsonrpc":"2.0","id":"eight","method":"ping"}\n'
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(sent)
    async with asyncio.timeout(60):
        answers = [json.loads(await process.stdout.readline()) for _ in range(3)]
    process.stdin.close()
    assert await process.wait() == 0
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[None]["error"]["code"] == -32700
    assert by_id[7]["error"]["code"] == -32601
    assert by_id["eight"]["result"] == {}


async def test_a_service_that_is_not_reached_is_reported_to_the_client(tmp_path: Path) -> None:
    secret = "rota_" + "a" * 38
    environment = variables(tmp_path, ROTA_URL="http://127.0.0.1:9", ROTA_API_KEY=secret)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    async with asyncio.timeout(60):
        answer = json.loads(await process.stdout.readline())
    process.stdin.close()
    assert await process.wait() == 0
    assert "could not be reached" in answer["error"]["message"]


async def test_a_url_without_an_mcp_server_is_named(stack: Stack, tmp_path: Path) -> None:
    secret = "rota_" + "a" * 38
    environment = variables(
        tmp_path, ROTA_URL=stack.endpoints.issuer_url, ROTA_API_KEY=secret, ROTA_ACCOUNT="personal"
    )
    code, messages, errors = await ended(environment)
    assert (code, messages) == (1, [])
    assert "No MCP server answers at" in errors
