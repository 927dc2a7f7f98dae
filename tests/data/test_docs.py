"""docs/data.md: its examples run."""

import asyncio
import os
import re
from pathlib import Path

from tests.data.world import World

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


async def test_the_examples_about_data_run_unchanged(world_a: World, tmp_path: Path) -> None:
    script = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    person = await world_a.service.sign_in()
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        script,
        cwd=tmp_path,
        env=os.environ
        | {"BASE": str(world_a.service.http.base_url).rstrip("/"), "TOKEN": person.token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    days, lines = printed.decode().split()
    assert days == "90"
    assert int(lines) + 1 == len((tmp_path / "account.ndjson").read_bytes().splitlines())
