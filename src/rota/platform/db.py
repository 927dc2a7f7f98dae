"""PostgreSQL: a connection pool, and transactions that are limited to one account.

Row-level security reads two settings that last as long as the transaction: the account and the
user. A transaction without them can read no tenant's rows. Reads and writes have different types,
so a read cannot write by mistake and can be sent to a replica.

The role, the plan mode and the timeouts also last as long as the transaction. So connections carry
no state, and a pooler such as PgBouncer can give each transaction another one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from rota.platform import audit, database_metrics, json, membership
from rota.platform.connection_shares import ConnectionShares, ShareExceeded
from rota.platform.membership import NO_USER
from rota.platform.roles import APPLICATION_ROLE, RELAY_ROLE, check_role
from rota.platform.schema_version import check_version
from rota.platform.transactions import (
    AccountReader,
    AccountTransaction,
    ReadConnection,
    UnboundTransaction,
    WriteConnection,
    bind_account,
)

__all__ = [
    "DATABASE_ERRORS",
    "NO_USER",
    "REJECTED_VALUES",
    "AccountReader",
    "AccountTransaction",
    "Database",
    "DatabaseTimeouts",
    "PoolExhausted",
    "ReadConnection",
    "UnboundTransaction",
    "WriteConnection",
    "bind_account",
    "owner_connection",
    "record",
    "use_json",
]

# Raised when the database or the network to it fails, or has no connection for the account now.
# asyncpg raises InternalClientError when a connection is lost in the middle of a protocol exchange.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    ShareExceeded,
)
# Raised when PostgreSQL cannot store a value. The same statement fails again.
REJECTED_VALUES = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)


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


DEFAULT_TIMEOUTS = DatabaseTimeouts()


def _announce_nothing(_: object) -> None:
    """For commands and tests that have no live streams or relays to wake."""


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


@asynccontextmanager
async def owner_connection(url: str) -> AsyncIterator[Any]:
    """A single connection for operator commands, outside the pool and without row security."""
    # Without prepared statements: a pooler would keep them for the next client, with their names.
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        await use_json(connection)
        yield connection
    finally:
        await connection.close()


async def _skip_reset(connection: Any) -> None:
    """Replaces the pool's reset. Transactions here leave nothing to clean up."""


