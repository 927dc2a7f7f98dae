"""`rota admin agents compare`: past tasks against another version, with recorded tool results."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rota.agents.sync import sync
from rota.cli import cli
from rota.platform import ids
from rota.runs.comparison import NOT_RECORDED
from tests.runs.runner import CATALOG, Runner
from tests.runs.scripted import Scripted, calls, conversation, says
from tests.service import Person, environment
from tests.tasks.world import picture

DOCS = Path(__file__).parents[2] / "docs"
AGENT = "bug-triager"


@pytest.fixture
async def versions(runner: Runner, tmp_path: Path) -> AsyncIterator[Path]:
    """The file of an agent in a catalog of its own."""
    for path in CATALOG.glob("*.md"):
        (tmp_path / path.name).write_text(path.read_text())
    file = tmp_path / f"{AGENT}.md"
    file.write_text((CATALOG / "writer.md").read_text().replace("name: writer", f"name: {AGENT}"))
    await sync(runner.service.database_url, tmp_path)
    yield file
    await sync(runner.service.database_url, CATALOG)


async def compare(runner: Runner, person: Person, *more: str) -> Result:
    """Runs the command of the documentation."""
    [line] = re.findall(r"^rota (admin agents compare .*)$", (DOCS / "agents.md").read_text(), re.M)
    account = ids.to_wire("acct", person.user_id)
    arguments = [each.replace("$ACCOUNT", account) for each in shlex.split(line)]
    assert runner.service.settings.database_url
    env = {**environment(runner.service.settings), "ROTA_MODELS": runner.scripted.models()}
    return await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, *more], env=env)


async def test_the_documented_comparison_asks_the_model_and_calls_nothing(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "compared-1"})),
        calls(("desk__lookup", {"ref": "compared-2"})),
        says("The first answer."),
    )
    task = await runner.finish(person, AGENT, script)
    text = versions.read_text()
    versions.write_text(text.replace("PLANTED", "SECOND"))
    await sync(runner.service.database_url, versions.parent)
    # The new version makes another call, and answers something else.
    await scripted.script(
        calls(("desk__send", {"ref": "compared-1"})),
        calls(("desk__send", {"ref": "compared-3"})),
        says("The second answer."),
        name=script.removeprefix("script:"),
    )
    async with runner.service.owner() as connection:
        before = await picture(connection, person.user_id)
    result = await compare(runner, person, "--json")
    assert result.exit_code == 0, result.output
    [found] = json.loads(result.stdout)["tasks"]
    assert found["taskId"] == task["id"]
    assert found["from"] == outcome(1, "The first answer.", ["desk/send", "desk/lookup"])
    assert found["to"] == outcome(2, "The second answer.", ["desk/send", "desk/send"], missing=1)
    assert found["differs"] is True
    asked = await scripted.asked(script)
    assert [call["turn"] for call in asked] == [0, 1, 2]
    assert "SECOND-INSTRUCTIONS" in conversation(asked[0])
    assert NOT_RECORDED in conversation(asked[2])
    assert NOT_RECORDED not in conversation(asked[1])
    # No tool was called, and nothing was written.
    assert len(await scripted.done("compared-1")) == 1
    assert await scripted.done("compared-3") == []
    async with runner.service.owner() as connection:
        assert await picture(connection, person.user_id) == before
    table = await compare(runner, person)
    assert table.exit_code == 0, table.output
    assert "1 of 1 tasks differ." in table.stdout


async def test_a_comparison_without_tasks_or_version_says_so(
    runner: Runner, person: Person, versions: Path
) -> None:
    result = await compare(runner, person, "--to", "1000")
    assert result.exit_code == 1
    assert "has no version 1000" in result.output
    result = await compare(runner, person, "--to", "1")
    assert result.exit_code == 1
    assert "no completed tasks" in result.output


def outcome(version: int, output: str, tools: list[str], missing: int = 0) -> dict[str, Any]:
    return {
        "version": version,
        "output": output,
        "error": None,
        "modelCalls": 3,
        "toolCalls": tools,
        "notRecorded": missing,
        # Three answers of 20 micro-dollars.
        "costUsd": "0.000060",
    }
