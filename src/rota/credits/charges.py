"""Paying for a model call."""

from datetime import datetime

from rota.credits import metrics
from rota.credits.ledger import Charge, Entry, enter, lock
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.platform.ids import new_uuid


async def charge(tx: AccountTransaction, charge: Charge) -> None:
    """Pays for a model call out of the run's hold, and for no more than is left of it.

    A call that ends after its run did is paid from what the run gave back, and
    what has been spent of that meanwhile is owed.
    """
    now = clock.now()
    spent: int | None = 0
    if charge.cost > 0:
        spent = await _charge_hold(tx, charge, now)
        if spent is None:
            spent = await _charge_late(tx, charge, now)
        metrics.OVERRUN_MICROS.inc(charge.cost - spent)
    await tx.execute(
        """
        INSERT INTO usage_days AS u
            (account_id, day, agent, model, calls, input_tokens, output_tokens, spent)
        VALUES ($1, $2, $3, $4, 1, $5, $6, $7)
        ON CONFLICT (account_id, day, agent, model) DO UPDATE SET
            calls = u.calls + 1, input_tokens = u.input_tokens + excluded.input_tokens,
            output_tokens = u.output_tokens + excluded.output_tokens,
            spent = u.spent + excluded.spent
        """,
        tx.account_id,
        now.date(),
        charge.agent,
        charge.model,
        charge.input_tokens,
        charge.output_tokens,
        spent,
    )


async def _charge_hold(tx: AccountTransaction, charge: Charge, now: datetime) -> int | None:
    """What was paid out of the open hold; None when it is not open."""
    spent: int | None = await tx.fetchval(
        """
        WITH h AS (
            SELECT least(allowance, $5::bigint) AS allowance,
                   least(topup, $5 - least(allowance, $5)) AS topup, period
            FROM holds WHERE account_id = $1 AND task_id = $2 AND run = $3 AND open
            FOR NO KEY UPDATE
        ), taken AS (
            UPDATE holds t SET allowance = t.allowance - h.allowance, topup = t.topup - h.topup,
                charged = t.charged + h.allowance + h.topup
            FROM h WHERE t.account_id = $1 AND t.task_id = $2 AND t.run = $3
        ), moved AS (
            UPDATE balances b SET
                held_allowance = b.held_allowance - h.allowance,
                held_topup = b.held_topup - h.topup,
                spent = b.spent + h.allowance + h.topup,
                allowance_used = b.allowance_used
                    + CASE WHEN b.period = h.period THEN h.allowance ELSE 0 END,
                entries = b.entries + 1
            FROM h WHERE b.account_id = $1
        )
        INSERT INTO entries (account_id, id, kind, key, at, task_id, run, step, model,
            price_version, cost, held_allowance, held_topup, spent)
        SELECT $1, $6, 'charge', $7, $8, $2, $3, $4, $9, $10, $5, -h.allowance, -h.topup,
            h.allowance + h.topup FROM h
        RETURNING spent
        """,
        tx.account_id,
        charge.owner.task_id,
        charge.owner.run,
        charge.step,
        charge.cost,
        new_uuid(),
        _charge_key(charge),
        now,
        charge.model,
        charge.price_version,
    )
    return spent


def _charge_key(charge: Charge) -> str:
    return f"charge/{charge.owner}/{charge.step}"


async def _charge_late(tx: AccountTransaction, charge: Charge, now: datetime) -> int:
    given_back = await tx.fetchrow(
        """
        SELECT allowance, topup FROM holds WHERE account_id = $1 AND task_id = $2 AND run = $3
        FOR NO KEY UPDATE
        """,
        tx.account_id,
        charge.owner.task_id,
        charge.owner.run,
    )
    balance = await lock(tx)
    due = min(charge.cost, sum(given_back) if given_back else 0)
    allowance = min(balance["allowance"], due)
    usable = balance["topup"] if balance["allow_overflow"] or not balance["allowance_total"] else 0
    topup = min(usable, due - allowance)
    await enter(
        tx,
        Entry(
            "charge",
            _charge_key(charge),
            allowance=-allowance,
            topup=-topup,
            owed=-(due - allowance - topup),
            spent=due,
            charge=charge,
            at=now,
        ),
        used=allowance,
    )
    if given_back:
        of_allowance = min(given_back["allowance"], due)
        await tx.execute(
            """
            UPDATE holds SET allowance = allowance - $4, topup = topup - $5, charged = charged + $6
            WHERE account_id = $1 AND task_id = $2 AND run = $3
            """,
            tx.account_id,
            charge.owner.task_id,
            charge.owner.run,
            of_allowance,
            due - of_allowance,
            due,
        )
    return due
