"""`rota admin seed`: fills a migrated database with tasks, fast, to measure it at size.

The rows are made inside the server and are what the service itself would have written:
external tasks that were created in the state they are in, each with its event, its
account's totals and, where it waits for a person, its review. Everything happens in one
transaction, so whoever looks sees all of it or nothing, also after a crash.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

import asyncpg
import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rota.platform import ids
from rota.platform.db import WriteConnection

# Rows of one statement. Few enough to stay in memory, enough to be worth the round trip.
BATCH = 50_000
TASKS_OF_AN_ACCOUNT = 1_000

# In the order in which their locks are taken.
_TABLES = [
    "users",
    "accounts",
    "members",
    "account_heads",
    "balances",
    "tasks",
    "task_counts",
    "reviews",
    "events",
]

# Where each state begins on a scale from 0 to 1: most tasks are done.
_SHARES = {
    "COMPLETED": 0,
    "FAILED": 0.80,
    "CANCELLED": 0.88,
    "WAITING_APPROVAL": 0.94,
    "RUNNING": 0.97,
    "PENDING": 0.98,
}

# Stage, steps done, steps in all.
Tell = Callable[[str, int, int], None]


class SeedRefused(Exception):
    """The database is not one to seed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many tasks, over how many accounts, and how many of them in the largest."""

    tasks: int
    accounts: int
    largest: int

    @classmethod
    def of(cls, tasks: int, accounts: int | None = None, largest: int | None = None) -> "Plan":
        accounts = max(2, tasks // TASKS_OF_AN_ACCOUNT) if accounts is None else accounts
        largest = max(1, tasks // 10) if largest is None else largest
        if not 1 <= largest <= tasks:
            raise ValueError(f"The largest account has between 1 and {tasks} tasks.")
        if not 2 <= accounts <= tasks - largest + 1:
            raise ValueError(
                f"Accounts are between 2 and {tasks - largest + 1}, so that each has a task."
            )
        return cls(tasks, accounts, largest)


@dataclass(frozen=True, slots=True)
class Seeded:
    largest_account: UUID
    # Everything belongs to this user, as whom nobody can sign in.
    owner: UUID
    seconds: float


def _silence(stage: str, done: int, of: int) -> None:
    pass


async def seed(
    database_url: str, plan: Plan, *, append: bool = False, tell: Tell = _silence
) -> Seeded:
    """Seeds as the owner of the tables, whom no policy binds while this lasts."""
    started = time.perf_counter()
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction(), _without_row_security(connection):
            if not append and await connection.fetchval("SELECT EXISTS (SELECT FROM tasks)"):
                raise SeedRefused(
                    "This database has tasks already."
                    " Take an empty one, or add to it with --append."
                )
            # For this transaction only: what sorting 10 million index entries wants.
            await connection.execute(
                "SET LOCAL maintenance_work_mem = '512MB'; SET LOCAL work_mem = '256MB'"
            )
            owner, largest = await _accounts(connection, plan)
            indexes = await _drop_indexes(connection)
            await _tasks(connection, plan, owner, tell)
            await _totals(connection, owner, tell)
            await _restore_indexes(connection, indexes, tell)
    finally:
        await connection.close()
    await _vacuum(database_url, tell)
    return Seeded(largest, owner, time.perf_counter() - started)


@asynccontextmanager
async def _without_row_security(connection: WriteConnection) -> AsyncIterator[None]:
    """Row security is forced on the owner too, who may lift that. Undone if we fail."""
    for table in _TABLES:
        await connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    yield
    for table in _TABLES:
        await connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


async def _accounts(connection: WriteConnection, plan: Plan) -> tuple[UUID, UUID]:
    """Companies of one user. A trigger opens the heads."""
    owner = ids.new_uuid()
    await connection.execute("INSERT INTO users (id, name) VALUES ($1, 'Seed')", owner)
    await connection.execute(
        "INSERT INTO accounts (id, kind, name) VALUES ($1, 'personal', 'Seed')", owner
    )
    await connection.execute(
        """
        CREATE TEMP TABLE seeded (number integer PRIMARY KEY, id uuid NOT NULL) ON COMMIT DROP
        """
    )
    await connection.execute(
        f"""
        INSERT INTO seeded
        SELECT number, {_uuid7("$2::bigint", "md5($3 || number)")}
        FROM generate_series(0, $1::integer - 1) AS number
        """,  # noqa: S608
        plan.accounts,
        int(time.time() * 1000),
        str(owner),
    )
    await connection.execute(
        """
        INSERT INTO accounts (id, kind, name, tier)
        SELECT id, 'company', 'Company ' || number, 'enterprise' FROM seeded
        """
    )
    await connection.execute(
        "INSERT INTO members (account_id, user_id, role) SELECT id, $1, 'owner' FROM seeded", owner
    )
    await connection.execute("ANALYZE seeded")
    largest: UUID = await connection.fetchval("SELECT id FROM seeded WHERE number = 0")
    return owner, largest


def _uuid7(milliseconds: str, noise: str) -> str:
    """An id of that time. The noise is a hash: random bytes cost several times as much."""
    return (
        f"(lpad(to_hex({milliseconds}), 12, '0') || '7' || substr({noise}, 1, 3) || '8'"
        f" || substr({noise}, 4, 15))::uuid"
    )


# $1, $2: first and last number. $3: all tasks. $4: tasks of the largest account.
# $5: the other accounts. $6: milliseconds of the first task. $7: milliseconds between two.
# $8: the owner. $9, $10: agents and their versions. $11: states. $12: what makes the noise
# this seed's own. $13: the event's data for each state.
#
# Tasks come in order of time, as in life: the rows of an account lie scattered over its
# partition. The largest account's are spread evenly among them. Each of the others gets
# its turn, so the number of an account's next event needs no look at the last.
_MAKE = f"""
WITH numbered AS (
    SELECT n, n * $4 / $3 AS upto, (n - 1) * $4 / $3 AS before,
           ($6 + n * $7)::bigint AS at_ms, random() AS state, random() AS who,
           random() AS what, random() AS how, random() AS kind, md5($12 || n) AS noise
    FROM generate_series($1::bigint, $2::bigint) AS n
), placed AS (
    SELECT *, to_timestamp(at_ms / 1000.0) AS at,
           CASE WHEN upto > before THEN 0 ELSE (n - upto - 1) % $5 + 1 END AS number,
           CASE WHEN upto > before THEN upto ELSE (n - upto - 1) / $5 + 1 END AS sequence,
           width_bucket(state, ARRAY{list(_SHARES.values())}::float8[]) AS state_number
    FROM numbered
), made AS MATERIALIZED (
    SELECT at, at_ms, n, number, sequence, noise, who, what, how, kind, state_number,
           ($11::text[])[state_number] AS status, s.id AS account_id,
           {_uuid7("at_ms", "noise")} AS id,
           -- With an agent, what is pending or waits would be the service's to run.
           CASE WHEN who < 0.7 AND cardinality($9::text[]) > 0
                     AND ($11::text[])[state_number] NOT IN ('PENDING', 'WAITING_APPROVAL')
                -- Six agents of an account's own, the first ones more often.
                THEN (number * 7 + (6 * what * what)::bigint) % cardinality($9::text[]) + 1
           END AS agent_number
    FROM placed p JOIN seeded s USING (number)
), task AS (
    INSERT INTO tasks (account_id, id, status, hosted, agent, agent_version, project_id, name,
        priority, created_at, updated_at, started_at, finished_at, created_by, description,
        input, output, actions)
    SELECT account_id, id, status, false, ($9::text[])[agent_number],
        ($10::integer[])[agent_number],
        CASE WHEN how < 0.6 THEN 'project-' || (1 + (8 * kind * kind)::integer) END,
        (ARRAY['Write the weekly report', 'Answer the customer', 'Check the invoice',
               'Compare three suppliers', 'Prepare the release notes', 'Translate the manual',
               'Look for duplicates', 'Plan the campaign'])[1 + (kind * 7)::integer] || ' ' || n,
        round((who * 10)::numeric, 0), at, at,
        CASE WHEN status = 'RUNNING' THEN at END,
        CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN at END,
        $8, CASE WHEN how < 0.3 THEN 'Needed before the meeting on ' || at::date END,
        repeat('Please look at everything that came in since the last time and sum it up. ',
               1 + (what * 4)::integer),
        CASE WHEN status = 'COMPLETED'
             THEN repeat('Here is what I found, with the sources named beside it. ',
                         1 + (kind * 4)::integer) END,
        CASE WHEN how < 0.2 THEN ARRAY['read the inbox', 'wrote a summary'] ELSE '{{}}' END
    FROM made
), review AS (
    INSERT INTO reviews (account_id, task_id, number, state, requested_at, expires_at)
    SELECT account_id, id, 1, 'pending', at, now() + interval '7 days'
    FROM made WHERE status = 'WAITING_APPROVAL'
)
INSERT INTO events (account_id, sequence, id, type, task_id, data, created_at)
SELECT account_id, sequence, {_uuid7("at_ms", "reverse(noise)")}, 'task.created', id,
       ($13::jsonb[])[state_number], at
