"""What every test stands on: real parts, real migrations, a real server on a socket.

The parts are started by the code that `rota dev` uses. Each variant has a
database and a Redis database of its own, and most tests run on both.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.dev.stack import Stack
from tests.service import Service

PARTS = ("postgres", "redis", "temporal", "idp")


@pytest.fixture(scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    # Short, because PostgreSQL's socket lies in it.
    data = tmp_path_factory.mktemp("rota")
    async with Stack(Path(data), components=PARTS, durable=False) as started:
        yield started


@pytest.fixture(scope="session", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """The service of each variant in turn, with everything on."""
    async with Service.start(stack, variant=request.param) as started:
        yield started


@pytest.fixture(scope="session")
async def service_a(stack: Stack) -> AsyncIterator[Service]:
    """One service, for what does not depend on the variant."""
    async with Service.start(stack, variant="a", name="only_a") as started:
        yield started
