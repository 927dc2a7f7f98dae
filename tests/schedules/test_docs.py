"""docs/schedules.md: its examples run."""

from pathlib import Path

from tests.service import Service
from tests.tasks.test_docs import printed_by_the_examples_of


async def test_the_examples_about_schedules_run_unchanged(board: Service, tmp_path: Path) -> None:
    printed = await printed_by_the_examples_of("schedules.md", board, tmp_path)
    assert printed == "5\nWrite the checklist\nNone\nTrue\n"
