"""Takes back the approvals of users who can no longer approve, in reviews that are still open."""

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import gates, queries, review_items, review_queries, transitions

_REASON = "Somebody who had approved a part of it can no longer approve."


async def withdraw_approvals(tx: AccountTransaction) -> None:
    """Opens new reviews, in which somebody else decides these items. A review that was decided
    stays as it is."""
    # A decision locks the account before its review.
    await journal.lock_account(tx)
    policy = await accounts.policy(tx)
    # The user of a personal account has its ID, and can always approve.
    users = await members.approver_ids(tx, anyone=policy.anyone_approves) | {tx.account_id}
    approvers = {ids.to_wire("user", user_id) for user_id in users}
    for task_id, review in (await review_queries.pending_with_decisions(tx)).items():
        items = review_items.withdraw(review, approvers)
        if items == review.items:
            continue
        # A new one, because an item without the edits of the user is not what people saw.
        task = await queries.get(tx, task_id)
        subject = review_items.subject(review, items)
        await gates.replace_review(tx, task, subject, items, _REASON)
        data = transitions.event_data(tx, task.status, task.status)
        # The transaction can be that of the user who leaves, also if somebody else removes them.
        await journal.append(tx, "task.updated", data | {"by": None, "fields": ["review"]}, task.id)
