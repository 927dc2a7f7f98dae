"""Generates the rows of accounts, tasks, events, reviews and totals inside the server."""

import time
from uuid import UUID

from rota.dev.seed.plan import OnProgress, Plan
from rota.platform import ids
from rota.platform.db import WriteConnection

# Rows of one statement: few enough to stay in memory, enough to save round trips.
BATCH = 50_000

# Where the range of each status starts between 0 and 1. Most tasks are completed.
_STATUS_STARTS = {
    "COMPLETED": 0,
    "FAILED": 0.80,
    "CANCELLED": 0.88,
    "WAITING_APPROVAL": 0.94,
    "RUNNING": 0.97,
    "PENDING": 0.98,
}


async def insert_accounts(connection: WriteConnection, plan: Plan) -> tuple[UUID, UUID]:
    """Creates the companies, which all belong to one user. Returns the user and the largest.

    A trigger creates the rows in account_heads and balances.
    """
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
    """SQL for a UUIDv7 of that time. The random part is a hash, which is several times faster."""
    return (
        f"(lpad(to_hex({milliseconds}), 12, '0') || '7' || substr({noise}, 1, 3) || '8'"
        f" || substr({noise}, 4, 15))::uuid"
    )


# Parameters:
#   $1, $2   the numbers of the first and the last task of this batch
#   $3       the number of all tasks
#   $4       the number of tasks in the largest account
#   $5       the number of the other accounts
#   $6, $7   the time of the first task and the time between two tasks, in milliseconds
#   $8       the owner
#   $9, $10  the names and versions of the agents
#   $11      the statuses
#   $12      a text that makes the hashes of this run unique
#   $13      the data of the event for each status
#
# Tasks are generated in order of time, as in production, so the rows of an account are spread over
# its partition. The tasks of the largest account are spread evenly among the others. The other
# accounts take turns, so the next sequence number of an account follows from the task's number.
_INSERT_TASKS = f"""
WITH numbered AS (
    SELECT n, n * $4 / $3 AS upto, (n - 1) * $4 / $3 AS before,
           ($6 + n * $7)::bigint AS at_ms, random() AS state, random() AS who,
           random() AS what, random() AS how, random() AS kind, md5($12 || n) AS noise
    FROM generate_series($1::bigint, $2::bigint) AS n
), placed AS (
    SELECT *, to_timestamp(at_ms / 1000.0) AS at,
           CASE WHEN upto > before THEN 0 ELSE (n - upto - 1) % $5 + 1 END AS number,
           CASE WHEN upto > before THEN upto ELSE (n - upto - 1) / $5 + 1 END AS sequence,
           width_bucket(state, ARRAY{list(_STATUS_STARTS.values())}::float8[]) AS state_number
    FROM numbered
), made AS MATERIALIZED (
    SELECT at, at_ms, n, number, sequence, noise, who, what, how, kind, state_number,
           ($11::text[])[state_number] AS status, s.id AS account_id,
           {_uuid7("at_ms", "noise")} AS id,
           -- A pending or waiting task with an agent would be run by the service.
           CASE WHEN who < 0.7 AND cardinality($9::text[]) > 0
                     AND ($11::text[])[state_number] NOT IN ('PENDING', 'WAITING_APPROVAL')
                -- Each account uses six agents, the first ones more often.
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
               'Find duplicates', 'Plan the campaign'])[1 + (kind * 7)::integer] || ' ' || n,
        round((who * 10)::numeric, 0), at, at,
        CASE WHEN status = 'RUNNING' THEN at END,
        CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN at END,
        $8, CASE WHEN how < 0.3 THEN 'Needed before the meeting on ' || at::date END,
        repeat('Please read everything that arrived since the last report and summarize it. ',
               1 + (what * 4)::integer),
        CASE WHEN status = 'COMPLETED'
             THEN repeat('Here is what I found, with the sources of each statement. ',
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


async def insert_tasks(
    connection: WriteConnection, plan: Plan, owner: UUID, on_progress: OnProgress
) -> None:
    agents = await connection.fetch("SELECT name, version FROM agents WHERE retired_at IS NULL")
    by = ids.to_wire("user", owner)
    events = [{"status": status, "previousStatus": None, "by": by} for status in _STATUS_STARTS]
    year_ms = 365 * 86_400_000
    step_ms = year_ms / (plan.tasks + 1)
    first_ms = time.time() * 1000 - year_ms
    for first in range(1, plan.tasks + 1, BATCH):
        on_progress("tasks", first - 1, plan.tasks)
        await connection.execute(
            _INSERT_TASKS,
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
            list(_STATUS_STARTS),
            str(owner),
            events,
        )
    on_progress("tasks", plan.tasks, plan.tasks)


async def insert_totals(connection: WriteConnection, owner: UUID, on_progress: OnProgress) -> None:
    """Counts the generated rows in one pass and stores the totals."""
    on_progress("totals", 0, 1)
    # Without statistics the planner would sort all rows, which takes long.
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
    on_progress("totals", 1, 1)


async def insert_words(connection: WriteConnection, owner: UUID) -> None:
    """What a trigger writes for each task that the service creates."""
    await connection.execute(
        """
        INSERT INTO task_words (account_id, task_id, words)
        SELECT account_id, id, words_of(account_id, name, description, input)
        FROM tasks WHERE created_by = $1
        """,
        owner,
    )
