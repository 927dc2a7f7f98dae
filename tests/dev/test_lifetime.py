"""Whatever happens to `rota dev`, nothing of it is left and nothing blocks the next one."""

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
# Enough to show what a test is about, and fast.
FEW = tuple(word for part in ("model", "temporal", "idp", "stripe") for word in ("--without", part))


def free_base() -> int:
    """A port after which all those of the parts are free too."""
    while True:
        base = ports.find(besides=set())
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
    program = dev("--port", str(base), "--without", "model")
    program.wait_for(READY)
    connection = await connect(data, base)
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    # A backend in the middle of a statement does not look whether its server is gone.
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


def test_ctrl_c_leaves_no_process_and_ends_well(dev: Dev) -> None:
    program = dev("--port", str(free_base()), "--without", "model")
    program.wait_for(READY)
    family = program.family()

    program.process.send_signal(signal.SIGINT)

    assert program.wait() == 0
    assert not left_of(family)
    stopped = [s.split()[0] for s in program.output.splitlines() if " stopped" in s]
    assert stopped == ["worker", "service", "stripe", "idp", "temporal", "redis", "postgres"]


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


def test_a_second_one_on_the_same_data_is_refused_and_told_who_runs(dev: Dev, data: Path) -> None:
    base = free_base()
    first = dev("--port", str(base), *FEW)
    first.wait_for(READY)

    second = dev("--port", str(base))

    assert second.wait() == 1
    assert f"process {first.process.pid} at http://127.0.0.1:{base}" in second.output
    assert "rota dev --stop" in second.output
    assert first.process.poll() is None


def test_a_detached_one_returns_when_ready_and_can_be_stopped(data: Path) -> None:
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

    for said in ("Stopped.", "Nothing is running"):
        stopped = subprocess.run(
            command(data, "--stop"), capture_output=True, text=True, timeout=60, check=True
        )
        assert said in stopped.stdout

    assert not left_of(family)


def test_a_failing_part_is_named_with_its_last_words_and_all_else_stops(dev: Dev) -> None:
    program = dev(
        "--port",
        str(free_base()),
        *FEW,
        "--migrate",
        "import sys; sys.exit('no such table')",
    )
    program.wait_for("postgres   starting")
    assert program.wait() == 1
    assert "migrations: ended with exit code 1\n  | no such table" in program.output
    assert "postgres   stopped" in program.output


def test_fresh_deletes_only_what_is_ours(dev: Dev, data: Path) -> None:
    data.mkdir()
    (data / "thesis.txt").write_text("years of work")
    program = dev("--fresh")
    assert program.wait() == 1
    assert "has other files in it" in program.output
    assert (data / "thesis.txt").exists()


def test_production_is_refused(dev: Dev, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ENV", "production")
    program = dev()
    assert program.wait() == 1
    assert "ROTA_ENV says production" in program.output


def guarded(code: str, grace_s: float = 10) -> subprocess.Popen[str]:
    """Code under a guard; it prints a line when it is set up."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", guard.__file__, str(int(signal.SIGTERM)), str(grace_s)),
            *(sys.executable, "-c", code),
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

# The second fork's child belongs to no one but the subreaper.
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


def test_a_command_that_will_not_stop_is_killed() -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_command_ends_even_when_its_guard_is_killed() -> None:
    process = guarded(STUBBORN)
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    assert not left_of(family)
