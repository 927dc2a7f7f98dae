"""`rota admin agents check` checks files as a sync does, without a database."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rota.cli import cli
from tests.agents.conftest import Folder, agent_text


def check(folder: Path) -> Result:
    environment = {name: "" for name in os.environ if name.startswith("ROTA_")}
    # Nothing listens there, and the other setting is not valid.
    environment |= {"ROTA_DATABASE_URL": "postgresql://127.0.0.1:1/none", "ROTA_PORT": "none"}
    return CliRunner().invoke(cli, ["admin", "agents", "check", str(folder)], env=environment)


def test_valid_files_need_no_database_and_no_settings(folder: Folder) -> None:
    result = check(folder(one=agent_text("one"), two=agent_text("two")))
    assert (result.exit_code, result.stdout) == (0, "2 agents checked: no problems.\n")


def test_every_problem_is_listed(folder: Folder) -> None:
    root = folder(one=agent_text("one", tier=0), two=agent_text("two", required="FREE"))
    result = check(root)
    assert (result.exit_code, result.stdout) == (1, "")
    first, second, last = result.stderr.splitlines()
    assert first.startswith(f"{root}/one.md:6: `tier` is 0; it must be ")
    assert second.startswith(f"{root}/two.md:10: `requiredTier` is FREE; it must be ")
    assert last == "Fix 2 problems."


def test_a_schema_that_cannot_be_used_is_a_problem(folder: Folder) -> None:
    schema = "outputSchema: {type: object, properties: {a: {$ref: '#/nowhere'}}}"
    text = agent_text("one").replace("---\n", f"---\n{schema}\n", 1)
    result = check(folder(one=text))
    assert result.exit_code == 1
    assert "/one.md:2: " in result.stderr


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_without_agents_is_a_problem(exists: bool, tmp_path: Path) -> None:
    result = check(tmp_path if exists else tmp_path / "missing")
    assert result.exit_code == 1
    assert "there are no *.md files in this folder" in result.stderr
