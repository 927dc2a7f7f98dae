"""A wheel built from the tracked files alone, installed where nothing else of the repository is."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
# The interpreter that the wheel is installed for, where it is not the one that runs the tests.
PYTHON = os.environ.get("ROTA_TEST_WHEEL_PYTHON") or sys.executable


def tracked_files(*folders: str) -> tuple[str, ...]:
    listed = subprocess.run(
        ("git", "ls-files", "-z", *folders), cwd=REPOSITORY, capture_output=True, check=True
    )
    names = listed.stdout.decode().split("\0")
    return tuple(name for name in names if name and (REPOSITORY / name).is_file())


def build_wheel(folder: Path) -> Path:
    """Builds in a copy of what a clean clone has after `make dashboard`, with the build tools from
    requirements.lock. The wheel of the SDK, which Rota needs, is beside it."""
    source = folder / "source"
    for name in (*tracked_files(), *built_files()):
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((REPOSITORY / name).read_bytes())
    for package in (source, source / "sdks" / "python"):
        uv("build", "--wheel", "--no-build-isolation", "--out-dir", str(folder), str(package))
    (wheel,) = folder.glob("rota-*.whl")
    return wheel


def built_files() -> list[str]:
    """The dashboard, which is not in git."""
    static = REPOSITORY / "src" / "rota" / "static"
    return [str(path.relative_to(REPOSITORY)) for path in static.rglob("*") if path.is_file()]


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel and the dependencies that the wheel itself names."""

    folder: Path

    @classmethod
    def of(cls, wheel: Path, folder: Path) -> "Installation":
        uv("venv", "--python", PYTHON, str(folder))
        # The lock only says which versions. What to install comes from the wheel's metadata, so
        # a dependency that the metadata does not name is missing here.
        lock = str(REPOSITORY / "requirements.lock")
        python = str(folder / "bin" / "python")
        own = str(wheel.parent)
        uv(
            "pip",
            "install",
            "--python",
            python,
            "--constraint",
            lock,
            "--find-links",
            own,
            str(wheel),
        )
        return cls(folder)

    def command(self, name: str, *arguments: str) -> tuple[str, ...]:
        return (str(self.folder / "bin" / name), *arguments)

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Only what is needed: no PYTHONPATH, no ROTA_* variables from outside."""
        return {"PATH": os.defpath, "HOME": str(self.folder), **settings}

    def run(self, command: Sequence[str], settings: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(settings or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def uv(*arguments: str) -> None:
    done = subprocess.run(
        (str(UV), *arguments, "--quiet"),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        | {"VIRTUAL_ENV": sys.prefix, "UV_PYTHON_DOWNLOADS": "never"},
        cwd=sys.prefix,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
