"""What tests of the outbox and its relay share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from rota.events import outbox
from rota.events.outbox import Instruction
from rota.events.relay import Relay
from rota.platform.db import Database
from tests.service import Service


async def put(
    db: Database, kind: str, count: int = 1, *, delay_s: float = 0, account_id: UUID | None = None
) -> UUID:
    """Writes instructions of one account, which is a new one unless given."""
    account_id = account_id or uuid4()
    async with db.write(account_id) as tx:
        for number in range(count):
            instruction = Instruction(account_id, kind, uuid4(), {"number": number})
            await outbox.put(tx, instruction, delay_s)
    return account_id


async def fill(board: Service, kind: str, count: int, *, accounts: int = 1) -> None:
    """Writes many instructions at once."""
    async with board.owner() as connection:
        await connection.execute(
            """
            INSERT INTO outbox (account_id, kind, payload)
            SELECT md5($1 || n % $3)::uuid, $1, '{}' FROM generate_series(1, $2) n
            """,
            kind,
            count,
            accounts,
        )


async def rows(board: Service, kind: str) -> list[Any]:
    async with board.owner() as connection:
        found: list[Any] = await connection.fetch(
            """
            SELECT *, CASE WHEN dead_at IS NULL THEN due_at - now() END AS wait
            FROM outbox WHERE kind = $1 ORDER BY id
            """,
            kind,
        )
    return found


async def make_due(board: Service, kind: str) -> None:
    async with board.owner() as connection:
        await connection.execute("UPDATE outbox SET due_at = now() WHERE kind = $1", kind)


@asynccontextmanager
async def running(*relays: Relay) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(relay.run()) for relay in relays]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
