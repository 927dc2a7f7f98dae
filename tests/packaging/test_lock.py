"""requirements.lock fits pyproject.toml: `make lock` was run after the last change."""

import re
import tomllib
from itertools import chain
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.installed import REPOSITORY

LOCK = (REPOSITORY / "requirements.lock").read_text()
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PINNED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE)
}
# Packages in this repository, which `make setup` installs beside those in the lock.
OWN = set(PROJECT["tool"]["uv"]["sources"])
WANTED: list[str] = [
    wanted
    for wanted in (
        *PROJECT["project"]["dependencies"],
        *chain.from_iterable(PROJECT["project"]["optional-dependencies"].values()),
        *chain.from_iterable(PROJECT["dependency-groups"].values()),
        *PROJECT["build-system"]["requires"],
    )
    if Requirement(wanted).name not in OWN
]


@pytest.mark.parametrize("wanted", WANTED)
def test_the_lock_has_a_version_that_the_project_accepts(wanted: str) -> None:
    requirement = Requirement(wanted)
    version = PINNED.get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement.name} is not in the lock; run: make lock"
    assert requirement.specifier.contains(version, prereleases=True), (
        f"the lock has {requirement.name} {version}, not {requirement.specifier}; run: make lock"
    )


def test_every_package_in_the_lock_has_hashes_and_no_address() -> None:
    entries = [entry for entry in re.split(r"^(?=\S)", LOCK, flags=re.MULTILINE) if entry]
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in LOCK


def test_what_the_packages_of_this_repository_need_is_in_the_lock() -> None:
    assert {"rota-sdk"} == OWN
    sdk = tomllib.loads((REPOSITORY / "sdks" / "python" / "pyproject.toml").read_text())
    for wanted in map(Requirement, sdk["project"]["dependencies"]):
        assert wanted.specifier.contains(PINNED[canonicalize_name(wanted.name)])


@pytest.mark.parametrize("tool", ["hatchling", "uv"])
def test_build_tools_have_an_exact_version(tool: str) -> None:
    asked = {str(r.specifier) for r in map(Requirement, WANTED) if r.name == tool}
    assert asked == {f"=={PINNED[canonicalize_name(tool)]}"}


@pytest.mark.parametrize("name", ["fastapi", "mcp", "openai", "pydantic-ai-slim", "uvicorn"])
def test_a_package_whose_private_parts_are_used_stays_at_the_tested_minor(name: str) -> None:
    version = PINNED[canonicalize_name(name)]
    major, minor, *_ = map(int, version.split("."))
    [wanted] = {
        r.specifier for r in map(Requirement, PROJECT["project"]["dependencies"]) if r.name == name
    }
    assert wanted.contains(version)
    assert not wanted.contains(f"{major}.{minor + 1}.0")
