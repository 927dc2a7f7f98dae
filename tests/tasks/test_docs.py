"""docs/tasks.md and docs/events.md: their examples run, and their tables match the code."""

import asyncio
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from rota.platform.canonical import canonical_json
from rota.tasks.states import markdown_table, mermaid_diagram
from tests.service import Service
from tests.tasks.world import newcomer

DOCS = Path(__file__).parents[2] / "docs"
DIGESTS = (DOCS / "tasks.md").read_text()


def generated(name: str) -> str:
    text = (DOCS / "tasks.md").read_text()
    [found] = re.findall(rf"<!-- states: {name} -->\n(.*?)<!-- states: end -->", text, re.DOTALL)
    return str(found)


def test_the_table_of_transitions_matches_the_code() -> None:
    assert generated("table") == markdown_table()


def test_the_diagram_matches_the_code() -> None:
    assert generated("diagram") == f"```mermaid\n{mermaid_diagram()}```\n"


def test_the_digests_in_the_documentation_are_right() -> None:
    rows = re.findall(r"^\| `(\{.*?\})` \| `(\{.*?\})` \| `([0-9a-f]{64})` \|$", DIGESTS, re.M)
    assert len(rows) == 5
    for given, canonical, sha256 in rows:
        assert canonical_json(json.loads(given)) == canonical
        assert hashlib.sha256(canonical.encode()).hexdigest() == sha256


async def printed_by_the_examples_of(name: str, service: Service, folder: Path) -> str:
    blocks = re.findall(r"^```bash\n(.*?)^```", (DOCS / name).read_text(), re.DOTALL | re.MULTILINE)
    person = await newcomer(service, tier="basic")
    shell = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        "\n".join(blocks),
        cwd=folder,
        env=os.environ
        | {"BASE": f"http://127.0.0.1:{service.settings.port}", "TOKEN": person.token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await shell.communicate()
    assert shell.returncode == 0, errors.decode()
    return out.decode()


async def test_the_examples_about_tasks_run_unchanged(board: Service, tmp_path: Path) -> None:
    printed = await printed_by_the_examples_of("tasks.md", board, tmp_path)
    assert printed == (
        "1,200 rows read\n1,200 rows written\n\nIMPORT_FAILED\n"
        "['severity', 'summary']\n0.250000\n"
        "1\nRUNNING\nNone\napproved\n2\nFalse\n0\n1\n"
        "The request is not valid. "
        "agent: The agent 'nobody' is not in the catalog. Check the name.\n"
        "1\n1\nCANCELLED\n"
    )


async def test_the_examples_about_events_run_unchanged(board_a: Service, tmp_path: Path) -> None:
    printed = await printed_by_the_examples_of("events.md", board_a, tmp_path)
    events = re.findall(r"^event: (.*)$", printed, re.MULTILINE)
    assert events == ["task.created", "task.started", "task.completed"]
    # One event after number 2, and three in the copy.
    assert printed.endswith("\n1\n3\n")


def test_the_copy_of_events_continues_after_its_last_complete_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "events.md").read_text()
    [code] = re.findall(r"^cat > follow.py <<'PYTHON'\n(.*?)^request = ", page, re.M | re.S)
    complete = '{"sequence": 1, "data": "a\u2028b\x85c"}\n{"sequence": 2}\n'
    copy = tmp_path / "events.jsonl"
    copy.write_text(complete + '{"sequence": 3, "da')
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["last"] == 2
    assert copy.read_text() == complete
