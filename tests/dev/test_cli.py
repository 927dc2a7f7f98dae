"""The command line itself: its help, its version and its usage errors."""

import asyncio
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import typer
from typer.testing import CliRunner

from rota.cells.router import Router
from rota.cli import admin, cli
from rota.cli.runtime import exit_on_error
from rota.platform.settings import Settings

# Port 1 of this machine, where no database listens.
UNREACHABLE = {"ROTA_DATABASE_URL": "postgresql://rota@127.0.0.1:1/rota"}
GROUPS = (
    *("accounts", "agents", "audit", "companies", "keys", "ledger", "payments", "restore"),
    "secrets",
    "signing-keys",
)


def test_the_top_level_lists_the_commands_by_what_they_are_for() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert "Rota runs tasks with AI agents" in result.output
    titles = ("Work with agents", "Sign in", "Run the service")
    panels = re.split(rf"╭─ ({'|'.join(titles)}) ─+╮", result.output)
    listed = {
        title: re.findall(r"^│ ([a-z]+) ", panel, re.MULTILINE)
        for title, panel in zip(panels[1::2], panels[2::2], strict=True)
    }
    assert listed == {
        "Work with agents": [
            *("inbox", "usage", "listen", "api", "mcp", "tasks", "agents", "tools", "schedules"),
            *("notifications", "policies", "rules", "webhooks", "receipt"),
        ],
        "Sign in": ["login", "logout", "whoami", "profiles", "keys", "account"],
        "Run the service": ["dev", "serve", "worker", "router", "admin"],
    }


def test_help_loads_neither_the_service_nor_the_sdk() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from rota.cli import cli;"
        "assert CliRunner().invoke(cli, ['tasks', '--help']).exit_code == 0;"
        "print([n for n in ('rota_sdk', 'httpx', 'fastapi', 'asyncpg', 'temporalio')"
        " if n in sys.modules])"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


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


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "verify", "--account", "acme"),
        ("companies", "create", "Acme", "--owner", "acct_1"),
        ("companies", "create", "Acme", "--owner", f"user_{'0' * 32}", "--tier", "golden"),
    ],
)
def test_an_invalid_id_or_tier_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["admin", *arguments])
    assert result.exit_code == 2
    assert " is not a" in result.output


def test_the_description_is_printed_or_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    command = ["admin", "openapi", "--variant", "b"]
    printed = CliRunner().invoke(cli, command)
    written = CliRunner().invoke(cli, [*command, "--output", str(file)])
    assert (printed.exit_code, written.exit_code, written.output) == (0, 0, "")
    assert json.loads(printed.output) == json.loads(file.read_text())


def test_a_description_that_cannot_be_made_or_written_is_one_line(tmp_path: Path) -> None:
    command = ["admin", "openapi", "--output", str(tmp_path / "none" / "openapi.json")]
    invalid = CliRunner().invoke(cli, command, env={"ROTA_PORT": "x"})
    assert invalid.exit_code == 2
    assert invalid.stderr.startswith("ROTA_PORT: ")
    unwritten = CliRunner().invoke(cli, command)
    assert unwritten.exit_code == 1
    assert unwritten.stderr == f"Cannot write {command[-1]}: No such file or directory.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    # A job repeats the check of the ledger, unless it found a difference (1).
    [(("migrate",), 1), (("ledger", "verify"), 8), (("signing-keys", "rotate"), 1)],
)
def test_an_unreachable_database_is_one_line(arguments: tuple[str, ...], code: int) -> None:
    result = CliRunner().invoke(cli, ["admin", *arguments], env=UNREACHABLE)
    assert result.exit_code == code
    assert result.stderr.startswith("Cannot use the database (")
    assert result.stderr.endswith("Check ROTA_DATABASE_URL.\n")


def test_a_database_without_tables_names_the_command_to_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, exit_on_error():
        raise asyncpg.UndefinedTableError('relation "balances" does not exist')
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err.endswith("Run: rota admin migrate\n")


def test_invalid_settings_are_named() -> None:
    variables = {"ROTA_ENV": "production", "ROTA_PORT": "many"}
    result = CliRunner().invoke(cli, ["admin", "migrate"], env=variables)
    assert result.exit_code == 2
    assert "ROTA_PORT: " in result.stderr


def test_secrets_that_no_key_decrypts_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "with_composition", lambda *_: {"tool servers": (3, 1)})
    result = CliRunner().invoke(cli, ["admin", "secrets", "rotate"])
    assert result.exit_code == 1
    assert result.stdout == "tool servers: 3 encrypted with the current key, 1 unreadable\n"
    assert "ROTA_SECRET_KEYS_OLD" in result.stderr


def test_serve_worker_and_router_start_with_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    async def run_worker(settings: Settings, stop: asyncio.Event) -> None:
        started.append((settings.port, stop.is_set()))

    def run(app: Any, settings: Settings, _: Any, *, on_stop: Any) -> None:
        stop = app.end_streams if isinstance(app, Router) else app.state.streams.close
        started.append((settings.port, on_stop == stop))

    monkeypatch.setattr("rota.platform.telemetry.observe", lambda *_: None)
    monkeypatch.setattr("rota.worker.run_worker", run_worker)
    monkeypatch.setattr("rota.platform.http.server.run", run)
    for command in ("worker", "serve", "router"):
        variables = {"ROTA_PORT": "8123", "ROTA_CELLS": "east=http://127.0.0.1:1"}
        result = CliRunner().invoke(cli, [command], env=variables)
        assert result.exit_code == 0, result.output
    assert started == [(8123, False), (8123, True), (8123, True)]


def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), exit_on_error():
        raise PermissionError(13, "Permission denied", "/etc/rota/temporal.key")
    assert capsys.readouterr().err == "Cannot read /etc/rota/temporal.key: Permission denied.\n"
