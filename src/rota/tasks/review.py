"""What a person decides about the items of a review: all at once, or some of them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rota.platform import clock, ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.schema import problems
from rota.tasks.model import Review
from rota.tasks.schemas import Decision

Items = list[dict[str, Any]]


def approve(review: Review, decisions: Sequence[Decision] | None, user_id: UUID) -> Items:
    """The items after approving those named, or all that wait where none is named.

    An approval holds for exactly the arguments that the item then shows.
    """
    if decisions is None:
        return [_decided(item, "approved", user_id) for item in review.items]
    edits = {decision.id: decision.arguments for decision in decisions}
    waiting = {item["id"] for item in review.items if item["decision"] is None}
    if unknown := sorted(edits.keys() - waiting):
        raise ValidationFailed.of(
            FieldError("decisions", f"no such item waits: {', '.join(unknown)}")
        )
    return [
        _decided(_edited(item, edits[item["id"]]), "approved", user_id)
        if item["id"] in edits
        else item
        for item in review.items
    ]


def reject(review: Review, user_id: UUID | None) -> Items:
    """The items after rejecting all that still wait."""
    return [_decided(item, "rejected", user_id) for item in review.items]


def still_waits(items: Items) -> bool:
    return any(item["decision"] is None for item in items)


def _edited(item: dict[str, Any], arguments: dict[str, Any] | None) -> dict[str, Any]:
    if arguments is None:
        return item
    schema = item["argumentsSchema"]
    if schema is not None and (found := problems(schema, arguments)):
        field = f"decisions.{item['id']}.arguments"
        raise ValidationFailed.of(*(FieldError(field, problem) for problem in found))
    return item | {"arguments": arguments}


def _decided(item: dict[str, Any], decision: str, user_id: UUID | None) -> dict[str, Any]:
    if item["decision"] is not None:
        return item
    return item | {
        "decision": decision,
        "decidedBy": ids.to_wire("user", user_id) if user_id else None,
        "decidedAt": clock.to_wire(clock.now()),
    }
