"""A service, a worker process and a scripted model for tests of runs."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.runs.gated_run import GatedRun
from tests.runs.runner import KILLED_HEARTBEAT_S, Runner
from tests.runs.scripted import Scripted
from tests.service import Person, Service


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="session")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    # So the API knows the names of models that a fork can use. The worker has its own models.
    url = f"{scripted.url}/v1"
    settings: dict[str, Any] = {"model_url": url, "run_heartbeat_s": KILLED_HEARTBEAT_S}
    async with Runner.start(stack, scripted, "runs", log, **settings) as started:
        yield started
    print(log.read_text()[-4000:])


@pytest.fixture
async def person(runner: Runner) -> Person:
    """A person with a new account of the highest tier."""
    return await runner.newcomer()


@pytest.fixture
async def run(service: Service) -> AsyncIterator[GatedRun]:
    """A run of the module's own service, whose steps the test makes."""
    async with Composition(service.settings, pool_size=4) as parts:
        yield GatedRun(service, parts)
