"""Runs the examples of docs/companies.md."""

import asyncio
import os
import re
from pathlib import Path

from tests.service import Person, Service

PAGE = Path(__file__).parents[2] / "docs" / "companies.md"


async def run_example(
    number: int, service: Service, folder: Path, *, owner: Person, colleague: Person, **more: str
) -> list[str]:
    """Runs one block of the page, unchanged. Returns the lines that it prints."""
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    functions = re.findall(r"^\w+\(\) .*$", blocks[0], re.MULTILINE)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        "\n".join([*functions, blocks[number]]),
        cwd=folder,
        env=os.environ
        | {
            "BASE": str(service.http.base_url).rstrip("/"),
            "TOKEN": owner.token,
            "COLLEAGUE": colleague.token,
            "EMAIL": f"{colleague.subject}@example.test",
        }
        | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return printed.decode().splitlines()
