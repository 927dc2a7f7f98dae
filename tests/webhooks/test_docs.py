"""docs/webhooks.md: its examples run."""

from pathlib import Path

from tests.service import Service
from tests.tasks.test_docs import printed_by_the_examples_of


async def test_the_examples_about_webhooks_run_unchanged(office: Service, tmp_path: Path) -> None:
    printed = await printed_by_the_examples_of("webhooks.md", office, tmp_path)
    assert printed == "whsec_\nactive\npaused\nwhsec_\n0\n0\nTrue\n"
