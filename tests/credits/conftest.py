"""A migrated, empty database, and a service that sells credits."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from rota.credits.payers import Payers
from rota.credits.service import Credits
from rota.dev.stack import Stack
from rota.payments.turns import PaymentTurns
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.idempotency import Idempotency
from rota.tasks.overview_queries import labels
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
    """A service whose payment processor the test controls."""
    processor = FakeProcessor()
    async with AsyncExitStack() as exits:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rota.data.parts.processor_of", lambda _: processor)
            service = await exits.enter_async_context(
                Service.start(stack, variant="a", name="credits", allowances={})
            )
        announced: list[UUID] = []
        db = Database(service.database_url, pool_size=4, announce=announced.append)
        await db.open()
        exits.push_async_callback(db.close)
        idempotency = Idempotency(Vault(service.settings.secret_key_bytes))
        turns = PaymentTurns(db)
        payers = Payers(db, processor, turns)
        credits_ = Credits(db, idempotency, processor, payers, turns, ALLOWANCE_OF, labels)
        yield Shop(service, db, credits_, processor, announced)
