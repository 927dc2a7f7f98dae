"""The SQL of reviews."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction, ReadConnection
from rota.tasks.model import Credential, Review, ReviewAnswer, ReviewItem

_NAMES = tuple(field.name for field in fields(Review))
_COLUMNS = ", ".join(_NAMES)
SHORT_COLUMNS = ", ".join(f.name for f in fields(Review) if f.name not in ("items", "sealed"))

# How many reviews of a task are read together, and the most bytes of the items of older ones.
_HISTORY, _HISTORY_BYTES = 100, 1024 * 1024


async def of_task(tx: AccountReader, task_id: UUID) -> list[Review]:
    """The newest reviews of a task, newest first.

    A client can make a task have thousands of them, and each can have megabytes. So only the newest
    has its sealed text, and the items of older ones are left out if they are too large together.
    The newest that a rule did not decide keeps them, because a person may repeat the decision.
    """
    rows = await tx.fetch(
        f"""
        SELECT {SHORT_COLUMNS},
            CASE WHEN place = 1 THEN sealed ELSE '' END AS sealed,
            CASE WHEN place = 1 OR for_people AND place_for_people = 1 OR bytes <= {_HISTORY_BYTES}
                THEN items ELSE '[]' END AS items
        FROM (
            SELECT *, row_number() OVER newest AS place,
                count(*) FILTER (WHERE for_people) OVER newest AS place_for_people,
                sum(length) OVER newest - first_value(length) OVER newest AS bytes
            FROM (
                SELECT *, octet_length(items::text) AS length,
                    decided_with ->> 'via' IS DISTINCT FROM 'rule' AS for_people
                FROM reviews WHERE account_id = $1 AND task_id = $2
                ORDER BY number DESC LIMIT {_HISTORY}
            ) AS review
            WINDOW newest AS (ORDER BY number DESC)
        ) AS review
        ORDER BY number DESC
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Review(**row) for row in rows]


async def all_of_task(tx: AccountReader, task_id: UUID) -> list[Review]:
    """All reviews of a task in order, with who decided about each item, but without their texts."""
    rows = await tx.fetch(
        f"""
        SELECT {SHORT_COLUMNS}, '' AS sealed, (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'id', item -> 'id', 'decision', item -> 'decision', 'edited', item -> 'edited',
                'decidedBy', item -> 'decidedBy', 'editedBy', item -> 'editedBy'
            ) ORDER BY position), '[]')
            FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, position)
        ) AS items
        FROM reviews WHERE account_id = $1 AND task_id = $2 ORDER BY number
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return [Review(**row) for row in rows]


async def newest(tx: AccountReader, task_id: UUID) -> Review | None:
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM reviews WHERE account_id = $1 AND task_id = $2
        ORDER BY number DESC LIMIT 1
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return Review(**row) if row else None


async def newest_of_items(
    tx: AccountReader, task_id: UUID, item_ids: Sequence[str], *, run: int | None = None
) -> dict[str, Review]:
    """The newest review about each of these items, if there is one in this run or, without a run,
    in any."""
    if not item_ids:
        return {}
    rows = await tx.fetch(
        f"""
        SELECT wanted.item_id, review.* FROM unnest($4::text[]) AS wanted (item_id)
        CROSS JOIN LATERAL (
            SELECT {_COLUMNS} FROM reviews
            WHERE account_id = $1 AND task_id = $2 AND ($3::integer IS NULL OR run = $3)
              AND items @> jsonb_build_array(jsonb_build_object('id', wanted.item_id))
            ORDER BY number DESC LIMIT 1
        ) AS review
        """,  # noqa: S608
        tx.account_id,
        task_id,
        run,
        item_ids,
    )
    return {row["item_id"]: Review(**{n: row[n] for n in _NAMES}) for row in rows}


# The reviews of a task ($2) as entries of its timeline. The database sorts and pages them together
# with the steps, which the package `runs` owns, so this is a statement and not a function.
TIMELINE_ENTRIES = """
    SELECT format('review-%s', number) AS id, 'approval' AS kind, run, NULL::integer AS step,
           gate AS name, NULL AS server, state, NULL AS outcome,
           (SELECT coalesce(jsonb_agg(
                item - 'sealed' - 'describe' - 'agentVersion' ORDER BY position), '[]')
            FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, position)) AS arguments,
           to_jsonb(reason) AS result, NULL::uuid AS child_task_id,
           0 AS input_tokens, 0 AS output_tokens, 0 AS cached_input_tokens,
           0 AS cache_write_tokens, 0 AS reasoning_tokens, false AS estimated,
           0 AS cost_micros, NULL AS price_version,
           requested_at AS started_at, decided_at AS finished_at, decided_by, decided_with,
           NULL AS note, false AS copied
    FROM reviews WHERE account_id = $1 AND task_id = $2
