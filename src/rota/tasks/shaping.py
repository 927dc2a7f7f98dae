"""Second person: in accounts with this policy, users cannot approve what they shaped.

Who shaped a task is always recorded, because the policy can be turned on later. A review that was
opened under the policy keeps it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from rota.accounts import queries as accounts
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks.model import Definitions, Review, ReviewItem, Task, accepted_definition
from rota.tasks.questions import is_question

# How a user shapes a task, besides creating it.
How = Literal["edited", "retried", "scheduled", "answered", "instructed", "madeRule"]
# How a user shapes what waits for approval.
Shaping = Literal[How, "created", "acceptedTool"]
# The fields of a task that are not shaped: what a client may change about waiting work.
_NOT_SHAPED = ("priority", "project_id", "updated_at")


async def record(
    tx: AccountTransaction, task_id: UUID, how: How, users: Iterable[UUID] | None = None
) -> None:
    """Records who shaped the task: the transaction's user, or these."""
    # The only user of a personal account has the ID of the account: nobody else could approve.
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


async def hand_up(tx: AccountTransaction, task_id: UUID, parent_id: UUID) -> None:
    """Who shaped a delegated task has shaped its parent too, whose agent works with the result."""
    await tx.execute(
        """
        INSERT INTO task_shapers (account_id, task_id, user_id, how)
        SELECT account_id, $3, user_id, how FROM task_shapers
        WHERE account_id = $1 AND task_id = $2
        ON CONFLICT DO NOTHING
        """,
        tx.account_id,
        task_id,
        parent_id,
    )


def is_edit(before: Task, after: Task) -> bool:
    """Whether a PATCH changes more than the place of a task in the queue and in its project."""
    unshaped = {name: getattr(before, name) for name in _NOT_SHAPED}
    return replace(after, **unshaped) != before


async def shapers(tx: AccountReader, task_id: UUID) -> dict[UUID, set[str]]:
    """Everyone who shaped the task, and how."""
    return (await shapers_of(tx, [task_id])).get(task_id, {})


async def shapers_of(
    tx: AccountReader, task_ids: Sequence[UUID]
) -> dict[UUID, dict[UUID, set[str]]]:
    """Everyone who shaped one of these tasks, a task above it, or the task that one of them was
    forked from, and how."""
    rows = await tx.fetch(
        """
        WITH RECURSIVE chain (root, id, parent_id, origin_id) AS (
            SELECT id, id, parent_task_id, forked_from FROM tasks
            WHERE account_id = $1 AND id = ANY ($2)
            UNION
            SELECT c.root, t.id, t.parent_task_id, t.forked_from FROM chain c
            JOIN tasks t ON t.account_id = $1 AND t.id = ANY (ARRAY[c.parent_id, c.origin_id])
        ), shaped AS (
            SELECT id, created_by AS user_id, 'created' AS how FROM tasks
            WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM chain))
            UNION ALL
            SELECT task_id, user_id, how FROM task_shapers
            WHERE account_id = $1 AND task_id = ANY (ARRAY(SELECT id FROM chain))
        )
        SELECT DISTINCT c.root, s.user_id, s.how FROM chain c JOIN shaped s USING (id)
        """,
        tx.account_id,
        list(task_ids),
    )
    found: dict[UUID, dict[UUID, set[str]]] = {}
    for row in rows:
        found.setdefault(row["root"], {}).setdefault(row["user_id"], set()).add(row["how"])
    return found


@dataclass(frozen=True, slots=True)
class SecondPerson:
    """A review that nobody can approve who shaped it, as one user sees it."""

    user_id: UUID
    # How the user shaped the task.
    how: frozenset[str]

    def why_not(
        self, review: Review, items: Sequence[ReviewItem], definitions: Definitions
    ) -> set[str]:
        """How the user shaped these items of the review. Empty: the user can approve them. An
        answer to a question of the agent approves nothing."""
        approved = [item for item in items if not is_question(item)]
        if review.items and not approved:
            return set()
        return _accepted_tool(self.user_id, approved, definitions) | self.how


async def second_persons(
    tx: AccountReader, reviews: Mapping[UUID, Review]
) -> dict[UUID, SecondPerson]:
    """Those of these reviews that need a second person, by task: the account has the policy, or
    had it when the review was opened. Exact if the transaction has locked the account."""
    if tx.account_id == tx.user_id or not reviews:
        return {}
    policy = await accounts.policy(tx)
    tasks = [
        task_id
        for task_id, review in reviews.items()
        if policy.second_person or review.second_person
    ]
    shaped = await shapers_of(tx, tasks) if tasks else {}
    return {
        task_id: SecondPerson(tx.user_id, frozenset(shaped.get(task_id, {}).get(tx.user_id, ())))
        for task_id in tasks
    }


def _accepted_tool(
    user_id: UUID, items: Sequence[ReviewItem], definitions: Definitions
) -> set[str]:
    """Whether the user accepted one of the tools that are called, or shaped its server."""
    for item in items:
        accepted = accepted_definition(item, definitions)
        if accepted and user_id in accepted.shapers:
            return {"acceptedTool"}
    return set()
