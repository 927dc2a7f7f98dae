"""The SQL of lists: pages of tasks, and what waits for a person."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from rota.platform import ids
from rota.platform.db import AccountReader
from rota.tasks import places
from rota.tasks.model import ListedTask, Task, output_data
from rota.tasks.pages import PAGE_BYTES, WHOLE, Fit, fitting
from rota.tasks.queries import COLUMNS, SELECTED, STATUS_COLUMN
from rota.tasks.states import STATUSES, Gate, Status

# In the statements of pages, $2 and $3 are the fields of `Fit`.
_TEXTS = ("description", "input", "output")
# PostgreSQL knows the length of a long text without reading it, but not that of an array.
_LOG_SIZE = "octet_length(array_to_string(actions, ''))"
_SIZE = " + ".join(
    f"coalesce(octet_length({text}), 0)" for text in (*_TEXTS, "output_schema::text")
)
_CUT_TEXTS = ", ".join(
    f"CASE WHEN whole THEN {name} ELSE left({name}, $3::integer) END AS {name}" for name in _TEXTS
)
# Looks only at as many actions as fit if all have the same length, or a few more.
_CUT_ACTIONS = """
    CASE WHEN whole THEN actions ELSE coalesce((
        SELECT array_agg(action ORDER BY number) FROM (
            SELECT action, number, sum(length(action) + 1) OVER (ORDER BY number) AS length
            FROM unnest(
                actions[:10 + cardinality(actions)::bigint * $3 / greatest(log_size, 1)]
            ) WITH ORDINALITY AS log (action, number)
        ) AS log WHERE length <= $3
    ), '{}') END AS actions
"""
# A part of a schema is of no use.
_CUT_SCHEMA = """
    CASE WHEN whole OR length(output_schema::text) <= $3 THEN output_schema END AS output_schema
"""
# `left` reads only the beginning of a long text. `length` would read all of it.
_TRUNCATED = ", ".join(
    f"CASE WHEN length(left({name}, $3 + 1)) > $3 THEN '{name}' END" for name in _TEXTS
)
_SHORT = ", ".join(name for name in COLUMNS if name not in (*_TEXTS, "actions", "output_schema"))


def _listed(where: str) -> str:
    """The statement of a page: the tasks of an account ($1), newest first."""
    return f"""
        SELECT {_SHORT}, {_CUT_TEXTS}, {_CUT_ACTIONS}, {_CUT_SCHEMA},
            CASE WHEN whole THEN '{{}}' ELSE array_remove(ARRAY[
                {_TRUNCATED},
                CASE WHEN log_size + cardinality(actions) > $3 THEN 'actions' END,
                CASE WHEN length(output_schema::text) > $3 THEN 'outputSchema' END
            ], NULL) END AS truncated
        FROM (
            SELECT *, sum({_SIZE} + log_size) OVER () <= $2::bigint AS whole
            FROM tasks, LATERAL (SELECT {_LOG_SIZE} AS log_size OFFSET 0) AS log
            WHERE account_id = $1 AND {where}
        ) AS page
        ORDER BY id DESC
    """  # noqa: S608


def _texts(task: ListedTask) -> object:
    texts = (task.name, task.description, task.input, task.output, task.actions, task.error)
    return (*texts, output_data(task), task.output_schema)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks a list contains. Totals are stored for each agent, project and parent."""

    # Each at most once.
    statuses: tuple[Status, ...] = ()
    agent: str | None = None
    project_id: str | None = None
    parent_task_id: UUID | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    # Words that the name, the description and the input must contain.
    words: str | None = None
    # Only tasks that were created before this one.
    before: UUID | None = None

    @property
    def dimensions(self) -> list[tuple[str, str, object]]:
        """Column, name of the stored total, and value of each filter that has stored totals."""
        found: list[tuple[str, str, object]] = []
        if self.agent is not None:
            found.append(("agent", "agent", self.agent))
        if self.project_id is not None:
            found.append(("project_id", "project", self.project_id))
        if self.parent_task_id is not None:
            found.append(("parent_task_id", "parent", self.parent_task_id))
        return found

    @property
    def is_counted(self) -> bool:
        """Whether the number of matching tasks is stored."""
        times = (self.created_after, self.created_before)
        return times == (None, None) and self.words is None and len(self.dimensions) <= 1


