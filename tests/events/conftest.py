"""A service for tests of events."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform.db import Database
from tests.service import Service


@pytest.fixture(scope="session")
async def board(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="events") as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture
async def db(board: Service) -> AsyncIterator[Database]:
    """The database as a worker uses it."""
    database = Database(board.database_url, pool_size=5)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def kind() -> str:
    """A kind of instruction that only this test handles, in a lane of its own."""
    return f"t{uuid4().hex}.do"
