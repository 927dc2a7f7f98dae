"""PostgreSQL: a connection pool, and transactions that are limited to one account.

Row-level security reads two settings that last as long as the transaction: the account and the
user. A transaction without them can read no tenant's rows. Reads and writes have different types,
so a read cannot write by mistake and can be sent to a replica.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import UUID

import asyncpg

from rota.platform import json

# Raised when the database or the network to it fails. asyncpg raises InternalClientError when a
# connection is lost in the middle of a protocol exchange.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
# Raised when PostgreSQL cannot store a value. The same statement fails again.
REJECTED_VALUES = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)

# The role of the service: it owns nothing and is subject to row security.
APPLICATION_ROLE = "rota_app"


class ReadConnection(Protocol):
    """What a read-only query needs."""

    async def fetch(self, query: str, *args: object) -> list[Any]: ...
    async def fetchrow(self, query: str, *args: object) -> Any: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...


class WriteConnection(ReadConnection, Protocol):
    """What a query that writes needs."""

    async def execute(self, query: str, *args: object) -> str: ...
    async def executemany(self, query: str, args: Any) -> None: ...


class AccountReader:
    """A read-only transaction on one account's rows."""

    __slots__ = ("_connection", "account_id", "user_id")

    def __init__(self, connection: Any, account_id: UUID, user_id: UUID) -> None:
        self._connection = connection
        self.account_id = account_id
        self.user_id = user_id

    # Plain functions that return the driver's coroutine: one coroutine less for every statement.
    def fetch(self, query: str, *args: object) -> Coroutine[Any, Any, list[Any]]:
        found: Coroutine[Any, Any, list[Any]] = self._connection.fetch(query, *args)
        return found

    def fetchrow(self, query: str, *args: object) -> Coroutine[Any, Any, Any]:
        found: Coroutine[Any, Any, Any] = self._connection.fetchrow(query, *args)
        return found

    def fetchval(self, query: str, *args: object) -> Coroutine[Any, Any, Any]:
        found: Coroutine[Any, Any, Any] = self._connection.fetchval(query, *args)
        return found


class AccountTransaction(AccountReader):
    """A transaction that changes one account. Its events are announced after the commit."""

    __slots__ = ("has_events",)

    def __init__(self, connection: Any, account_id: UUID, user_id: UUID) -> None:
        super().__init__(connection, account_id, user_id)
        # Set by the code that appends to the event journal.
        self.has_events = False

    def execute(self, query: str, *args: object) -> Coroutine[Any, Any, str]:
        done: Coroutine[Any, Any, str] = self._connection.execute(query, *args)
        return done

    def executemany(self, query: str, args: Any) -> Coroutine[Any, Any, None]:
        done: Coroutine[Any, Any, None] = self._connection.executemany(query, args)
        return done


NO_USER = UUID(int=0)


def _announce_nothing(account_id: UUID) -> None:
    """For commands and tests that have no live streams to wake."""


def _encode_json(value: Any) -> str:
    return json.dumps(value).decode()


async def use_json(connection: Any) -> None:
    """Makes json and jsonb columns Python objects in both directions."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=_encode_json, decoder=json.exact
        )


@asynccontextmanager
async def owner_connection(url: str) -> AsyncIterator[Any]:
    """A single connection for operator commands, outside the pool and without row security."""
    connection = await asyncpg.connect(url)
    try:
        await use_json(connection)
        yield connection
    finally:
        await connection.close()


async def _skip_reset(connection: Any) -> None:
    """Replaces the pool's reset. Transactions here leave nothing to clean up."""


def _begin(mode: str, account_id: UUID, user_id: UUID) -> str:
    # One simple query instead of BEGIN and two set_config calls saves two round trips. A UUID
    # prints as hexadecimal digits and dashes only, so it needs no quoting.
    return (
        f"BEGIN {mode}; SET LOCAL rota.account_id = '{account_id}'; "
        f"SET LOCAL rota.user_id = '{user_id}'"
    )


class Database:
    def __init__(
        self, url: str, *, pool_size: int, announce: Callable[[UUID], None] = _announce_nothing
    ) -> None:
        self._url = url
        self._pool_size = pool_size
        # Called with the account after a transaction with events has committed.
        self._announce = announce
        self._pool: Any = None

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=min(2, self._pool_size),
            max_size=self._pool_size,
            timeout=10,
            command_timeout=30,
            init=use_json,
            reset=_skip_reset,
            server_settings={
                "role": APPLICATION_ROLE,
                "application_name": "rota",
                # Every statement names its account, so one plan serves all accounts. On a
                # partitioned table, planning a statement takes longer than running it.
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
    async def read(self, account_id: UUID, user_id: UUID = NO_USER) -> AsyncIterator[AccountReader]:
        async with self._transaction(_begin("READ ONLY", account_id, user_id)) as connection:
            yield AccountReader(connection, account_id, user_id)

    @asynccontextmanager
    async def snapshot(
        self, account_id: UUID, user_id: UUID = NO_USER
    ) -> AsyncIterator[AccountReader]:
        """A read in which all statements see the database at the same moment."""
        mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._transaction(_begin(mode, account_id, user_id)) as connection:
            yield AccountReader(connection, account_id, user_id)

    @asynccontextmanager
    async def write(
        self, account_id: UUID, user_id: UUID = NO_USER
    ) -> AsyncIterator[AccountTransaction]:
        async with self._transaction(_begin("", account_id, user_id)) as connection:
            tx = AccountTransaction(connection, account_id, user_id)
            yield tx
        if tx.has_events:
            self._announce(account_id)

    @asynccontextmanager
    async def directory(self) -> AsyncIterator[WriteConnection]:
        """A transaction without an account: it can find accounts but reads no tenant's rows."""
        async with self._transaction("BEGIN") as connection:
            yield connection

    @asynccontextmanager
    async def relay(self) -> AsyncIterator[WriteConnection]:
        """A transaction of the relay, which can read the instructions of every account."""
        async with self._transaction("BEGIN; SET LOCAL rota.relay = 'on'") as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[WriteConnection]:
        async with self._pool.acquire() as connection:
            try:
                await connection.execute(begin)
                yield connection
                if await connection.execute("COMMIT") != "COMMIT":
                    # PostgreSQL responds to a COMMIT after a failed statement with "ROLLBACK".
                    raise asyncpg.InFailedSQLTransactionError(
                        "nothing was committed because an earlier statement failed"
                    )
            except BaseException:
                await _abandon(connection)
                raise


async def _abandon(connection: Any) -> None:
    """Rolls back whatever state the transaction is in, so that the connection can be used again."""
    try:
        await connection.execute("ROLLBACK")
    except BaseException:
        # The connection is closed, or this task was cancelled again. Do not reuse it.
        connection.terminate()


async def bind_account(
    connection: WriteConnection, account_id: UUID, user_id: UUID
) -> AccountTransaction:
    """Limits a transaction that began without an account to one that was just found or created."""
    await connection.execute(
        f"SET LOCAL rota.account_id = '{account_id}'; SET LOCAL rota.user_id = '{user_id}'"
    )
    return AccountTransaction(connection, account_id, user_id)
