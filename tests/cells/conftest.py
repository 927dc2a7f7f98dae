"""Two cells of each variant, and a router."""

from collections.abc import AsyncIterator

import httpx
import pytest

from rota.cells.router import Router
from rota.dev.stack import Stack
from tests.cells.fake_cell import FakeCell
from tests.cells.world import World, started_router, two_cells
from tests.service import Service
from tests.sizes import FULL


# What differs between the variants does not concern the router.
@pytest.fixture(scope="session", params=["a", "b"] if FULL else ["a"])
async def world(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[World]:
    async with two_cells(stack, request.param) as started:
        yield started


@pytest.fixture
async def cell() -> AsyncIterator[FakeCell]:
    async with FakeCell().serving() as started:
        yield started


@pytest.fixture
async def running(stack: Stack, cell: FakeCell) -> AsyncIterator[tuple[Service, Router]]:
    async with started_router(stack, {"east": cell.url}) as started:
        yield started


@pytest.fixture
def http(running: tuple[Service, Router]) -> httpx.AsyncClient:
    return running[0].http
