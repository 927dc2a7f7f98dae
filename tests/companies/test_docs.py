"""docs/companies.md: its examples run."""

from pathlib import Path

from tests.companies.examples import run_example
from tests.service import Service


async def test_the_examples_about_companies_run_unchanged(service: Service, tmp_path: Path) -> None:
    owner, colleague = await service.sign_in(), await service.sign_in()
    printed = await run_example(0, service, tmp_path, owner=owner, colleague=colleague)
    assert printed == ["member", "2", "PENDING"]
