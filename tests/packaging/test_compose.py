"""The files of deploy/compose.yaml agree with Rota and with each other."""

import json
import os
import re
from pathlib import Path
from shutil import copy
from subprocess import run
from typing import Any

import yaml

from rota.platform.settings import Settings
from rota.probe import __name__ as probe

ROOT = Path(__file__).parents[2]
KNOWN = {f"ROTA_{name.upper()}" for name in Settings.model_fields}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
UP = (ROOT / "deploy" / "up").read_text()
OF_ROTA = ("serve", "worker", "migrate", "agents", "admin")


def created(name: str) -> str:
    """The value that deploy/up writes to deploy/.env."""
    [value] = re.findall(rf"^keep {name} (.+)$", UP, re.MULTILINE)
    return str(value.strip("\"'").replace('\\"', '"'))


def test_compose_uses_only_settings_that_exist() -> None:
    services = COMPOSE["services"]
    used = {
        name
        for service in services.values()
        for name in service.get("environment", {})
        if name.startswith("ROTA_")
    }
    assert "ROTA_DATABASE_URL" in used
    assert used <= KNOWN


def test_compose_gives_rota_no_rights_and_publishes_only_on_this_machine() -> None:
    services = COMPOSE["services"]
    for name in OF_ROTA:
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    for service in services.values():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")
    for name in ("serve", "worker"):
        assert probe in services[name]["healthcheck"]["test"]


def test_compose_has_keys_of_its_own() -> None:
    """The defaults are public, and Rota refuses them on an address that others reach."""
    for name in OF_ROTA:
        environment = COMPOSE["services"][name]["environment"]
        for key in ("ROTA_SECRET_KEY", "ROTA_AUDIT_KEY"):
            assert environment[key].startswith(f"${{{key}:?")
            assert f"keep {key} " in UP


def test_every_setting_can_be_changed_in_env_or_in_the_file_of_the_other_settings() -> None:
    for name in OF_ROTA:
        service = COMPOSE["services"][name]
        assert service["env_file"] == ["./rota.env"]
        fixed = {key for key, value in service["environment"].items() if "${" not in str(value)}
        # The addresses and ports of this file.
        assert fixed == {"ROTA_HOST", "ROTA_METRICS_PORT", "ROTA_TEMPORAL_ADDRESS"}
    assert ">rota.env" in UP
    for name in ("ROTA_ENV", "ROTA_VARIANT", "ROTA_PUBLIC_URL", "ROTA_MODELS", "ROTA_ALLOWANCES"):
        assert created(name)


def test_operator_commands_run_with_the_logins_of_a_worker_and_of_the_owner() -> None:
    admin = COMPOSE["services"]["admin"]
    assert (admin["profiles"], admin["entrypoint"]) == (["admin"], ["/opt/rota/bin/rota", "admin"])
    for name, login in (
        ("ROTA_DATABASE_URL", "rota_worker"),
        ("ROTA_MIGRATION_DATABASE_URL", "rota_owner"),
    ):
        assert admin["environment"][name].startswith(f"postgresql://{login}:")


def test_compose_syncs_agents_without_a_question() -> None:
    assert "--add-only" in COMPOSE["services"]["agents"]["command"]


def test_compose_mounts_files_that_exist() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            if volume.startswith("./"):
                assert (ROOT / "deploy" / volume.partition(":")[0]).exists(), volume


def test_deploy_up_restarts_what_reads_its_files_only_at_the_start(tmp_path: Path) -> None:
    """A new release has other redirect addresses and alerts in them."""
    calls = tmp_path / "calls"
    for name, script in {"compose": f'echo "$@" >>{calls}', "curl": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    copy(ROOT / "deploy" / "up", tmp_path / "up")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "COMPOSE": "compose"}
    run([tmp_path / "up"], env=environment, check=True, capture_output=True)
    assert calls.read_text().splitlines() == [
        "--file compose.yaml up --detach",
        "--file compose.yaml restart idp prometheus",
    ]


def test_the_identity_provider_and_rota_agree_on_each_other() -> None:
    dex = yaml.safe_load((ROOT / "deploy" / "compose" / "dex.yaml").read_text())
    [issuer] = json.loads(created("ROTA_OIDC_ISSUERS"))
    [client] = dex["staticClients"]
    assert (dex["issuer"], client["id"]) == (issuer["issuer"], issuer["clientId"])
    assert client["redirectURIs"] == [
        f"{created('ROTA_PUBLIC_URL')}/signin/callback",
        # The dashboard's address may also be written like this.
        "http://127.0.0.1:8080/signin/callback",
        issuer["cliRedirectUri"],
    ]


def test_prometheus_asks_the_ports_that_serve_metrics() -> None:
    asked = yaml.safe_load((ROOT / "deploy" / "compose" / "prometheus.yaml").read_text())
    targets = {each["static_configs"][0]["targets"][0] for each in asked["scrape_configs"]}
    port = COMPOSE["services"]["serve"]["environment"]["ROTA_METRICS_PORT"]
    assert {f"serve:{port}", f"worker:{port}"} <= targets
