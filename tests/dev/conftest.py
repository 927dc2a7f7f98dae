"""Runs `rota dev` as a user does, and finds the processes that it leaves behind."""

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
    """A `rota dev` in the foreground. Tests can wait for its output."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command(data, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = ""

    def wait_for(self, text: str) -> None:
        """Waits for a line with this text. The program exits if a component fails to start."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"the program ended before it printed {text!r}:\n{self.output}")

    def wait(self) -> int:
        rest, _ = self.process.communicate(timeout=DEADLINE_S)
        self.output += rest
        return self.process.returncode

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def command(data: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(STUB), "--data", str(data), *arguments]


def is_alive(process: psutil.Process) -> bool:
    """A zombie, which only waits for init to reap it, does not count."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def left_of(family: list[psutil.Process]) -> list[psutil.Process]:
    """The processes that are still alive at the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while left := list(filter(is_alive, family)):
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
