"""SQL for the members of a company."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from asyncpg import LockNotAvailableError

from rota.accounts.model import Member, Role
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.membership import MembershipBusy, lock_number

_COLUMNS = """
    m.user_id, u.name, u.verified_email AS email, m.role,
    m.role <> 'member' OR m.approver AS approver, m.created_at
    FROM members m LEFT JOIN users u ON u.id = m.user_id
"""

# The seats of a company of the lowest tier. A plan that has ended does not give any number.
BASIC_SEATS = 10


@dataclass(frozen=True, slots=True)
class Seats:
    # None means unlimited.
    limit: int | None
    taken: int


async def put(tx: AccountTransaction, user_id: UUID, role: Role, approver: bool | None) -> bool:
    """Adds a member, or changes the role and the right to approve. Returns whether the member is
    new.

    With None, a member keeps the right. It is stored for the role `member` only, so that an admin
    who becomes a member does not have it.
    """
    new = await tx.fetchval(
        """
        INSERT INTO members AS m (account_id, user_id, role, approver)
        VALUES ($1, $2, $3, $3 = 'member' AND coalesce($4, false))
        ON CONFLICT (account_id, user_id) DO UPDATE SET role = $3,
            approver = $3 = 'member' AND coalesce($4, m.role = 'member' AND m.approver)
        WHERE (m.role, m.approver)
            <> ($3, $3 = 'member' AND coalesce($4, m.role = 'member' AND m.approver))
        RETURNING xmax = 0
        """,
        tx.account_id,
        user_id,
        role,
        approver,
    )
    return bool(new)


async def page(tx: AccountReader, limit: int, offset: int) -> list[Member]:
    """The members, those who joined first at the top."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} WHERE m.account_id = $1
        ORDER BY m.created_at, m.user_id LIMIT $2 OFFSET $3
        """,
        tx.account_id,
        limit,
        offset,
    )
    return [Member(**row) for row in rows]


async def find(tx: AccountReader, user_id: UUID) -> Member | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} WHERE m.account_id = $1 AND m.user_id = $2",
        tx.account_id,
        user_id,
    )
    return Member(**row) if row else None


async def has_address(tx: AccountReader, email: str) -> bool:
    """Whether a member has this verified address."""
    found = await tx.fetchval(
        """
        SELECT EXISTS (
            SELECT FROM members m JOIN users u ON u.id = m.user_id
            WHERE m.account_id = $1 AND u.verified_email = $2
        )
        """,
        tx.account_id,
        email,
    )
    return bool(found)


async def is_member(tx: AccountReader, user_id: UUID) -> bool:
    """Whether the account is the user's own or the user is a member of it."""
    found = await tx.fetchval(
        "SELECT true FROM members WHERE account_id = $1 AND user_id = $2", tx.account_id, user_id
    )
    return user_id == tx.account_id or bool(found)


async def can_manage(tx: AccountReader, user_id: UUID) -> bool:
    """Whether the account is the user's own or the user is an owner or admin of it."""
    found = await tx.fetchval(
        "SELECT role <> 'member' FROM members WHERE account_id = $1 AND user_id = $2",
        tx.account_id,
        user_id,
    )
    return user_id == tx.account_id or bool(found)


async def approver_ids(tx: AccountReader, *, anyone: bool) -> set[UUID]:
    """The members who can approve: approvers, or all of them."""
    rows = await tx.fetch(
        """
        SELECT user_id FROM members
        WHERE account_id = $1 AND (role <> 'member' OR approver OR $2)
        """,
        tx.account_id,
        anyone,
    )
    return {row["user_id"] for row in rows}


async def approvers(tx: AccountReader, *, anyone: bool) -> int:
    """How many users can approve: approvers, or all members. A personal account has one user."""
    count: int = await tx.fetchval(
        """
        SELECT count(*) FROM members
        WHERE account_id = $1 AND (role <> 'member' OR approver OR $2)
        """,
        tx.account_id,
        anyone,
    )
    return max(count, 1)


async def approving_since(
    tx: AccountReader, user_ids: Sequence[UUID]
) -> dict[UUID, datetime | None]:
    """Those of these users who can approve now, with the time at which they joined. Exact if the
    transaction has locked the event journal. The user of a personal account has not joined."""
    rows = await tx.fetch(
        """
        SELECT m.user_id, m.created_at FROM members m JOIN accounts a ON a.id = m.account_id
        WHERE m.account_id = $1 AND m.user_id = ANY($2)
          AND (m.role <> 'member' OR m.approver OR a.anyone_approves)
        """,
        tx.account_id,
        list(user_ids),
    )
    found: dict[UUID, datetime | None] = {row["user_id"]: row["created_at"] for row in rows}
    return found | {user_id: None for user_id in user_ids if user_id == tx.account_id}


async def owners(tx: AccountReader) -> int:
    count: int = await tx.fetchval(
        "SELECT count(*) FROM members WHERE account_id = $1 AND role = 'owner'", tx.account_id
    )
    return count


async def seats(tx: AccountReader) -> Seats:
    """The seats of a company. Without a plan that has seats, the lowest tier has few."""
    row = await tx.fetchrow(
        """
        SELECT coalesce(seats, CASE WHEN tier = 'basic' THEN $2::integer END) AS "limit",
               (SELECT count(*) FROM members WHERE account_id = $1) AS taken
        FROM accounts WHERE id = $1
        """,
        tx.account_id,
        BASIC_SEATS,
    )
    return Seats(**row)


async def lock_membership(tx: AccountTransaction, user_id: UUID) -> None:
    """Waits for the transactions of a member, and makes later ones wait. Before any other lock."""
    try:
        await tx.execute("SELECT pg_advisory_xact_lock($1)", lock_number(tx.account_id, user_id))
    except LockNotAvailableError:
        raise MembershipBusy from None


async def delete(tx: AccountTransaction, user_id: UUID) -> None:
    await tx.execute(
        "DELETE FROM members WHERE account_id = $1 AND user_id = $2", tx.account_id, user_id
    )
