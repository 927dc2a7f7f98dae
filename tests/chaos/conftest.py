"""A stack of its own for tests that kill parts of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.dev.stack import Stack
from tests.chaos.world import PARTS


@pytest.fixture(scope="session")
async def mortal_stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("mortal")
    async with Stack(Path(data), components=PARTS, durable=False) as started:
        yield started
