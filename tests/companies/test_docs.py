"""docs/companies.md: its examples run."""

import asyncio
import os
import re
from pathlib import Path

from tests.service import Service

PAGE = Path(__file__).parents[2] / "docs" / "companies.md"


async def test_the_examples_about_companies_run_unchanged(service: Service) -> None:
    owner, colleague = await service.sign_in(), await service.sign_in()
    [script] = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        script,
        env=os.environ
        | {
            "BASE": str(service.http.base_url).rstrip("/"),
            "TOKEN": owner.token,
            "COLLEAGUE": colleague.token,
            "EMAIL": f"{colleague.subject}@example.test",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert printed.decode() == "member\n2\nPENDING\n"
