"""Follows the README as a new user does: `rota dev`, then its examples without changes."""

import asyncio
import os
import random
import re
import socket
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# On a machine that imports the service in about three seconds. A slower or busier machine may take
# as much longer as its imports do.
FIRST_START_S, FIRST_START_IMPORTS = 30, 7
SECOND_START_S, SECOND_START_IMPORTS = 10, 3
# The ports of `rota dev` follow its base port.
PORTS = 20


async def run(*command: str, **variables: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    return printed


async def rota_dev(*options: str) -> float:
    """Runs `rota dev` and returns how long it took."""
    started = time.monotonic()
    await run_rota_dev(*options)
    return time.monotonic() - started


async def run_rota_dev(*options: str) -> str:
    """Runs `rota dev` and returns what it printed."""
    return await run(sys.executable, "-m", "rota.cli", "dev", *options)


async def import_time_s() -> float:
    """How long this machine takes now to import what `rota serve` and `rota worker` run."""
    started = time.monotonic()
    await run(sys.executable, "-c", "import rota.app, rota.worker")
    return time.monotonic() - started


def blocks(language: str) -> list[str]:
    """The blocks of the README in this language."""
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def with_typescript_sdk(folder: Path) -> Path:
    """A folder in which programs of Node find the SDK, as `make setup` builds it."""
    scope = folder / "node_modules" / "@rota"
    scope.mkdir(parents=True)
    (scope / "sdk").symlink_to(ROOT / "sdks" / "typescript")
    return folder


def base_port() -> int:
    """A port that is free with those after it, below the ports that the system hands out."""
    starts = list(range(20_000, 32_000, PORTS))
    random.shuffle(starts)
    return next(start for start in starts if all(map(is_free, range(start, start + PORTS))))


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.timed
async def test_a_new_user_starts_within_half_a_minute_and_completes_a_first_task(
    tmp_path: Path,
) -> None:
    [_, example, money, python] = blocks("sh")
    [[first_python], [first_typescript]] = blocks("py"), blocks("ts")
    port, import_s = base_port(), await import_time_s()
    where = ("--data", str(tmp_path / "data"), "--port", str(port))
    first_s = await rota_dev("--detach", *where)
    try:
        printed = await run(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            # The tests run in the environment already, and it can have another name.
            example
            + money
            + python.removeprefix("source .venv/bin/activate\n")
            + f"python <<'PYTHON'\n{first_python}PYTHON\n"
            + f"cd {with_typescript_sdk(tmp_path)}\n"
            + f"node --input-type=module <<'NODE'\n{first_typescript}NODE\n",
            BASE=f"http://127.0.0.1:{port}",
            ISSUER=f"http://127.0.0.1:{port + 6}",
            PATH=os.pathsep.join(
                (str(BIN), str(BIN.parent / "node"), os.environ["PATH"]),
            ),
        )
        assert '"displayName"' in printed
        assert "event: task.started" in printed
        assert "event: task.completed" in printed
        assert '"kind":"model"' in printed
        # The demonstration model has a price, so the task has used less than a cent or two of $10.
        assert re.search(r'"totalAvailable":99\d,', printed)
        assert f"http://127.0.0.1:{port + 8}/pay/cs_" in printed
        # Through the SDK, after the checkout.
        followed = printed.partition("/pay/cs_")[2]
        end = r"\[step\.finished\]\n\n\[task\.completed\]\nIt cost 0\.\d+ dollars"
        assert re.search(end, followed), followed
        # The first lines in Python and in TypeScript print the output of the same task.
        assert followed.partition(" dollars.")[2].count("## Complaints") == 2
        await rota_dev("--stop", *where)
        second_s = await rota_dev("--detach", *where)
    finally:
        await rota_dev("--stop", *where)
    import_s = max(import_s, await import_time_s())
    print(f"rota dev: first {first_s:.1f} s, second {second_s:.1f} s, imports {import_s:.1f} s")
    assert first_s < max(FIRST_START_S, FIRST_START_IMPORTS * import_s)
    assert second_s < max(SECOND_START_S, SECOND_START_IMPORTS * import_s)
