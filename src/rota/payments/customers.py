"""What the processor calls an account, so that it pays as the same customer each time."""

from uuid import UUID

from rota.platform.db import ReadConnection, WriteConnection


async def find(connection: ReadConnection, account_id: UUID) -> str | None:
    found: str | None = await connection.fetchval(
        "SELECT customer_id FROM customers WHERE account_id = $1", account_id
    )
    return found


async def remember(connection: WriteConnection, account_id: UUID, customer_id: str) -> None:
    await connection.execute(
        """
        INSERT INTO customers (account_id, customer_id) VALUES ($1, $2)
        ON CONFLICT (account_id) DO UPDATE SET customer_id = excluded.customer_id
        """,
        account_id,
        customer_id,
    )
