"""A separate stack for tests that kill components of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.dev.stack import Stack
from tests.chaos.world import PARTS


@pytest.fixture(scope="session")
async def killable_stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("killable")
    async with Stack(Path(data), components=PARTS, durable=False) as started:
        yield started
