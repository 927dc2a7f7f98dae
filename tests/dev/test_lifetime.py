"""However `rota dev` ends, it leaves no process behind and does not block the next start."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import psutil
import pytest

from rota.dev import guard, ports
from rota.dev.directory import DataDirectory
from rota.dev.run import OFFSETS
from tests.dev.conftest import DEADLINE_S, Dev, command, left_of

READY = "Logs "
LAST = ("stripe", "idp", "temporal", "redis", "postgres")
# Starts only the components that most tests here need, to be fast.
FEW = tuple(word for name in ("temporal", "idp", "stripe", "demo") for word in ("--without", name))


def free_base() -> int:
    """A port for which the ports of all components are free too."""
    while True:
        base = ports.find()
        if all(ports.is_free(base + offset) for offset in OFFSETS.values()):
            return base


async def connect(data: Path, base: int) -> asyncpg.Connection:
    password = DataDirectory(data).password("rota")
    return await asyncpg.connect(f"postgresql://rota:{password}@127.0.0.1:{base + 1}/rota")


async def until_busy(connection: asyncpg.Connection) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    async with asyncio.timeout(DEADLINE_S):
        while not await connection.fetchval(query):
            await asyncio.sleep(0.01)


def names(family: list[psutil.Process]) -> set[str]:
    return {process.name() for process in family}


async def test_kill_9_leaves_no_process_and_the_next_start_finds_the_data(
    dev: Dev, data: Path
) -> None:
    base = free_base()
    program = dev("--port", str(base))
    program.wait_for(READY)
    connection = await connect(data, base)
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    # A backend that runs a statement does not notice that its server is gone.
    sleeper = await connect(data, base)
    busy = asyncio.create_task(sleeper.fetchval("SELECT pg_sleep(600)"))
    await until_busy(connection)
    family = program.family()
    assert names(family) >= {"postgres", "redis-server", "temporal"}

    program.process.kill()
    program.wait()

    assert not left_of(family)
    with pytest.raises((asyncpg.PostgresError, OSError)):
        await busy
    dev("--port", str(base), *FEW).wait_for(READY)
    connection = await connect(data, base)
    assert await connection.fetchval("SELECT answer FROM kept") == 42
    await connection.close()


def test_ctrl_c_leaves_no_process_and_exits_with_0(dev: Dev) -> None:
    program = dev("--port", str(free_base()))
    program.wait_for(READY)
    family = program.family()

    program.process.send_signal(signal.SIGINT)

    assert program.wait() == 0
    assert not left_of(family)
    stopped = [s.split()[0] for s in program.output.splitlines() if " stopped" in s]
    assert stopped == ["worker", "service", "demo", *LAST]


def test_kill_9_during_the_first_start_does_not_block_the_next(dev: Dev, data: Path) -> None:
    program = dev("--port", str(free_base()), *FEW)
    program.wait_for("postgres   starting")
    deadline = time.monotonic() + DEADLINE_S
    while not (data / "postgres.new" / "PG_VERSION").exists():
        assert time.monotonic() < deadline
    family = program.family()
    program.process.kill()
    program.wait()
    assert not left_of(family)
    assert not (data / "postgres").exists()

    dev("--port", str(free_base()), *FEW).wait_for(READY)


def test_a_second_one_on_the_same_data_is_refused_and_names_the_first(dev: Dev, data: Path) -> None:
    base = free_base()
    first = dev("--port", str(base), *FEW)
    first.wait_for(READY)

    second = dev("--port", str(base))

    assert second.wait() == 1
    assert f"process {first.process.pid} at http://127.0.0.1:{base}" in second.output
    assert "rota dev --stop" in second.output
    assert first.process.poll() is None


def test_detach_returns_when_ready_and_stop_stops_it(data: Path) -> None:
    started = subprocess.run(
        command(data, "--detach", "--port", str(free_base()), *FEW),
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
        check=True,
    )
    running = DataDirectory(data).running()
    assert running is not None
    assert running.url is not None
    assert running.url in started.stdout
    family = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]

    for expected in ("Stopped.", "Nothing is running"):
        stopped = subprocess.run(
            command(data, "--stop"), capture_output=True, text=True, timeout=60, check=True
        )
        assert expected in stopped.stdout

    assert not left_of(family)


def test_a_failed_component_is_named_with_its_last_log_lines_and_all_others_stop(dev: Dev) -> None:
    program = dev(
        "--port",
        str(free_base()),
        *FEW,
        "--migrate",
        "import sys; sys.exit('no such table')",
    )
    program.wait_for("postgres   starting")
    assert program.wait() == 1
    assert "migrations: exited with code 1\n  | no such table" in program.output
    assert "postgres   stopped" in program.output


def test_fresh_refuses_a_directory_that_rota_did_not_create(dev: Dev, data: Path) -> None:
    data.mkdir()
    (data / "thesis.txt").write_text("years of work")
    program = dev("--fresh")
    assert program.wait() == 1
    assert "contains other files" in program.output
    assert (data / "thesis.txt").exists()


def test_production_is_refused(dev: Dev, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENV", "production")
    program = dev()
    assert program.wait() == 1
    assert "ROTA_ENV is production" in program.output


def guarded(code: str, grace_s: float = 10) -> subprocess.Popen[str]:
    """Runs code under a guard, and waits until the code prints a line."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            guard.__file__,
            str(int(signal.SIGTERM)),
            str(grace_s),
            sys.executable,
            "-c",
            code,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while True: signal.pause()
"""

# The child of the second fork has no parent except the subreaper.
DAEMON = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("up", flush=True)
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""


def test_a_command_that_ignores_the_stop_signal_is_killed() -> None:
    process = guarded(STUBBORN, grace_s=0.2)
    family = psutil.Process(process.pid).children(recursive=True)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert not left_of(family)


def test_a_daemon_that_left_its_parent_is_killed_too() -> None:
    process = guarded(DAEMON)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 2
    process.communicate(timeout=DEADLINE_S)
    assert not left_of(family)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux can signal a child when its parent ends"
)
def test_a_command_ends_when_its_guard_is_killed() -> None:
    process = guarded(STUBBORN)
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    assert not left_of(family)
