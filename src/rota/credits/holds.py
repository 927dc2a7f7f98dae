"""Holds: money set aside for a run before it starts, and released when it ends."""

from datetime import datetime

from rota.credits import alerts
from rota.credits.alerts import CROSSED
from rota.credits.allowance import AllowanceOf, refresh
from rota.credits.ledger import USABLE_TOPUP
from rota.credits.model import RunId, release_key
from rota.credits.money import MICROS_PER_CENT
from rota.platform import clock
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.ids import new_uuid

_HOLD = f"""
    WITH b AS (
        SELECT least(b.allowance, $4) AS allowance, $4 - least(b.allowance, $4) AS topup,
               b.period
        FROM balances b JOIN accounts a ON a.id = b.account_id
        WHERE b.account_id = $1
          AND b.tier = a.tier AND b.seats IS NOT DISTINCT FROM a.seats
          AND b.period_ends_at > $5
          AND b.allowance + {USABLE_TOPUP} >= $4
        FOR NO KEY UPDATE OF b
    ), moved AS (
        UPDATE balances t SET
            allowance = t.allowance - b.allowance,
            topup = t.topup - b.topup,
            held_allowance = t.held_allowance + b.allowance,
            held_topup = t.held_topup + b.topup,
            entries = t.entries + 1
        FROM b WHERE t.account_id = $1
        RETURNING t.allowance + t.topup AS available, {CROSSED} AS crossed
    ), held AS (
        INSERT INTO holds (account_id, task_id, run, allowance, topup, period, created_at,
            budget)
        SELECT $1, $2, $3, b.allowance, b.topup, b.period, $5, $4 FROM b
    )
    INSERT INTO entries (account_id, id, kind, key, at, task_id, run,
        allowance, topup, held_allowance, held_topup, available_after)
    SELECT $1, $6, 'hold', $7, $5, $2, $3, -b.allowance, -b.topup, b.allowance, b.topup,
        moved.available FROM b, moved
    RETURNING (SELECT crossed FROM moved)
"""  # noqa: S608


async def hold(
    tx: AccountTransaction,
    run_id: RunId,
    amount_micros: int,
    allowance_of: AllowanceOf,
) -> bool:
    """Holds money for a run, from the allowance first. Returns False if there is not enough."""
    now = clock.now()
    crossed = await _hold(tx, run_id, amount_micros, now)
    if crossed is None:
        # There is not enough, or the month or the plan has changed since the last refresh.
        await refresh(tx, allowance_of, now)
        crossed = await _hold(tx, run_id, amount_micros, now)
    if crossed:
        await alerts.report(tx)
    return crossed is not None


async def _hold(
    tx: AccountTransaction, run_id: RunId, amount_micros: int, now: datetime
) -> bool | None:
    """Whether the balance crossed the amount of an alert. None if there is not enough money."""
    crossed: bool | None = await tx.fetchval(
        _HOLD,
        tx.account_id,
        run_id.task_id,
        run_id.run,
        amount_micros,
        now,
        new_uuid(),
        f"hold/{run_id}",
    )
    return crossed


