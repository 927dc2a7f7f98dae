"""What a queue has to tell its user, as of now.

It is found when the message is sent, not when its cause happened: a review that was decided in the
meantime is left out, and so is one that the user cannot decide.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.auth.rights import Right, has_right
from rota.credits import alerts
from rota.credits.money import usd
from rota.notifications.model import Item, Kind
from rota.platform.db import AccountReader
from rota.platform.ids import to_wire
from rota.platform.telemetry import without_secrets
from rota.tasks import queries as tasks
from rota.tasks import review_queries, shaping, summaries
from rota.tasks.model import Review
from rota.tasks.review_reading import TaskReviews, definitions_of
from rota.tasks.review_schemas import Review as ReviewShape
from rota.webhooks import queries as webhooks
from rota.webhooks.model import DisabledReason

# Of a longer list, a message shows the beginning and counts the rest.
SHOWN = 10
_MAX_NAME = 80
_MAX_TEXT = 200
_WHY_DISABLED: Mapping[DisabledReason, str] = {
    "paused": "A user or a restore of the service disabled it.",
    "failing": "Deliveries failed for three days. Correct the endpoint and enable the webhook.",
    "gone": "The endpoint returned status 410. Enable the webhook if this was a mistake.",
    "member_removed": (
        "The user who set its URL left or lost the right to manage webhooks. Enable it if it is "
        "still needed."
    ),
    "key_ended": (
        "The API key that set its URL was revoked or has expired. Enable it if it is still needed."
    ),
    "restored": (
        "The service was restored from a backup, and the webhook was changed or disabled after the "
        "backup. Check its URL and events, then enable it."
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing in a message. Its texts are one line each, and come from others."""

    text: str
    # The agent that it is about. None: no agent.
    agent: str | None
    # The name of the task, or of the account.
    about: str
    detail: str | None
    # Where the dashboard shows it.
    path: str
    task_id: str | None = None


@dataclass(frozen=True, slots=True)
class News:
    items: list[Item]
    # About the first of the items.
    lines: list[Line]


