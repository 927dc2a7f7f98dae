"""docs/a2a.md agrees with the agent."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from a2a.types import a2a_pb2 as wire
from pydantic.alias_generators import to_camel

from rota.a2a.creating import MAX_AGENTS
from rota.a2a.handler import MAX_WAIT_S
from rota.a2a.messages import MessageWork
from rota.a2a.results import STATE_OF
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, says

PAGE = (Path(__file__).parents[2] / "docs" / "a2a.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"# {title}\n")[2].partition("\n#")[0]


def test_every_state_is_documented() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)`.* \| `(TASK_STATE_\w+)` \|", PAGE, re.MULTILINE)
    assert dict(rows) == {status: wire.TaskState.Name(state) for status, state in STATE_OF.items()}


def test_every_option_is_documented() -> None:
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", section("Options"), re.M)))
    fields = {to_camel(name) for name in MessageWork.model_fields} - {"input", "projectId"}
    assert set(named) == fields
    [example] = re.findall(r"```json\n(.*?)```", section("Options"), re.DOTALL)
    assert json.loads(example)["rota"].keys() <= fields


def test_the_limits_are_documented() -> None:
    assert f"after {MAX_WAIT_S} seconds" in PAGE
    assert f"at most {MAX_AGENTS}" in section("Agents")


def test_every_operation_is_documented() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", section("Operations"), re.MULTILINE))
    methods = {method.name for method in wire.DESCRIPTOR.services_by_name["A2AService"].methods}
    assert named == {name for name in methods if "PushNotification" not in name}


async def test_the_program_of_the_page_prints_the_result(
    runner: Runner, scripted: Scripted, key: str
) -> None:
    script = await scripted.script(says("Written."))
    [code] = re.findall(r"```python\n(.*?)```", section("Connect"), re.DOTALL)
    for shown, used in (
        ("https://rota.example.com", runner.service.settings.public_url),
        ("rota_…", key),
        ("process-writer", "writer"),
        ("Write a checklist for new colleagues.", f"Please. {script}"),
    ):
        assert shown in code
        code = code.replace(shown, used)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
    printed, _ = await process.communicate()
    lines = printed.decode().splitlines()
    assert process.returncode == 0
    assert lines[0].startswith("task_")
    assert lines[-2:] == ["Written.", "TASK_STATE_COMPLETED"]
