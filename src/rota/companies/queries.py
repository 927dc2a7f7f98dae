"""SQL for invitations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.accounts.model import Role
from rota.platform.db import AccountReader, AccountTransaction


@dataclass(frozen=True, slots=True)
class Invitation:
    id: UUID
    email: str
    role: Role
    approver: bool
    created_by: UUID
    created_at: datetime
    expires_at: datetime


_COLUMNS = "id, email, role, approver, created_by, created_at, expires_at"


async def insert(tx: AccountTransaction, invitation: Invitation, token_hash: bytes) -> bool:
    """False if the address has an invitation."""
    created = await tx.fetchval(
        """
        INSERT INTO invitations (account_id, id, token_hash, email, role, approver, created_by,
                                 created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (account_id, email) DO NOTHING RETURNING true
        """,
        tx.account_id,
        invitation.id,
        token_hash,
        invitation.email,
        invitation.role,
        invitation.approver,
        invitation.created_by,
        invitation.created_at,
        invitation.expires_at,
    )
    return bool(created)


async def delete_expired(tx: AccountTransaction, now: datetime) -> None:
    await tx.execute(
        "DELETE FROM invitations WHERE account_id = $1 AND expires_at <= $2", tx.account_id, now
    )


async def page(tx: AccountReader, now: datetime, limit: int, offset: int) -> list[Invitation]:
    """The open invitations, newest first."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM invitations WHERE account_id = $1 AND expires_at > $2
        ORDER BY id DESC LIMIT $3 OFFSET $4
        """,  # noqa: S608
        tx.account_id,
        now,
        limit,
        offset,
    )
    return [Invitation(**row) for row in rows]


async def count(tx: AccountReader, now: datetime) -> int:
    found: int = await tx.fetchval(
        "SELECT count(*) FROM invitations WHERE account_id = $1 AND expires_at > $2",
        tx.account_id,
        now,
    )
    return found


async def find_by_token(tx: AccountReader, token_hash: bytes, now: datetime) -> Invitation | None:
    """The open invitation with this token."""
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM invitations
        WHERE account_id = $1 AND token_hash = $2 AND expires_at > $3
        """,  # noqa: S608
        tx.account_id,
        token_hash,
        now,
    )
    return Invitation(**row) if row else None


async def delete(tx: AccountTransaction, invitation_id: UUID) -> bool:
    deleted = await tx.fetchval(
        "DELETE FROM invitations WHERE account_id = $1 AND id = $2 RETURNING true",
        tx.account_id,
        invitation_id,
    )
    return bool(deleted)


async def delete_by_or_for(
    tx: AccountTransaction, user_id: UUID, emails: Sequence[str]
) -> list[UUID]:
    """Deletes what a user has created, and what is for one of these addresses. Their IDs."""
    rows = await tx.fetch(
        """
        DELETE FROM invitations WHERE account_id = $1 AND (created_by = $2 OR email = ANY($3))
        RETURNING id
        """,
        tx.account_id,
        user_id,
        emails,
    )
    return [row["id"] for row in rows]


async def delete_all(tx: AccountTransaction) -> None:
    """Ends every invitation of a company that is erased."""
    await tx.execute("DELETE FROM invitations WHERE account_id = $1", tx.account_id)
