"""The data directory of a local stack, and its lock.

The stack and every guard that it started hold the lock. So when the lock is free, no process of
an earlier run is left, even if that run was killed.
"""

import asyncio
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
ENVIRONMENT = "environment.json"


class DirectoryError(Exception):
    """The directory cannot be used. The message says why and what to do."""


class DirectoryInUseError(DirectoryError):
    def __init__(self, path: Path, running: "Running | None") -> None:
        self.running = running
        user = f"process {running.pid}" if running else "another process"
        at = f" at {running.url}" if running and running.url else ""
        super().__init__(
            f"{path} is in use by {user}{at}. Stop it with: rota dev --stop --data {path}"
        )


@dataclass(frozen=True)
class Running:
    """The process that uses a directory, as written to its file."""

    pid: int
    url: str | None = None
    # What `rota dev --detach` prints when everything is ready.
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

    async def claim(self, *, timeout_s: float = 20, fresh: bool = False) -> Self:
        """Locks the directory. Waits for the processes of a killed run to exit."""
        self.adopt()
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + timeout_s
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
            (self.path / ENVIRONMENT).unlink(missing_ok=True)
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
        # Written to another file first, so readers never see half of it.
        written = self.path / f"{RUNNING}.new"
        written.write_text(json.dumps(asdict(running)))
        written.replace(self.path / RUNNING)

    def publish(self, environment: Mapping[str, str]) -> None:
        """Stores the settings of the running service, for operator commands in the same folder."""
        self.write_private(self.path / ENVIRONMENT, json.dumps(dict(environment)))

    def published(self) -> dict[str, str] | None:
        """The settings of the service, if it runs and only this user can have written them."""
        try:
            folder = self.path.stat()
            if folder.st_uid != os.geteuid() or folder.st_mode & 0o022 or not self.in_use():
                return None
            found = json.loads((self.path / ENVIRONMENT).read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def log(self, name: str) -> Path:
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"

    def password(self, name: str) -> str:
        """A secret that is created once and only this user can read. It is needed because every
        user of the machine can connect to 127.0.0.1."""
        path = self.path / f"{name}.password"
        if not path.exists():
            self.write_private(path, secrets.token_urlsafe(24))
        return path.read_text()

    def compiling(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment with compiled files in the data directory instead of none.

        Without compiled files, importing the service alone takes five seconds.
        """
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
        """Marks a new or empty directory as a data directory."""
        marker = self.path / MARKER
        if not marker.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise DirectoryError(
                    f"{self.path} contains other files. Choose an empty directory with --data."
                )
            self.path.chmod(0o700)
            marker.write_text(
                "Created by `rota dev`. `rota dev --fresh` deletes everything here.\n"
            )

    def _empty(self) -> None:
        for entry in self.path.iterdir():
            if entry.name in (MARKER, LOCK, LOG, COMPILED):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _locked(descriptor: int) -> bool:
    # Not on Windows, where commands such as `rota --version` work too.
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
