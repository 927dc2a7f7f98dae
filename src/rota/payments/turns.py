"""Transactions that wait for the payment processor: one at a time for each account."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from rota.platform.db import NO_USER, AccountTransaction, Database

# Each of them keeps a database connection while it waits for the processor.
MAX_CONCURRENT = 2


class Turns:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    @asynccontextmanager
    async def of(
        self, account_id: UUID, user_id: UUID = NO_USER
    ) -> AsyncIterator[AccountTransaction]:
        """A transaction that can ask the processor about the account.

        Other turns of the account wait, so the processor's answer stays current until the commit.
        It locks no row, so a slow processor does not block the account's other work.
        """
        number = int.from_bytes(account_id.bytes[8:], "big", signed=True)
        async with self._slots, self._db.write(account_id, user_id) as tx:
            await tx.execute("SELECT pg_advisory_xact_lock($1)", number)
            yield tx
