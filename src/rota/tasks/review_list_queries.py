"""The SQL of the list of reviews that wait, and of what its users have put off."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks.model import ListedReview, Review
from rota.tasks.pages import Fit, fitting
from rota.tasks.review_queries import SHORT_COLUMNS

# Of an incomplete review, a list shows this many items.
_LISTED_ITEMS = 10
# What an item loses that is longer than $4: the end of a text, or a value as a whole.
_SHORTER = """
    || CASE WHEN length(item ->> 'toolDescription') > $4::integer THEN
        jsonb_build_object('toolDescription', left(item ->> 'toolDescription', $4)) ELSE '{}' END
    || CASE WHEN length(item ->> 'agentSays') > $4 THEN
        jsonb_build_object('agentSays', left(item ->> 'agentSays', $4)) ELSE '{}' END
    || CASE WHEN octet_length((item -> 'annotations')::text) > $4 THEN
        '{"annotations": null}'::jsonb ELSE '{}' END
    || CASE WHEN octet_length((item -> 'argumentsSchema')::text) > $4 THEN
        '{"argumentsSchema": null}'::jsonb ELSE '{}' END
    || CASE WHEN octet_length(item ->> 'sealed') > $4 THEN
        '{"arguments": null, "sealed": null}'::jsonb ELSE '{}' END
"""
# The pending reviews of tasks ($2). The fields of `Fit` are $3 and $4.
_LISTED = f"""
    SELECT task_id, {SHORT_COLUMNS},
        CASE WHEN whole THEN items ELSE short_items END AS items,
        CASE WHEN whole OR octet_length(sealed) <= $4 THEN sealed ELSE short_sealed END AS sealed,
        NOT whole AND (
            short_items <> items OR gate IS NOT DISTINCT FROM 'run' AND octet_length(sealed) > $4
        ) AS truncated
    FROM (
        SELECT *, sum(octet_length(sealed) + octet_length(items::text)) OVER () <= $3::bigint
            AS whole
        FROM reviews WHERE account_id = $1 AND task_id = ANY($2) AND state = 'pending'
    ) AS page
    CROSS JOIN LATERAL (
        SELECT coalesce(jsonb_agg(item {_SHORTER} ORDER BY number), '[]') AS short_items
        FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, number)
        WHERE NOT whole AND number <= {_LISTED_ITEMS}
    ) AS cut
    -- Outside of the items, only the work and the name are shown.
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN whole OR gate <> 'run' THEN '{{}}'
            WHEN gate = 'run' THEN
                jsonb_build_object('work', sealed::jsonb -> 'work' || jsonb_build_object(
                    'input', left(sealed::jsonb #>> '{{work,input}}', $4),
                    'description', left(sealed::jsonb #>> '{{work,description}}', $4)))
            -- A task that a client runs has no gate.
            ELSE jsonb_build_object('texts', jsonb_build_object(
                'name', sealed::jsonb #> '{{texts,name}}'))
        END::text AS short_sealed
    ) AS short
"""  # noqa: S608


async def listed(
    tx: AccountReader, task_ids: Sequence[UUID], page_bytes: int
) -> dict[UUID, ListedReview]:
    """The pending reviews of these tasks. Large ones are incomplete if the page is too large."""

    async def read(fit: Fit) -> list[dict[str, Any]]:
        rows = await tx.fetch(_LISTED, tx.account_id, list(task_ids), fit.whole_bytes, fit.cut)
        return [dict(row) for row in rows]

    def texts(row: dict[str, Any]) -> object:
        return row["sealed"], row["items"]

    rows = await fitting(read, texts, page_bytes)
    return {row.pop("task_id"): ListedReview(**row) for row in rows}


async def snoozes(
    tx: AccountReader, reviews: Mapping[UUID, Review], now: datetime
) -> dict[UUID, datetime]:
    """Until when the user has put off these reviews, by task."""
    rows = await tx.fetch(
        """
        SELECT task_id, until FROM review_snoozes
        JOIN unnest($3::uuid[], $4::integer[]) AS shown (task_id, number) USING (task_id, number)
        WHERE account_id = $1 AND user_id = $2 AND until > $5
        """,
        tx.account_id,
        tx.user_id,
        list(reviews),
        [review.number for review in reviews.values()],
        now,
    )
    return {row["task_id"]: row["until"] for row in rows}


async def save_snooze(tx: AccountTransaction, task_id: UUID, number: int, until: datetime) -> None:
    await tx.execute(
        """
        INSERT INTO review_snoozes (account_id, task_id, user_id, number, until)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account_id, task_id, user_id)
            DO UPDATE SET number = excluded.number, until = excluded.until
        """,
        tx.account_id,
        task_id,
        tx.user_id,
        number,
        until,
    )


async def delete_snooze(tx: AccountTransaction, task_id: UUID) -> None:
    await tx.execute(
        "DELETE FROM review_snoozes WHERE account_id = $1 AND task_id = $2 AND user_id = $3",
        tx.account_id,
        task_id,
        tx.user_id,
    )
