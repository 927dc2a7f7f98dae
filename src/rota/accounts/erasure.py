"""SQL that makes an account unusable, and deletes what identifies its user."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.accounts.model import Kind
from rota.accounts.queries import IDENTITY_HASH
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection
from rota.platform.transactions import execute_count

# Instead of the name.
ERASED_NAME = "Erased account"


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """An account as an operator sees it."""

    id: UUID
    kind: Kind
    name: str
    tier: str
    created_at: datetime
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class Subject:
    """The account that is to be erased, or that was."""

    kind: Kind
    name: str
    erased_at: datetime | None


async def subject(tx: AccountReader) -> Subject | None:
    row = await tx.fetchrow(
        "SELECT kind, name, erased_at FROM accounts WHERE id = $1", tx.account_id
    )
    return Subject(**row) if row else None


async def member_ids(tx: AccountReader) -> list[UUID]:
    rows = await tx.fetch(
        "SELECT user_id FROM members WHERE account_id = $1 ORDER BY user_id", tx.account_id
    )
    return [row["user_id"] for row in rows]


async def company_ids(tx: AccountReader) -> list[UUID]:
    """The companies of the transaction's user."""
    rows = await tx.fetch(
        "SELECT account_id FROM members WHERE user_id = $1 ORDER BY account_id", tx.user_id
    )
    return [row["account_id"] for row in rows]


async def is_sole_owner(tx: AccountReader, user_id: UUID) -> bool:
    """Whether the user is the only owner of the company."""
    found = await tx.fetchval(
        """
        SELECT count(*) FILTER (WHERE user_id = $2) = 1 AND count(*) = 1
        FROM members WHERE account_id = $1 AND role = 'owner'
        """,
        tx.account_id,
        user_id,
    )
    return bool(found)


async def close(tx: AccountTransaction, now: datetime) -> None:
    """Nobody can find or select the account any more. Its row stays, without a name."""
    await tx.execute(
        """
        UPDATE accounts SET erased_at = $2, name = $3, created_by = NULL, trial_ends_at = NULL
        WHERE id = $1
        """,
        tx.account_id,
        now,
        ERASED_NAME,
    )
    await tx.execute("DELETE FROM members WHERE account_id = $1", tx.account_id)


async def delete_identity(tx: AccountTransaction) -> None:
    """The next sign-in of the same person creates a new user, who is known to have been here."""
    await tx.execute(
        f"""
        INSERT INTO erased_identities (hash)
        SELECT {IDENTITY_HASH} FROM identities WHERE user_id = $1 ON CONFLICT DO NOTHING
        """,  # noqa: S608
        tx.user_id,
    )
    await tx.execute("DELETE FROM identities WHERE user_id = $1", tx.user_id)


async def delete_user(tx: AccountTransaction) -> int:
    """Only background work can do this."""
    return await execute_count(tx, "DELETE FROM users WHERE id = $1", tx.user_id)


async def listed(
    connection: ReadConnection, after: UUID, limit: int, name: str
) -> list[ListedAccount]:
    """Accounts with this text in their name, in the order of their IDs. Needs a relay's
    transaction."""
    rows = await connection.fetch(
        """
        SELECT id, kind, name, tier, created_at, erased_at FROM accounts
        WHERE id > $1 AND strpos(lower(name), lower($3)) > 0 ORDER BY id LIMIT $2
        """,
        after,
        limit,
        name,
    )
    return [ListedAccount(**row) for row in rows]


async def find_listed(connection: ReadConnection, account_id: UUID) -> ListedAccount | None:
    """Needs a relay's transaction."""
    row = await connection.fetchrow(
        "SELECT id, kind, name, tier, created_at, erased_at FROM accounts WHERE id = $1",
        account_id,
    )
    return ListedAccount(**row) if row else None
