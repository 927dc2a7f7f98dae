"""SQL for users and accounts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.accounts.model import RETENTION_KINDS, Account, Kind, Policy, Retention, User
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection, WriteConnection

# What stays of the identity of an erased user. An issuer contains no line feed.
IDENTITY_HASH = "sha256(convert_to(issuer || chr(10) || subject, 'UTF8'))"


@dataclass(frozen=True, slots=True)
class OwnedAccount:
    kind: Kind
    tier: str
    # None if a company has no owner.
    owner_id: UUID | None


async def owned_account(tx: AccountReader) -> OwnedAccount | None:
    """The account with the user that owns it; in a company, with its first owner. None: there is
    no such account, or it was erased."""
    row = await tx.fetchrow(
        """
        SELECT kind, tier,
               CASE kind WHEN 'personal' THEN id ELSE (
                   SELECT user_id FROM members WHERE account_id = accounts.id AND role = 'owner'
                   ORDER BY created_at, user_id LIMIT 1
               ) END AS owner_id
        FROM accounts WHERE id = $1 AND erased_at IS NULL
        """,
        tx.account_id,
    )
    return OwnedAccount(**row) if row else None


async def user_of_identity(connection: ReadConnection, issuer: str, subject: str) -> UUID | None:
    found: UUID | None = await connection.fetchval(
        "SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2", issuer, subject
    )
    return found


async def own_name(tx: AccountReader) -> str | None:
    """The name of the transaction's user."""
    name: str | None = await tx.fetchval(
        "SELECT coalesce(name, email) FROM users WHERE id = $1", tx.user_id
    )
    return name


async def claim_identity(
    connection: WriteConnection, issuer: str, subject: str, user_id: UUID
) -> bool:
    """Returns False if a concurrent sign-in has already created the identity."""
    claimed = await connection.fetchval(
        """
        INSERT INTO identities (issuer, subject, user_id) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING RETURNING true
        """,
        issuer,
        subject,
        user_id,
    )
    return bool(claimed)


async def create_user(
    connection: WriteConnection,
    user_id: UUID,
    email: str | None,
    name: str | None,
    trial_ends_at: datetime | None,
    *,
    returns: bool = False,
) -> None:
    """Creates a user, and the user's personal account with the same UUID. For a user who returns,
    the account counts as one that the user has made: it gets no trial and no free allowance."""
    await connection.execute(
        """
        WITH account AS (
            INSERT INTO accounts (id, kind, name, trial_ends_at, created_by)
            VALUES ($1, 'personal', coalesce($3, $2, 'Personal'), $4,
                    CASE WHEN $5::boolean THEN $1::uuid END)
        )
        INSERT INTO users (id, email, name) VALUES ($1, $2, $3)
        """,
        user_id,
        email,
        name,
        trial_ends_at,
        returns,
    )


async def was_erased(connection: ReadConnection, issuer: str, subject: str) -> bool:
    """Whether a user with this identity erased the account."""
    found: bool = await connection.fetchval(
        f"""
        SELECT EXISTS (SELECT FROM erased_identities WHERE hash = (
            SELECT {IDENTITY_HASH} FROM (VALUES ($1::text, $2::text)) AS given (issuer, subject)))
        """,  # noqa: S608
        issuer,
        subject,
    )
    return found


async def update_profile(
    connection: WriteConnection, user_id: UUID, email: str | None, name: str | None
) -> None:
    await connection.execute(
        """
        UPDATE users SET email = coalesce($2, email), name = coalesce($3, name)
        WHERE id = $1 AND (email, name) IS DISTINCT FROM (coalesce($2, email), coalesce($3, name))
        """,
        user_id,
        email,
        name,
    )


async def set_verified_email(tx: AccountTransaction, email: str | None) -> None:
    """Stores the address that an issuer has verified for the transaction's user. With None, the
    last one stays."""
    if email is None:
        return
    await tx.execute(
        "UPDATE users SET verified_email = $2 WHERE id = $1 AND verified_email IS DISTINCT FROM $2",
        tx.user_id,
        email,
    )


