"""The command line itself: its help, its version and its usage errors."""

import re
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from rota.cli import cli

GROUPS = ("accounts", "agents", "companies", "ledger", "payments", "secrets", "signing-keys")


def test_the_top_level_lists_four_commands() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert "Rota runs tasks with AI agents" in result.output
    listed = re.findall(r"^│ ([a-z]+) ", result.output, re.MULTILINE)
    assert listed == ["dev", "serve", "worker", "admin"]


@pytest.mark.parametrize("group", [(), *((name,) for name in GROUPS)])
def test_every_group_of_operator_commands_has_help(group: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["admin", *group, "--help"])
    assert result.exit_code == 0
    assert "Commands" in result.output


def test_the_version_is_that_of_the_installed_package() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.output) == (0, f"rota {version('rota')}\n")


def test_an_unknown_variant_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["admin", "openapi", "--variant", "c"])
    assert result.exit_code == 2
    assert "'c' is not one of 'a', 'b'" in result.output
    assert "Traceback" not in result.output
