"""A service of each variant that can reach this machine, and a receiver."""

from collections.abc import AsyncIterator

import pytest

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.service import Person, Service
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import LOCAL, sending


@pytest.fixture(scope="session", params=["a", "b"])
async def shared_office(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"webhooks_{request.param}"
    async with Service.start(
        stack, variant=request.param, name=name, egress_allow=LOCAL, webhook_timeout_s=2.0
    ) as started:
        yield started


@pytest.fixture
async def office(shared_office: Service) -> Service:
    async with shared_office.owner() as connection:
        await connection.execute("DELETE FROM webhooks")
    return shared_office


@pytest.fixture
async def person(office: Service) -> Person:
    return await office.sign_in()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().serving() as started:
        yield started


@pytest.fixture
async def worker(office: Service) -> AsyncIterator[Composition]:
    async with sending(office) as parts:
        yield parts
