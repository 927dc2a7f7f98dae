"""Each variant with a database of its own."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.runs.runner import new_namespace
from tests.service import Service
from tests.webhooks.world import LOCAL


@pytest.fixture(scope="session")
async def namespace(stack: Stack) -> str:
    """A namespace of its own: a restore ends all runs in it."""
    name = "restores"
    assert stack.endpoints.temporal_address
    await new_namespace(stack.endpoints.temporal_address, name)
    return name


@pytest.fixture(scope="session", params=["a", "b"])
async def old(
    request: pytest.FixtureRequest, stack: Stack, namespace: str
) -> AsyncIterator[Service]:
    name = f"restore_{request.param}"
    async with Service.start(
        stack, variant=request.param, name=name, egress_allow=LOCAL, temporal_namespace=namespace
    ) as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="session")
async def old_a(stack: Stack, namespace: str) -> AsyncIterator[Service]:
    """For tests that do not depend on the variant."""
    async with Service.start(
        stack, variant="a", name="restore_only_a", temporal_namespace=namespace
    ) as started:
        await sync(started.database_url, catalog_folder())
        yield started