async def completed(tx: AccountReader, agent: str, version: int, limit: int) -> list[Task]:
    """The newest tasks that a version of an agent completed in one run, apart from forks.

    Steps that a retry copied from an earlier run have no cost.
    """
    rows = await tx.fetch(
        f"""
        SELECT {SELECTED} FROM tasks
        WHERE account_id = $1 AND agent = $2 AND agent_version = $3 AND hosted
          AND status = 'COMPLETED' AND run = 1 AND forked_from IS NULL
        ORDER BY id DESC LIMIT $4
        """,  # noqa: S608
        tx.account_id,
        agent,
        version,
        limit,
    )
    return [Task(**row) for row in rows]


async def page(
    tx: AccountReader, filters: Filter, limit: int, offset: int
) -> tuple[list[ListedTask], int]:
    """A page of tasks, newest first, and the number of all matching tasks."""
    if filters.words is not None:
        found, matching = await _search(tx, filters, limit, offset)
        return await by_ids(tx, found), matching
    matching = await total(tx, filters)

    def read(fit: Fit) -> Awaitable[list[ListedTask]]:
        return matching_page(tx, filters, limit, offset, matching, fit)

    tasks = await fitting(read, _texts, PAGE_BYTES)
    return await places.with_positions(tx, tasks), matching


async def next_page(tx: AccountReader, filters: Filter, limit: int) -> tuple[list[ListedTask], int]:
    """The newest tasks, or those before the one that the filter names, and the number of all
    matching tasks. How many tasks come first does not matter, and new ones shift nothing."""
    matching = await total(tx, replace(filters, before=None))

    def read(fit: Fit) -> Awaitable[list[ListedTask]]:
        return matching_page(tx, filters, limit, 0, matching, fit)

    tasks = await fitting(read, _texts, PAGE_BYTES)
    return await places.with_positions(tx, tasks), matching


async def total(tx: AccountReader, filters: Filter) -> int:
    """The number of matching tasks, from the stored totals if they have it.

    No total is stored for a combination of agent, project and parent, or for a time. Then the query
    counts the entries of an index.
    """
    if not filters.is_counted:
        arguments: list[object] = [tx.account_id]
        where = " AND ".join(["account_id = $1", *_conditions(filters, arguments)])
        count = await tx.fetchval(
            f"SELECT count(*) FROM tasks WHERE {where}",  # noqa: S608
            *arguments,
        )
    elif not filters.dimensions:
        statuses = filters.statuses or STATUSES
        columns = [STATUS_COLUMN[status] for status in statuses]
        count = await tx.fetchval(
            f"SELECT {' + '.join(columns)} FROM account_heads WHERE account_id = $1",  # noqa: S608
            tx.account_id,
        )
    else:
        [(_, name, value)] = filters.dimensions
        count = await tx.fetchval(
            """
            SELECT sum(tasks)::bigint FROM task_counts
            WHERE account_id = $1 AND dimension = $2 AND value = $3
              AND ($4::text[] = '{}' OR status = ANY ($4))
            """,
            tx.account_id,
            name,
            str(value),
            list(filters.statuses),
        )
    return count or 0


async def matching_page(
    tx: AccountReader,
    filters: Filter,
    limit: int,
    offset: int,
    matching: int,
    fit: Fit = WHOLE,
) -> list[ListedTask]:
    """A page, newest first. `matching` is the exact total in the same snapshot.

    The offset is skipped in an index, from the nearer end. Only the rows of the page are read.
    """
    limit = min(limit, matching - offset)
    if limit <= 0:
        return []
    direction, skip = "DESC", offset
    if offset > matching // 2:
        direction, skip = "ASC", matching - offset - limit
    # One branch for each status: PostgreSQL merges them in the order of the index by status.
    arguments: list[object] = [tx.account_id, fit.whole_bytes, fit.cut]
    single = [replace(filters, statuses=(status,)) for status in filters.statuses] or [filters]
    branches = [" AND ".join(["account_id = $1", *_conditions(each, arguments)]) for each in single]
    matches = " UNION ALL ".join(f"SELECT id FROM tasks WHERE {each}" for each in branches)  # noqa: S608
    # An array of ids instead of a join: without statistics about an account, PostgreSQL would plan
    # a join that reads all of the account's tasks.
    where = f"""
        id = ANY (ARRAY(
            SELECT id FROM ({matches}) AS matching ORDER BY id {direction}
            LIMIT ${len(arguments) + 1} OFFSET ${len(arguments) + 2}
        ))
    """  # noqa: S608
    rows = await tx.fetch(_listed(where), *arguments, limit, skip)
    return [ListedTask(**row) for row in rows]


