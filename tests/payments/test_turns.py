"""Turns: what waits for the payment processor, one request of an account at a time."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from rota.payments.turns import Busy, PaymentTurns
from rota.platform.db import Database
from tests.service import Service


@pytest.fixture
async def turns(service: Service) -> AsyncIterator[PaymentTurns]:
    db = Database(service.database_url, pool_size=4)
    await db.open()
    yield PaymentTurns(db)
    await db.close()


async def test_an_account_with_many_requests_does_not_delay_those_of_others(
    turns: PaymentTurns,
) -> None:
    order: list[UUID] = []
    many, other = uuid4(), uuid4()

    async def ask(account_id: UUID) -> None:
        async with turns.of(account_id):
            order.append(account_id)
            await asyncio.sleep(0.02)

    waiting = [asyncio.create_task(ask(many)) for _ in range(30)]
    await asyncio.sleep(0.01)
    await ask(other)
    assert order.index(other) <= 3
    await asyncio.gather(*waiting)
    assert order.count(many) == 30


async def test_a_sweep_skips_an_account_that_has_its_turn_in_another_process(
    service: Service, turns: PaymentTurns
) -> None:
    account_id = uuid4()
    db = Database(service.database_url, pool_size=1)
    await db.open()
    async with PaymentTurns(db).of(account_id):
        with pytest.raises(Busy):
            async with turns.of(account_id, wait=False):
                pass
    await db.close()
