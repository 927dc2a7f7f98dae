"""A database with nothing but migrations, and a service that sells credits."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

import rota.app
from rota.credits.routes import credit_routes
from rota.credits.service import Credits
from rota.dev.stack import Stack
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.idempotency import Replays
from rota.platform.settings import Settings
from tests.credits.world import ALLOWANCE_OF, FakeProcessor, Shop
from tests.service import Service, prepared_settings


@pytest.fixture(scope="session")
async def books_url(stack: Stack) -> str:
    settings = await prepared_settings(stack, "a", "books")
    return settings.database_url.get_secret_value()


@pytest.fixture(scope="session")
async def books(books_url: str) -> AsyncIterator[Database]:
    db = Database(books_url, pool_size=64)
    await db.open()
    yield db
    await db.close()


@pytest.fixture(scope="session")
async def shop(stack: Stack) -> AsyncIterator[Shop]:
    """A service whose payment processor is in the hands of the test."""
    name = "credits"
    db = Database(stack.endpoints.database_url.rpartition("/")[0] + f"/{name}", pool_size=4)
    processor = FakeProcessor()
    announced: list[UUID] = []
    vault = Vault(Settings(env="test").secret_key_bytes)
    credits_ = Credits(db, Replays(vault), processor, ALLOWANCE_OF, announced.append)
    router = credit_routes(credits_)
    async with AsyncExitStack() as exits:
        routers = [router]
        if hasattr(rota.app, "credit_routes"):
            patch = exits.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(rota.app, "credit_routes", lambda _: router)
            routers = []
        service = await exits.enter_async_context(
            Service.start(stack, variant="a", name=name, routers=routers, allowances={})
        )
        await db.open()
        exits.push_async_callback(db.close)
        yield Shop(service, db, credits_, processor, announced)
