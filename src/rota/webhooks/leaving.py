"""Disables the webhooks of a user who leaves the account, or can no longer manage it."""

from uuid import UUID

from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.webhooks import queries
from rota.webhooks.events import record


async def disable_webhooks_of(tx: AccountTransaction, user_id: UUID, by: UUID | None) -> None:
    """Disables webhooks whose URL the user chose: the endpoint may be the user's own. A member who
    can manage webhooks can enable them again. `by`: who removes or demotes the user."""
    await journal.lock_account(tx)
    for webhook_id in await queries.disable_of(tx, user_id):
        await record(
            tx,
            "webhook.disabled",
            webhook_id,
            by=ids.to_wire("user", by) if by else None,
            reason="member_removed",
            error=None,
        )
