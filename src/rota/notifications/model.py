"""What a user wants to be told, and what waits to be sent to the user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from rota.events.notices import KINDS, Kind

__all__ = ["CHANNELS", "KINDS", "Channel", "Kind"]

Channel = Literal["mail", "chat"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
# `minimal`: messages do not name agents, tasks or calls.
Content = Literal["full", "minimal"]
ChatService = Literal["slack", "mattermost", "teams"]


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a user wants to be told about one account, and how."""

    content: Content = "full"
    mail_kinds: tuple[Kind, ...] = ()
    chat_kinds: tuple[Kind, ...] = ()
    chat_service: ChatService | None = None
    sealed_chat_url: bytes | None = None
    # The URL without what is secret in it.
    chat_url_shown: str | None = None
    last_test_at: datetime | None = None

    def kinds(self, channel: Channel) -> tuple[Kind, ...]:
        return self.mail_kinds if channel == "mail" else self.chat_kinds


def seal_context(account_id: UUID, user_id: UUID) -> str:
    return f"notification_settings/{account_id}/{user_id}/sealed_chat_url"


@dataclass(frozen=True, slots=True)
class QueueId:
    """The messages of one kind to one user through one channel."""

    account_id: UUID
    user_id: UUID
    kind: Kind
    channel: Channel


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as its user sees it."""

    kind: Kind
    channel: Channel
    waiting: int
    due_at: datetime | None
    attempts: int
    first_failed_at: datetime | None
    last_sent_at: datetime | None
    failed_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Item:
    """Something that the next message of a queue is about: a task, a webhook or the account."""

    subject: UUID
    notice_id: int
    created_at: datetime
