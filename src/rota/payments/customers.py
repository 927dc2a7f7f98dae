"""The processor's customer ID of an account, so that all its payments have one customer."""

from rota.platform.db import AccountReader, AccountTransaction


async def find(tx: AccountReader) -> str | None:
    found: str | None = await tx.fetchval(
        "SELECT customer_id FROM customers WHERE account_id = $1", tx.account_id
    )
    return found


async def remember(tx: AccountTransaction, customer_id: str) -> None:
    changed = await tx.fetchval(
        """
        INSERT INTO customers AS c (account_id, customer_id) VALUES ($1, $2)
        ON CONFLICT (account_id) DO UPDATE SET customer_id = excluded.customer_id
        WHERE c.customer_id <> excluded.customer_id
        RETURNING true
        """,
        tx.account_id,
        customer_id,
    )
    if changed:
        tx.record("payments.customer_set", {})
