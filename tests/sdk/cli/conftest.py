"""The fixtures of the scenarios, with the command line instead of the Python SDK."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted
from tests.sdk.conftest import started_shop
from tests.sdk.test_runs import started_runner
from tests.service import Service
from tests.sizes import FULL


@pytest.fixture(scope="session", params=["a", "b"] if FULL else ["a"])
async def shop(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    async with started_shop(stack, request.param, f"command_line_{request.param}") as started:
        yield started


@pytest.fixture
def kind() -> str:
    return "command_line"


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="session")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    folder = tmp_path_factory.mktemp("worker")
    async with started_runner(stack, scripted, "command_line_runs", folder) as started:
        yield started
