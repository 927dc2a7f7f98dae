"""A message to a user, before a channel renders it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from rota.notifications.model import Content, Item, QueueId
from rota.notifications.news import SUBJECTS, Line, News
from rota.platform.ids import to_wire
from rota.tasks.summaries import plain

_MAX_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Message:
    # One line: what waits, and which agent wants what.
    subject: str
    heading: str
    # Empty if the user wants no content in messages.
    lines: list[Line]
    # How many things the lines leave out.
    more: int
    # Where the dashboard shows what the message is about. Opening it decides nothing.
    url: str
    action: str
    # The start of all URLs of the service.
    base_url: str
    # Where the user changes what is sent.
    settings_url: str
    # The same for each attempt to send it.
    id: str
    # What related messages have in common: the task.
    thread: str | None = None
    # Where these emails can be turned off without signing in.
    unsubscribe_url: str | None = None

    @property
    def sentence(self) -> str:
        """What the message says above its lines."""
        return f"{self.heading}."


def compose(queue: QueueId, news: News, content: Content, account: str, public_url: str) -> Message:
    """`account` is the name of the account."""
    subject = SUBJECTS[queue.kind]
    total, first = len(news.items), news.lines[0]
    is_one = total == 1
    heading = subject.one if is_one else f"{total} {subject.many}"
    lines = news.lines if content == "full" else []
    title = heading
    if lines and is_one:
        title = plain(": ".join(filter(None, (heading, first.agent, first.text))), _MAX_SUBJECT)
    elif lines:
        title = plain(f"{heading} in {account}", _MAX_SUBJECT)
    home = f"/{to_wire('acct', queue.account_id)}"
    return Message(
        subject=title,
        heading=heading,
        lines=lines,
        more=total - len(lines) if lines else 0,
        url=public_url + (first.path if is_one else home + subject.path),
        action="Review it" if queue.kind == "approval_waiting" and is_one else "Open the dashboard",
        base_url=public_url,
        settings_url=f"{public_url}{home}/settings/notifications",
        id=_id(queue, news.items),
        thread=first.task_id if is_one else None,
    )


def test_message(queue_home: str, public_url: str, unique: str) -> Message:
    """The message of the test button."""
    return Message(
        subject="Test message from Rota",
        heading="This is a test. Notifications from Rota will arrive here",
        lines=[],
        more=0,
        url=public_url + queue_home,
        action="Open the dashboard",
        base_url=public_url,
        settings_url=f"{public_url}{queue_home}/settings/notifications",
        id=unique,
    )


def _id(queue: QueueId, items: Sequence[Item]) -> str:
    about = (f"{item.subject.hex}:{item.notice_id}" for item in items)
    text = "/".join((queue.account_id.hex, queue.user_id.hex, queue.kind, queue.channel, *about))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
