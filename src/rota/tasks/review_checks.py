"""Whether a decision about a review is valid: about what was shown, in time and not repeated."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from prometheus_client import Counter

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.auth.caller import Caller
from rota.mcp import queries as mcp
from rota.platform import clock, ids, membership
from rota.platform.canonical import canonical_json, digest
from rota.platform.db import AccountReader, AccountTransaction
from rota.tasks import review_items, review_queries, review_schemas, shaping
from rota.tasks.errors import (
    DefinitionsNotAccepted,
    NotWaiting,
    ReviewStale,
    ServersDisconnected,
    ShapedByCaller,
)
from rota.tasks.model import (
    Actor,
    Credential,
    ItemDecision,
    Review,
    ReviewAnswer,
    Task,
    accepted_definition,
)
from rota.tasks.review_items import Items
from rota.tasks.review_reading import TaskReviews
from rota.tasks.review_schemas import ApproveTask, RejectTask, ReviewRef

REFUSED = Counter(
    "rota_second_person_refusals_total",
    "Approvals that were refused because the caller shaped what was approved.",
)

# A caller who decides again this soon repeats the decision: a retry, or a double click.
REPEAT_TIME = timedelta(seconds=10)


async def check_approver(tx: AccountTransaction) -> None:
    """Refuses a user who could approve when the transaction began, and cannot any more.

    The account must be locked. The transaction keeps the membership as it is, but not the policy:
    until the lock, `anyone` can become `named`.
    """
    await membership.require(tx, "approve")


async def decider(tx: AccountReader, caller: Caller) -> Actor:
    """Who decides, and with which credential."""
    return {
        "userId": ids.to_wire("user", caller.user_id),
        "name": await accounts.own_name(tx),
        "via": "session" if caller.key_id is None else "key",
        "keyId": ids.to_wire("key", caller.key_id) if caller.key_id else None,
    }


def credential(by: Actor) -> Credential:
    """What a review stores beside the user's ID."""
    return {"name": by["name"], "via": by["via"], "keyId": by["keyId"]}


def check_shown(found: TaskReviews, shown: ReviewRef | None) -> None:
    """Refuses a decision that is not about the newest review that people decide."""
    if shown is not None and not _is_shown(for_people(found.reviews), shown):
        raise ReviewStale(wire(found))


def for_people(reviews: list[Review]) -> list[Review]:
    """Without the records of calls that a rule approved. Nobody is asked about those."""
    return [each for each in reviews if not each.decided_with or each.decided_with["via"] != "rule"]


def _is_shown(reviews: list[Review], shown: ReviewRef) -> bool:
    newest = reviews[0] if reviews else None
    return newest is not None and (newest.number, newest.digest) == (shown.number, shown.digest)


def check_not_expired(found: TaskReviews) -> None:
    """Refuses a decision that comes too late, also before the sweep closes the review."""
    now, deadline = clock.now(), found.task.deadline
    if found.reviews[0].expires_at <= now or (deadline is not None and deadline <= now):
        raise NotWaiting(found.task, wire(found))


async def check_connected(tx: AccountReader, review: Review, named: Sequence[str]) -> None:
    """Refuses the approval of a call whose tool server was disconnected: it cannot be made, also
    if another server has the same name now."""
    servers = {
        server_id: str(item["server"])
        for item in review.items
        if item["decision"] is None and (not named or item["id"] in named)
        if (server_id := ids.from_wire("mcp", item.get("serverId") or "")) is not None
    }
    connected = await mcp.revisions(tx, list(servers)) if servers else {}
    missing = {name for server_id, name in servers.items() if server_id not in connected}
    if missing:
        raise ServersDisconnected(sorted(missing))


async def check_second_person(
    tx: AccountReader, found: TaskReviews, named: Sequence[str], by: Actor
) -> None:
    """Refuses the approval of what the caller shaped, if the review needs a second person.

    What the caller has approved already may be approved again. An answer that was given with it
    shapes only what comes later, and the first response may be lost.
    """
    if found.second_person is None:
        return
    review = found.reviews[0]
    pending = [item for item in review.items if item["decision"] is None]
    items = [item for item in review.items if item["id"] in named] or pending or review.items
    items = [item for item in items if item["decidedBy"] != by]
    how = found.second_person.why_not(review, items, found.definitions)
    if how:
        REFUSED.inc()
        raise ShapedByCaller(how, others=await _can_others_approve(tx, found, items))


def check_accepted(found: TaskReviews, named: Sequence[str]) -> None:
    """Refuses the approval of a call with a definition that is not accepted, if the review needs a
    second person. Else the same person could approve the call and then accept the definition."""
    if found.second_person is None:
        return
    tools = {
        f"{item['server']}/{item['tool']}"
        for item in found.reviews[0].items
        if item["decision"] is None
        and (not named or item["id"] in named)
        and (shown := item.get("definitionHash")) is not None
        and (
            (accepted := accepted_definition(item, found.definitions)) is None
            or accepted.hash != shown
        )
    }
    if tools:
        raise DefinitionsNotAccepted(sorted(tools))


