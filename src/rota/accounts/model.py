"""Users and accounts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

Kind = Literal["personal", "company"]
Role = Literal["owner", "admin", "member"]


@dataclass(frozen=True, slots=True)
class User:
    id: UUID
    email: str | None
    name: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a company. Name and address are those of the user, and an issuer has verified
    the address."""

    user_id: UUID
    name: str | None
    email: str | None
    role: Role
    approver: bool
    created_at: datetime


RetentionKind = Literal["tasks", "steps", "events", "audit"]
RETENTION_KINDS: tuple[RetentionKind, ...] = get_args(RetentionKind)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days an account keeps what is finished. None: the operator's default."""

    tasks: int | None = None
    steps: int | None = None
    events: int | None = None
    audit: int | None = None

    def days(self, kind: RetentionKind) -> int | None:
        found: int | None = getattr(self, kind)
        return found


@dataclass(frozen=True, slots=True)
class Policy:
    """Who can decide in an account, and how long it keeps what is finished."""

    # Whether nobody can approve what they shaped.
    second_person: bool
    # Whether every member can approve, and not only approvers.
    anyone_approves: bool
    # A run with a higher budget waits at a run gate. None: no limit.
    max_cost_cents: int | None
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class Account:
    """An account, with the role of the user that it was loaded for."""

    id: UUID
    kind: Kind
    name: str
    tier: str
    role: Role
    # Whether that user can approve.
    approver: bool
    trial_ends_at: datetime | None
    created_at: datetime
