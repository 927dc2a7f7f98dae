"""A service of each variant with the shipped catalog."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.tasks.reviews import Reviews
from tests.service import Service


@pytest.fixture(scope="session", params=["a", "b"])
async def board(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"tasks_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="session")
async def board_a(stack: Stack) -> AsyncIterator[Service]:
    """One service, for tests that do not depend on the variant."""
    async with Service.start(stack, variant="a", name="tasks_only_a") as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="session")
async def process(board_a: Service) -> AsyncIterator[Service]:
    """The same service in a separate process."""
    async with board_a.process() as started:
        yield started


@pytest.fixture
async def parts(board_a: Service) -> AsyncIterator[Composition]:
    """What a worker uses."""
    async with Composition(board_a.settings, pool_size=4) as opened:
        yield opened


@pytest.fixture
def reviews(parts: Composition) -> Reviews:
    """The reviews as a worker uses them."""
    return parts.reviews
