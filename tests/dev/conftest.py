"""Programs as users start them, and what is left of them afterwards."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

STUB = Path(__file__).with_name("stub_dev.py")
DEADLINE_S = 30.0

Dev = Callable[..., "Program"]


class Program:
    """A `rota dev` in the foreground, whose lines can be waited for."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command(data, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = ""

    def wait_for(self, words: str) -> None:
        """Until it says so. It ends by itself when a part does not start in time."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if words in line:
                return
        raise AssertionError(f"ended without saying {words!r}:\n{self.output}")

    def wait(self) -> int:
        rest, _ = self.process.communicate(timeout=DEADLINE_S)
        self.output += rest
        return self.process.returncode

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def command(data: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(STUB), "--data", str(data), *arguments]


def lives(process: psutil.Process) -> bool:
    """One that has ended and waits for init to take note of it does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def left_of(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still live when time is up."""
    deadline = time.monotonic() + DEADLINE_S
    while left := list(filter(lives, family)):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def dev(data: Path) -> Iterator[Dev]:
    programs: list[Program] = []

    def start(*arguments: str) -> Program:
        programs.append(Program(data, *arguments))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            family = program.family()
            program.process.terminate()
            program.wait()
            assert not left_of(family)
