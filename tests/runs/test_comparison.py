"""`rota admin agents compare`: past tasks against another version, with recorded tool results."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from rota.agents.sync import sync
from rota.cli import cli
from rota.platform import ids
from rota.platform.errors import Unavailable
from rota.platform.schema import SchemaChecks
from rota.runs.bounds import ToolsTooLarge
from rota.runs.comparison import NOT_RECORDED
from tests.runs.runner import CATALOG, Runner
from tests.runs.scripted import Scripted, Turn, calls, conversation, last_message, says
from tests.service import Person, environment
from tests.tasks.world import picture

DOCS = Path(__file__).parents[2] / "docs"
AGENT = "bug-triager"


@pytest.fixture
async def versions(runner: Runner, tmp_path: Path) -> AsyncIterator[Path]:
    """The file of a new agent, whose name is the name of the file."""
    for path in CATALOG.glob("*.md"):
        (tmp_path / path.name).write_text(path.read_text())
    # The versions of a name continue, even after it was retired.
    name = f"{AGENT}-{uuid4().hex[:8]}"
    file = tmp_path / f"{name}.md"
    file.write_text((CATALOG / "writer.md").read_text().replace("name: writer", f"name: {name}"))
    await sync(runner.service.database_url, tmp_path)
    yield file
    await sync(runner.service.database_url, CATALOG)


async def compare(runner: Runner, person: Person, agent: str, *more: str, **models: Any) -> Result:
    """Runs the command of the documentation, for this agent."""
    [line] = re.findall(r"^rota (admin agents compare .*)$", (DOCS / "agents.md").read_text(), re.M)
    account = ids.to_wire("acct", person.user_id)
    arguments = shlex.split(line.replace("$ACCOUNT", account).replace(AGENT, agent))
    assert runner.service.settings.database_url
    env = {**environment(runner.service.settings), "ROTA_MODELS": runner.scripted.models(**models)}
    return await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, *more], env=env)


async def compared(
    runner: Runner, person: Person, agent: str, *more: str, exit_code: int = 0, **models: Any
) -> dict[str, Any]:
    """What the command says as JSON, with the tasks by their IDs."""
    result = await compare(runner, person, agent, "--json", *more, **models)
    assert result.exit_code == exit_code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {task["taskId"]: task for task in found["tasks"]}


async def test_the_documented_comparison_asks_the_model_and_calls_nothing(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "compared-1"})),
        calls(("desk__lookup", {"ref": "compared-2"})),
        says("The first answer."),
    )
    task = await runner.finish(person, versions.stem, script)
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
    result = await compare(runner, person, versions.stem, "--json")
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
    table = await compare(runner, person, versions.stem)
    assert table.exit_code == 0, table.output
    assert "Tasks: 1. Different (*): 1. Failed: 0." in table.stdout


async def test_a_replay_fails_where_a_run_fails_and_the_others_continue(
    runner: Runner,
    scripted: Scripted,
    person: Person,
    versions: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    refused = {"status": 400, "error": {"message": "Invalid schema", "type": "invalid_request"}}
    # What each task says in the replay, what becomes of it, and after how many calls.
    cases: list[tuple[bool, list[Turn], str | None, int]] = [
        (False, [says("")], "EMPTY_ANSWER", 2),
        (False, [says("Cut", finishReason="length"), says("Whole.")], None, 2),
        (False, [says("No.", finishReason="content_filter")], "CONTENT_FILTERED", 1),
        (True, [says("No JSON.")], "OUTPUT_SCHEMA_MISMATCH", 4),
        (True, [says('{"n": 1}', failures=[refused])], None, 1),
        (False, [says("The [/INST] mark and [x].")], None, 1),
    ]
    scripts: dict[str, str] = {}
    for has_schema, *_ in cases:
        script = await scripted.script(says('{"n": 1}'))
        body: dict[str, Any] = {"outputSchema": schema} if has_schema else {}
        task = await runner.finish(person, versions.stem, script, **body)
        scripts[task["id"]] = script.removeprefix("script:")
    for name, (_, turns, _, _) in zip(scripts.values(), cases, strict=True):
        await scripted.script(*turns, name=name)
    found = await compared(runner, person, versions.stem, "--to", "1", "--tasks", "6")
    for task_id, (_, _, code, asked) in zip(scripts, cases, strict=True):
        after = found[task_id]["to"]
        assert (after["error"] or "").partition(":")[0] == (code or ""), after
        assert after["modelCalls"] == asked
        assert found[task_id]["failed"] == (code is not None)
        # Nothing that failed can be compared.
        assert found[task_id]["differs"] == (code is None and after["output"] != '{"n":1}')
    assert (found["total"], found["differing"], found["failed"]) == (6, 2, 3)
    # The text of a model is not markup.
    table = await compare(runner, person, versions.stem, "--to", "1", "--tasks", "1")
    assert table.exit_code == 0, table.output
    assert "[/INST]" in table.stdout
    assert "[x]" in table.stdout

    async def busy(*_: Any, **__: Any) -> Any:
        raise Unavailable("No check is possible.")

    async def too_large(*_: Any) -> Any:
        raise ToolsTooLarge

    with monkeypatch.context() as patched:
        patched.setattr(SchemaChecks, "check", busy)
        await scripted.script(says('{"n": 1}'), name=list(scripts.values())[3])
        found = await compared(runner, person, versions.stem, "--to", "1", "--tasks", "6")
        errors = [found[task_id]["to"]["error"] for task_id in scripts]
        assert errors[3] == errors[4] == "SERVICE_UNAVAILABLE: No check is possible."
        assert errors[5] is None
        patched.setattr("rota.runs.commands.offered_tools", too_large)
        # Nothing could be compared.
        found = await compared(runner, person, versions.stem, "--to", "1", exit_code=1)
        assert {task["to"]["error"].partition(":")[0] for task in found["tasks"]} == {
            "TOOLS_TOO_LARGE"
        }


async def test_equal_calls_get_their_results_in_order_and_edited_ones_are_found_by_both(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    polled, edited = calls(("desk__lookup", {"ref": "polled"})), {"ref": "edited", "text": "Yes"}
    await scripted.behave("polled", {"result": "pending"}, {"result": "ready"})
    script = await scripted.script(
        polled, polled, calls(("ask_person", {"question": "May I?"})), says("Done.")
    )
    task = await runner.begin(person, versions.stem, script)
    [item] = (await runner.waiting(person, task, "tool"))["items"]
    await runner.approve(person, task, {"id": item["id"], "arguments": {"answer": "Yes."}})
    await runner.until(person, task, "COMPLETED")
    # A call that a person edits.
    versions.write_text(versions.read_text().replace("{tools: never}", "{tools: writes}"))
    await sync(runner.service.database_url, versions.parent)
    send = calls(("desk__send", {"ref": "edited", "text": "No"}))
    second = await scripted.script(send, says("Sent."))
    sent = await runner.begin(person, versions.stem, second)
    [item] = (await runner.waiting(person, sent, "tool"))["items"]
    await runner.approve(person, sent, {"id": item["id"], "arguments": edited})
    await runner.until(person, sent, "COMPLETED")

    name = script.removeprefix("script:")
    await scripted.script(polled, polled, polled, says("Done."), name=name)
    found = await compared(runner, person, versions.stem)
    assert found[task["id"]]["to"]["notRecorded"] == 0
    asked = await scripted.asked(script)
    assert [last_message(call) for call in asked[1:]] == ["pending", "ready", "ready"]
    for arguments in ({"ref": "edited", "text": "No"}, edited, {"ref": "edited"}):
        turns = calls(("desk__send", arguments)), says("Sent.")
        await scripted.script(*turns, name=second.removeprefix("script:"))
        found = await compared(runner, person, versions.stem, "--from", "2", "--to", "2")
        assert found[sent["id"]]["to"]["notRecorded"] == (arguments == {"ref": "edited"})
    assert len(await scripted.done("edited")) == 1


async def test_input_from_a_cache_does_not_count_towards_the_tokens_of_a_replay(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    script = await scripted.script(says("Done."))
    task = await runner.finish(person, versions.stem, script)
    more = runner.service.settings.run_max_tokens + 1
    name, lookup = script.removeprefix("script:"), ("desk__lookup", {"ref": "cached"})
    for cached, error in ((more - 1_000, None), (0, "TOKEN_LIMIT")):
        turn = calls(lookup, inputTokens=more, cachedTokens=cached, outputTokens=1)
        await scripted.script(turn, says("Done."), name=name)
        to_1 = partial(compared, runner, person, versions.stem, "--to", "1", inputUsdPerMillion=0)
        found = await to_1(exit_code=1 if error else 0)
        assert (found[task["id"]]["to"]["error"] or "").partition(":")[0] == (error or "")


async def test_a_task_that_needed_a_retry_is_left_out(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    no_key = {"status": 401, "error": {"message": "No such key.", "code": "invalid_api_key"}}
    script = await scripted.script(says("Done.", failures=[no_key]))
    task = await runner.finish(person, versions.stem, script, "FAILED")
    await runner.retry(person, task, "failure")
    await runner.until(person, task, "COMPLETED")
    result = await compare(runner, person, versions.stem, "--to", "1")
    assert result.exit_code == 1
    assert "no completed tasks" in result.output


async def test_a_task_whose_steps_may_have_been_deleted_is_left_out(
    runner: Runner, scripted: Scripted, person: Person, versions: Path
) -> None:
    await runner.finish(person, versions.stem, await scripted.script(says("Done.")))
    async with runner.service.owner() as connection:
        await connection.execute(
            "UPDATE balances SET steps_cut_at = now() WHERE account_id = $1", person.user_id
        )
    second = await runner.finish(person, versions.stem, await scripted.script(says("Done.")))
    found = await compared(runner, person, versions.stem, "--to", "1")
    assert [task["taskId"] for task in found["tasks"]] == [second["id"]]


async def test_a_comparison_without_tasks_or_version_says_so(
    runner: Runner, person: Person, versions: Path
) -> None:
    result = await compare(runner, person, versions.stem, "--to", "1000")
    assert result.exit_code == 1
    assert "has no version 1000" in result.output
    result = await compare(runner, person, versions.stem, "--to", "1")
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