"""


async def next_number(tx: AccountReader, task_id: UUID) -> int:
    number: int = await tx.fetchval(
        "SELECT coalesce(max(number), 0) + 1 FROM reviews WHERE account_id = $1 AND task_id = $2",
        tx.account_id,
        task_id,
    )
    return number


async def insert(tx: AccountTransaction, task_id: UUID, review: Review) -> None:
    await tx.execute(
        f"""
        INSERT INTO reviews (account_id, task_id, {_COLUMNS})
        VALUES ($1, $2, {", ".join(f"${number}" for number in range(3, 3 + len(fields(Review))))})
        """,  # noqa: S608
        tx.account_id,
        task_id,
        *[getattr(review, field.name) for field in fields(Review)],
    )


async def approved_run(tx: AccountReader, task_id: UUID) -> Review | None:
    """The newest approved review of the task at a run gate."""
    row = await tx.fetchrow(
        f"""
        SELECT {_COLUMNS} FROM reviews
        WHERE account_id = $1 AND task_id = $2 AND gate = 'run' AND state = 'approved'
        ORDER BY number DESC LIMIT 1
        """,  # noqa: S608
        tx.account_id,
        task_id,
    )
    return Review(**row) if row else None


async def has_run_gate(tx: AccountReader, task_id: UUID) -> bool:
    """Whether a person was ever asked before a run of the task."""
    found: bool = await tx.fetchval(
        """
        SELECT EXISTS (
            SELECT FROM reviews WHERE account_id = $1 AND task_id = $2 AND gate = 'run'
        )
        """,
        tx.account_id,
        task_id,
    )
    return found


async def pending(tx: AccountReader, task_ids: Sequence[UUID]) -> dict[UUID, Review]:
    """The pending review of each of these tasks that has one."""
    rows = await tx.fetch(
        f"""
        SELECT task_id, {_COLUMNS} FROM reviews
        WHERE account_id = $1 AND task_id = ANY($2) AND state = 'pending'
        """,  # noqa: S608
        tx.account_id,
        list(task_ids),
    )
    return _by_task(rows)


async def pending_with_decisions(tx: AccountReader) -> dict[UUID, Review]:
    """The pending reviews of the account in which some items are decided, by task."""
    rows = await tx.fetch(
        f"""
        SELECT task_id, {_COLUMNS} FROM reviews
        WHERE account_id = $1 AND state = 'pending' AND items @> '[{{"decision": "approved"}}]'
        """,  # noqa: S608
        tx.account_id,
    )
    return _by_task(rows)


def _by_task(rows: Sequence[Mapping[str, Any]]) -> dict[UUID, Review]:
    found: dict[UUID, Review] = {}
    for row in rows:
        columns = dict(row)
        task_id = columns.pop("task_id")
        found[task_id] = Review(**columns)
    return found


async def time_waited(tx: AccountReader, task_ids: Sequence[UUID], since: datetime) -> timedelta:
    """The time since then in which at least one of these tasks waited for a person."""
    waited: timedelta = await tx.fetchval(
        """
        SELECT coalesce(sum(upper(span) - lower(span)), interval '0')
        FROM (
            SELECT unnest(range_agg(tstzrange(greatest(requested_at, $3), until))) AS span
            FROM (
                SELECT requested_at, coalesce(decided_at, clock_timestamp()) AS until
                FROM reviews WHERE account_id = $1 AND task_id = ANY($2)
            ) AS review
            WHERE until > greatest(requested_at, $3)
        ) AS spans
        """,
        tx.account_id,
        list(task_ids),
        since,
    )
    return waited


async def save_items(
    tx: AccountTransaction,
    task_id: UUID,
    items: Sequence[ReviewItem],
) -> None:
    """Stores the items of the pending review with the decisions so far."""
    if items:
        await tx.execute(
            """
            UPDATE reviews SET items = $3
            WHERE account_id = $1 AND task_id = $2 AND state = 'pending'
            """,
            tx.account_id,
            task_id,
            list(items),
        )


async def save_answers(
    tx: AccountTransaction, task_id: UUID, number: int, answers: Sequence[ReviewAnswer]
) -> None:
    await tx.execute(
        """
        UPDATE reviews SET answers = $4
        WHERE account_id = $1 AND task_id = $2 AND number = $3
        """,
        tx.account_id,
        task_id,
        number,
        list(answers),
    )


async def close(
    tx: AccountTransaction,
    task_id: UUID,
    state: str,
    decided_by: UUID | None,
    decided_with: Credential | None,
    reason: str | None,
    at: datetime,
    *,
    resumed: bool,
) -> None:
    """Closes the pending review, and forgets who put it off."""
    await tx.execute(
        """
        WITH ended AS (DELETE FROM review_snoozes WHERE account_id = $1 AND task_id = $2)
        UPDATE reviews SET state = $3, decided_by = $4, decided_with = $5, reason = $6,
            decided_at = $7, resumed = $8
        WHERE account_id = $1 AND task_id = $2 AND state = 'pending'
        """,
        tx.account_id,
        task_id,
        state,
        decided_by,
        decided_with,
        reason,
        at,
        resumed,
    )


async def due_accounts(
    connection: ReadConnection, after: tuple[datetime, UUID], limit: int
) -> list[tuple[datetime, UUID]]:
    """The times and accounts of expired reviews after `after`, oldest first.

    Needs a relay transaction.
    """
    rows = await connection.fetch(
        """
        SELECT expires_at, account_id FROM reviews
        WHERE state = 'pending' AND expires_at <= now() AND (expires_at, account_id) > ($1, $2)
        ORDER BY expires_at, account_id LIMIT $3
        """,
        *after,
        limit,
    )
    return [(row["expires_at"], row["account_id"]) for row in rows]


async def claim_due(tx: AccountTransaction, limit: int) -> list[UUID]:
    """The account's tasks with an expired review, oldest first.

    None until the end of another transaction that has claimed some.
    """
    rows = await tx.fetch(
        """
        SELECT task_id FROM reviews
        WHERE account_id = $1 AND state = 'pending' AND expires_at <= now()
          AND (SELECT pg_try_advisory_xact_lock(hashtext('reviews'), hashtext($1::text)))
        ORDER BY expires_at LIMIT $2
        """,
        tx.account_id,
        limit,
    )
    return [row["task_id"] for row in rows]
