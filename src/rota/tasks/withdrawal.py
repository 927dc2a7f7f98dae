"""Takes back the approvals of a user who leaves the account, in reviews that are still open."""

from uuid import UUID

from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import review_items, review_queries


async def withdraw_approvals_of(tx: AccountTransaction, user_id: UUID) -> None:
    """Somebody else decides these items again. A review that was decided stays as it is."""
    # A decision locks the account before its review.
    await journal.lock_account(tx)
    user = ids.to_wire("user", user_id)
    for task_id, review in (await review_queries.pending_with_decisions(tx)).items():
        if any(review_items.is_by(item, user) for item in review.items):
            await review_queries.save_items(tx, task_id, review_items.withdraw(review, user))
