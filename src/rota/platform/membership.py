"""Ties the transactions of a company's member to the membership.

A transaction that writes for a member takes a shared lock on the membership and checks that it
exists. The removal of a member takes the lock alone. So each transaction of the member commits
before the removal or is refused, whatever a process has cached.
"""

import hashlib
from uuid import UUID

from rota.platform.errors import Forbidden

# The error code of the database function `require_member`.
NOT_A_MEMBER = "RT403"


class MembershipEnded(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "You are no longer a member of this account. GET /api/me lists your accounts."
        )


def lock_number(account_id: UUID, user_id: UUID) -> int:
    """The number of the advisory lock on a membership."""
    digest = hashlib.sha256(b"member" + account_id.bytes + user_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def checked(account_id: UUID, user_id: UUID) -> str:
    """Statements for the begin of a transaction. The check must see what the lock waited for, so
    it is a statement of its own."""
    number = lock_number(account_id, user_id)
    return f"; SELECT pg_advisory_xact_lock_shared({number}); SELECT require_member()"
