"""What CI counts as covered is what coverage.py counts when it traces the same program."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from coverage import Coverage, CoverageData
from coverage.python import PythonFileReporter

from tools.probes import arcs, instrument
from tools.probes.hook.sitecustomize import NAME

ROOT = Path(__file__).parents[1]
# What coverage.py says about a file: such as ("executed_lines", "7").
Counted = set[tuple[str, str]]
PROGRAM = '''\
"""Every statement that has something inside."""

from __future__ import annotations

import asyncio
import contextlib
import functools


def choose(n):
    """A docstring."""
    global chosen
    if n == 0:
        chosen = "none"
    elif n == 1:
        chosen = "one"
    if n > 2 and (
        n < 5
    ):
        return "some"
    return chosen if n < 2 else "many"


class Counter:
    """Another one."""

    size: int = 0

    @property
    @functools.cache
    def double(
        self,
    ):
        return self.size * 2

    @staticmethod
    def unused():
        return 1


def loops(n):
    for i in range(n):
        if i == 2:
            continue
        if i == 4:
            break
    else:
        n += 1
    while n > 3:
        n -= 1
    while True:
        if n == 3:
            return [x for x in range(n) if x]
        n += 1
        if n > 9:
            break
    for _ in ():
        pass


def fails(n):
    try:
        try:
            if n == 1:
                raise KeyError
            if n == 2:
                raise ValueError
            if n == 3:
                raise OSError
        except (KeyError, IndexError):
            return 1
        except ValueError as error:
            n = str(error)
        except RuntimeError:
            n = 5
        else:
            n = 6
        finally:
            if n == 6:
                n = 7
            n = n
    except:
        n = 8
    with contextlib.suppress(KeyError):
        for i in range(2):
            if n == 7:
                raise KeyError
    return n


def matches(n):
    match n:
        case 0 | 1:
            n = 2
        case int() if n > 3:
            n = 3
        case [first, *_]:
            n = first
    match n:
        case 2:
            @functools.cache
            def inner():
                return n
            return inner()
        case other:
            return other


async def waits(n):
    async for value in values(n):
        if value:
            async with contextlib.AsyncExitStack():
                if n == 6:
                    return value
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(contextlib.AsyncExitStack())
        if n == 3 or (
            n == 4
        ):
            n = 2
        await asyncio.sleep(0)
    with contextlib.suppress(ValueError):
        if n == 2:
            raise ValueError
    return n


async def values(n):
    for i in range(n):
        yield i


def all_of(n):
    choose(n), loops(n), fails(n), matches(n), matches([n])
    asyncio.run(waits(n))
    if n == 4: return Counter().double
'''


def counted(data: Path) -> Counted:
    """What coverage.py makes of the data about one file."""
    coverage = Coverage(str(data), config_file=False, branch=True)
    coverage.load()
    result = data.with_suffix(".json")
    coverage.json_report(outfile=str(result))
    (file,) = json.loads(result.read_text())["files"].values()
    kinds = ("missing_lines", "executed_lines", "missing_branches", "executed_branches")
    return {(kind, str(place)) for kind in kinds for place in file[kind]}


def traced(program: Path, argument: int | None) -> Counted:
    """Runs the program as coverage.py does."""
    data = program.with_name("traced")
    coverage = Coverage(str(data), config_file=False, branch=True, include=[str(program)])
    with coverage.collect():
        called(compile(program.read_text(), str(program), "exec"), argument)
    coverage.save()
    return counted(data)


def probed(program: Path, argument: int | None) -> Counted:
    """Runs the program with probes."""
    tree, probes = instrument(program.read_bytes(), str(program), 0)
    seen = bytearray(probes.end)
    called(compile(tree, str(program), "exec"), argument, **{NAME: seen})
    reporter = PythonFileReporter(str(program), Coverage(config_file=False))
    data = CoverageData(str(program.with_name("probed")))
    data.add_arcs({str(program): arcs(probes, seen.__getitem__, reporter)})
    data.write()
    return counted(Path(data.data_filename()))


def called(code: CodeType, argument: int | None, **names: object) -> None:
    module: dict[str, Any] = {"__name__": "program", **names}
    exec(code, module)
    if argument is not None:
        module["all_of"](argument)


@pytest.mark.parametrize("argument", [None, *range(7)])
def test_probes_find_the_lines_and_branches_that_tracing_finds(
    tmp_path: Path, argument: int | None
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert probed(program, argument) == traced(program, argument)


# At the end of `async with`, Python 3.11 says that it runs the line before it, so tracing counts
# line 6 even if the condition is false.
@pytest.mark.parametrize("argument", [0, 1])
def test_probes_find_only_lines_that_have_run(tmp_path: Path, argument: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, contextlib\n"
        "async def waits(n):\n"
        "    async with contextlib.AsyncExitStack():\n"
        "        await asyncio.sleep(0)\n"
        "        if n:\n"
        "            n = 2\n"
        "    return n\n"
        "def all_of(n):\n"
        "    asyncio.run(waits(n))\n"
    )
    found = probed(program, argument)
    assert (("executed_lines", "6") in found) == (argument == 1)
    assert (("executed_branches", "[5, 7]") in found) == (argument == 0)


def test_processes_that_are_forked_and_killed_are_counted(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools" / "probes", tmp_path / "tools" / "probes")
    (tmp_path / "pyproject.toml").write_text("")
    package = tmp_path / "src" / "rota"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "unused.py").write_text("if __name__:\n    print(1)\n")
    (package / "__main__.py").write_text(
        "import os, signal\n"
        "if os.fork():\n"
        "    print(os.wait()[1])\n"
        "else:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    def run(*command: str, path: str = ".") -> str:
        environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            (sys.executable, *command),
            cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    run("-m", "tools.probes", "prepare")
    assert run("-m", "rota", path="tools/probes/hook:src") == f"{int(signal.SIGKILL)}\n"
    run("-m", "tools.probes", "report")
    run("-m", "coverage", "json", "-o", "covered.json")
    files = json.loads((tmp_path / "covered.json").read_text())["files"]
    main = files["src/rota/__main__.py"]
    assert main["executed_lines"] == [1, 2, 3, 5]
    assert main["executed_branches"] == [[2, 3], [2, 5]]
    assert files["src/rota/unused.py"]["executed_lines"] == []
