"""Prepares the tables for a bulk load, and restores them afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rota.dev.seed.plan import OnProgress
from rota.platform.db import WriteConnection, owner_connection

# In the order in which the transaction locks them.
_TABLES = [
    "users",
    "accounts",
    "members",
    "account_heads",
    "balances",
    "tasks",
    "task_counts",
    "task_words",
    "reviews",
    "events",
]


@asynccontextmanager
async def without_row_security(connection: WriteConnection) -> AsyncIterator[None]:
    """Row security also applies to the owner, who can turn that off, and triggers run for each row.
    A rollback restores both."""
    for table in _TABLES:
        await connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    # The words of all tasks are written at once, at the end.
    await connection.execute("ALTER TABLE tasks DISABLE TRIGGER USER")
    yield
    await connection.execute("ALTER TABLE tasks ENABLE TRIGGER USER")
    for table in _TABLES:
        await connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


async def drop_indexes(connection: WriteConnection) -> list[str]:
    """Drops indexes that are faster to build at the end. Returns the statements to create them."""
    rows: list[Any] = await connection.fetch(
        """
        SELECT i.indrelid::regclass::text AS "table", i.indexrelid::regclass::text AS "index",
               quote_ident(c.conname) AS "constraint", pg_get_constraintdef(c.oid) AS rule,
               pg_get_indexdef(i.indexrelid) AS definition
        FROM pg_index i
        LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
        WHERE i.indrelid IN ('tasks'::regclass, 'events'::regclass, 'task_words'::regclass)
        ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid
        """
    )
    statements = []
    for row in rows:
        table, constraint = row["table"], row["constraint"]
        if constraint:
            await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}")
            statements.append(f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {row['rule']}")
        else:
            await connection.execute(f"DROP INDEX {row['index']}")
            # PostgreSQL describes a partitioned index as ON ONLY the parent table.
            statements.append(row["definition"].replace(" ON ONLY ", " ON ", 1))
    return statements


async def create_indexes(
    connection: WriteConnection, statements: list[str], on_progress: OnProgress
) -> None:
    for done, statement in enumerate(statements):
        on_progress("indexes", done, len(statements))
        await connection.execute(statement)
    on_progress("indexes", len(statements), len(statements))


async def vacuum(database_url: str, on_progress: OnProgress) -> None:
    """Sets the visibility map, which index-only scans need, and collects statistics."""
    done = 0

    async def vacuum_tables(tables: list[str]) -> None:
        nonlocal done
        async with owner_connection(database_url) as connection:
            for table in tables:
                await connection.execute(f"VACUUM (ANALYZE) {table}")
                done += 1
                on_progress("vacuum", done, len(_TABLES))

    on_progress("vacuum", 0, len(_TABLES))
    # The largest table at the same time as all the others.
    others = [name for name in _TABLES if name != "tasks"]
    await asyncio.gather(vacuum_tables(["tasks"]), vacuum_tables(others))
