"""Fills a database with small task rows, many more than `rota admin seed` can generate in the time.

The rows have no texts, events or search words. Lists, fetches, creation and retention read the same
columns and indexes of them as of others.
"""

import time
from typing import Any

from rota.dev.seed import Plan, Seeded, bulk_load
from rota.dev.seed.rows import insert_accounts
from rota.platform.db import owner_connection

BATCH = 1_000_000
YEAR_MS = 365 * 86_400_000
# Every tenth task belongs to the largest account, and the other accounts take turns. About eight in
# ten tasks of an account are completed.
ACCOUNT = "CASE WHEN n % 10 = 0 THEN 0 ELSE n % ($1 - 1) + 1 END"
STATE = "(ARRAY['COMPLETED', 'FAILED', 'CANCELLED'])[1 + greatest(n / 10 % 10 - 7, 0)]"

INSERT = f"""
    INSERT INTO tasks (account_id, id, status, hosted, name, created_at, updated_at, finished_at,
        created_by)
    SELECT s.id, (lpad(to_hex(at_ms), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid,
        {STATE}, false, 'Task ' || n, at, at, at, $2
    FROM (
        SELECT n, at_ms, to_timestamp(at_ms / 1000.0) AS at, {ACCOUNT} AS number
        FROM generate_series($3::bigint, $4::bigint) AS n,
            LATERAL (SELECT ($5 + n * $6)::bigint AS at_ms) AS time
    ) AS made JOIN seeded s USING (number)
"""
TOTALS = f"""
    UPDATE account_heads h SET last_sequence = c.tasks, completed = c.completed,
        failed = c.failed, cancelled = c.cancelled
    FROM (
        SELECT number, count(*) AS tasks,
            count(*) FILTER (WHERE state = 'COMPLETED') AS completed,
            count(*) FILTER (WHERE state = 'FAILED') AS failed,
            count(*) FILTER (WHERE state = 'CANCELLED') AS cancelled
        FROM (
            SELECT {ACCOUNT} AS number, {STATE} AS state
            FROM generate_series(1, $2::bigint) AS n
        ) AS made GROUP BY number
    ) c JOIN seeded s USING (number)
    WHERE h.account_id = s.id
"""


async def fill(database_url: str, plan: Plan) -> Seeded:
    """Like `seed`, in one transaction."""
    started = time.perf_counter()
    first_ms, step_ms = time.time() * 1000 - YEAR_MS, YEAR_MS / (plan.tasks + 1)
    async with (
        owner_connection(database_url) as connection,
        connection.transaction(),
        bulk_load.without_row_security(connection),
    ):
        await connection.execute(
            "SET LOCAL maintenance_work_mem = '1GB'; SET LOCAL work_mem = '256MB'"
        )
        owner, largest = await insert_accounts(connection, plan)
        indexes = await bulk_load.drop_indexes(connection)
        for first in range(1, plan.tasks + 1, BATCH):
            last = min(first + BATCH - 1, plan.tasks)
            given: tuple[Any, ...] = (plan.accounts, owner, first, last, first_ms, step_ms)
            await connection.execute(INSERT, *given)
            _progress("rows", last, started)
        await connection.execute(TOTALS, plan.accounts, plan.tasks)
        await bulk_load.create_indexes(
            connection, indexes, lambda _stage, done, _total: _progress("indexes", done, started)
        )
    await bulk_load.vacuum(database_url, lambda *_: None)
    return Seeded(largest, owner, time.perf_counter() - started)


def _progress(what: str, done: int, started: float) -> None:
    print(f"{time.perf_counter() - started:6.0f} s: {done:,} {what}", flush=True)
