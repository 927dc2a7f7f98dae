"""Pays for model calls."""

from datetime import datetime

from rota.credits import alerts, metrics
from rota.credits.ledger import add_entry, lock_balance
from rota.credits.model import Charge, Entry, release_key
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.platform.ids import new_uuid


async def charge(tx: AccountTransaction, charge: Charge) -> int:
    """Pays for a model call from the run's hold, up to what is left of it. Returns that amount.

    A late call, one that ends after its run, is paid from the money that the run released, also if
    that expired. The part of that money that is already spent is owed. The account's balance also
    pays for the late call of a subtask whose money returned to its parent's hold, because a call
    that the parent makes at this moment may need all of that hold.
    """
    now = clock.now()
    spent_micros = 0
    if charge.cost_micros > 0:
        from_hold = await _charge_hold(tx, charge, now)
        spent_micros = await _charge_late(tx, charge, now) if from_hold is None else from_hold
        metrics.OVERRUN_MICROS.inc(charge.cost_micros - spent_micros)
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
        spent_micros,
    )
    return spent_micros


async def _charge_hold(tx: AccountTransaction, charge: Charge, now: datetime) -> int | None:
    """Returns the amount paid from the hold, or None if the hold is not open."""
    spent_micros: int | None = await tx.fetchval(
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
            RETURNING b.allowance + b.topup AS available
        )
        INSERT INTO entries (account_id, id, kind, key, at, task_id, run, step, model,
            price_version, cost, estimated, held_allowance, held_topup, spent, available_after)
        SELECT $1, $6, 'charge', $7, $8, $2, $3, $4, $9, $10, $5, $11, -h.allowance, -h.topup,
            h.allowance + h.topup, moved.available FROM h, moved
        RETURNING spent
        """,
        tx.account_id,
        charge.run_id.task_id,
        charge.run_id.run,
        charge.step,
        charge.cost_micros,
        new_uuid(),
        _charge_key(charge),
        now,
        charge.model,
        charge.price_version,
        charge.estimated,
    )
    return spent_micros


def _charge_key(charge: Charge) -> str:
    return f"charge/{charge.run_id}/{charge.step}"


async def _charge_late(tx: AccountTransaction, charge: Charge, now: datetime) -> int:
    """Pays for a call whose run has ended. Returns the amount charged."""
    released = await tx.fetchrow(
        """
        SELECT allowance, topup,
               EXISTS (SELECT FROM entries WHERE account_id = $1 AND key = $4 AND granted > 0)
                   AS expired
        FROM holds WHERE account_id = $1 AND task_id = $2 AND run = $3
        FOR NO KEY UPDATE
        """,
        tx.account_id,
        charge.run_id.task_id,
        charge.run_id.run,
        release_key(charge.run_id),
    )
    balance = await lock_balance(tx)
    released_micros = released["allowance"] + released["topup"] if released else 0
    due_micros = min(charge.cost_micros, released_micros)
    # The allowance of a past month expired when the run released it.
    from_expired = min(released["allowance"], due_micros) if released and released["expired"] else 0
    from_allowance = min(balance.allowance, due_micros - from_expired)
    from_topup = min(balance.usable_topup, due_micros - from_expired - from_allowance)
    entry = Entry(
        "charge",
        _charge_key(charge),
        allowance=-from_allowance,
        topup=-from_topup,
        owed=-(due_micros - from_expired - from_allowance - from_topup),
        granted=-from_expired,
        spent=due_micros,
        charge=charge,
        at=now,
    )
    await add_entry(tx, entry, used_micros=from_allowance)
    await alerts.report(tx)
    await alerts.report_depleted(tx)
    if released:
        released_allowance = min(released["allowance"], due_micros)
        await tx.execute(
            """
            UPDATE holds SET allowance = allowance - $4, topup = topup - $5, charged = charged + $6
            WHERE account_id = $1 AND task_id = $2 AND run = $3
            """,
            tx.account_id,
            charge.run_id.task_id,
            charge.run_id.run,
            released_allowance,
            due_micros - released_allowance,
            due_micros,
        )
    return due_micros
