"""Checks edited arguments of a decision against their schemas, before the account is locked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from rota.platform.canonical import canonical_json
from rota.platform.db import Database
from rota.platform.schema import SchemaChecks
from rota.tasks import queries, review_queries
from rota.tasks.review_item_schemas import Decision
from rota.tasks.schemas import MAX_TEXT


@dataclass(frozen=True, slots=True)
class CheckedEdits:
    """The problems of edited arguments, by the IDs of their items.

    They are valid for the review with this number only. Its items keep their schemas.
    """

    number: int | None = None
    problems: dict[str, list[str]] = field(default_factory=dict)


class NotChecked(Exception):
    """The pending review is not the one whose edits were checked."""


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
        task = await queries.find(tx, task_id)
        review = (await review_queries.pending(tx, [task_id])).get(task_id)
    if task is None or review is None:
        return CheckedEdits()
    checked = CheckedEdits(review.number)
    for item in review.items:
        if item["decision"] is not None or item["id"] not in edits:
            continue
        problems: list[str] = []
        if item["argumentsSchema"] is not None:
            named = "the schema of the output" if item["tool"] is None else "the tool's schema"
            verdict = await checks.check(
                account_id, item["argumentsSchema"], edits[item["id"]], named=named
            )
            problems = verdict.problems
        if review.gate == "output" and task.output_schema is not None:
            problems = problems or _problems_with_size(edits[item["id"]])
        checked.problems[item["id"]] = problems
        if problems:
            break  # The decision fails here, so the other edits are not reached.
    return checked


def _problems_with_size(data: Mapping[str, Any]) -> list[str]:
    """A structured output has the limit of every output."""
    length = len(canonical_json(data))
    return [f"has {length} characters as JSON, and at most {MAX_TEXT} are allowed"] * (
        length > MAX_TEXT
    )