async def hold_under(
    tx: AccountTransaction, run_id: RunId, parent: RunId, budget_micros: int
) -> bool:
    """Opens an empty hold for a subtask. It can draw up to its budget from the parent's hold.

    Returns False if the parent's hold is closed.
    """
    opened = await tx.fetchval(
        """
        INSERT INTO holds (account_id, task_id, run, allowance, topup, period, created_at, budget,
            parent_task_id, parent_run)
        SELECT $1, $2, $3, 0, 0, period, $7, $6, $4, $5 FROM holds
        WHERE account_id = $1 AND task_id = $4 AND run = $5 AND open
        RETURNING true
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
        parent.task_id,
        parent.run,
        budget_micros,
        clock.now(),
    )
    return bool(opened)


async def draw(
    tx: AccountTransaction, run_id: RunId, amount_micros: int, allowance_of: AllowanceOf
) -> None:
    """Moves up to this amount from the parent's hold, which draws from its own parent first.

    If the parent's hold is closed, the account pays from now on. The account must be locked.
    """
    row = await tx.fetchrow(
        """
        SELECT p.task_id, p.run, p.open, p.allowance + p.topup AS rest,
               least($4, h.budget - h.drawn) AS due
        FROM holds h
        JOIN holds p ON p.account_id = $1
                    AND p.task_id = h.parent_task_id AND p.run = h.parent_run
        WHERE h.account_id = $1 AND h.task_id = $2 AND h.run = $3 AND h.open
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
        amount_micros,
    )
    if row is None or row["due"] <= 0:
        return
    if not row["open"]:
        await detach(tx, run_id, 0, allowance_of)
        return
    parent = RunId(row["task_id"], row["run"])
    if row["rest"] < row["due"]:
        await draw(tx, parent, row["due"] - row["rest"], allowance_of)
    await tx.execute(
        """
        WITH p AS (
            SELECT least(allowance, $6) AS allowance,
                   least(topup, $6 - least(allowance, $6)) AS topup
            FROM holds WHERE account_id = $1 AND task_id = $4 AND run = $5 AND open
            FOR NO KEY UPDATE
        ), taken AS (
            UPDATE holds t SET allowance = t.allowance - p.allowance, topup = t.topup - p.topup
            FROM p WHERE t.account_id = $1 AND t.task_id = $4 AND t.run = $5
        )
        UPDATE holds h SET allowance = h.allowance + p.allowance, topup = h.topup + p.topup,
            drawn = h.drawn + p.allowance + p.topup
        FROM p WHERE h.account_id = $1 AND h.task_id = $2 AND h.run = $3
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
        parent.task_id,
        parent.run,
        row["due"],
    )


async def has_open_parent(tx: AccountReader, run_id: RunId) -> bool:
    """Whether the run's hold draws on the hold of another run."""
    found = await tx.fetchval(
        """
        SELECT p.open FROM holds h
        JOIN holds p ON p.account_id = $1
                    AND p.task_id = h.parent_task_id AND p.run = h.parent_run
        WHERE h.account_id = $1 AND h.task_id = $2 AND h.run = $3 AND h.open
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
    )
    return bool(found)


async def detach(
    tx: AccountTransaction, run_id: RunId, needed_micros: int, allowance_of: AllowanceOf
) -> bool:
    """Makes the account pay for a subtask from now on, up to the rest of the subtask's budget.

    Returns False, and takes nothing, if the balance covers neither what is needed nor that rest.
    A hold and those below it contain the allowance of one month only. So in a later month they get
    only top-up money, unless they contain no allowance. The account must be locked.
    """
    now = clock.now()
    await refresh(tx, allowance_of, now)
    crossed = await tx.fetchval(
        f"""
        WITH RECURSIVE tree AS (
            SELECT task_id, run, allowance FROM holds
            WHERE account_id = $1 AND task_id = $2 AND run = $3 AND open
            UNION ALL
            SELECT c.task_id, c.run, c.allowance FROM tree
            JOIN holds c ON c.account_id = $1 AND c.open
                        AND c.parent_task_id = tree.task_id AND c.parent_run = tree.run
        ), source AS (
            SELECT h.budget - h.drawn AS due, b.usable AS topup,
                   b.allowance + b.topup AS available,
                   CASE WHEN b.period = h.period OR (SELECT sum(allowance) FROM tree) = 0
                        THEN b.allowance ELSE 0 END AS allowance, b.period
            FROM (
                SELECT *, {USABLE_TOPUP} AS usable FROM balances
                WHERE account_id = $1 FOR NO KEY UPDATE
            ) b
            JOIN holds h ON h.account_id = $1 AND h.task_id = $2 AND h.run = $3 AND h.open
                        AND h.parent_task_id IS NOT NULL
        ), taken AS (
            SELECT least(allowance, due) AS allowance,
                   least(topup, due - least(allowance, due)) AS topup, available, period
            FROM source WHERE allowance + topup >= least($4, due)
        ), below AS (
            UPDATE holds c SET period = taken.period FROM taken, tree
            WHERE c.account_id = $1 AND c.task_id = tree.task_id AND c.run = tree.run
              AND (c.task_id, c.run) <> ($2, $3) AND taken.allowance > 0
        ), entered AS (
            INSERT INTO entries (account_id, id, kind, key, at, task_id, run,
                allowance, topup, held_allowance, held_topup, available_after)
            SELECT $1, $6, 'hold', $7, $5, $2, $3, -allowance, -topup, allowance, topup,
                available - allowance - topup
            FROM taken WHERE allowance + topup > 0
        ), moved AS (
            UPDATE balances t SET
                allowance = t.allowance - taken.allowance,
                topup = t.topup - taken.topup,
                held_allowance = t.held_allowance + taken.allowance,
                held_topup = t.held_topup + taken.topup,
                entries = t.entries + 1
            FROM taken WHERE t.account_id = $1 AND taken.allowance + taken.topup > 0
            RETURNING {CROSSED} AS crossed
        )
        UPDATE holds h SET parent_task_id = NULL, parent_run = NULL,
            allowance = h.allowance + taken.allowance, topup = h.topup + taken.topup,
            drawn = h.drawn + taken.allowance + taken.topup,
            period = CASE WHEN taken.allowance > 0 THEN taken.period ELSE h.period END
        FROM taken WHERE h.account_id = $1 AND h.task_id = $2 AND h.run = $3
        RETURNING coalesce((SELECT crossed FROM moved), false)
        """,  # noqa: S608
        tx.account_id,
        run_id.task_id,
        run_id.run,
        needed_micros,
        now,
        new_uuid(),
        f"hold/{run_id}",
    )
    if crossed:
        await alerts.report(tx)
    return crossed is not None


async def left(tx: AccountReader, run_id: RunId) -> int:
    """Returns what is left of the run's own hold, in micro-dollars."""
    left_micros: int | None = await tx.fetchval(
        """
        SELECT allowance + topup FROM holds
        WHERE account_id = $1 AND task_id = $2 AND run = $3 AND open
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
    )
    return left_micros or 0


async def is_open(tx: AccountReader, run_id: RunId) -> bool:
    """Whether the run has a hold that its subtasks can draw on."""
    found = await tx.fetchval(
        "SELECT open FROM holds WHERE account_id = $1 AND task_id = $2 AND run = $3",
        tx.account_id,
        run_id.task_id,
        run_id.run,
    )
    return bool(found)


async def available(tx: AccountReader) -> int:
    """What the next hold can have at most. The allowance must be up to date."""
    micros: int = await tx.fetchval(
        f"SELECT allowance + {USABLE_TOPUP} FROM balances WHERE account_id = $1",  # noqa: S608
        tx.account_id,
    )
    return micros


async def release(tx: AccountTransaction, run_id: RunId) -> None:
    """Closes a run's hold and releases the rest of it. Releasing it again has no effect.

    The rest of a subtask's hold returns to the parent's hold while that is open. Owed money is
    paid first. The part from the allowance of a past month expires.
    """
    row = await tx.fetchrow(
        f"""
        WITH h AS (
            SELECT allowance, topup, period FROM holds
            WHERE account_id = $1 AND task_id = $2 AND run = $3 AND open
              AND NOT EXISTS (
                  SELECT FROM holds p WHERE p.account_id = $1 AND p.open
                  AND p.task_id = holds.parent_task_id AND p.run = holds.parent_run)
            FOR NO KEY UPDATE
        ), b AS (
            SELECT -owed AS owed, period, allowance + topup AS available FROM balances
            WHERE account_id = $1 AND EXISTS (SELECT FROM h) FOR NO KEY UPDATE
        ), back AS (
            SELECT h.allowance AS held_allowance, h.topup AS held_topup, b.owed, b.available,
                   CASE WHEN h.period = b.period THEN h.allowance ELSE 0 END AS allowance
            FROM h, b
        ), paid AS (
            SELECT *, least(owed, allowance) AS by_allowance,
                   least(owed - least(owed, allowance), held_topup) AS by_topup
            FROM back
        ), closed AS (
            UPDATE holds SET open = false
            WHERE account_id = $1 AND task_id = $2 AND run = $3 AND EXISTS (SELECT FROM h)
        ), entered AS (
            INSERT INTO entries (account_id, id, kind, key, at, task_id, run, held_allowance,
                held_topup, allowance, topup, granted, owed, available_after)
            SELECT $1, $4, 'release', $5, $6, $2, $3, -held_allowance, -held_topup,
                allowance - by_allowance, held_topup - by_topup, held_allowance - allowance,
                by_allowance + by_topup,
                available + allowance - by_allowance + held_topup - by_topup
            FROM paid WHERE held_allowance + held_topup > 0
        )
        UPDATE balances t SET
            held_allowance = t.held_allowance - paid.held_allowance,
            held_topup = t.held_topup - paid.held_topup,
            allowance = t.allowance + paid.allowance - by_allowance,
            topup = t.topup + paid.held_topup - by_topup,
            granted = t.granted + paid.held_allowance - paid.allowance,
            owed = t.owed + by_allowance + by_topup,
            allowance_used = t.allowance_used + by_allowance,
            entries = t.entries + (paid.held_allowance + paid.held_topup > 0)::int
        FROM paid WHERE t.account_id = $1
        RETURNING t.allowance + t.topup + t.held_allowance + t.held_topup AS rest,
            t.told_depleted, {CROSSED} AS crossed
        """,  # noqa: S608
        tx.account_id,
        run_id.task_id,
        run_id.run,
        new_uuid(),
        release_key(run_id),
        clock.now(),
    )
    if row is None:
        await _return_to_parent(tx, run_id)
        return
    if row["crossed"]:
        await alerts.report(tx)
    if row["rest"] < MICROS_PER_CENT and not row["told_depleted"]:
        await alerts.report_depleted(tx)


async def _return_to_parent(tx: AccountTransaction, run_id: RunId) -> None:
    """Closes a subtask's hold. The holds of its own subtasks move to its parent."""
    await tx.execute(
        """
        WITH h AS (
            UPDATE holds SET open = false
            WHERE account_id = $1 AND task_id = $2 AND run = $3 AND open
            RETURNING allowance, topup, parent_task_id, parent_run
        ), below AS (
            UPDATE holds c SET parent_task_id = h.parent_task_id, parent_run = h.parent_run
            FROM h WHERE c.account_id = $1 AND c.open
                     AND c.parent_task_id = $2 AND c.parent_run = $3
        )
        UPDATE holds p SET allowance = p.allowance + h.allowance, topup = p.topup + h.topup
        FROM h WHERE p.account_id = $1 AND p.task_id = h.parent_task_id AND p.run = h.parent_run
        """,
        tx.account_id,
        run_id.task_id,
        run_id.run,
    )
