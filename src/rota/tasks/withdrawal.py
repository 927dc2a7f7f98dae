"""Takes back the approvals of users who can no longer approve, in reviews that are still open."""

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import review_items, review_queries


async def withdraw_approvals(tx: AccountTransaction) -> None:
    """Somebody else decides these items again. A review that was decided stays as it is."""
    # A decision locks the account before its review.
    await journal.lock_account(tx)
    policy = await accounts.policy(tx)
    # The user of a personal account has its ID, and can always approve.
    users = await members.approver_ids(tx, anyone=policy.anyone_approves) | {tx.account_id}
    approvers = {ids.to_wire("user", user_id) for user_id in users}
    for task_id, review in (await review_queries.pending_with_decisions(tx)).items():
        items = review_items.withdraw(review, approvers)
        if items != review.items:
            await review_queries.save_items(tx, task_id, items)
