"""Transactions: what code can do in them, which account's rows they see, and what they collect for
their commit."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from rota.platform import audit
from rota.platform.membership import NO_USER


class ReadConnection(Protocol):
    """What a read-only query needs."""

    async def fetch(self, query: str, *args: object) -> list[Any]: ...
    async def fetchrow(self, query: str, *args: object) -> Any: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...


class WriteConnection(ReadConnection, Protocol):
    """What a query that writes needs."""

    async def execute(self, query: str, *args: object) -> str: ...
    async def executemany(self, query: str, args: Any) -> None: ...


async def execute_count(connection: WriteConnection, query: str, *args: object) -> int:
    """Executes a statement. Returns how many rows it inserted, changed or deleted."""
    # PostgreSQL says, for example, `DELETE 3`.
    done = await connection.execute(query, *args)
    return int(done.rpartition(" ")[2])


class Statements:
    """What every transaction can do."""

    __slots__ = ("_connection",)

    _connection: Any
    # What the commit appends to the audit trail. A read appends nothing.
    entries: Sequence[audit.Entry] = ()

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


class _Writes(Statements):
    __slots__ = ()

    def execute(self, query: str, *args: object) -> Coroutine[Any, Any, str]:
        done: Coroutine[Any, Any, str] = self._connection.execute(query, *args)
        return done

    def executemany(self, query: str, args: Any) -> Coroutine[Any, Any, None]:
        done: Coroutine[Any, Any, None] = self._connection.executemany(query, args)
        return done


class AccountReader(Statements):
    """A read-only transaction on one account's rows."""

    __slots__ = ("account_id", "user_id")

    def __init__(self, connection: Any, account_id: UUID, user_id: UUID) -> None:
        self._connection = connection
        self.account_id = account_id
        self.user_id = user_id


class UnboundTransaction(_Writes):
    """A transaction that began without an account."""

    __slots__ = ("entries",)

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.entries: list[audit.Entry] = []

    def record(self, action: str, details: Mapping[str, Any]) -> None:
        """Adds an audit entry about the installation, which the commit appends."""
        self.entries.append(audit.Entry.of(audit.INSTALLATION, None, action, None, details))


class AccountTransaction(AccountReader, _Writes):
    """A transaction that changes one account.

    Its events and instructions are announced after the commit.
    """

    __slots__ = ("entries", "has_events", "wakes")

    def __init__(
        self,
        connection: Any,
        account_id: UUID,
        user_id: UUID,
        entries: list[audit.Entry] | None = None,
    ) -> None:
        super().__init__(connection, account_id, user_id)
        self.entries: list[audit.Entry] = [] if entries is None else entries
        # Set by the code that appends to the event journal.
        self.has_events = False
        # The lanes of the outbox that the transaction writes to.
        self.wakes: frozenset[str] = frozenset()

    def record(self, action: str, details: Mapping[str, Any], resource: str | None = None) -> None:
        """Adds an audit entry, which the commit appends. The resource is the account unless given.

        Appending an event does this too. So it is for changes without an event.
        """
        user_id = self.user_id if self.user_id != NO_USER else None
        self.entries.append(audit.Entry.of(self.account_id, user_id, action, resource, details))


async def bind_account(
    tx: UnboundTransaction | AccountTransaction, account_id: UUID, user_id: UUID
) -> AccountTransaction:
    """Limits a transaction that began without an account to one that was just found or created."""
    await tx.execute(
        f"SET LOCAL rota.account_id = '{account_id}'; SET LOCAL rota.user_id = '{user_id}'"
    )
    return AccountTransaction(tx._connection, account_id, user_id, tx.entries)
