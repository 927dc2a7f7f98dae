"""Notices: something happened that people of the account may want to be told about.

A notice is written in the transaction of its cause, so one never exists without the other, and only
if somebody in the account wants to know. The package `notifications` turns notices into messages.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from rota.platform import audit
from rota.platform.db import AccountTransaction, ReadConnection

# What people can be told about. The names are stored.
Kind = Literal["approval_waiting", "task_failed", "balance_low", "webhook_disabled"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# The sender of notifications is woken like a relay.
LANE = "notification"


@dataclass(frozen=True, slots=True)
class Notice:
    id: int
    kind: Kind
    # The task, the webhook or the account.
    subject: UUID
    # The user who caused it in a session, and so knows it. What a program does with a key of the
    # user is news.
    caused_by: UUID | None
    # The only user to tell. None: all who want to be told.
    only_for: UUID | None


async def put(
    tx: AccountTransaction,
    kind: Kind,
    subject: UUID,
    *,
    only_for: UUID | None = None,
    is_side_effect: bool = False,
) -> None:
    """Stores a notice. A side effect is news also for the user whose request caused it."""
    who = audit.actor()
    in_session = who.kind == "user" and (who.via or "").startswith("sess_")
    caused_by = who.user_id if in_session and not is_side_effect else None
    add = "SELECT add_notice($1, $2, $3, $4)"
    if await tx.fetchval(add, kind, subject, caused_by, only_for):
        tx.wakes |= {LANE}


async def accounts_with_some(
    connection: ReadConnection, kinds: Sequence[str], limit: int, except_for: Collection[UUID]
) -> list[UUID]:
    """The accounts with notices of these kinds, those with the oldest first."""
    rows = await connection.fetch(
        """
        SELECT account_id FROM notices WHERE kind = ANY($1) AND account_id <> ALL($3::uuid[])
        GROUP BY account_id ORDER BY min(id) LIMIT $2
        """,
        list(kinds),
        limit,
        list(except_for),
    )
    return [row["account_id"] for row in rows]


async def take(tx: AccountTransaction, kinds: Sequence[str], limit: int) -> list[Notice]:
    """Removes the account's oldest notices of these kinds. Two workers never take the same."""
    rows = await tx.fetch(
        """
        DELETE FROM notices WHERE account_id = $1 AND id = ANY(ARRAY(
            SELECT id FROM notices WHERE account_id = $1 AND kind = ANY($2) ORDER BY id LIMIT $3
            FOR UPDATE SKIP LOCKED
        )) RETURNING id, kind, subject, caused_by, only_for
        """,
        tx.account_id,
        list(kinds),
        limit,
    )
    return [Notice(**row) for row in rows]
