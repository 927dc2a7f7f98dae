"""Second person: nobody approves what they shaped, in accounts with this policy.

Who shaped a task is recorded always, because the policy can be turned on later. A review that was
opened under the policy keeps it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from prometheus_client import Counter

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.auth.errors import ApproverRequired
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks.errors import ShapedByCaller
from rota.tasks.model import Review, Task
from rota.tasks.questions import is_question
from rota.tasks.review_reading import Definitions

REFUSED = Counter(
    "rota_decisions_refused_total",
    "Approvals and rejections that a policy refused, by reason.",
    ["reason"],
)

# How a user shapes a task, besides creating it.
How = Literal["edited", "retried", "scheduled", "answered", "instructed", "madeRule"]
# The fields of a task that are not shaped: what a client may change about waiting work.
_NOT_SHAPED = ("priority", "project_id", "updated_at")


async def record(
    tx: AccountTransaction, task_id: UUID, how: How, users: Iterable[UUID] | None = None
) -> None:
    """Records who shaped the task: the transaction's user, or these."""
    # The only user of a personal account has the ID of the account. There is no second person.
    shapers = ({tx.user_id} if users is None else set(users)) - {tx.account_id}
    if not shapers:
        return
    await tx.execute(
        """
        INSERT INTO task_shapers (account_id, task_id, user_id, how)
        SELECT $1, $2, u.id, $4 FROM unnest($3::uuid[]) AS u (id)
        ON CONFLICT DO NOTHING
        """,
        tx.account_id,
        task_id,
        sorted(shapers),
        how,
    )


def is_edit(before: Task, after: Task) -> bool:
    """Whether a PATCH changes more than the place of a task in the queue and in its project."""
    unshaped = {name: getattr(before, name) for name in _NOT_SHAPED}
    return replace(after, **unshaped) != before


async def shapers(tx: AccountReader, task_id: UUID) -> dict[UUID, set[str]]:
    """Everyone who shaped a task, a task above it, or the task that one of them was forked from,
    and how."""
    rows = await tx.fetch(
        """
        WITH RECURSIVE chain (id, parent_id, origin_id) AS (
            SELECT id, parent_task_id, forked_from FROM tasks WHERE account_id = $1 AND id = $2
            UNION
            SELECT t.id, t.parent_task_id, t.forked_from FROM chain c
            JOIN tasks t ON t.account_id = $1 AND t.id = ANY (ARRAY[c.parent_id, c.origin_id])
        ), wanted AS (SELECT ARRAY(SELECT id FROM chain) AS ids)
        SELECT created_by AS user_id, 'created' AS how FROM tasks
        WHERE account_id = $1 AND id = ANY ((SELECT ids FROM wanted)::uuid[])
        UNION
        SELECT user_id, how FROM task_shapers
        WHERE account_id = $1 AND task_id = ANY ((SELECT ids FROM wanted)::uuid[])
        """,
        tx.account_id,
        task_id,
    )
    found: dict[UUID, set[str]] = {}
    for row in rows:
        found.setdefault(row["user_id"], set()).add(row["how"])
    return found


async def needs_second_person(tx: AccountReader, review: Review | None = None) -> bool:
    """Whether the account has the policy, or had it when the review was opened."""
    if review is not None and review.second_person:
        return True
    return (await accounts.policy(tx)).second_person


async def check_approver(tx: AccountReader) -> None:
    """Refuses a user who cannot approve any more. The account must be locked: the right can have
    been taken after the request was authenticated."""
    if tx.user_id not in await members.approving_since(tx, [tx.user_id]):
        REFUSED.labels("approver").inc()
        raise ApproverRequired


async def check_second_person(
    tx: AccountReader,
    task: Task,
    items: Sequence[Mapping[str, Any]],
    definitions: Definitions,
    *,
    is_gate_without_items: bool,
) -> None:
    """Refuses to approve these items if the transaction's user shaped them. An answer to a question
    of the agent approves nothing."""
    approved = [item for item in items if not is_question(item)]
    if not approved and not is_gate_without_items:
        return
    how = (await shapers(tx, task.id)).get(tx.user_id, set())
    how = how | accepted_tool(tx.user_id, approved, definitions)
    if how:
        REFUSED.labels("second_person").inc()
        raise ShapedByCaller(how)


def accepted_tool(
    user_id: UUID, items: Sequence[Mapping[str, Any]], definitions: Definitions
) -> set[str]:
    """Whether the user accepted the definition of one of the tools that are called."""
    for item in items:
        accepted = definitions.get((item.get("serverId") or "", item["tool"] or ""))
        if accepted and accepted.acceptance and accepted.acceptance.user_id == user_id:
            return {"acceptedTool"}
    return set()
