"""The chart in deploy/helm/rota, as helm renders it."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "rota"
VALUES = {file.stem: file for file in sorted((CHART / "ci").glob("*.yaml"))}


def tool(name: str) -> str:
    """The path of a tool. Without it, the test is skipped loudly."""
    found = shutil.which(name, path=os.environ.get("ROTA_TEST_CHART_TOOLS", os.environ["PATH"]))
    if found is None:
        pytest.skip(f"the chart was NOT checked with {name}: run `make chart`, which installs it")
    return found


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True)


def rendered(name: str, *options: str) -> str:
    done = helm(
        "template", "rota", str(CHART), "--namespace", "rota", "-f", str(VALUES[name]), *options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(name: str, *options: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(rendered(name, *options)) if each]


def pods(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The specifications of all pods, by kind and name."""
    result = {}
    for each in found:
        spec = each.get("spec", {})
        if each["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]["template"]["spec"]
        elif each["kind"] in ("Deployment", "Job"):
            spec = spec["template"]["spec"]
        elif each["kind"] != "Pod":
            continue
        result[f"{each['kind']}/{each['metadata']['name']}"] = spec
    return result


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]
