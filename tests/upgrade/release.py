"""A release as code and an environment of its own: this checkout, or an earlier commit."""

import asyncio
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

# The commit of the release before this one. Change it when a release is made.
BEFORE = os.environ.get("ROTA_TEST_BEFORE") or "8aa038ad0d9da179dec19b8a3a9f273236bbb8dd"


@dataclass(frozen=True)
class Release:
    # What the report calls it.
    name: str
    root: Path
    python: Path

    def command(self, module: str, *arguments: str) -> Sequence[str]:
        # -P: without the current folder, which has the modules of this checkout.
        return [str(self.python), "-P", "-m", module, *arguments]

    def variables(self) -> Mapping[str, str]:
        parts = (self.root / "sdks" / "python" / "src", self.root / "src", self.root)
        return {"PYTHONPATH": os.pathsep.join(map(str, parts))}

    async def run(self, variables: Mapping[str, str], command: Sequence[str]) -> tuple[int, str]:
        """Runs a command of the release to its end. Returns its exit code and its output."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **variables, **self.variables()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace")

    async def admin(self, variables: Mapping[str, str], *arguments: str) -> str:
        """Runs `rota admin …`. Fails if it does."""
        code, output = await self.run(variables, self.command("rota.cli", "admin", *arguments))
        assert code == 0, f"{self.name}: rota admin {' '.join(arguments)}: {code}\n{output}"
        return output


def is_known(commit: str) -> bool:
    """Whether the clone has the commit. A shallow clone does not."""
    command = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def read_at(commit: str, path: str) -> str:
    """The text of a file in the commit."""
    command = ["git", "-C", str(ROOT), "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def this_release() -> Release:
    return Release("N", ROOT, Path(sys.executable))


def release_before(folder: Path, commit: str = BEFORE) -> Release:
    """Writes the files of the commit into the folder and installs what it has locked."""
    root, environment = folder / "code", folder / "environment"
    # Not a worktree: git would remember it if this process was killed.
    files = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(root, filter="data")
    uv = str(Path(sys.executable).parent / "uv")
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(environment))
    lock = str(root / "requirements.lock")
    python = environment / "bin" / "python"
    install = (uv, "pip", "install", "--quiet", "--python", str(python))
    _run(*install, "--compile-bytecode", "--require-hashes", "--requirement", lock)
    # As `make setup` does, so that the release finds its own version.
    packages = ("--editable", str(root), "--editable", str(root / "sdks" / "python"))
    _run(*install, "--no-deps", "--no-build-isolation", *packages)
    return Release("N-1", root, python)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