async def user_with_accounts(
    connection: ReadConnection, user_id: UUID
) -> tuple[User, list[Account]] | None:
    """The user and every account the user can select, the personal one first."""
    rows = await connection.fetch(
        """
        SELECT u.email AS user_email, u.name AS user_name, u.created_at AS user_created_at,
               a.id, a.kind, a.name, a.tier, coalesce(m.role, 'owner') AS role,
               coalesce(m.role, 'owner') <> 'member' OR m.approver OR a.anyone_approves
                   AS approver,
               a.trial_ends_at, a.created_at
        FROM users u
        JOIN accounts a ON a.id = u.id
                        OR a.id IN (SELECT account_id FROM members WHERE user_id = $1)
        LEFT JOIN members m ON m.account_id = a.id AND m.user_id = u.id
        WHERE u.id = $1
        ORDER BY a.kind = 'personal' DESC, a.id
        """,
        user_id,
    )
    if not rows:
        return None
    first = rows[0]
    user = User(
        id=user_id,
        email=first["user_email"],
        name=first["user_name"],
        created_at=first["user_created_at"],
    )
    return user, [_account(row) for row in rows]


def _account(row: Mapping[str, Any]) -> Account:
    return Account(
        id=row["id"],
        kind=row["kind"],
        name=row["name"],
        tier=row["tier"],
        role=row["role"],
        approver=row["approver"],
        trial_ends_at=row["trial_ends_at"],
        created_at=row["created_at"],
    )


async def create_company(
    tx: AccountTransaction, name: str, tier: str, seats: int | None, created_by: UUID | None
) -> None:
    await tx.execute(
        """
        INSERT INTO accounts (id, kind, name, tier, seats, created_by)
        VALUES ($1, 'company', $2, $3, $4, $5)
        """,
        tx.account_id,
        name,
        tier,
        seats,
        created_by,
    )


async def count_company(tx: AccountTransaction, limit: int) -> bool:
    """Counts a company that the transaction's user creates. False if there are `limit` already."""
    counted = await tx.fetchval(
        """
        UPDATE users SET companies_created = companies_created + 1
        WHERE id = $1 AND companies_created < $2 RETURNING true
        """,
        tx.user_id,
        limit,
    )
    return bool(counted)


async def is_self_made(tx: AccountReader) -> bool:
    """Whether the account is a company that a user has created over the API, or the new account of
    a user who erased an earlier one. Otherwise, each new account would be free money."""
    found = await tx.fetchval(
        "SELECT true FROM accounts WHERE id = $1 AND created_by IS NOT NULL", tx.account_id
    )
    return bool(found)


async def user_exists(connection: ReadConnection, user_id: UUID) -> bool:
    """Needs a transaction of that user. Row security hides the row from all others."""
    return bool(await connection.fetchval("SELECT true FROM users WHERE id = $1", user_id))


async def stays_open(tx: AccountTransaction) -> bool:
    """Whether the account is not erased. An erasure waits until the transaction ends."""
    found = await tx.fetchval(
        "SELECT true FROM accounts WHERE id = $1 AND erased_at IS NULL FOR SHARE", tx.account_id
    )
    return bool(found)


async def lock(tx: AccountTransaction) -> bool:
    """Locks the account until the transaction ends. False if it does not exist."""
    locked = await tx.fetchval(
        "SELECT true FROM accounts WHERE id = $1 FOR NO KEY UPDATE", tx.account_id
    )
    return bool(locked)


async def lock_company(tx: AccountTransaction) -> bool:
    """Locks a company until the transaction ends. False if it does not exist."""
    locked = await tx.fetchval(
        "SELECT true FROM accounts WHERE id = $1 AND kind = 'company' FOR NO KEY UPDATE",
        tx.account_id,
    )
    return bool(locked)


async def name(tx: AccountReader) -> str:
    """The account's name."""
    found: str = await tx.fetchval("SELECT name FROM accounts WHERE id = $1", tx.account_id)
    return found


