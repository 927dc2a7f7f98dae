"""Containers: how they are started, and what the image may do in one."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# For a machine on which podman's own choice does not work, such as runc.
RUNTIME = os.environ.get("ROTA_TEST_RUNTIME")
LIMITS = ("--ulimit", "nofile=10000:10000", "--ulimit", "nproc=8000:8000")
# How a deployment runs the image: nothing is writable except /tmp, and no right is left.
RESTRICTED = (
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp"),
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
)


def podman(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = ("podman", *(("--runtime", RUNTIME) if RUNTIME else ()), *arguments)
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(
            f"{' '.join(arguments[:6])} … exited with {done.returncode}: {output(done)}"
        )
    return done


def output(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def variables(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for name, text in given.items() for part in ("--env", f"{name}={text}"))


@dataclass(frozen=True)
class Container:
    name: str

    def _inspected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(podman("inspect", self.name).stdout)[0]
        return found

    @property
    def pid(self) -> int:
        found: int = self._inspected()["State"]["Pid"]
        return found

    @property
    def exit_code(self) -> int:
        found: int = self._inspected()["State"]["ExitCode"]
        return found

    def address(self, network: str) -> str:
        found: str = self._inspected()["NetworkSettings"]["Networks"][network]["IPAddress"]
        return found

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the container."""
        return podman("exec", self.name, *command, check=False)

    def log(self) -> str:
        return output(podman("logs", self.name))

    def stop(self, grace_s: int = 30) -> int:
        podman("stop", "--time", str(grace_s), self.name)
        return self.exit_code

    def kill(self) -> None:
        podman("kill", self.name)

    def start(self) -> None:
        podman("start", self.name)

    def remove(self) -> None:
        podman("rm", "--force", "--ignore", "--time", "0", self.name)
