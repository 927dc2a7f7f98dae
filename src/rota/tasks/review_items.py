"""The items of a review: single calls or an output, and what was decided about each of them."""

from collections.abc import Collection, Sequence
from typing import Any

from rota.platform import clock
from rota.platform.canonical import canonical_json, digest
from rota.tasks import seals
from rota.tasks.edits import CheckedEdits, NotChecked
from rota.tasks.errors import InvalidArguments, ItemDecided, ItemNamedTwice, ItemsNotPending
from rota.tasks.model import Actor, ItemDecision, Review, ReviewItem, Task
from rota.tasks.questions import is_question
from rota.tasks.review_item_schemas import Decision

Items = list[ReviewItem]


def edited_by_decider(item: ReviewItem) -> bool:
    """Whether whoever approved the item also changed it. Then nobody else has seen the change."""
    return bool(item.get("edited")) and item.get("editedBy") is None


def is_same(item: ReviewItem, decision: Decision) -> bool:
    """Whether an item was approved with exactly the arguments of this decision."""
    if item["decision"] != "approved":
        return False
    if decision.arguments is None:
        return not edited_by_decider(item)
    if "sealed" not in item:  # It was made by an earlier version.
        return canonical_json(item["arguments"]) == canonical_json(decision.arguments)
    sealed = seals.text_of(item)
    return seals.with_arguments(sealed, decision.arguments) == sealed


def approve_items(
    review: Review,
    decisions: Sequence[Decision] | None,
    checked: CheckedEdits,
    by: Actor,
) -> Items:
    """The items after approving the named ones, or all pending ones if none is named.

    The approval is valid only for the arguments that the returned item has. Raises NotChecked if
    one has edited arguments that were not checked.
    """
    if decisions is None:
        return [_decide(item, "approved", by) for item in review.items]
    wanted = {decision.id: decision for decision in decisions}
    if len(wanted) < len(decisions):
        raise ItemNamedTwice
    if unknown := sorted(wanted.keys() - {item["id"] for item in review.items}):
        raise ItemsNotPending(unknown)
    problems = checked.problems if checked.number == review.number else {}
    return [
        _approve_item(item, wanted[item["id"]], problems, by) if item["id"] in wanted else item
        for item in review.items
    ]


def _approve_item(
    item: ReviewItem, decision: Decision, problems: dict[str, list[str]], by: Actor
) -> ReviewItem:
    if item["decision"] is None:
        return _decide(_edit(item, decision.arguments, problems), "approved", by)
    if is_same(item, decision):
        return item
    raise ItemDecided(item)


def edited_items(review: Review, approved: Items, by: Actor) -> Items:
    """The items for a second person, if an approval changes arguments: the changed ones wait, and
    the others are as they were. Empty if it changes none. An answer to a question does
    not count as a change."""
    items: Items = [
        {**_without_decision(after), "editedBy": by}
        if _has_other_arguments(before, after) and not is_question(before)
        else before
        for before, after in zip(review.items, approved, strict=True)
    ]
    return items if items != review.items else []


def _has_other_arguments(before: ReviewItem, after: ReviewItem) -> bool:
    if "sealed" not in before:  # It was made by an earlier version.
        return canonical_json(before["arguments"]) != canonical_json(after["arguments"])
    # The database may have changed how a number in `arguments` is written.
    return before["sealed"] != after["sealed"]


def reject_items(review: Review, by: Actor) -> Items:
    """The items after rejecting all pending ones, and the calls that rules cover: none has started,
    and the person does not want what they belong to."""
    return [
        _decide(_without_decision(item) if _is_by_rule(item) else item, "rejected", by)
        for item in review.items
    ]


def withdraw(review: Review, approvers: Collection[str]) -> Items:
    """The items after taking back what users other than these (`user_…`) approved."""
    return [
        item if decider(item) is None or decider(item) in approvers else _undecide(review, item)
        for item in review.items
    ]


def subject(review: Review, items: Items) -> dict[str, Any]:
    """What a new review with these items is about, in place of this one. An edit that is part of a
    decision is left out, so that it can be taken back with the decision."""
    return seals.items(
        [
            {**item, "sealed": seals.item(review.sealed, item["id"])}
            if edited_by_decider(item) or "sealed" not in item
            else item
            for item in items
        ]
    )


def decider(item: ReviewItem) -> str | None:
    """The user who decided, if one did. What a rule approved does not wait: whether the rule still
    works is checked at the start."""
    by = item["decidedBy"]
    if by is None or isinstance(by, str):  # Earlier versions stored only the ID.
        return by
    return None if _is_by_rule(item) else by["userId"]


def _is_by_rule(item: ReviewItem) -> bool:
    by = item["decidedBy"]
    return by is not None and not isinstance(by, str) and by["via"] == "rule"


def all_decided(items: Items) -> bool:
    return all(item["decision"] is not None for item in items)


def output_of(task: Task, item: ReviewItem) -> str:
    """The output that was approved, exactly as it is sealed. With a schema, it is JSON."""
    if task.output_schema is None:
        assert item["arguments"] is not None
        return str(item["arguments"]["output"])
    return seals.output_of(seals.text_of(item))


def _edit(
    item: ReviewItem, arguments: dict[str, Any] | None, problems: dict[str, list[str]]
) -> ReviewItem:
    if arguments is None:
        return item
    if item["id"] not in problems:
        raise NotChecked
    if found := problems[item["id"]]:
        raise InvalidArguments(item["id"], found)
    edited: ReviewItem = {**item, "arguments": arguments, "edited": True}
    if "sealed" not in item:  # It was made by an earlier version.
        return edited
    sealed = seals.with_arguments(seals.text_of(item), arguments)
    # Arguments that are sent back unchanged are not an edit.
    if sealed == item["sealed"]:
        return item
    return {**edited, "sealed": sealed, "digest": digest(sealed)}


def _decide(item: ReviewItem, decision: ItemDecision, by: Actor) -> ReviewItem:
    if item["decision"] is not None:
        return item
    return {
        **item,
        "decision": decision,
        "decidedBy": by,
        "decidedAt": clock.to_wire(clock.now()),
    }


def _without_decision(item: ReviewItem) -> ReviewItem:
    return {**item, "decision": None, "decidedBy": None, "decidedAt": None}


def _undecide(review: Review, item: ReviewItem) -> ReviewItem:
    undecided = _without_decision(item)
    if not edited_by_decider(item) or "sealed" not in item:
        return undecided
    # The edit is part of the decision. Who decides now may have seen only the first arguments.
    sealed = seals.item(review.sealed, item["id"])
    return {
        **undecided,
        "arguments": seals.arguments_of(sealed),
        "sealed": sealed,
        "digest": digest(sealed),
        "edited": False,
    }
