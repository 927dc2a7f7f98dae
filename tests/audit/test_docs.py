"""docs/audit.md: its examples run, and it names the actions without an event."""

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.service import Service

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text()


async def test_the_examples_about_the_trail_run_unchanged(service: Service, tmp_path: Path) -> None:
    person = await service.sign_in()
    [script] = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euc",
        f'rota() {{ "{sys.executable}" -m rota.cli "$@"; }}\n{script}',
        env=os.environ | {"BASE": str(service.http.base_url).rstrip("/"), "TOKEN": person.token},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    action, *verified = printed.decode().split("\n", 1)
    assert action == "task.created"
    assert "no problems" in verified[0]
    assert "The receipt is valid" in verified[0]


def test_the_page_names_every_action_that_has_no_event() -> None:
    recorded = {
        name
        for path in (ROOT / "src" / "rota").rglob("*.py")
        for name in re.findall(r'record\(\s*(?:\w+, )?"([a-z_]+\.[a-z_]+)"', path.read_text())
    }
    assert len(recorded) > 15
    # Those that are events as well are in the table of events.
    events = (ROOT / "docs" / "events.md").read_text() + (
        ROOT / "docs" / "companies.md"
    ).read_text()
    missing = {name for name in recorded if f"`{name}`" not in PAGE and f"`{name}`" not in events}
    assert missing == set()