async def _search(
    tx: AccountReader, filters: Filter, limit: int, offset: int
) -> tuple[list[UUID], int]:
    """The ids of a page of tasks that contain the words, and the number of all of them."""
    arguments: list[object] = [filters.words]
    conditions = _conditions(filters, arguments)
    # The ids are those of the account. Without a condition on another column, no task is read.
    source = "find_task_ids($1) AS found (id)"
    if filters.dimensions or filters.statuses:
        arguments.append(tx.account_id)
        conditions += [f"account_id = ${len(arguments)}", "id IN (SELECT find_task_ids($1))"]
        source = "tasks"
    row = await tx.fetchrow(
        f"""
        WITH found AS MATERIALIZED (
            SELECT id FROM {source} WHERE {" AND ".join(conditions) or "true"}
        )
        SELECT (SELECT count(*) FROM found) AS matching,
               ARRAY(SELECT id FROM found ORDER BY id DESC
                     LIMIT ${len(arguments) + 1} OFFSET ${len(arguments) + 2}) AS ids
        """,  # noqa: S608
        *arguments,
        limit,
        offset,
    )
    return row["ids"], row["matching"]


def _conditions(filters: Filter, arguments: list[object]) -> list[str]:
    """The conditions on columns. Adds their values to the arguments."""
    values = [(f"{column} = ", value) for column, _, value in filters.dimensions]
    if len(filters.statuses) == 1:
        values.append(("status = ", filters.statuses[0]))
    elif filters.statuses:
        values.append(("status = ANY ", list(filters.statuses)))
    # A task's id begins with the time of its creation, so the primary key finds a range of time.
    if filters.created_after is not None:
        values.append(("id >= ", ids.first_after(filters.created_after)))
    if filters.before is not None:
        values.append(("id < ", filters.before))
    if filters.created_before is not None:
        values.append(("id < ", ids.first_from(filters.created_before)))
    conditions = []
    for comparison, value in values:
        arguments.append(value)
        conditions.append(f"{comparison}(${len(arguments)})")
    return conditions


_BY_IDS = _listed("id = ANY ($4)")


async def by_ids(
    tx: AccountReader, task_ids: Sequence[UUID], page_bytes: int = PAGE_BYTES
) -> list[ListedTask]:
    """These tasks, in this order."""
    if not task_ids:
        return []

    async def read(fit: Fit) -> list[ListedTask]:
        rows = await tx.fetch(_BY_IDS, tx.account_id, fit.whole_bytes, fit.cut, task_ids)
        return [ListedTask(**row) for row in rows]

    tasks = await places.with_positions(tx, await fitting(read, _texts, page_bytes))
    found = {task.id: task for task in tasks}
    return [found[task_id] for task_id in task_ids]


async def waiting(
    tx: AccountReader, agent: str | None, gate: Gate | None, limit: int, offset: int
) -> tuple[list[UUID], int]:
    """A page of the tasks that wait for a person, longest wait first, and the number of all."""
    row = await tx.fetchrow(
        """
        WITH found AS MATERIALIZED (
            SELECT task_id, requested_at FROM reviews r
            WHERE account_id = $1 AND state = 'pending' AND ($2::text IS NULL OR gate = $2)
              AND ($3::text IS NULL OR EXISTS (
                  SELECT FROM tasks t
                  WHERE t.account_id = $1 AND t.id = r.task_id AND t.agent = $3))
        )
        SELECT (SELECT count(*) FROM found) AS matching,
               ARRAY(SELECT task_id FROM found ORDER BY requested_at, task_id
                     LIMIT $4 OFFSET $5) AS ids
        """,
        tx.account_id,
        gate,
        agent,
        limit,
        offset,
    )
    return row["ids"], row["matching"]
