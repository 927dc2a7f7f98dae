"""Fills a migrated database with generated tasks, to measure the service with large tables.

The rows are the same as those the service writes: external tasks with their events and totals,
and a review for each task that waits for approval. One transaction inserts everything, so a
failure leaves nothing behind.
"""

import time
from dataclasses import dataclass
from uuid import UUID

from rota.dev.seed import bulk_load, rows
from rota.dev.seed.plan import OnProgress, Plan
from rota.platform.db import owner_connection

__all__ = ["Plan", "SeedRefused", "Seeded", "seed"]


class SeedRefused(Exception):
    """The database already has tasks."""

    def __init__(self) -> None:
        super().__init__(
            "This database already has tasks. Use an empty database, or add to it with --append."
        )


@dataclass(frozen=True, slots=True)
class Seeded:
    largest_account: UUID
    # The user who owns everything. No identity belongs to it, so it cannot sign in.
    owner: UUID
    seconds: float


def _ignore(stage: str, done: int, total: int) -> None:
    pass


async def seed(
    database_url: str, plan: Plan, *, append: bool = False, on_progress: OnProgress = _ignore
) -> Seeded:
    """Connects as the owner of the tables, and turns off row security for this transaction."""
    started = time.perf_counter()
    async with (
        owner_connection(database_url) as connection,
        connection.transaction(),
        bulk_load.without_row_security(connection),
    ):
        if not append and await connection.fetchval("SELECT EXISTS (SELECT FROM tasks)"):
            raise SeedRefused
        # Memory to sort 10 million index entries, for this transaction only.
        await connection.execute(
            "SET LOCAL maintenance_work_mem = '512MB'; SET LOCAL work_mem = '256MB'"
        )
        owner, largest = await rows.insert_accounts(connection, plan)
        indexes = await bulk_load.drop_indexes(connection)
        await rows.insert_tasks(connection, plan, owner, on_progress)
        await rows.insert_totals(connection, owner, on_progress)
        await rows.insert_words(connection, owner)
        await bulk_load.create_indexes(connection, indexes, on_progress)
    await bulk_load.vacuum(database_url, on_progress)
    return Seeded(largest, owner, time.perf_counter() - started)
