"""The units in deploy/systemd agree with Rota."""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rota.cli import cli
from rota.platform.settings import Settings
from rota.worker import shutdown_grace_s

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
KNOWN = {f"ROTA_{name.upper()}" for name in Settings.model_fields}


def read(file: Path) -> dict[str, list[str]]:
    """The directives of a unit. Some are repeated."""
    found = defaultdict(list)
    for line in file.read_text().splitlines():
        if match := re.fullmatch(r"([A-Za-z]+)=(.*)", line):
            found[match[1]].append(match[2])
        else:
            assert not line or line.startswith("#") or re.fullmatch(r"\[\w+\]", line), line
    return found


@pytest.mark.parametrize("file", SERVICES, ids=lambda file: file.stem)
def test_a_unit_runs_a_command_that_exists_without_rights(file: Path) -> None:
    unit = read(file)
    for command in unit["ExecStart"]:
        program, *arguments = command.split()
        assert program == "/opt/rota/bin/rota"
        assert CliRunner().invoke(cli, [*arguments, "--help"]).exit_code == 0, command
    assert unit["DynamicUser"] == unit["NoNewPrivileges"] == unit["PrivateTmp"] == ["yes"]
    assert (unit["ProtectSystem"], unit["CapabilityBoundingSet"]) == (["strict"], [""])
    for variable in unit["Environment"]:
        assert variable.partition("=")[0] in KNOWN


def test_every_timer_has_a_unit_and_what_is_collected_has_a_folder() -> None:
    timers = sorted(file.stem for file in UNITS.glob("*.timer"))
    assert timers == ["rota-collect", "rota-ledger", "rota-reconcile"]
    assert all((UNITS / f"{name}.service").exists() for name in timers)
    collect = read(UNITS / "rota-collect.service")
    [folder] = collect["StateDirectory"]
    assert collect["ExecStart"][0].endswith(f" --since 26h --output /var/lib/{folder}")


def test_processes_have_the_time_to_finish_their_work() -> None:
    worker = read(UNITS / "rota-worker@.service")
    [stop_s] = worker["TimeoutStopSec"]
    assert int(stop_s) > shutdown_grace_s(Settings())
    assert worker["KillMode"] == ["mixed"]


@pytest.mark.parametrize("name", ["rota-router", "rota-serve", "rota-worker@"])
def test_an_invalid_setting_does_not_start_again_and_again(name: str) -> None:
    unit = read(UNITS / f"{name}.service")
    assert (unit["Restart"], unit["RestartPreventExitStatus"]) == (["always"], ["2"])


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("the units were NOT checked with systemd-analyze, which is not installed")
    for file in UNITS.iterdir():
        # The program of the units does not exist here.
        text = file.read_text().replace("/opt/rota/bin/rota", "/bin/true")
        (tmp_path / file.name.replace("@", "@1")).write_text(text)
    paths = [str(file) for file in tmp_path.iterdir()]
    done = subprocess.run([analyze, "verify", *paths], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
