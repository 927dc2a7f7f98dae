"""Takes back the approvals of users who can no longer approve, unless their review was decided."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.events import journal
from rota.platform import ids
from rota.platform.db import AccountTransaction
from rota.tasks import gates, queries, review_items, review_queries, seals, transitions

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
        await gates.replace_review(tx, task, subject, items, _REASON, is_side_effect=True)
        data = transitions.event_data(tx, task.status, task.status)
        # The transaction can be that of the user who leaves, also if somebody else removes them.
        await journal.append(tx, "task.updated", data | {"by": None, "fields": ["review"]}, task.id)


async def withdrawn_call(
    tx: AccountTransaction, task_id: UUID, item_ids: Sequence[str]
) -> str | None:
    """The text of an approved call as it was first shown, if its approval no longer counts.

    A review can expire after some of its calls were approved, and a retry makes these. Until the
    review is decided, an approval counts only while the user can approve. The account must be
    locked. `item_ids` are the IDs of the call in the reviews of all its runs.
    """
    reviews = await review_queries.newest_of_items(tx, task_id, item_ids)
    item_id, review = max(reviews.items(), key=lambda found: found[1].number)
    if review.state != "expired":
        return None
    item = next(each for each in review.items if each["id"] == item_id)
    user_id = ids.from_wire("user", review_items.decider(item) or "")
    decided_at = item["decidedAt"]
    if user_id is not None and decided_at is not None:
        approving = await members.approving_since(tx, [user_id])
        joined_at = approving.get(user_id)
        # Who has left and joined again has not approved it as this member.
        if user_id in approving and (
            joined_at is None or joined_at <= datetime.fromisoformat(decided_at)
        ):
            return None
    return seals.item(review.sealed, item_id)
