"""Each variant with a database of its own: retention and erasure look at all accounts."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.data.world import World


@pytest.fixture(scope="session", params=["a", "b"])
async def world(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, request.param, f"data_{request.param}") as started:
        yield started


@pytest.fixture(scope="session")
async def world_a(stack: Stack) -> AsyncIterator[World]:
    """For tests that do not depend on the variant."""
    async with World.start(stack, "a", "data_only_a") as started:
        yield started
