"""docs/command-line.md and docs/identity-providers.md agree with the program."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rota.cli import cli
from rota.cli.exits import ExitCode
from rota.platform.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = (DOCS / "command-line.md").read_text()
PROVIDERS = (DOCS / "identity-providers.md").read_text()
SERVICE = ("dev", "serve", "worker", "router", "admin")


def test_every_command_of_the_client_is_documented() -> None:
    section = COMMANDS.partition("## Commands")[2].partition("\n## ")[0]
    root: Any = typer.main.get_command(cli)
    assert len(root.commands) > len(SERVICE)
    for name, command in root.commands.items():
        if name in SERVICE:
            continue
        assert re.search(rf"`(rota )?{name}\b", section), name
        for each in getattr(command, "commands", ()):
            assert re.search(rf"`(rota )?({name} )?{each}\b", section), (name, each)


def test_every_exit_code_is_documented() -> None:
    section = COMMANDS.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == [
        code.value for code in ExitCode
    ]


@pytest.mark.parametrize(
    "issuers", re.findall(r"ROTA_OIDC_ISSUERS='(\[.*?\])'", PROVIDERS, re.DOTALL)
)
def test_the_settings_of_each_provider_are_valid(
    issuers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_OIDC_ISSUERS", issuers)
    [issuer] = Settings().oidc_issuers
    assert issuer.cli[0] == issuer.cli_client_id != issuer.client_id


def test_each_provider_has_its_settings() -> None:
    titles = re.findall(r"^## (.*)$", PROVIDERS, re.MULTILINE)
    assert titles[:5] == ["Okta", "Microsoft Entra ID", "Google", "Keycloak", "Auth0"]
    assert PROVIDERS.count("ROTA_OIDC_ISSUERS='[") == 5
