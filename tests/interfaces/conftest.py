"""A service with a worker and a scripted model."""

from collections.abc import AsyncIterator

import pytest

from rota.dev.stack import Stack
from tests.interfaces.runs import Runs, started
from tests.runs.scripted import Scripted
from tests.sdk.typescript.programs import close_all
from tests.sizes import FULL


@pytest.fixture(scope="session", params=["a", "b"] if FULL else ["a"])
async def runs(
    request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runs]:
    folder = tmp_path_factory.mktemp("interfaces")
    async with (
        Scripted.start() as scripted,
        started(stack, scripted, request.param, folder) as found,
    ):
        yield found
        await close_all()
