from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.platform.probe import AI_PREFIX, public_probe, secured_probe
from tests.service import Service


@pytest.fixture(scope="session")
async def probed(stack: Stack) -> AsyncIterator[Service]:
    """A service with additional routes that misbehave on request."""
    routers = (public_probe(stack.endpoints.database_url), secured_probe())
    async with Service.start(
        stack, variant="a", name="probed", routers=routers, ai_prefixes=(AI_PREFIX,)
    ) as started:
        yield started
