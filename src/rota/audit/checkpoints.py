"""Checkpoints: signed documents that say where a trail begins after its beginning was deleted.

A head says how far a trail goes, and a checkpoint what was deleted before it. Their kinds differ,
so neither passes for the other.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.audit import heads
from rota.audit.queries import Head
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.signatures import NotSigned, Signer

KIND = "rota-audit-checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last entry that was deleted."""

    account_id: UUID
    sequence: int
    hash: bytes
    signed: str

    def problem(self, keys: list[dict[str, Any]]) -> str | None:
        """Why it cannot be trusted."""
        try:
            found = heads.read(self.signed, keys, KIND)
        except NotSigned as error:
            return f"the checkpoint before it cannot be trusted: {error}"
        if found != (self.account_id, self.sequence, self.hash):
            return "the checkpoint before it was changed"
        return None


async def find(tx: AccountReader) -> Checkpoint | None:
    row = await tx.fetchrow(
        "SELECT account_id, sequence, hash, signed FROM audit_checkpoints WHERE account_id = $1",
        tx.account_id,
    )
    return Checkpoint(**row) if row else None


def read(text: str, keys: list[dict[str, Any]]) -> Checkpoint:
    """A checkpoint from its signed form. Raises `NotSigned`."""
    return Checkpoint(*heads.read(text, keys, KIND), text)


async def cut(
    tx: AccountTransaction,
    signer: Signer,
    issuer: str,
    before: datetime,
    now: datetime,
    limit: int,
) -> int:
    """Deletes up to `limit` entries from before a time, behind a new checkpoint. Returns how many.

    The newest entry stays. Only background work can do this.
    """
    rows = await tx.fetch(
        """
        SELECT sequence, hash, at < $2 AS old FROM audit_entries WHERE account_id = $1
        ORDER BY sequence LIMIT $3
        """,
        tx.account_id,
        before,
        limit + 1,
    )
    old = 0
    while old < len(rows) - 1 and rows[old]["old"]:
        old += 1
    if not old:
        return 0
    last = Head(tx.account_id, rows[old - 1]["sequence"], rows[old - 1]["hash"])
    await tx.execute(
        """
        INSERT INTO audit_checkpoints (account_id, sequence, hash, at, signed)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account_id) DO UPDATE SET (sequence, hash, at, signed) = ($2, $3, $4, $5)
        """,
        tx.account_id,
        last.sequence,
        last.hash,
        now,
        heads.sign(signer, issuer, last, now, KIND),
    )
    await tx.execute(
        "DELETE FROM audit_entries WHERE account_id = $1 AND sequence <= $2",
        tx.account_id,
        last.sequence,
    )
    tx.record("audit.cut", {"through": last.sequence, "entries": old})
    return old


async def erase_details(tx: AccountTransaction, after: int, limit: int) -> int | None:
    """Erases what is private in the next entries. Returns the last of them, or None."""
    rows = await tx.fetch(
        """
        SELECT sequence FROM audit_entries WHERE account_id = $1 AND sequence > $2
        ORDER BY sequence LIMIT $3
        """,
        tx.account_id,
        after,
        limit,
    )
    if not rows:
        return None
    last: int = rows[-1]["sequence"]
    await tx.execute(
        """
        UPDATE audit_entries SET private = NULL, salt = NULL
        WHERE account_id = $1 AND sequence > $2 AND sequence <= $3 AND private IS NOT NULL
        """,
        tx.account_id,
        after,
        last,
    )
    return last
