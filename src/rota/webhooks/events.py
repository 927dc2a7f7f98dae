"""The events about webhooks."""

from uuid import UUID

from rota.events import journal, notices
from rota.platform import ids
from rota.platform.db import AccountTransaction


async def record(
    tx: AccountTransaction, kind: str, webhook_id: UUID, **data: str | int | None
) -> None:
    """Appends an event about a webhook, and tells those who want to know that it is disabled. `by`
    is the user who caused it: the transaction's, if it is not given."""
    by = ids.to_wire("user", tx.user_id) if tx.user_id.int else None
    data = {"webhookId": ids.to_wire("wh", webhook_id), "by": by, **data}
    await journal.append(tx, kind, data)
    if kind == "webhook.disabled":
        await notices.put(tx, "webhook_disabled", webhook_id)
