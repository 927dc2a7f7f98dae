"""Deletes the tool servers of an account that is erased, with their credentials."""

from rota.platform.db import AccountTransaction


async def delete_servers(tx: AccountTransaction) -> None:
    await tx.execute("DELETE FROM mcp_servers WHERE account_id = $1", tx.account_id)
