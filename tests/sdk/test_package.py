"""The package: complete, with two dependencies, typed for its users, and quick to import."""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.installed import REPOSITORY, tracked_files, uv
from tests.sdk.installed import FOLDER, Sdk

IMPORT_MS = 150
SAMPLE = Path(__file__).parent / "sample.py"
PYRIGHT = REPOSITORY / "tests" / "peers" / "pyright" / "requirements.txt"


def test_the_wheel_has_every_module_and_its_types(installed_sdk: Sdk) -> None:
    with zipfile.ZipFile(installed_sdk.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = "sdks/python/src/"
    assert names == {name.removeprefix(source) for name in tracked_files(source)}
    assert "rota_sdk/py.typed" in names


def test_the_source_distribution_has_what_is_in_git(installed_sdk: Sdk) -> None:
    with tarfile.open(installed_sdk.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    # The metadata, and the file that says what hatchling leaves out.
    assert names - {"PKG-INFO", ".gitignore"} == {
        name.removeprefix("sdks/python/") for name in tracked_files("sdks/python")
    }


def test_httpx_and_pydantic_are_the_only_dependencies(installed_sdk: Sdk) -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    needed = {Requirement(each).name for each in project["dependencies"]}
    assert needed == {"httpx", "pydantic"}
    script = (
        "import json; from importlib.metadata import distributions, requires;"
        "print(json.dumps({d.name: requires(d.name) or [] for d in distributions()}))"
    )
    found: dict[str, list[str]] = json.loads(installed_sdk.run("-c", script))
    wanted = {canonicalize_name(name): needs for name, needs in found.items()}
    reached, waiting = set(), [canonicalize_name("rota-sdk")]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        for each in map(Requirement, wanted[name]):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                waiting += {canonicalize_name(each.name)} - reached
    assert set(wanted) == reached


def test_no_file_names_a_registry() -> None:
    for name in tracked_files("sdks/python"):
        text = (REPOSITORY / name).read_text()
        assert "index-url" not in text, name
        assert "[[tool.uv.index]]" not in text, name


def without_ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def test_mypy_accepts_the_code_of_a_user(installed_sdk: Sdk, tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLE.read_text())
    mypy = Path(sys.executable).with_name("mypy")
    done = subprocess.run(
        (mypy, "--strict", "--python-executable", installed_sdk.python, sample),
        cwd=tmp_path,
        env=without_ours(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_the_code_of_a_user(installed_sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE.read_text())
    settings = {"typeCheckingMode": "strict", "include": ["sample.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    uv("venv", "--python", sys.executable, str(tmp_path / "pyright"))
    python = str(tmp_path / "pyright" / "bin" / "python")
    uv("pip", "install", "--python", python, "--require-hashes", "--requirement", str(PYRIGHT))
    program = tmp_path / "pyright" / "bin" / "basedpyright"
    done = subprocess.run(
        (program, "--pythonpath", installed_sdk.python, "--project", tmp_path),
        cwd=tmp_path,
        env=without_ours(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.timed
def test_importing_the_package_takes_little_time(installed_sdk: Sdk) -> None:
    def measured(statement: str) -> float:
        script = (
            "import time; t = time.perf_counter()\n"
            f"{statement}\nprint((time.perf_counter() - t) * 1000)"
        )
        return statistics.median(float(installed_sdk.run("-c", script)) for _ in range(9))

    whole = measured("import rota_sdk")
    print(
        f"import rota_sdk: {whole:.1f} ms; with Rota: {measured('from rota_sdk import Rota'):.0f}"
    )
    assert whole <= IMPORT_MS
