"""A service of each variant as `rota dev` has it: with the catalog and a payment processor."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.payments.stripe_server import StripeServer
from tests.service import Service


@pytest.fixture(scope="session", params=["a", "b"])
async def furnished(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    variant = request.param
    async with (
        StripeServer.start(variant=variant) as stripe,
        Service.start(
            stack,
            variant=variant,
            name=f"openapi_{variant}",
            egress_allow=("127.0.0.0/8",),
            **stripe.settings,
        ) as service,
    ):
        await sync(service.database_url, catalog_folder())
        yield service
