"""Checks an account's books against each other: balances, entries, holds, tasks, steps and usage.

One transaction writes all of them, so they always agree within a snapshot. A difference is damage
or a bug.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rota.platform.db import AccountReader, Database

BOOKS = (
    "allowance",
    "topup",
    "held_allowance",
    "held_topup",
    "spent",
    "owed",
    "granted",
    "outside",
)


@dataclass(frozen=True, slots=True)
class Problem:
    account_id: UUID
    description: str
    # The run, step, day or book that it is about.
    location: str
    expected: Any
    actual: Any


async def account_ids(db: Database) -> list[UUID]:
    async with db.relay() as connection:
        rows = await connection.fetch("SELECT account_id FROM balances ORDER BY account_id")
    return [row["account_id"] for row in rows]


async def verify(db: Database, account_ids: list[UUID]) -> AsyncIterator[list[Problem]]:
    """Yields the problems of each account in turn."""
    for account_id in account_ids:
        async with db.snapshot(account_id) as tx:
            found = await problems(tx)
        yield found


async def problems(tx: AccountReader) -> list[Problem]:
    """Every difference in an account's books. Needs a snapshot."""
    found = await _balance_problems(tx)
    for query in (
        _HELD,
        _MONTH,
        _LEAKED,
        _MISSING,
        _CHARGED,
        _CHARGES,
        _USAGE,
        _PAYMENTS,
        _AVAILABLE,
    ):
        rows = await tx.fetch(query, tx.account_id)
        found += [Problem(tx.account_id, **row) for row in rows]
    return found


async def _balance_problems(tx: AccountReader) -> list[Problem]:
    sums = ", ".join(f"coalesce(sum({book}), 0)::bigint AS {book}" for book in BOOKS)
    expected = await tx.fetchrow(
        f"SELECT {sums}, count(*) AS entries FROM entries WHERE account_id = $1",  # noqa: S608
        tx.account_id,
    )
    actual = await tx.fetchrow("SELECT * FROM balances WHERE account_id = $1", tx.account_id)
    if actual is None:
        return [Problem(tx.account_id, "the account has no balance", "", "one", "none")]
    return [
        Problem(
            tx.account_id,
            "the balance is not the sum of its entries",
            book,
            expected[book],
            actual[book],
        )
        for book in (*BOOKS, "entries")
        if expected[book] != actual[book]
    ]


# The columns of each query are the fields of a Problem.
_HELD = """
    SELECT 'the held part of the balance is not the sum of open holds' AS description,
           part AS location, held AS expected, kept AS actual
    FROM (
        SELECT coalesce(sum(allowance), 0)::bigint AS allowance,
               coalesce(sum(topup), 0)::bigint AS topup
        FROM holds WHERE account_id = $1 AND open
    ) h, balances b, LATERAL (VALUES
        ('held_allowance', h.allowance, b.held_allowance), ('held_topup', h.topup, b.held_topup)
    ) AS v (part, held, kept)
    WHERE b.account_id = $1 AND held <> kept
"""

_MONTH = """
    SELECT 'the month''s allowance is not the sum of its remaining, held and used parts'
               AS description,
           'period ' || period AS location, allowance_total AS expected, whole AS actual
    FROM (
        SELECT b.period, b.allowance_total, b.allowance + b.allowance_used + coalesce((
            SELECT sum(h.allowance)::bigint FROM holds h
            WHERE h.account_id = $1 AND h.open AND h.period = b.period), 0) AS whole
        FROM balances b WHERE b.account_id = $1
    ) m
    WHERE allowance_total <> whole
"""

# An erasure cancels all tasks at once, and releases their holds in its stage `holds`.
_LEAKED = """
    SELECT 'a hold is open although its run has ended' AS description,
        'task_' || replace(h.task_id::text, '-', '') || ' run ' || h.run AS location,
        'closed' AS expected,
        coalesce('open, task ' || t.status || ' in run ' || t.run, 'open, no task') AS actual
    FROM holds h LEFT JOIN tasks t ON t.account_id = $1 AND t.id = h.task_id
    WHERE h.account_id = $1 AND h.open
      AND (t.id IS NULL OR t.run <> h.run OR t.status IN ('COMPLETED', 'FAILED', 'CANCELLED'))
      AND NOT EXISTS (SELECT FROM erasures e
                      WHERE e.account_id = $1 AND e.stage IN ('companies', 'holds'))
"""

_MISSING = """
    SELECT 'a run has no open hold' AS description,
        'task_' || replace(t.id::text, '-', '') || ' run ' || t.run AS location,
        'open' AS expected, CASE WHEN h.open IS NULL THEN 'none' ELSE 'closed' END AS actual
    FROM tasks t
    LEFT JOIN holds h ON h.account_id = $1 AND h.task_id = t.id AND h.run = t.run
    WHERE t.account_id = $1 AND t.hosted AND h.open IS NOT TRUE
      AND t.status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
"""

