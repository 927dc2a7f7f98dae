"""A service of each variant with agents for tests of tool servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from tests.mcp.conftest import LOCAL
from tests.policies.world import Office, OfficeRun
from tests.service import Service

CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"


@pytest.fixture(scope="session", params=["a", "b"])
async def board(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"policies_{request.param}"
    async with Service.start(
        stack, variant=request.param, name=name, egress_allow=LOCAL
    ) as started:
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
