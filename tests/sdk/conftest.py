"""A service of each variant, and a client of each kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.payments.stripe_server import StripeServer
from tests.sdk.any_client import CLIENTS, AnyClient, url_of
from tests.sdk.installed import Sdk
from tests.sdk.proxy import CuttingProxy
from tests.service import Person, Service
from tests.tasks.world import newcomer


@asynccontextmanager
async def started_shop(stack: Stack, variant: str, name: str) -> AsyncIterator[Service]:
    """A service with the catalog and a payment processor."""
    async with (
        StripeServer.start(variant=variant) as stripe,
        Service.start(
            stack,
            variant=variant,
            name=name,
            egress_allow=("127.0.0.0/8",),
            **stripe.settings,
        ) as started,
    ):
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="session", params=["a", "b"])
async def shop(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    async with started_shop(stack, request.param, f"sdk_{request.param}") as started:
        yield started


@pytest.fixture(params=CLIENTS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
async def owner(shop: Service) -> Person:
    """A person with a new account."""
    return await newcomer(shop)


@pytest.fixture
async def rota(shop: Service, owner: Person, kind: str) -> AsyncIterator[AnyClient]:
    """A client of a new account."""
    client = AnyClient.open(kind, url_of(shop), owner.token)
    yield client
    await client.close()


@pytest.fixture
async def proxy(shop: Service) -> AsyncIterator[CuttingProxy]:
    async with CuttingProxy.to(shop.settings.port) as started:
        yield started


@pytest.fixture
async def cut_rota(proxy: CuttingProxy, owner: Person, kind: str) -> AsyncIterator[AnyClient]:
    """The same client behind the proxy."""
    client = AnyClient.open(kind, proxy.url, owner.token)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def installed_sdk(tmp_path_factory: pytest.TempPathFactory) -> Sdk:
    return Sdk.install(tmp_path_factory.mktemp("sdk"))
