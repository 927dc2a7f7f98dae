"""The directory in which a local stack keeps its data, and who may use it.

Its lock is held by the stack and by every guard the stack started, so a free
lock means that no process of an earlier run is left, however that run ended.
"""

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

MARKER = ".rota-data"
LOCK = "lock"
LOG = "dev.log"
COMPILED = "pycache"
RUNNING = "running.json"


class DirectoryError(Exception):
    """The directory cannot be used; the message says why and what to do."""


class DirectoryInUseError(DirectoryError):
    def __init__(self, path: Path, running: "Running | None") -> None:
        self.running = running
        who = f"process {running.pid}" if running else "another process"
        at = f" at {running.url}" if running and running.url else ""
        super().__init__(
            f"{path} is in use by {who}{at}. Stop it with: rota dev --stop --data {path}"
        )


@dataclass(frozen=True)
class Running:
    """Who uses a directory, for those who come later."""

    pid: int
    url: str | None = None
    # The words that `rota dev --detach` prints once everything is ready.
    greeting: str | None = None

    @property
    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    @property
    def lock(self) -> int:
        assert self._lock is not None, "the directory is not claimed"
        return self._lock

    async def claim(self, *, patience_s: float = 20, fresh: bool = False) -> Self:
        """Take the directory, waiting for parts of a run that was killed to end."""
        self.adopt()
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + patience_s
        while not _locked(descriptor):
            running = self.running()
            if (running and running.alive) or time.monotonic() > deadline:
                os.close(descriptor)
                raise DirectoryInUseError(self.path, running)
            await asyncio.sleep(0.05)
        self._lock = descriptor
        if fresh:
            self._empty()
        self.announce(Running(os.getpid()))
        return self

    def release(self) -> None:
        if self._lock is not None:
            (self.path / RUNNING).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def in_use(self) -> bool:
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not _locked(descriptor)
        finally:
            os.close(descriptor)

    def running(self) -> Running | None:
        try:
            return Running(**json.loads((self.path / RUNNING).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def announce(self, running: Running) -> None:
        # Readers see the old words or the new ones, never half of either.
        written = self.path / f"{RUNNING}.new"
        written.write_text(json.dumps(asdict(running)))
        written.replace(self.path / RUNNING)

    def log(self, name: str) -> Path:
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"

    def password(self, name: str) -> str:
        """A secret made once and readable by us alone: 127.0.0.1 is open to every
        user of the machine."""
        path = self.path / f"{name}.password"
        if not path.exists():
            self.write_private(path, secrets.token_urlsafe(24))
        return path.read_text()

    def compiling(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Who wants no compiled files beside the sources still wants the second start to
        be fast, and without any the service alone takes five seconds to import."""
        environment = dict(environ)
        if environment.pop("PYTHONDONTWRITEBYTECODE", None):
            environment["PYTHONPYCACHEPREFIX"] = str(self.path / COMPILED)
        return environment

    @staticmethod
    def write_private(path: Path, text: str) -> None:
        written = path.with_name(f"{path.name}.new")
        written.unlink(missing_ok=True)
        with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        written.replace(path)

    def adopt(self) -> None:
        """Make it ours if it is new or empty."""
        marker = self.path / MARKER
        if not marker.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise DirectoryError(
                    f"{self.path} has other files in it. Choose an empty directory with --data."
                )
            self.path.chmod(0o700)
            marker.write_text("Made by `rota dev`, which may delete everything here.\n")

    def _empty(self) -> None:
        for entry in self.path.iterdir():
            if entry.name in (MARKER, LOCK, LOG, COMPILED):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
