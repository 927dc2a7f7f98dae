"""Checks edited arguments of a decision against their schemas, before the account is locked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from rota.platform.db import Database
from rota.platform.schema import SchemaChecks
from rota.tasks import review_queries
from rota.tasks.review_item_schemas import Decision


@dataclass(frozen=True, slots=True)
class CheckedEdits:
    """The problems of edited arguments, by the IDs of their items.

    They are valid for the review with this number only. Its items keep their schemas.
    """

    number: int | None = None
    problems: dict[str, list[str]] = field(default_factory=dict)


class NotChecked(Exception):
    """Another review waits than the one whose edits were checked."""


async def check(
    db: Database,
    checks: SchemaChecks,
    account_id: UUID,
    task_id: UUID | None,
    decisions: Sequence[Decision],
) -> CheckedEdits:
    """Checks the edits of items that are pending. The decision itself reports the problems."""
    edits = {each.id: each.arguments for each in decisions if each.arguments is not None}
    if not edits or task_id is None:
        return CheckedEdits()
    async with db.read(account_id) as tx:
        review = (await review_queries.pending(tx, [task_id])).get(task_id)
    if review is None:
        return CheckedEdits()
    checked = CheckedEdits(review.number)
    for item in review.items:
        if item["decision"] is not None or item["id"] not in edits:
            continue
        problems: list[str] = []
        if item["argumentsSchema"] is not None:
            verdict = await checks.check(account_id, item["argumentsSchema"], edits[item["id"]])
            problems = verdict.problems
        checked.problems[item["id"]] = problems
        if problems:
            break  # The decision fails here, so the other edits are not reached.
    return checked
