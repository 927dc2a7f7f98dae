"""docs/mcp-server.md agrees with the server."""

import json
import re
from pathlib import Path

from rota.auth.access_tokens import SCOPES
from rota.mcp_server.arguments import DEFAULT_WAIT_S, MAX_WAIT_S
from rota.mcp_server.task_handles import EXTENSION
from rota.mcp_server.tools import AGENT_PREFIX, TOOLS
from rota.platform.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "mcp-server.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_tool_is_documented_with_its_scope() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([\w:]+)` \|", section("Tools"), re.MULTILINE)
    assert [name for name, _ in rows] == [tool.name for tool in TOOLS] + [f"{AGENT_PREFIX}NAME"]
    assert {scope for _, scope in rows} == set(SCOPES)


def test_the_limits_of_a_wait_are_documented() -> None:
    assert f"({DEFAULT_WAIT_S} by default, at most\n{MAX_WAIT_S})" in PAGE
    assert f"({Settings(env='test').mcp_agent_tools})" in section("Tools")
    assert EXTENSION in section("Tasks extension")


def test_the_configurations_are_json() -> None:
    found = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert [list(each) for each in found] == [["mcpServers"]] * 2
    assert found[0]["mcpServers"]["rota"]["args"] == ["mcp"]
    assert found[1]["mcpServers"]["rota"]["url"].endswith("/mcp")
