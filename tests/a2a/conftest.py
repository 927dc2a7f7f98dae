"""A service with a worker and a scripted model, and people who use it. The tests of the endpoints
have a service of the other variant."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.a2a.client import BINDINGS, Binding
from tests.mcp_server.clients import new_key, signed_in
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.service import Person, Service


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="session")
async def runner(
    stack: Stack,
    scripted: Scripted,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "a2a_a", log, variant="a") as started:
        yield started


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> Binding:
    chosen: Binding = request.param
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
