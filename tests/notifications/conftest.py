"""A service of each variant that sends mail to a server of the tests."""

from collections.abc import AsyncIterator

import pytest

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.mcp.conftest import LOCAL
from tests.notifications.receivers import Channel, Mailbox
from tests.notifications.world import Desk
from tests.service import Service

SENDER = "Rota <rota@rota.test>"


@pytest.fixture(scope="session")
async def mailbox() -> AsyncIterator[Mailbox]:
    async with Mailbox().serve() as served:
        yield served


@pytest.fixture(scope="session", params=["a", "b"])
async def post_office(
    request: pytest.FixtureRequest, stack: Stack, mailbox: Mailbox
) -> AsyncIterator[Service]:
    async with Service.start(
        stack,
        variant=request.param,
        name=f"notifications_{request.param}",
        egress_allow=LOCAL,
        smtp_host="127.0.0.1",
        smtp_port=mailbox.port,
        smtp_tls="none",
        smtp_from=SENDER,
    ) as started:
        yield started


@pytest.fixture
async def desk(post_office: Service, mailbox: Mailbox) -> AsyncIterator[Desk]:
    mailbox.data_answers.clear()
    async with Composition(post_office.settings, pool_size=4) as parts:
        yield Desk(post_office, parts, mailbox)


@pytest.fixture
async def channel() -> AsyncIterator[Channel]:
    async with Channel().serve() as served:
        yield served
