"""The SQL of the audit trail. The commit of a transaction writes it: see `rota.platform.audit`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.audit import NO_HASH, ActorKind
from rota.platform.db import AccountReader, ReadConnection


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry in its place."""

    account_id: UUID
    sequence: int
    at: datetime
    actor: ActorKind
    user_id: UUID | None
    via: str | None
    action: str
    resource: str
    commitment: bytes
    # Both are None after they were erased.
    salt: bytes | None
    private: str | None
    hash: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry of an account. The sequence is 0 if there is none."""

    account_id: UUID
    sequence: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Filter:
    """Only entries that match all of these."""

    actions: Sequence[str] = ()
    actor: ActorKind | None = None
    user_id: UUID | None = None
    resource: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_COLUMNS = ", ".join(field.name for field in fields(Stored))


async def find_head(tx: AccountReader) -> Head | None:
    row = await tx.fetchrow(
        "SELECT account_id, sequence, hash FROM audit_heads WHERE account_id = $1", tx.account_id
    )
    return Head(**row) if row else None


async def head(tx: AccountReader) -> Head:
    return await find_head(tx) or Head(tx.account_id, 0, NO_HASH)


async def page(
    tx: AccountReader, filters: Filter, limit: int, offset: int
) -> tuple[list[Stored], int]:
    """Matching entries, the newest first, and how many there are."""
    conditions, arguments = ["account_id = $1"], [tx.account_id]

    def require(condition: str, value: Any) -> None:
        if value:
            arguments.append(value)
            conditions.append(condition.format(f"${len(arguments)}"))

    # A family, such as `task`, has all actions that begin with it.
    require(
        "(action = ANY({0}::text[]) OR split_part(action, '.', 1) = ANY({0}))",
        list(filters.actions),
    )
    require("actor = {}", filters.actor)
    require("user_id = {}", filters.user_id)
    require("resource = {}", filters.resource)
    require("at >= {}", filters.since)
    require("at < {}", filters.until)
    matching = f"FROM audit_entries WHERE {' AND '.join(conditions)}"
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} {matching} ORDER BY sequence DESC LIMIT {limit:d} OFFSET {offset:d}",
        *arguments,
    )
    counted = "count(*)"
    if filters == Filter():
        # The numbers have no gaps.
        counted = "coalesce(max(sequence) - min(sequence) + 1, 0)"
    total = await tx.fetchval(f"SELECT {counted} {matching}", *arguments)
    return [Stored(**row) for row in rows], total


async def after(tx: AccountReader, sequence: int, limit: int) -> list[Stored]:
    """The entries after this one, in order."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM audit_entries WHERE account_id = $1 AND sequence > $2
        ORDER BY sequence LIMIT $3
        """,  # noqa: S608
        tx.account_id,
        sequence,
        limit,
    )
    return [Stored(**row) for row in rows]


async def of_resource(tx: AccountReader, resource: str) -> list[tuple[Stored, bytes]]:
    """The entries about a resource, in order, each with the hash of the entry before it."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS}, coalesce((
            SELECT p.hash FROM audit_entries p
            WHERE p.account_id = $1 AND p.sequence = e.sequence - 1), (
            SELECT c.hash FROM audit_checkpoints c
            WHERE c.account_id = $1 AND c.sequence = e.sequence - 1)) AS previous
        FROM audit_entries e WHERE account_id = $1 AND resource = $2 ORDER BY sequence
        """,  # noqa: S608
        tx.account_id,
        resource,
    )
    found = []
    for row in rows:
        values = dict(row)
        previous = values.pop("previous") or NO_HASH
        found.append((Stored(**values), previous))
    return found


async def account_ids(connection: ReadConnection) -> list[UUID]:
    """Every account with a head or an entry. Needs the role of the relay."""
    # Reads one entry of each account.
    rows = await connection.fetch(
        """
        WITH RECURSIVE found AS (
            (SELECT account_id FROM audit_entries ORDER BY account_id LIMIT 1)
            UNION ALL
            SELECT (SELECT e.account_id FROM audit_entries e WHERE e.account_id > found.account_id
                    ORDER BY e.account_id LIMIT 1)
            FROM found WHERE found.account_id IS NOT NULL
        )
        SELECT account_id FROM audit_heads
        UNION SELECT account_id FROM found WHERE account_id IS NOT NULL ORDER BY account_id
        """
    )
    return [row["account_id"] for row in rows]
