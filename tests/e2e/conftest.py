from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.platform.probe import AI_PREFIX, public_probe, secured_probe
from tests.service import Service


@pytest.fixture(scope="session", params=["a", "b"])
async def limited(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """A service of each variant with an AI endpoint that does nothing but count."""
    routers = (public_probe(stack.endpoints.database_url), secured_probe())
    async with Service.start(
        stack,
        variant=request.param,
        name=f"limited_{request.param}",
        routers=routers,
        ai_prefixes=(AI_PREFIX,),
        trusted_proxies=("127.0.0.1",),
    ) as started:
        yield started