async def _can_others_approve(tx: AccountReader, found: TaskReviews, items: Items) -> bool:
    """Whether the account has an approver who shaped none of this."""
    policy = await accounts.policy(tx)
    left = await members.approver_ids(tx, anyone=policy.anyone_approves)
    shapers = await shaping.shapers(tx, found.task.id)
    accepted = [
        definition.shapers
        for item in items
        if (definition := accepted_definition(item, found.definitions))
    ]
    return bool(left - set(shapers) - set().union(*accepted))


def check_edits_seen(found: TaskReviews, by: Actor) -> None:
    """Refuses to approve all at once if another person has changed one of the calls."""
    for item in found.reviews[0].items:
        if review_items.edited_by_decider(item) and item["decidedBy"] != by:
            raise ReviewStale(wire(found))


def check_not_repeated(
    found: TaskReviews,
    by: Actor,
    decision: ItemDecision,
    items: Sequence[str] = (),
) -> None:
    """Refuses a repeated decision that would decide a review opened after the first one.

    A decision that names other items than the earlier one is a new decision.
    """
    for answer in (each for review in found.reviews[1:] for each in _recent_answers(review)):
        if (answer["by"], answer["decision"]) != (by, decision):
            continue
        if not items or not answer["items"] or set(items) & set(answer["items"]):
            raise ReviewStale(wire(found))


def _recent_answers(review: Review) -> list[ReviewAnswer]:
    since = clock.to_wire(clock.now() - REPEAT_TIME)
    return [answer for answer in review.answers if answer["at"] > since]


async def add_answer(
    tx: AccountTransaction,
    task: Task,
    review: Review,
    by: Actor,
    decision: ItemDecision,
    items: Sequence[str] = (),
) -> None:
    """Stores a decision that was accepted, also if another one was first."""
    at = clock.to_wire(clock.now())
    answer: ReviewAnswer = {"by": by, "decision": decision, "items": list(items), "at": at}
    answers = [*_recent_answers(review), answer]
    await review_queries.save_answers(tx, task.id, review.number, answers)
    decided = {"number": review.number, "digest": review.digest, "items": list(items)}
    tx.record(f"review.{decision}", decided, ids.to_wire("task", task.id))


async def add_edit(
    tx: AccountTransaction, task: Task, review: Review, by: Actor, body: ApproveTask
) -> None:
    """Stores that these decisions changed the review, for `is_repeated_edit`."""
    at = clock.to_wire(clock.now())
    answer: ReviewAnswer = {
        "by": by,
        "decision": "edited",
        "items": [],
        "edits": _edits(body),
        "at": at,
    }
    answers = [*_recent_answers(review), answer]
    await review_queries.save_answers(tx, task.id, review.number, answers)


def is_repeated_edit(found: TaskReviews, by: Actor, body: ApproveTask) -> bool:
    """Whether the caller has just opened the newest review, with the very same decisions."""
    before = found.reviews[1:2]
    if not before or (body.review is not None and not _is_shown(before, body.review)):
        return False
    recent = [each for each in _recent_answers(before[0]) if each["decision"] == "edited"]
    return any((each["by"], each["edits"]) == (by, _edits(body)) for each in recent)


def _edits(body: ApproveTask) -> str:
    """What the decisions say, in a form that can be compared."""
    decisions = [each.model_dump(mode="json") for each in body.decisions or ()]
    return digest(canonical_json(decisions))


def wire(found: TaskReviews) -> dict[str, Any]:
    return review_schemas.Review.of(found).model_dump(mode="json", by_alias=True)


def was_approved(task: Task, reviews: list[Review], body: ApproveTask) -> bool:
    """Whether the newest of these reviews was approved with the very same decisions."""
    if not reviews:
        return False
    if body.review is None and task.status in ("CANCELLED", "FAILED"):
        return False  # Something else has happened since, and the caller may not know it.
    if body.review is not None and not _is_shown(reviews, body.review):
        return False
    items = {item["id"]: item for item in reviews[0].items}
    if body.decisions is None:
        edited = any(map(review_items.edited_by_decider, items.values()))
        return reviews[0].state == "approved" and not edited
    return all(
        decision.id in items and review_items.is_same(items[decision.id], decision)
        for decision in body.decisions
    )


def was_rejected(task: Task, reviews: list[Review], body: RejectTask) -> bool:
    if not reviews or reviews[0].state != "rejected" or reviews[0].resumed != body.resume:
        return False
    if body.review is not None:
        return _is_shown(reviews, body.review)
    return task.status != "FAILED" and (task.status == "CANCELLED") != body.resume
