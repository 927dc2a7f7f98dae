"""A service with agents for tests of tool servers. Rules do not depend on the variant; the random
histories of tests/policies use them in both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from tests.policies.world import Office, OfficeRun
from tests.service import Service

CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"


@pytest.fixture(scope="session")
async def board(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="rules") as started:
        await sync(started.database_url, CATALOG)
        yield started


@pytest.fixture
async def office(board: Service) -> Office:
    """A company with an owner and two approvers."""
    return await Office.open(board)


@pytest.fixture
async def run(board: Service, office: Office) -> AsyncIterator[OfficeRun]:
    async with Composition(board.settings, pool_size=4) as parts:
        made = OfficeRun(board, parts, office)
        await made.connect()
        yield made
