"""The container image. `make image` builds it and runs this."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.containers.podman import LIMITS, RESTRICTED, podman

ROOT = Path(__file__).parents[2]
IMAGE = os.environ.get("ROTA_TEST_IMAGE")
MAX_BYTES = 250_000_000

needs_image = pytest.mark.skipif(
    IMAGE is None,
    reason="the container image was NOT tested: run `make image`, which needs buildah",
)


def run(*arguments: str, entrypoint: str | None = None) -> subprocess.CompletedProcess[str]:
    options = ("--network", "none", *(("--entrypoint", entrypoint) if entrypoint else ()))
    assert IMAGE
    return podman("run", "--rm", *LIMITS, *RESTRICTED, *options, IMAGE, *arguments, check=False)


def inspected() -> dict[str, Any]:
    image: dict[str, Any] = json.loads(podman("image", "inspect", str(IMAGE)).stdout)[0]
    return image


@needs_image
def test_the_image_is_small_and_does_not_run_as_root() -> None:
    image = inspected()
    assert image["Size"] <= MAX_BYTES, f"{image['Size'] / 1e6:.0f} MB"
    assert image["Config"]["User"] == "65532:65532"
    labels = image["Config"]["Labels"]
    for name in ("title", "description", "licenses", "version", "revision"):
        assert labels[f"org.opencontainers.image.{name}"]


@needs_image
def test_the_commands_run_on_a_read_only_file_system_without_rights() -> None:
    version = run("--version")
    assert version.stdout.startswith("rota "), version.stderr
    described = run("admin", "openapi")
    assert json.loads(described.stdout) == json.loads(
        (ROOT / "openapi" / "variant-a.json").read_text()
    )
    refused = run("serve")
    assert refused.returncode == 1
    assert "Check that PostgreSQL runs" in refused.stderr, refused
    assert "Traceback" not in refused.stdout + refused.stderr


@needs_image
def test_every_module_can_be_imported_in_the_image() -> None:
    script = (
        "import importlib, pkgutil, rota, rota_sdk, anthropic, opentelemetry.sdk\n"
        "for found in pkgutil.walk_packages(rota.__path__, 'rota.'):\n"
        "    if not found.name.endswith('__main__') and 'migrations' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "print('imported')\n"
    )
    done = run("-c", script, entrypoint="/opt/rota/bin/python")
    assert done.stdout.strip() == "imported", done.stderr


@needs_image
def test_the_image_has_its_bill_of_materials_and_no_shell() -> None:
    script = "print(open('/opt/rota/share/rota.cdx.json').read())"
    bill = json.loads(run("-c", script, entrypoint="/opt/rota/bin/python").stdout)
    names = {component["name"] for component in bill["components"]}
    assert {"fastapi", "asyncpg", "temporalio"} <= names
    for shell in ("/bin/sh", "/bin/bash", "/bin/busybox"):
        assert run("-c", "true", entrypoint=shell).returncode != 0


def test_containerfile_copies_only_what_exists_and_is_sent_to_the_builder() -> None:
    sent = (ROOT / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Containerfile").read_text(), re.M)
    sources = [source for line in copied for source in line.split()]
    assert len(sources) > 10
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(f"!{part}" in sent for part in (source, str(Path(source).parent))), source


def test_the_label_of_the_image_has_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"ARG VERSION={project['version']}\n" in (ROOT / "Containerfile").read_text()
