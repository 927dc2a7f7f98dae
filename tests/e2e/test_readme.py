"""Follows the README as a new user does: `rota dev`, then its examples without changes."""

import asyncio
import os
import re
import sys
import time
from pathlib import Path

import pytest

from tests.service import free_port

ROOT = Path(__file__).parents[2]
FIRST_START_S = 30
SECOND_START_S = 10


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
    await run(sys.executable, "-m", "rota.cli", "dev", *options)
    return time.monotonic() - started


def base_port() -> int:
    """A port that leaves room for the ports of the other components."""
    return free_port() // 20 * 20


@pytest.mark.timed
async def test_a_new_user_starts_within_half_a_minute_and_completes_a_first_task(
    tmp_path: Path,
) -> None:
    [_, example, money] = re.findall(
        r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    port = base_port()
    where = ("--data", str(tmp_path / "data"), "--port", str(port))
    first_s = await rota_dev("--detach", *where)
    try:
        printed = await run(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            example + money,
            BASE=f"http://127.0.0.1:{port}",
            ISSUER=f"http://127.0.0.1:{port + 6}",
        )
        assert '"displayName"' in printed
        assert "event: task.started" in printed
        assert "event: task.completed" in printed
        assert '"kind":"model"' in printed
        assert '"totalAvailable":1000,' in printed
        assert f"http://127.0.0.1:{port + 8}/pay/cs_" in printed
        await rota_dev("--stop", *where)
        second_s = await rota_dev("--detach", *where)
    finally:
        await rota_dev("--stop", *where)
    print(f"rota dev: first start {first_s:.1f} s, second {second_s:.1f} s")
    assert first_s < FIRST_START_S
    assert second_s < SECOND_START_S