Find = Callable[[AccountReader, UUID, Sequence[Item]], Awaitable[News]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of notification. To add one, add its name to `rota.events.notices`, an entry here, and
    a call of `notices.put` where it happens."""

    # For one and for several, in the subject of a message.
    one: str
    many: str
    # The heading of a message, and what the settings call it.
    title: str
    # Whether the user who caused it in a session is told, too.
    tells_causer: bool
    # Where the dashboard shows all of them.
    path: str
    find: Find


async def _approvals(tx: AccountReader, user_id: UUID, items: Sequence[Item]) -> News:
    """Reviews that wait now, and that the user can approve under the policy of the account."""
    if not await members.approving_since(tx, [user_id]):
        return News([], [])
    reviews = await review_queries.pending(tx, [item.subject for item in items])
    definitions = await definitions_of(tx, list(reviews.values()))
    second_persons = await shaping.second_persons(tx, reviews)

    def may_approve(task_id: UUID, review: Review) -> bool:
        if (second_person := second_persons.get(task_id)) is None:
            return True
        pending = [item for item in review.items if item["decision"] is None]
        return not second_person.why_not(review, pending or review.items, definitions)

    found = [
        item
        for item in items
        if (review := reviews.get(item.subject)) and may_approve(item.subject, review)
    ]
    lines = []
    for item in found[:SHOWN]:
        task = await tasks.get(tx, item.subject)
        shape = ReviewShape.of(TaskReviews(task, [reviews[item.subject]], definitions))
        wire_id = to_wire("task", task.id)
        lines.append(
            Line(
                text=_plain(shape.summary or task.name, _MAX_TEXT),
                agent=_name(task.agent),
                about=_plain(task.name, _MAX_NAME),
                detail=_without_decision(shape.expires_at, task.deadline),
                path=f"{_account(tx)}/reviews/{wire_id}",
                task_id=wire_id,
            )
        )
    return News(found, lines)


def _without_decision(ends_at: datetime | None, deadline: datetime | None) -> str | None:
    """A task fails at its deadline. A review that expires cancels it."""
    if ends_at is None:
        return None
    ends = "fails" if ends_at == deadline else "is cancelled"
    return f"Without a decision, it {ends} on {ends_at.strftime('%-d %B %Y, %H:%M UTC')}."


async def _failures(tx: AccountReader, user_id: UUID, items: Sequence[Item]) -> News:
    """Tasks that the user created, also with a key or a schedule, and that are still failed."""
    failed = await tasks.failed_among(tx, [item.subject for item in items], user_id)
    found = [item for item in items if item.subject in failed]
    lines = []
    for item in found[:SHOWN]:
        task = await tasks.get(tx, item.subject)
        error = task.error or {}
        wire_id = to_wire("task", task.id)
        lines.append(
            Line(
                text=_plain(task.name, _MAX_NAME),
                agent=_name(task.agent),
                about=_plain(task.name, _MAX_NAME),
                detail=_plain(str(error.get("message") or ""), _MAX_TEXT) or None,
                path=f"{_account(tx)}/tasks/{wire_id}",
                task_id=wire_id,
            )
        )
    return News(found, lines)


async def _balance(tx: AccountReader, user_id: UUID, items: Sequence[Item]) -> News:
    """That the balance is low, for those who can pay."""
    if not await _has_right(tx, user_id, "billing"):
        return News([], [])
    cents = await alerts.low_cents(tx)
    if cents is None:
        return News([], [])
    line = Line(
        text=f"${usd(cents)} is available",
        agent=None,
        about=_plain(await accounts.name(tx), _MAX_NAME),
        detail="Tasks that need more than that do not start. Add money to continue.",
        path=f"{_account(tx)}/money",
    )
    return News(list(items), [line])


async def _webhooks(tx: AccountReader, user_id: UUID, items: Sequence[Item]) -> News:
    """Webhooks that are still disabled, for those who can manage them."""
    found: list[Item] = []
    lines: list[Line] = []
    if not await _has_right(tx, user_id, "webhooks"):
        return News(found, lines)
    for item in items:
        webhook = await webhooks.find(tx, item.subject)
        if webhook is None or webhook.disabled_reason is None:
            continue
        found.append(item)
        lines.append(
            Line(
                text=_plain(webhook.description or urlsplit(webhook.url).hostname or "", _MAX_NAME),
                agent=None,
                about=_plain(await accounts.name(tx), _MAX_NAME),
                detail=_WHY_DISABLED[webhook.disabled_reason],
                path=f"{_account(tx)}/settings/webhooks",
            )
        )
    return News(found, lines[:SHOWN])


async def _has_right(tx: AccountReader, user_id: UUID, right: Right) -> bool:
    if user_id == tx.account_id:
        return True
    member = await members.find(tx, user_id)
    return member is not None and has_right(member.role, member.approver, right)


def _name(agent: str | None) -> str | None:
    return _plain(agent, _MAX_NAME) if agent else None


def _plain(text: str, limit: int) -> str:
    return summaries.plain(without_secrets(text), limit)


def _account(tx: AccountReader) -> str:
    return f"/{to_wire('acct', tx.account_id)}"


SUBJECTS: Mapping[Kind, Subject] = {
    "approval_waiting": Subject(
        one="Approval needed",
        many="approvals needed",
        title="Waiting for your approval",
        tells_causer=False,
        path="",
        find=_approvals,
    ),
    "task_failed": Subject(
        one="Task failed",
        many="tasks failed",
        title="Failed tasks",
        tells_causer=False,
        path="/tasks?status=FAILED",
        find=_failures,
    ),
    "balance_low": Subject(
        one="Balance low",
        many="low-balance alerts",
        title="Low balance",
        tells_causer=True,
        path="/money",
        find=_balance,
    ),
    "webhook_disabled": Subject(
        one="Webhook disabled",
        many="webhooks disabled",
        title="Disabled webhooks",
        tells_causer=False,
        path="/settings/webhooks",
        find=_webhooks,
    ),
}
