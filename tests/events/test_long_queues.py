"""A long queue of one account, of one lane or of rows for later delays nobody else."""

import asyncio
import time
from collections import Counter
from uuid import UUID

import pytest

from rota.events.outbox import Instruction
from rota.events.relay import Relay
from rota.platform.db import Database
from tests.events.relaying import fill, put, rows, running
from tests.service import Service

FLOOD = 10_000
MANY = 100_000


@pytest.fixture
async def clean(board: Service) -> None:
    async with board.owner() as connection:
        await connection.execute("DELETE FROM outbox WHERE kind LIKE 't%.flood'")


async def nothing(_: Instruction) -> None:
    pass


@pytest.mark.timed
@pytest.mark.parametrize("other", ["0" * 31 + "1", "f" * 32])
async def test_one_instruction_behind_ten_thousand_is_handled_within_a_second(
    board: Service, db: Database, kind: str, other: str, clean: None
) -> None:
    flood, account_id = f"{kind}.flood", UUID(other)
    await fill(board, flood, FLOOD)
    taken = asyncio.Event()

    async def handle(instruction: Instruction) -> None:
        await asyncio.sleep(0.005)
        if instruction.account_id == account_id:
            taken.set()

    async with running(Relay(db, {flood: handle})):
        began = time.monotonic()
        await put(db, flood, account_id=account_id)
        async with asyncio.timeout(30):
            await taken.wait()
    assert time.monotonic() - began < 1


@pytest.mark.timed
async def test_a_plan_made_while_nothing_was_due_is_fast_when_much_is(
    board: Service, db: Database, kind: str, clean: None
) -> None:
    flood = f"{kind}.flood"
    relay = Relay(db, {flood: nothing})
    async with board.owner() as connection:
        await connection.execute("VACUUM ANALYZE outbox")
        assert not await relay.step()
        # Autovacuum must not help with a new plan.
        await connection.execute("ALTER TABLE outbox SET (autovacuum_enabled = off)")
        try:
            assert not await relay.step()
            await fill(board, flood, MANY, accounts=1_000)
            assert await _median_step_ms(relay) < 60
            # Rows of another lane, and rows for later, are not in the way.
            await connection.execute("UPDATE outbox SET ready = false, due_at = now() + '1 hour'")
            assert await _median_step_ms(Relay(db, {kind: nothing})) < 20
            await put(db, flood)
            began = time.monotonic()
            assert await relay.step()
            assert time.monotonic() - began < 0.1
        finally:
            await connection.execute("ALTER TABLE outbox RESET (autovacuum_enabled)")


async def _median_step_ms(relay: Relay) -> float:
    taken = []
    for _ in range(15):
        began = time.monotonic()
        await relay.step()
        taken.append(time.monotonic() - began)
    return sorted(taken)[len(taken) // 2] * 1000


async def test_accounts_take_turns(board: Service, db: Database, kind: str) -> None:
    accounts = [await put(db, kind, 3) for _ in range(50)]
    turns: list[UUID] = []

    async def handle(instruction: Instruction) -> None:
        turns.append(instruction.account_id)

    relay = Relay(db, {kind: handle})
    for _ in range(3):
        await relay.step()
    assert set(turns) == set(accounts)
    while await relay.step():
        pass
    assert Counter(turns) == dict.fromkeys(accounts, 3)
    assert await rows(board, kind) == []
