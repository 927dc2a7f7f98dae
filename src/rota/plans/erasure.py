"""Ends the subscriptions of an account that is erased."""

from uuid import UUID

from rota.payments.port import Processor
from rota.platform.db import AccountReader, AccountTransaction, Database


async def _live(tx: AccountReader) -> list[str]:
    rows = await tx.fetch(
        """
        SELECT processor_id FROM subscriptions WHERE account_id = $1 AND status <> 'CANCELLED'
        """,
        tx.account_id,
    )
    return [row["processor_id"] for row in rows]


async def _mark_ended(tx: AccountTransaction, processor_id: str) -> None:
    await tx.execute(
        """
        UPDATE subscriptions SET status = 'CANCELLED', entitled = false, due_at = NULL,
            cancel_at_period_end = false, downgrade_target = NULL, downgrade_seats = NULL,
            updated_at = now()
        WHERE account_id = $1 AND processor_id = $2
        """,
        tx.account_id,
        processor_id,
    )
    tx.record("subscription.ended", {"subscriptionId": processor_id})


async def end_subscriptions(db: Database, processor: Processor, account_id: UUID) -> None:
    """Ends every live subscription at the processor, then here. Raises `PaymentFailed`, and can be
    repeated."""
    async with db.read(account_id) as tx:
        live = await _live(tx)
    for processor_id in live:
        await processor.end(processor_id)
        async with db.write(account_id) as tx:
            await _mark_ended(tx, processor_id)
