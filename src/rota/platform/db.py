"""PostgreSQL: a connection pool, and transactions that are limited to one account.

Row-level security reads two settings that last as long as the transaction: the account and the
user. A transaction without them can read no tenant's rows. Reads and writes have different types,
so a read cannot write by mistake and can be sent to a replica.

The role, the plan mode and the timeouts also last as long as the transaction. So connections carry
no state, and a pooler such as PgBouncer can give each transaction another one.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg

from rota.platform import audit, membership
from rota.platform.connection_shares import ShareExceeded
from rota.platform.membership import NO_USER
from rota.platform.pool import DatabaseTimeouts, Pool, PoolExhausted, Transaction, use_json
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


DEFAULT_TIMEOUTS = DatabaseTimeouts()


def _announce_nothing(_: object) -> None:
    """For commands and tests that have no live streams or relays to wake."""


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
        self._pool = Pool(url, size=pool_size, timeouts=timeouts, statement_cache=statement_cache)
        # Called with the account after a transaction with events has committed.
        self._announce = announce
        # Called with the lanes after a transaction with instructions has committed.
        self._wake = wake
        self._production = production
        self._application = _session(APPLICATION_ROLE, timeouts)
        self._relay = _session(RELAY_ROLE, timeouts)

    async def open(self) -> None:
        """Connects. Refuses a role or a login that row security does not limit."""
        await self._pool.open()
        try:
            await check_role(self.directory, APPLICATION_ROLE, production=self._production)
        except BaseException:
            await self.close()
            raise

    async def check_relay(self) -> None:
        """Refuses a login that cannot use the relay's role. Workers need it."""
        await check_role(self.relay, RELAY_ROLE, production=self._production)

    async def close(self) -> None:
        await self._pool.close()

    async def check_version(self) -> None:
        """Refuses a schema that is older than this release."""
        await check_version(self.directory)

    async def ping(self) -> None:
        async with self._pool.connection() as connection:
            await connection.execute("SELECT 1")

    async def identity(self) -> str:
        """Tells this database from all others, however a process is connected to it."""
        async with self._pool.connection() as connection:
            found: str = await connection.fetchval(
                "SELECT system_identifier || '.' || current_database() FROM pg_control_system()"
            )
        return found

    def read(
        self, account_id: UUID, user_id: UUID = NO_USER
    ) -> AbstractAsyncContextManager[AccountReader]:
        return self._reading("READ ONLY", account_id, user_id)

    def snapshot(
        self, account_id: UUID, user_id: UUID = NO_USER, *, limited: bool = True
    ) -> AbstractAsyncContextManager[AccountReader]:
        """A read in which all statements see the database at the same moment. One that goes on
        while a client reads is not limited: it would take a place for reading from the account."""
        mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._reading(mode, account_id, user_id, limited=limited)

    def write(
        self,
        account_id: UUID,
        user_id: UUID = NO_USER,
        *,
        right: str | None = None,
        check_member: bool = True,
    ) -> AbstractAsyncContextManager[AccountTransaction]:
        """With a user, the transaction is refused if the user does not belong to the account, or
        lacks the right. The user stays a member with that right until it ends."""
        check = ""
        if check_member and membership.is_needed(account_id, user_id):
            check = membership.checked(account_id, user_id, right)
        return self._writing(
            account_id, user_id, self._application, check, committed=self._after_commit
        )

    def removal(
        self, account_id: UUID, user_id: UUID = NO_USER, *, lock_s: float = 1
    ) -> AbstractAsyncContextManager[AccountTransaction]:
        """A transaction of background work on one account, which can also delete what the
        application cannot. It waits only `lock_s` for a lock, so that others do not queue."""
        session = f"{self._relay}; SET LOCAL lock_timeout = {int(lock_s * 1000)}"
        return self._writing(account_id, user_id, session)

    def directory(self) -> AbstractAsyncContextManager[UnboundTransaction]:
        """A transaction without an account: it can find accounts but reads no tenant's rows."""
        return self._unbound(f"BEGIN; {self._application}")

    def relay(self, *, by_index: bool = False) -> AbstractAsyncContextManager[UnboundTransaction]:
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
        return self._unbound(begin)

    def _reading(
        self, mode: str, account_id: UUID, user_id: UUID, *, limited: bool = True
    ) -> Transaction[AccountReader]:
        return Transaction(
            self._pool,
            _begin(mode, self._application, account_id, user_id),
            lambda connection: AccountReader(connection, account_id, user_id),
            bound_to=account_id,
            limited_read=limited,
        )

    def _writing(
        self,
        account_id: UUID,
        user_id: UUID,
        session: str,
        check: str = "",
        committed: Callable[[AccountTransaction], None] | None = None,
    ) -> Transaction[AccountTransaction]:
        return Transaction(
            self._pool,
            _begin("", session, account_id, user_id) + check,
            lambda connection: AccountTransaction(connection, account_id, user_id),
            bound_to=account_id,
            committed=committed,
        )

    def _unbound(self, begin: str) -> Transaction[UnboundTransaction]:
        return Transaction(self._pool, begin, UnboundTransaction)

    def _after_commit(self, tx: AccountTransaction) -> None:
        if tx.has_events:
            self._announce(tx.account_id)
        if tx.wakes:
            self._wake(tx.wakes)


def _begin(mode: str, session: str, account_id: UUID, user_id: UUID) -> str:
    """Begins a transaction on one account's rows."""
    # One simple query, so that all of it takes one round trip. A UUID prints as hexadecimal digits
    # and dashes only, so it needs no quoting.
    return (
        f"BEGIN {mode}; {session}; SET LOCAL rota.account_id = '{account_id}'; "
        f"SET LOCAL rota.user_id = '{user_id}'"
    )


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


async def record(connection: Any, action: str, details: Mapping[str, Any]) -> None:
    """Appends an audit entry about the installation in a transaction of the owner. It must be the
    last statement of the transaction."""
    entry = audit.Entry.of(audit.INSTALLATION, None, action, None, details)
    # Migrations do this before the procedure for one entry exists.
    await connection.execute(audit.append_statements([entry], None, as_arrays=True))
    audit.count([entry])