FROM made
"""  # noqa: S608


async def _tasks(connection: WriteConnection, plan: Plan, owner: UUID, tell: Tell) -> None:
    agents = await connection.fetch("SELECT name, version FROM agents WHERE retired_at IS NULL")
    by = ids.to_wire("user", owner)
    events = [
        orjson.dumps({"status": status, "previousStatus": None, "by": by}).decode()
        for status in _SHARES
    ]
    year_ms = 365 * 86_400_000
    step_ms = year_ms / (plan.tasks + 1)
    first_ms = time.time() * 1000 - year_ms
    for first in range(1, plan.tasks + 1, BATCH):
        tell("tasks", first - 1, plan.tasks)
        await connection.execute(
            _MAKE,
            first,
            min(first + BATCH - 1, plan.tasks),
            plan.tasks,
            plan.largest,
            plan.accounts - 1,
            first_ms,
            step_ms,
            owner,
            [agent["name"] for agent in agents],
            [agent["version"] for agent in agents],
            list(_SHARES),
            str(owner),
            events,
        )
    tell("tasks", plan.tasks, plan.tasks)


async def _totals(connection: WriteConnection, owner: UUID, tell: Tell) -> None:
    """Counted from the rows themselves, in one pass."""
    tell("totals", 0, 1)
    # Nobody knows yet how few accounts these rows have, and sorting them all takes long.
    await connection.execute("SET LOCAL enable_sort = off")
    await connection.execute(
        """
        CREATE TEMP TABLE counted ON COMMIT DROP AS
        SELECT account_id, status, agent, project_id, count(*) AS tasks,
               grouping(agent) = 0 AS by_agent, grouping(project_id) = 0 AS by_project
        FROM tasks WHERE created_by = $1
        GROUP BY GROUPING SETS ((account_id, status), (account_id, status, agent),
                                (account_id, status, project_id))
        """,
        owner,
    )
    await connection.execute("SET LOCAL enable_sort = on")
    await connection.execute(
        """
        UPDATE account_heads h SET last_sequence = c.all_tasks, pending = c.pending,
            running = c.running, completed = c.completed, failed = c.failed,
            cancelled = c.cancelled, waiting_approval = c.waiting_approval
        FROM (
            SELECT account_id, sum(tasks) AS all_tasks,
                coalesce(sum(tasks) FILTER (WHERE status = 'PENDING'), 0) AS pending,
                coalesce(sum(tasks) FILTER (WHERE status = 'RUNNING'), 0) AS running,
                coalesce(sum(tasks) FILTER (WHERE status = 'COMPLETED'), 0) AS completed,
                coalesce(sum(tasks) FILTER (WHERE status = 'FAILED'), 0) AS failed,
                coalesce(sum(tasks) FILTER (WHERE status = 'CANCELLED'), 0) AS cancelled,
                coalesce(sum(tasks) FILTER (WHERE status = 'WAITING_APPROVAL'), 0)
                    AS waiting_approval
            FROM counted WHERE NOT by_agent AND NOT by_project GROUP BY account_id
        ) c
        WHERE h.account_id = c.account_id
        """
    )
    await connection.execute(
        """
        INSERT INTO task_counts (account_id, dimension, value, status, tasks)
        SELECT account_id, CASE WHEN by_agent THEN 'agent' ELSE 'project' END,
               coalesce(agent, project_id), status, tasks
        FROM counted WHERE coalesce(agent, project_id) IS NOT NULL
        """
    )
    tell("totals", 1, 1)


async def _drop_indexes(connection: WriteConnection) -> list[str]:
    """Drops what is quicker to build once at the end; the statements that bring it back."""
    rows: list[Any] = await connection.fetch(
        """
        SELECT i.indrelid::regclass::text AS "table", i.indexrelid::regclass::text AS "index",
               quote_ident(c.conname) AS "constraint", pg_get_constraintdef(c.oid) AS rule,
               pg_get_indexdef(i.indexrelid) AS definition
        FROM pg_index i
        LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
        WHERE i.indrelid IN ('tasks'::regclass, 'events'::regclass)
        ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid
        """
    )
    restoring = []
    for table, index, constraint, rule, definition in rows:
        if constraint:
            await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}")
            restoring.append(f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {rule}")
        else:
            await connection.execute(f"DROP INDEX {index}")
            # A partitioned index is described as if it were alone.
            restoring.append(definition.replace(" ON ONLY ", " ON ", 1))
    return restoring


async def _restore_indexes(connection: WriteConnection, statements: list[str], tell: Tell) -> None:
    for done, statement in enumerate(statements):
        tell("indexes", done, len(statements))
        await connection.execute(statement)
    tell("indexes", len(statements), len(statements))


async def _vacuum(database_url: str, tell: Tell) -> None:
    """Marks pages as visible to all, which lets scans stay in the index, and gathers statistics."""
    done = 0

    async def vacuum(tables: list[str]) -> None:
        nonlocal done
        connection = await asyncpg.connect(database_url)
        try:
            for table in tables:
                await connection.execute(f"VACUUM (ANALYZE) {table}")
                done += 1
                tell("vacuum", done, len(_TABLES))
        finally:
            await connection.close()

    tell("vacuum", 0, len(_TABLES))
    # The largest beside all the others.
    await asyncio.gather(vacuum(["tasks"]), vacuum([name for name in _TABLES if name != "tasks"]))


def seed_command(
    database_url: str, tasks: int, accounts: int | None, largest: int | None, *, append: bool
) -> None:
    """Seeds with a display of how far it is, and says what one can look at."""
    try:
        plan = Plan.of(tasks, accounts, largest)
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        ) as progress:
            bars: dict[str, Any] = {}

            def tell(stage: str, done: int, of: int) -> None:
                if stage not in bars:
                    bars[stage] = progress.add_task(stage, total=of)
                progress.update(bars[stage], completed=done)

            seeded = asyncio.run(seed(database_url, plan, append=append, tell=tell))
    except (SeedRefused, ValueError) as error:
        _fail(str(error))
    except asyncpg.UndefinedTableError:
        _fail("The database has no tables yet. Run: rota admin migrate")
    except (OSError, asyncpg.PostgresError) as error:
        _fail(f"The database refused ({error}). Check ROTA_MIGRATION_DATABASE_URL.")
    rate = plan.tasks / seeded.seconds
    typer.echo(
        f"{plan.tasks} tasks in {seeded.seconds:.0f} s ({rate:.0f} a second)."
        f" The largest account is {ids.to_wire('acct', seeded.largest_account)};"
        " look at it after: rota admin companies set-member <account> <your user id> --role owner"
    )


def _fail(message: str) -> NoReturn:
    typer.secho(message, err=True)
    raise typer.Exit(1)
