"""PostgreSQL: a pool, and transactions that know whose data they may see.

Row-level security reads two settings that live only as long as the
transaction: the account and the user. A transaction without them sees no row
of any tenant's table. Reads and writes get differently typed connections, so
that a read can go to a replica and cannot write by mistake.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import UUID

import asyncpg

# What goes wrong when the database, or the way to it, does. The third is the driver's word for a
# connection that was lost at an awkward moment.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

# The role the service works as: no owner of anything, and bound by row security.
APPLICATION_ROLE = "rota_app"


class ReadConnection(Protocol):
    """What a query that only reads may do with a connection."""

    async def fetch(self, query: str, *args: object) -> list[Any]: ...
    async def fetchrow(self, query: str, *args: object) -> Any: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...


class WriteConnection(ReadConnection, Protocol):
    async def execute(self, query: str, *args: object) -> str: ...
    async def executemany(self, query: str, args: Any) -> None: ...


NOBODY = UUID(int=0)


async def _leave_as_is(connection: Any) -> None:
    """Replaces the pool's reset: transactions here leave nothing behind to clean up."""


def _begin(mode: str, account_id: UUID, user_id: UUID) -> str:
    # One simple query instead of BEGIN and two set_config calls: a round trip
    # is what this costs most. UUIDs print as hexadecimal and dashes only.
    return (
        f"BEGIN {mode}; SET LOCAL rota.account_id = '{account_id}'; "
        f"SET LOCAL rota.user_id = '{user_id}'"
    )


class Database:
    def __init__(self, url: str, *, pool_size: int) -> None:
        self._url = url
        self._pool_size = pool_size
        self._pool: Any = None

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=min(2, self._pool_size),
            max_size=self._pool_size,
            timeout=10,
            command_timeout=30,
            reset=_leave_as_is,
            server_settings={
                "role": APPLICATION_ROLE,
                "application_name": "rota",
                # Every statement names its account, so one plan serves all of them. Planning a
                # statement on a partitioned table takes longer than carrying it out.
                "plan_cache_mode": "force_generic_plan",
            },
        )

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def ping(self) -> None:
        async with self._pool.acquire() as connection:
            await connection.execute("SELECT 1")

    @asynccontextmanager
    async def read(self, account_id: UUID, user_id: UUID = NOBODY) -> AsyncIterator[ReadConnection]:
        async with self._transaction(_begin("READ ONLY", account_id, user_id)) as connection:
            yield connection

    @asynccontextmanager
    async def snapshot(
        self, account_id: UUID, user_id: UUID = NOBODY
    ) -> AsyncIterator[ReadConnection]:
        """A read whose statements all see the same moment."""
        mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._transaction(_begin(mode, account_id, user_id)) as connection:
            yield connection

    @asynccontextmanager
    async def write(
        self, account_id: UUID, user_id: UUID = NOBODY
    ) -> AsyncIterator[WriteConnection]:
        async with self._transaction(_begin("", account_id, user_id)) as connection:
            yield connection

    @asynccontextmanager
    async def directory(self) -> AsyncIterator[WriteConnection]:
        """A transaction of nobody: sees what finds accounts, and no tenant's rows."""
        async with self._transaction("BEGIN") as connection:
            yield connection

    @asynccontextmanager
    async def relay(self) -> AsyncIterator[WriteConnection]:
        """A transaction of the relay, which may take every account's instructions."""
        async with self._transaction("BEGIN; SET LOCAL rota.relay = 'on'") as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[WriteConnection]:
        async with self._pool.acquire() as connection:
            try:
                await connection.execute(begin)
                yield connection
                if await connection.execute("COMMIT") != "COMMIT":
                    # PostgreSQL's whole answer to committing what had failed: "ROLLBACK".
                    raise asyncpg.InFailedSQLTransactionError(
                        "nothing was committed, because a statement had failed before"
                    )
            except BaseException:
                await _abandon(connection)
                raise


async def _abandon(connection: Any) -> None:
    """Ends a transaction in whatever state it is, so that the next one finds nothing of it."""
    try:
        await connection.execute("ROLLBACK")
    except BaseException:
        # Closed, or cancelled once more: nobody gets this connection again.
        connection.terminate()


async def act_for(connection: WriteConnection, account_id: UUID, user_id: UUID) -> None:
    """Binds a transaction that began as nobody's to an account just found or made."""
    await connection.execute(
        f"SET LOCAL rota.account_id = '{account_id}'; SET LOCAL rota.user_id = '{user_id}'"
    )
