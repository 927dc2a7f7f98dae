"""The fixtures of the scenarios, with the TypeScript SDK instead of the Python SDK."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from rota.dev.stack import Stack
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.sdk.conftest import started_shop
from tests.sdk.test_runs import started_runner
from tests.sdk.typescript.package import Package
from tests.sdk.typescript.programs import close_all
from tests.service import Service

# Each program, with the variant that it is tried with. `make runtimes` installs and tries the last
# two.
PROGRAMS = {"node20": "a", "node24": "b", "chromium": "a"}
if os.environ.get("ROTA_TEST_RUNTIMES"):
    PROGRAMS = {"bun": "b", "deno": "a"}


@pytest.fixture(scope="session", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def kind(program: str) -> str:
    return program


@pytest.fixture(scope="session")
async def shops(stack: Stack) -> AsyncIterator[Callable[[str], Awaitable[Service]]]:
    """The service of each variant. It starts when it is needed first."""
    started: dict[str, Service] = {}
    async with AsyncExitStack() as opened:

        async def shop(variant: str) -> Service:
            if variant not in started:
                name = f"typescript_{variant}"
                context = started_shop(stack, variant, name)
                started[variant] = await opened.enter_async_context(context)
            return started[variant]

        yield shop


@pytest.fixture(scope="session")
async def shop(program: str, shops: Callable[[str], Awaitable[Service]]) -> Service:
    return await shops(PROGRAMS[program])


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="session")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    folder = tmp_path_factory.mktemp("worker")
    async with started_runner(stack, scripted, "typescript_runs", folder) as started:
        yield started


@pytest.fixture(scope="session", autouse=True)
async def programs() -> AsyncIterator[None]:
    yield
    await close_all()


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return Package.install(tmp_path_factory.mktemp("npm"))
