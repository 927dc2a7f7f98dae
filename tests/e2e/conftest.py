from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from playwright.async_api import Browser

from rota.dev.stack import Stack
from rota.limits.window import Window
from tests.e2e.browser import Tab, chromium
from tests.e2e.office import Office
from tests.mcp.conftest import LOCAL
from tests.plans.world import World
from tests.platform.probe import AI_PREFIX, public_probe, secured_probe
from tests.service import Service


@asynccontextmanager
async def start(stack: Stack, variant: str) -> AsyncIterator[Service]:
    """A service with an AI endpoint that only counts requests, behind a trusted proxy."""
    with pytest.MonkeyPatch.context() as patch:
        # Clients and service share a thread here, so a busy client could look like a slow Redis.
        patch.setattr("rota.composition.Window", partial(Window, timeout_s=2.0))
        async with Service.start(
            stack,
            variant=variant,
            name=f"limited_{variant}",
            routers=(public_probe(stack.endpoints.database_url), secured_probe()),
            ai_prefixes=(AI_PREFIX,),
            trusted_proxies=("127.0.0.1",),
        ) as started:
            yield started


@pytest.fixture(scope="session")
async def limited(stack: Stack) -> AsyncIterator[Service]:
    async with start(stack, "a") as started:
        yield started


@pytest.fixture(scope="session")
async def limited_b(stack: Stack) -> AsyncIterator[Service]:
    async with start(stack, "b") as started:
        yield started


@pytest.fixture(params=["limited", "limited_b"], ids=["a", "b"])
def each(request: pytest.FixtureRequest) -> Service:
    """The service of each variant, for tests where the variants differ."""
    found: Service = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest.fixture(scope="package", params=["a", "b"])
async def office(
    request: pytest.FixtureRequest,
    stack: Stack,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Office]:
    """The service of each variant, with a worker, the shipped agents and the demonstration."""
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Office.start(stack, request.param, log) as started:
        yield started


@pytest.fixture
async def tab(browser: Browser, office: Office) -> AsyncIterator[Tab]:
    async with Tab.open(browser, office.service) as opened:
        yield opened


@pytest.fixture(scope="package")
async def shop_a(stack: Stack) -> AsyncIterator[World]:
    """A service with plans that cost money, which can connect to tool servers on this machine."""
    async with World.start(stack, "a", "shop_a", allowances={}, egress_allow=LOCAL) as started:
        yield started


@pytest.fixture(scope="package")
async def shop_b(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "b", "shop_b", allowances={}, egress_allow=LOCAL) as started:
        yield started


@pytest.fixture(params=["shop_a", "shop_b"], ids=["a", "b"])
def shop(request: pytest.FixtureRequest) -> World:
    """Both variants."""
    found: World = request.getfixturevalue(request.param)
    return found
