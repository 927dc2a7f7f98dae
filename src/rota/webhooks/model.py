"""A webhook and its deliveries, as they are stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

DisabledReason = Literal["paused", "failing", "gone", "member_removed", "key_ended", "restored"]
State = Literal["active", "failing", "disabled"]
DeliveryOutcome = Literal["delivered", "failed"]
# What a delivery without an event of the journal has.
TEST_TYPE, TEST_SEQUENCE = "webhook.test", 0
# Of one webhook: the newest and those before it that still sign.
MAX_SECRETS = 10
# For how long a worker keeps a webhook without renewing it.
HOLD_S = 1.5


@dataclass(frozen=True, slots=True)
class Webhook:
    id: UUID
    url: str
    description: str | None
    # None: all types.
    events: list[str] | None
    # The families of types that the credential that set the types can see. None: all.
    families: list[str] | None
    sealed_secret: bytes
    sealed_old_secret: bytes | None
    old_secret_until: datetime | None
    # Those before the old one, the newest first, and until when each of them signs.
    sealed_older_secrets: list[bytes]
    older_secrets_until: list[datetime]
    enabled: bool
    disabled_reason: DisabledReason | None
    disabled_at: datetime | None
    confirmed_sequence: int
    previous_sequence: int
    skipped_from: int | None
    skipped_to: int | None
    due_at: datetime | None
    leased_until: datetime | None
    revision: int
    attempts: int
    failing_since: datetime | None
    behind_since: datetime | None
    last_error: str | None
    delivered_at: datetime | None
    # Who chose the URL, and the API key that did it. None: a session.
    saved_by: UUID
    saved_with: UUID | None
    created_at: datetime
    updated_at: datetime

    @property
    def state(self) -> State:
        if not self.enabled:
            return "disabled"
        return "failing" if self.failing_since else "active"

    @property
    def old_secrets(self) -> list[tuple[bytes, datetime]]:
        """The secrets before the current one, the newest first, and until when each signs."""
        if self.sealed_old_secret is None or self.old_secret_until is None:
            # There are none before it. The release before does not know those columns, and leaves
            # them as they are when it ends the secrets.
            return []
        older = zip(self.sealed_older_secrets, self.older_secrets_until, strict=True)
        return [(self.sealed_old_secret, self.old_secret_until), *older]

    def wants(self, event_type: str) -> bool:
        if self.families is not None and event_type.partition(".")[0] not in self.families:
            return False
        return self.events is None or event_type in self.events


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver one event."""

    id: UUID
    event_id: UUID
    sequence: int
    type: str
    attempt: int
    url: str
    sent_at: datetime
    duration_ms: int
    delivered: bool
    # None: no response.
    status: int | None
    error: str | None
    # The beginning of both.
    request_body: str
    response_body: str | None


def seal_context(account_id: UUID, webhook_id: UUID) -> str:
    # The same for all columns: a rotation moves values from one to the other.
    return f"webhooks/{account_id}/{webhook_id}/sealed_secret"
