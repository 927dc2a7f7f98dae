"""A service with a worker and a scripted model, and one of the other variant where nothing runs."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.a2a.client import BINDINGS, Binding
from tests.programs import ALLOWED, key, office, person, scripted, secret, somebody  # noqa: F401
from tests.runs.runner import CATALOG, Runner
from tests.runs.scripted import Scripted
from tests.service import Service


@pytest.fixture(scope="session")
async def runner(
    stack: Stack,
    scripted: Scripted,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "a2a_a", log, variant="a") as started:
        yield started


@pytest.fixture(scope="session")
async def endpoints(stack: Stack) -> AsyncIterator[Service]:
    """A service without a worker: nothing runs."""
    async with Service.start(
        stack, variant="b", name="a2a_endpoints", cors_origins=(ALLOWED,)
    ) as service:
        await sync(service.database_url, CATALOG)
        yield service


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> Binding:
    chosen: Binding = request.param
    return chosen
