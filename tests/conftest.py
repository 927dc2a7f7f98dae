"""Fixtures for all tests: a real stack, real migrations and a real server on a socket.

The code of `rota dev` starts the stack. Each variant has its own database and its own Redis
database, and most tests can run on both variants: `tests/variant_choice.py` says which do in CI.
"""

import gc
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from rota.dev.stack import Stack
from tests import certificates, forks, variant_choice
from tests.service import Service

# A deadline in wall-clock time would fail at random on a busy machine.
settings.register_profile("rota", deadline=None)
settings.load_profile("rota")

certificates.load_once()
# Typer builds all commands again for each one that runs, which takes longer than most of them.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

# How many tests CI leaves to `make test`, because they run on the other variant.
LEFT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", variant_choice.MARKER)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if variant_choice.enabled():
        items[:], left = variant_choice.choose(items)
        config.stash[LEFT] = len(left)
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    # Modules and tests stay until the end, and looking through them for garbage takes long.
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if left := config.stash.get(LEFT, 0):
        terminalreporter.write_line(
            f"VARIANTS: {left} tests ran on one variant only. `make test` runs them on both."
        )


PARTS = ("postgres", "redis", "temporal", "idp")


@pytest.fixture(scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    # The path must be short, because it contains PostgreSQL's socket.
    data = tmp_path_factory.mktemp("rota")
    async with Stack(Path(data), components=PARTS, durable=False) as started:
        try:
            yield started
        finally:
            forks.close()


@pytest.fixture(scope="session", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """The service of each variant."""
    async with Service.start(stack, variant=request.param) as started:
        yield started


@pytest.fixture(scope="session")
async def service_a(stack: Stack) -> AsyncIterator[Service]:
    """The service of Variant A, for tests that do not depend on the variant."""
    async with Service.start(stack, variant="a", name="only_a") as started:
        yield started
