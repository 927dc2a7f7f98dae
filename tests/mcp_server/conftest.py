"""A service of each variant with a worker and a scripted model, and people who use them."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.mcp_server.clients import GENERATIONS, Generation, new_key, signed_in
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.service import Person, Service


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="session", params=["a", "b"])
async def runner(
    request: pytest.FixtureRequest,
    stack: Stack,
    scripted: Scripted,
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


@pytest.fixture
async def person(runner: Runner) -> Person:
    return await signed_in(runner.service)


@pytest.fixture
async def key(person: Person) -> str:
    """The secret of a key that can do what programs can do."""
    return await new_key(person)


@pytest.fixture
def office(runner: Runner) -> Service:
    return runner.service