class Database:
    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        announce: Callable[[UUID], None] = _announce_nothing,
        wake: Callable[[frozenset[str]], None] = _announce_nothing,
        timeouts: DatabaseTimeouts = DEFAULT_TIMEOUTS,
        statement_cache: int = 100,
        production: bool = False,
    ) -> None:
        self._url = url
        self._pool_size = pool_size
        # Called with the account after a transaction with events has committed.
        self._announce = announce
        # Called with the lanes after a transaction with instructions has committed.
        self._wake = wake
        self._timeouts = timeouts
        self._statement_cache = statement_cache
        self._production = production
        self._application = _session(APPLICATION_ROLE, timeouts)
        self._relay = _session(RELAY_ROLE, timeouts)
        self._shares = ConnectionShares(pool_size, timeouts.pool_s)
        self._pool: Any = None

    async def open(self) -> None:
        """Connects. Refuses a role or a login that row security does not limit."""
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=min(2, self._pool_size),
            max_size=self._pool_size,
            timeout=10,
            # The server ends a statement first, with a better error.
            command_timeout=self._timeouts.statement_s + 5,
            statement_cache_size=self._statement_cache,
            init=use_json,
            reset=_skip_reset,
            # PgBouncer refuses most other startup parameters.
            server_settings={"application_name": "rota"},
        )
        database_metrics.watch(self._pool, self._pool_size)
        try:
            begin = f"BEGIN; {self._application}"
            await check_role(
                lambda: self._transaction(begin), APPLICATION_ROLE, production=self._production
            )
        except BaseException:
            await self.close()
            raise

    async def check_relay(self) -> None:
        """Refuses a login that cannot use the relay's role. Workers need it."""
        await check_role(self.relay, RELAY_ROLE, production=self._production)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def check_version(self) -> None:
        """Refuses a schema that is older than this release."""
        await check_version(self.directory)

    async def ping(self) -> None:
        async with self._pool.acquire() as connection:
            await connection.execute("SELECT 1")

    async def identity(self) -> str:
        """Tells this database from all others, however a process is connected to it."""
        async with self._pool.acquire() as connection:
            found: str = await connection.fetchval(
                "SELECT system_identifier || '.' || current_database() FROM pg_control_system()"
            )
        return found

    def _of_account(
        self,
        mode: str,
        account_id: UUID,
        user_id: UUID,
        check: str = "",
        entries: Sequence[audit.Entry] = (),
        session: str | None = None,
    ) -> AbstractAsyncContextManager[WriteConnection]:
        """A transaction on one account's rows, with a connection of the account's share."""
        # One simple query, so that all of it takes one round trip. A UUID prints as hexadecimal
        # digits and dashes only, so it needs no quoting.
        begin = (
            f"BEGIN {mode}; {session or self._application}; "
            f"SET LOCAL rota.account_id = '{account_id}'; "
            f"SET LOCAL rota.user_id = '{user_id}'{check}"
        )
        return self._transaction(begin, entries, account_id)

    @asynccontextmanager
    async def read(self, account_id: UUID, user_id: UUID = NO_USER) -> AsyncIterator[AccountReader]:
        async with self._of_account("READ ONLY", account_id, user_id) as connection:
            yield AccountReader(connection, account_id, user_id)

    @asynccontextmanager
    async def snapshot(
        self, account_id: UUID, user_id: UUID = NO_USER
    ) -> AsyncIterator[AccountReader]:
        """A read in which all statements see the database at the same moment."""
        mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._of_account(mode, account_id, user_id) as connection:
            yield AccountReader(connection, account_id, user_id)

    @asynccontextmanager
    async def write(
        self,
        account_id: UUID,
        user_id: UUID = NO_USER,
        *,
        right: str | None = None,
        check_member: bool = True,
    ) -> AsyncIterator[AccountTransaction]:
        """With a user, the transaction is refused if the user does not belong to the account, or
        lacks the right. The user stays a member with that right until it ends."""
        check = ""
        if check_member and membership.is_needed(account_id, user_id):
            check = membership.checked(account_id, user_id, right)
        entries: list[audit.Entry] = []
        async with self._of_account("", account_id, user_id, check, entries) as connection:
            tx = AccountTransaction(connection, account_id, user_id, entries)
            yield tx
        if tx.has_events:
            self._announce(account_id)
        if tx.wakes:
            self._wake(tx.wakes)

    @asynccontextmanager
    async def removal(
        self, account_id: UUID, user_id: UUID = NO_USER, *, lock_s: float = 1
    ) -> AsyncIterator[AccountTransaction]:
        """A transaction of background work on one account, which can also delete what the
        application cannot. It waits only `lock_s` for a lock, so that others do not queue."""
        session = f"{self._relay}; SET LOCAL lock_timeout = {int(lock_s * 1000)}"
        entries: list[audit.Entry] = []
        async with self._of_account("", account_id, user_id, "", entries, session) as connection:
            yield AccountTransaction(connection, account_id, user_id, entries)

    @asynccontextmanager
    async def directory(self) -> AsyncIterator[UnboundTransaction]:
        """A transaction without an account: it can find accounts but reads no tenant's rows."""
        async with self._unbound(f"BEGIN; {self._application}") as tx:
            yield tx

    @asynccontextmanager
    async def relay(self, *, by_index: bool = False) -> AsyncIterator[UnboundTransaction]:
        """A transaction of the relay, which can read the instructions of every account.

        With `by_index`, plans use indexes only. A queue is usually empty when a plan is made or
        its table analysed, and a plan for an empty table is slow when the queue is long.
        """
        begin = f"BEGIN; {self._relay}"
        if by_index:
            begin += (
                "; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off"
                "; SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off"
                "; SET LOCAL enable_mergejoin = off"
            )
        async with self._unbound(begin) as tx:
            yield tx

    @asynccontextmanager
    async def _unbound(self, begin: str) -> AsyncIterator[UnboundTransaction]:
        tx = UnboundTransaction(None)
        async with self._transaction(begin, tx.entries) as tx._connection:
            yield tx

    @asynccontextmanager
    async def _transaction(
        self, begin: str, entries: Sequence[audit.Entry] = (), bound_to: UUID | None = None
    ) -> AsyncIterator[WriteConnection]:
        """Runs the statement `begin`, and commits with the audit entries that were added."""
        if bound_to is not None:
            await self._shares.enter(bound_to)
        try:
            connection = await self._acquire()
            try:
                await self._start(connection, begin)
                yield connection
                appended = audit.append_statements(entries, bound_to) if entries else ""
                if await connection.execute(f"{appended}COMMIT") != "COMMIT":
                    # PostgreSQL responds to a COMMIT after a failed statement with "ROLLBACK".
                    raise asyncpg.InFailedSQLTransactionError(
                        "nothing was committed because an earlier statement failed"
                    )
            except BaseException as error:
                database_metrics.count_timeout(error)
                await _abandon(connection)
                raise
            finally:
                await self._pool.release(connection)
        finally:
            if bound_to is not None:
                self._shares.leave(bound_to)
        audit.count(entries)

    async def _start(self, connection: Any, begin: str) -> None:
        try:
            # Behind a pooler, BEGIN is what waits for a connection.
            await connection.execute(begin, timeout=self._timeouts.pool_s)
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

    async def _acquire(self) -> Any:
        deadline = asyncio.timeout(self._timeouts.pool_s)
        try:
            async with deadline:
                return await self._pool.acquire()
        except TimeoutError:
            if not deadline.expired():
                raise  # PostgreSQL did not accept a new connection in time.
            raise self._exhausted() from None

    def _exhausted(self) -> PoolExhausted:
        database_metrics.TIMEOUTS.labels("pool").inc()
        return PoolExhausted(f"no database connection was free within {self._timeouts.pool_s:g} s")


def _session(role: str, timeouts: DatabaseTimeouts) -> str:
    """What every transaction of a role sets first."""
    milliseconds = {
        "lock_timeout": timeouts.lock_s,
        "statement_timeout": timeouts.statement_s,
        "idle_in_transaction_session_timeout": timeouts.idle_s,
    }
    return "; ".join(
        (
            f"SET LOCAL ROLE {role}",
            # Every statement names its account, so one plan serves all accounts. On a partitioned
            # table, planning a statement takes longer than running it.
            "SET LOCAL plan_cache_mode = force_generic_plan",
            *(f"SET LOCAL {name} = {int(s * 1000)}" for name, s in milliseconds.items()),
        )
    )


async def _abandon(connection: Any) -> None:
    """Rolls back whatever state the transaction is in, so that the connection can be used again."""
    try:
        await connection.execute("ROLLBACK")
    except BaseException:
        # The connection is closed, or this task was cancelled again. Do not reuse it.
        connection.terminate()


async def record(connection: Any, action: str, details: Mapping[str, Any]) -> None:
    """Appends an audit entry about the installation in a transaction of the owner. It must be the
    last statement of the transaction."""
    entry = audit.Entry.of(audit.INSTALLATION, None, action, None, details)
    # Migrations do this before the procedure for one entry exists.
    await connection.execute(audit.append_statements([entry], None, as_arrays=True))
    audit.count([entry])
