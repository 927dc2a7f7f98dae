"""docs/policies.md: its examples run."""

import asyncio
import os
import re
from pathlib import Path

from tests.policies.world import Office

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


async def test_the_examples_about_policies_run_unchanged(office: Office) -> None:
    [script] = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        script,
        env=os.environ
        | {
            "BASE": str(office.owner.service.http.base_url).rstrip("/"),
            "TOKEN": office.owner.token,
            "APPROVER": office.approvers[0].token,
            "COMPANY": office.company.id,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert printed.decode() == "True\nSECOND_PERSON_REQUIRED\nRUNNING\n"
