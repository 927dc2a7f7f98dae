"""Ties the transactions of a company's member to the membership.

A transaction that writes for a member takes a shared lock on the membership and checks that it
exists. If the route needs a right, it also checks that the member has it. Removing or changing a
member takes the lock exclusively. So each transaction of the member commits before the change or is
refused, whatever a process has cached.
"""

import hashlib
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

import asyncpg

from rota.platform.errors import Forbidden, RateLimited

NO_USER = UUID(int=0)
# The error codes of the database function `require_member`.
NOT_A_MEMBER = "RT403"
RIGHT_MISSING = "RT405"


class MembershipEnded(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "You are no longer a member of this account. GET /api/me lists your accounts."
        )


class MembershipBusy(RateLimited):
    """The lock was not free in time."""

    def __init__(self) -> None:
        super().__init__(
            "Another request of this member is still in progress. Try again in a few seconds.",
            retry_after_s=5,
        )


class RightEnded(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "Your rights in this company have changed and no longer allow this. GET /api/me shows "
            "them."
        )


# The errors of `require_member`, by their codes.
REFUSALS: dict[str, Callable[[], Forbidden]] = {
    NOT_A_MEMBER: MembershipEnded,
    RIGHT_MISSING: RightEnded,
}


class Transaction(Protocol):
    account_id: UUID
    user_id: UUID

    async def execute(self, query: str) -> str: ...


def is_needed(account_id: UUID, user_id: UUID) -> bool:
    """Whether the user can use the account only as a member. A personal account has no members,
    and the service itself acts without a user."""
    return user_id not in (NO_USER, account_id)


async def require(tx: Transaction, right: str | None = None) -> None:
    """Refuses a user who has left the company or lost the right. It locks nothing, so a removal
    does not wait for the transaction."""
    if not is_needed(tx.account_id, tx.user_id):
        return
    try:
        await tx.execute(check(right))
    except asyncpg.PostgresError as error:
        raise refusal(error) from None


def refusal(error: asyncpg.PostgresError) -> Exception:
    """The error to raise: a refusal of `require_member`, or the same one."""
    refused = REFUSALS.get(error.sqlstate or "")
    return refused() if refused else error


def lock_number(account_id: UUID, user_id: UUID) -> int:
    """The number of the advisory lock on a membership."""
    digest = hashlib.sha256(b"member" + account_id.bytes + user_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def checked(account_id: UUID, user_id: UUID, right: str | None) -> str:
    """Statements for the beginning of a transaction. The check must see what the lock waited for,
    so it is a statement of its own."""
    number = lock_number(account_id, user_id)
    return f"; SELECT pg_advisory_xact_lock_shared({number}); {check(right)}"


def check(right: str | None) -> str:
    # A right is a name in the code, so it needs no escaping.
    needed = f"'{right}'" if right else "NULL"
    return f"SELECT require_member({needed})"
