"""The SQL of rules. A transaction that changes a rule locks the account first."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.rules.model import Rule

_NAMES = tuple(field.name for field in fields(Rule))
_COLUMNS = ", ".join(_NAMES)
_values = attrgetter(*_NAMES)
# In this state, a rule can be used if nothing has made it void.
_IN_FORCE = "revoked_at IS NULL AND uses < max_uses AND expires_at > clock_timestamp()"


async def insert(tx: AccountTransaction, rule: Rule) -> None:
    await tx.execute(
        f"""
        INSERT INTO rules (account_id, {_COLUMNS})
        VALUES ($1, {", ".join(f"${number}" for number in range(2, 2 + len(_NAMES)))})
        """,  # noqa: S608
        tx.account_id,
        *_values(rule),
    )


async def page(tx: AccountReader, limit: int, offset: int) -> list[Rule]:
    """Newest first."""
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM rules WHERE account_id = $1
        ORDER BY id DESC LIMIT $2 OFFSET $3
        """,  # noqa: S608
        tx.account_id,
        limit,
        offset,
    )
    return [Rule(**row) for row in rows]


async def count(tx: AccountReader) -> int:
    found: int = await tx.fetchval(
        "SELECT count(*) FROM rules WHERE account_id = $1", tx.account_id
    )
    return found


async def size_in_force(tx: AccountReader) -> tuple[int, int]:
    """How many rules are in force, and how many bytes their conditions have."""
    row = await tx.fetchrow(
        f"""
        SELECT count(*) AS number, coalesce(sum(octet_length(arguments)), 0)::bigint AS bytes
        FROM rules WHERE account_id = $1 AND {_IN_FORCE}
        """,  # noqa: S608
        tx.account_id,
    )
    return row["number"], row["bytes"]


async def find(tx: AccountReader, rule_id: UUID) -> Rule | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM rules WHERE account_id = $1 AND id = $2",  # noqa: S608
        tx.account_id,
        rule_id,
    )
    return Rule(**row) if row else None


async def in_force(
    tx: AccountReader, server_id: UUID, tool: str, agent: str, agent_version: int, max_bytes: int
) -> Sequence[Rule]:
    """The rules that may cover a call of the tool, those that expire first at the top.

    The oldest of them, whose conditions have at most this many bytes together.
    """
    rows = await tx.fetch(
        f"""
        SELECT {_COLUMNS} FROM (
            SELECT {_COLUMNS}, sum(octet_length(arguments)) OVER (ORDER BY id) AS bytes
            FROM rules
            WHERE account_id = $1 AND server_id = $2 AND tool = $3 AND agent = $4
              AND agent_version = $5 AND {_IN_FORCE}
        ) AS oldest_first
        WHERE bytes <= $6 ORDER BY expires_at, id
        """,  # noqa: S608
        tx.account_id,
        server_id,
        tool,
        agent,
        agent_version,
        max_bytes,
    )
    return [Rule(**row) for row in rows]


async def use(tx: AccountTransaction, rule_id: UUID) -> int | None:
    """Counts a use. Returns how many there are, or None if the rule cannot be used any more."""
    uses: int | None = await tx.fetchval(
        f"""
        UPDATE rules SET uses = uses + 1 WHERE account_id = $1 AND id = $2 AND {_IN_FORCE}
        RETURNING uses
        """,  # noqa: S608
        tx.account_id,
        rule_id,
    )
    return uses


async def revoke(tx: AccountTransaction, rule_id: UUID, by: UUID, at: datetime) -> bool:
    """False if it is revoked already."""
    revoked = await tx.fetchval(
        """
        UPDATE rules SET revoked_at = $3, revoked_by = $4
        WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL
        RETURNING true
        """,
        tx.account_id,
        rule_id,
        at,
        by,
    )
    return bool(revoked)