async def set_name(tx: AccountTransaction, name: str) -> None:
    await tx.execute("UPDATE accounts SET name = $2 WHERE id = $1", tx.account_id, name)


async def policy(tx: AccountReader) -> Policy:
    """The account's policy. It is exact if the transaction has locked the event journal."""
    row = await tx.fetchrow(
        """
        SELECT second_person, anyone_approves, max_cost_cents, tasks_days, steps_days,
               events_days, audit_days
        FROM accounts WHERE id = $1
        """,
        tx.account_id,
    )
    return Policy(
        row["second_person"], row["anyone_approves"], row["max_cost_cents"], _retention(row)
    )


async def retention_of(
    connection: ReadConnection, account_ids: Sequence[UUID]
) -> dict[UUID, Retention]:
    """The retention of accounts. Needs a relay's transaction."""
    rows = await connection.fetch(
        """
        SELECT id, tasks_days, steps_days, events_days, audit_days FROM accounts
        WHERE id = ANY($1::uuid[])
        """,
        account_ids,
    )
    return {row["id"]: _retention(row) for row in rows}


def _retention(row: Any) -> Retention:
    return Retention(*[row[f"{kind}_days"] for kind in RETENTION_KINDS])


async def set_policy(tx: AccountTransaction, policy: Policy) -> None:
    await tx.execute(
        """
        UPDATE accounts SET second_person = $2, anyone_approves = $3, max_cost_cents = $4,
            tasks_days = $5, steps_days = $6, events_days = $7, audit_days = $8
        WHERE id = $1
        """,
        tx.account_id,
        policy.second_person,
        policy.anyone_approves,
        policy.max_cost_cents,
        *[policy.retention.days(kind) for kind in RETENTION_KINDS],
    )


async def is_open(tx: AccountReader) -> bool:
    """Whether the account exists and can still be used."""
    found: bool = await tx.fetchval(
        "SELECT EXISTS (SELECT FROM accounts WHERE id = $1 AND erased_at IS NULL)", tx.account_id
    )
    return found


async def tier(tx: AccountReader) -> str:
    """The account's tier."""
    found: str = await tx.fetchval("SELECT tier FROM accounts WHERE id = $1", tx.account_id)
    return found


async def set_tier(tx: AccountTransaction, tier: str) -> bool:
    updated = await tx.fetchval(
        "UPDATE accounts SET tier = $2 WHERE id = $1 RETURNING true", tx.account_id, tier
    )
    return bool(updated)


async def set_seats(tx: AccountTransaction, seats: int | None) -> None:
    await tx.execute("UPDATE accounts SET seats = $2 WHERE id = $1", tx.account_id, seats)


async def tiers(tx: AccountReader, user_id: UUID) -> tuple[str | None, str | None]:
    """The tier of the account, and the tier of the user's personal account."""
    row = await tx.fetchrow(
        """
        SELECT (SELECT tier FROM accounts WHERE id = $1) AS account_tier,
               (SELECT tier FROM accounts WHERE id = $2) AS user_tier
        """,
        tx.account_id,
        user_id,
    )
    return row["account_tier"], row["user_tier"]


async def trial_period(tx: AccountReader) -> tuple[datetime, datetime] | None:
    """Start and end of the account's signup trial. None if it had no trial."""
    row = await tx.fetchrow(
        """
        SELECT created_at, trial_ends_at FROM accounts WHERE id = $1 AND trial_ends_at IS NOT NULL
        """,
        tx.account_id,
    )
    return (row["created_at"], row["trial_ends_at"]) if row else None


async def email(tx: AccountReader, user_id: UUID) -> str | None:
    """The user's email address. Only a transaction of that user can read it."""
    found: str | None = await tx.fetchval("SELECT email FROM users WHERE id = $1", user_id)
    return found


async def verified_email(tx: AccountReader, user_id: UUID) -> str | None:
    """The address that an issuer has verified last for the user. Only a transaction of that user,
    or of a company that the user is a member of, can read it."""
    found: str | None = await tx.fetchval("SELECT verified_email FROM users WHERE id = $1", user_id)
    return found
