"""A service of each variant with a worker and a scripted model."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.mcp_server.clients import GENERATIONS, Generation
from tests.programs import key, office, person, scripted, secret, somebody  # noqa: F401
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted


@pytest.fixture(scope="session", params=["a", "b"])
async def runner(
    request: pytest.FixtureRequest,
    stack: Stack,
    scripted: Scripted,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    name = f"mcp_server_{request.param}"
    async with Runner.start(stack, scripted, name, log, variant=request.param) as started:
        yield started


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> Generation:
    """Each generation of the protocol."""
    chosen: Generation = request.param
    return chosen
