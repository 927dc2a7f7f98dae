"""A process's connections to PostgreSQL, and transactions on them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar
from uuid import UUID

import asyncpg

from rota.platform import audit, database_metrics, json, membership
from rota.platform.connection_shares import ConnectionShares
from rota.platform.request_pace import LongReads, Use, current
from rota.platform.transactions import Statements

T = TypeVar("T", bound=Statements)

# One connection of this many is for the reads of an account.
READ_PART = 5


class PoolExhausted(TimeoutError):
    """No database connection became free in time. TimeoutError is an OSError."""


@dataclass(frozen=True, slots=True)
class DatabaseTimeouts:
    """The longest waits of a transaction, in seconds: for a connection, for a lock, for one
    statement, and between two statements."""

    pool_s: float = 15
    lock_s: float = 5
    statement_s: float = 30
    # A process that stops in the middle of a transaction must not keep the account locked.
    idle_s: float = 15


def _encode_json(value: Any) -> str:
    return json.dumps(value).decode()


async def use_json(connection: Any) -> None:
    """Makes json and jsonb columns Python objects in both directions."""
    # In a transaction, because a pooler may run each statement outside one on another connection.
    async with connection.transaction():
        for name in ("json", "jsonb"):
            await connection.set_type_codec(
                name, schema="pg_catalog", encoder=_encode_json, decoder=json.exact
            )


async def _skip_reset(connection: Any) -> None:
    """Replaces the pool's reset. Transactions here leave nothing to clean up."""


class Pool:
    def __init__(
        self, url: str, *, size: int, timeouts: DatabaseTimeouts, statement_cache: int
    ) -> None:
        self._url = url
        self._size = size
        self._timeouts = timeouts
        self._statement_cache = statement_cache
        self.long_reads = LongReads()
        self.shares = ConnectionShares(max(1, size // 2), timeouts.pool_s)
        # Of these, for what an account's requests read. Reading usually takes a millisecond or two.
        # Many long reads at the same time would need all processors of the database.
        self.reads = ConnectionShares(max(2, size // READ_PART), timeouts.pool_s)
        self._connections: Any = None

    async def open(self) -> None:
        self._connections = await asyncpg.create_pool(
            self._url,
            min_size=min(2, self._size),
            max_size=self._size,
            timeout=10,
            # The server ends a statement first, with a better error.
            command_timeout=self._timeouts.statement_s + 5,
            statement_cache_size=self._statement_cache,
            init=use_json,
            reset=_skip_reset,
            # PgBouncer refuses most other startup parameters.
            server_settings={"application_name": "rota"},
        )
        database_metrics.watch(self._connections, self._size)

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """A connection without a transaction."""
        connection = await self.acquire()
        try:
            yield connection
        finally:
            await self.release(connection)

    async def acquire(self) -> Any:
        deadline = asyncio.timeout(self._timeouts.pool_s)
        try:
            async with deadline:
                return await self._connections.acquire()
        except TimeoutError:
            if not deadline.expired():
                raise  # PostgreSQL did not accept a new connection in time.
            raise self._exhausted() from None

    async def release(self, connection: Any) -> None:
        await self._connections.release(connection)

    async def begin(self, connection: Any, statement: str) -> None:
        try:
            # Behind a pooler, BEGIN is what waits for a connection.
            await connection.execute(statement, timeout=self._timeouts.pool_s)
        except TimeoutError:
            # A pooler ignores the cancellation of what still waits, and ROLLBACK would wait too.
            connection.terminate()
            raise self._exhausted() from None
        except asyncpg.LockNotAvailableError as error:
            # No other lock is taken here.
            database_metrics.count_timeout(error)
            raise membership.MembershipBusy from None
        except asyncpg.PostgresError as error:
            raise membership.refusal(error) from None

    def _exhausted(self) -> PoolExhausted:
        database_metrics.TIMEOUTS.labels("pool").inc()
        return PoolExhausted(f"no database connection was free within {self._timeouts.pool_s:g} s")


class Transaction(AbstractAsyncContextManager[T], Generic[T]):
    """Runs the statement `begin`, and commits with the audit entries that were added.

    A class, because a context manager that is made from a generator takes twice the time, and every
    request needs at least one.
    """

    __slots__ = (
        "_began",
        "_begin",
        "_bound_to",
        "_committed",
        "_connection",
        "_make",
        "_pool",
        "_tx",
        "_use",
    )

    def __init__(
        self,
        pool: Pool,
        begin: str,
        make: Callable[[Any], T],
        *,
        bound_to: UUID | None = None,
        limited_read: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> None:
        self._pool = pool
        self._begin = begin
        # What the block gets for the connection.
        self._make = make
        # The account whose share of connections it uses.
        self._bound_to = bound_to
        # What a transaction that writes takes is mostly waiting for locks.
        self._use = _limited_use() if limited_read else None
        # Called after the commit.
        self._committed = committed
        self._connection: Any = None

    async def __aenter__(self) -> T:
        if self._connection is not None:
            raise RuntimeError("the transaction has already begun")
        if self._bound_to is not None:
            await self._enter(self._bound_to)
        try:
            self._connection = await self._pool.acquire()
        except BaseException:
            self._leave()
            raise
        try:
            await self._pool.begin(self._connection, self._begin)
        except BaseException as error:
            await self._give_back(error)
            raise
        self._tx = self._make(self._connection)
        if self._use is not None:
            self._began = time.monotonic(), time.thread_time()
        return self._tx

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._use is not None and error is None:
            # While the thread was busy, the database may have been done already.
            took_s = time.monotonic() - self._began[0] - (time.thread_time() - self._began[1])
            self._use.add(self._pool.long_reads.excess(self._use.account, took_s))
        if error is not None:
            await self._give_back(error)
            return
        try:
            await self._commit()
        except BaseException as failure:
            await self._give_back(failure)
            raise
        await self._give_back(None)
        audit.count(self._tx.entries)
        if self._committed is not None:
            self._committed(self._tx)

    async def _commit(self) -> None:
        entries = self._tx.entries
        appended = audit.append_statements(entries, self._bound_to) if entries else ""
        if await self._connection.execute(f"{appended}COMMIT") != "COMMIT":
            # PostgreSQL responds to a COMMIT after a failed statement with "ROLLBACK".
            raise asyncpg.InFailedSQLTransactionError(
                "nothing was committed because an earlier statement failed"
            )

    async def _give_back(self, error: BaseException | None) -> None:
        try:
            if error is not None:
                database_metrics.count_timeout(error)
                await _abandon(self._connection)
        finally:
            try:
                await self._pool.release(self._connection)
            finally:
                self._leave()

    async def _enter(self, account_id: UUID) -> None:
        if self._use is not None:
            await self._pool.reads.enter(account_id)
        try:
            await self._pool.shares.enter(account_id)
        except BaseException:
            if self._use is not None:
                self._pool.reads.leave(account_id)
            raise

    def _leave(self) -> None:
        if self._bound_to is not None:
            self._pool.shares.leave(self._bound_to)
            if self._use is not None:
                self._pool.reads.leave(self._bound_to)


def _limited_use() -> Use | None:
    use = current()
    return use if use is not None and not use.is_over else None


async def _abandon(connection: Any) -> None:
    """Rolls back whatever state the transaction is in, so that the connection can be used again."""
    try:
        await connection.execute("ROLLBACK")
    except BaseException as error:
        # The connection is closed, or this task was cancelled. Do not reuse it.
        with suppress(asyncpg.InterfaceError):
            # Raised if it has left the pool.
            connection.terminate()
        if isinstance(error, asyncio.CancelledError):
            raise
        # The error that ended the transaction matters more.
