"""A service of each variant with the shipped catalog, and no schedules of earlier tests."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from tests.service import Service


@pytest.fixture(scope="session", params=["a", "b"])
async def shared_board(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"schedules_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture
async def board(shared_board: Service) -> Service:
    async with shared_board.owner() as connection:
        await connection.execute("DELETE FROM schedules")
    return shared_board


@pytest.fixture
async def parts(board: Service) -> AsyncIterator[Composition]:
    """What a worker uses."""
    async with Composition(board.settings, pool_size=8) as built:
        yield built