_CHARGED = """
    SELECT 'the charged amount of a hold is not the sum of its charges' AS description,
        'task_' || replace(task_id::text, '-', '') || ' run ' || run AS location,
        coalesce(c.spent, 0) AS expected, coalesce(h.charged, 0) AS actual
    FROM (SELECT task_id, run, charged FROM holds WHERE account_id = $1) h
    FULL JOIN (
        SELECT task_id, run, sum(spent)::bigint AS spent FROM entries
        WHERE account_id = $1 AND kind = 'charge' GROUP BY task_id, run
    ) c USING (task_id, run)
    WHERE coalesce(c.spent, 0) <> coalesce(h.charged, 0)
"""

# A step that is copied from an earlier run was charged in that run. Retention deletes the steps of
# old charges.
_CHARGES = """
    SELECT 'a model call is not charged exactly once at its cost' AS description,
        'task_' || replace(task_id::text, '-', '') || ' run ' || run || ' step ' || step
            AS location,
        coalesce(s.calls || ' x ' || s.cost, 'nothing') AS expected,
        coalesce(c.charges || ' x ' || c.cost, 'nothing') AS actual
    FROM (
        SELECT task_id, run, step, count(*) AS calls, sum(cost_micros)::bigint AS cost FROM steps
        WHERE account_id = $1 AND call = 0 AND NOT copied AND cost_micros > 0
        GROUP BY task_id, run, step
    ) s
    FULL JOIN (
        SELECT task_id, run, step, count(*) AS charges, sum(cost)::bigint AS cost, max(at) AS at
        FROM entries
        WHERE account_id = $1 AND kind = 'charge' GROUP BY task_id, run, step
    ) c USING (task_id, run, step)
    WHERE (s.calls, s.cost) IS DISTINCT FROM (c.charges, c.cost)
      AND NOT (s.calls IS NULL AND c.at < coalesce(
          (SELECT steps_cut_at FROM balances WHERE account_id = $1), '-infinity'))
"""

_USAGE = """
    SELECT 'a day''s usage is not the sum of its charges' AS description,
        day || ' ' || model AS location,
        coalesce(c.spent, 0) AS expected, coalesce(u.spent, 0) AS actual
    FROM (
        SELECT day, model, sum(spent)::bigint AS spent FROM usage_days
        WHERE account_id = $1 GROUP BY day, model
    ) u
    FULL JOIN (
        SELECT (at AT TIME ZONE 'UTC')::date AS day, model, sum(spent)::bigint AS spent
        FROM entries WHERE account_id = $1 AND kind = 'charge' GROUP BY 1, model
    ) c USING (day, model)
    WHERE coalesce(c.spent, 0) <> coalesce(u.spent, 0)
"""

_PAYMENTS = """
    SELECT description, reference AS location, expected, actual
    FROM (
        SELECT reference,
            count(*) FILTER (WHERE kind = 'top_up') AS payments,
            coalesce(sum(outside) FILTER (WHERE kind LIKE 'refund%'), 0)::bigint AS refunded,
            coalesce(sum(outside) FILTER (WHERE kind LIKE 'dispute%'), 0)::bigint AS disputed
        FROM entries WHERE account_id = $1 AND kind IN
            ('top_up', 'refund', 'refund_reversal', 'dispute', 'dispute_reversal')
        GROUP BY reference
    ) p, LATERAL (VALUES
        ('a payment is not entered exactly once', payments = 1, 1, payments),
        ('more came back from refunds than was refunded', refunded >= 0, 0, refunded),
        ('more came back from disputes than was disputed', disputed >= 0, 0, disputed)
    ) AS v (description, holds, expected, actual)
    WHERE NOT holds
"""

# The order of IDs is not always the order in which the balance was locked. So this compares sets:
# the amounts at which entries start, and the amounts that other entries left. An entry of an older
# version has no amount, and then nothing is compared.
_AVAILABLE = """
    WITH amounts AS (
        SELECT amount, sum(ends)::bigint AS ends, sum(starts)::bigint AS starts FROM (
            SELECT 0::bigint AS amount, 1 AS ends, 0 AS starts
            UNION ALL
            SELECT allowance + topup, 0, 1 FROM balances WHERE account_id = $1
            UNION ALL
            SELECT available_after, 1, 0 FROM entries
            WHERE account_id = $1 AND allowance + topup <> 0
            UNION ALL
            SELECT available_after - allowance - topup, 0, 1 FROM entries
            WHERE account_id = $1 AND allowance + topup <> 0
        ) AS points GROUP BY amount
    ), found AS (
        SELECT amount || ' micro-dollars' AS location, ends || ' entries' AS expected,
               starts || ' entries' AS actual
        FROM amounts WHERE ends <> starts
        UNION ALL
        SELECT 'txn_' || replace(id::text, '-', ''), 'an amount that the account had',
               available_after::text
        FROM entries WHERE account_id = $1 AND allowance + topup = 0
            AND available_after NOT IN (SELECT amount FROM amounts)
    )
    SELECT 'the balance after an entry is not where the next entry starts' AS description,
        location, expected, actual
    FROM found
    WHERE EXISTS (SELECT FROM balances WHERE account_id = $1) AND NOT EXISTS (
        SELECT FROM entries WHERE account_id = $1 AND available_after IS NULL)
"""
