"""docs/a2a.md agrees with the agent."""

import json
import re
from pathlib import Path

from a2a.types import a2a_pb2 as wire
from pydantic.alias_generators import to_camel

from rota.a2a.creating import MAX_AGENTS
from rota.a2a.handler import MAX_WAIT_S
from rota.a2a.messages import MessageWork
from rota.a2a.results import STATE_OF

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
