"""Fixtures for all tests: a real stack, real migrations and a real server on a socket.

The code of `rota dev` starts the stack. Each variant has its own database and its own Redis
database, and most tests run on both variants.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from rota.dev.stack import Stack
from tests.service import Service

# A deadline in wall-clock time would fail at random on a busy machine.
settings.register_profile("rota", deadline=None)
settings.load_profile("rota")

PARTS = ("postgres", "redis", "temporal", "idp")


@pytest.fixture(scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    # The path must be short, because it contains PostgreSQL's socket.
    data = tmp_path_factory.mktemp("rota")
    async with Stack(Path(data), components=PARTS, durable=False) as started:
        yield started


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
