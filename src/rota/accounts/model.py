"""Users and accounts as the rest of the code sees them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
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
class Account:
    """An account, and the role that the user asking has in it."""

    id: UUID
    kind: Kind
    name: str
    tier: str
    role: Role
    trial_ends_at: datetime | None
    created_at: datetime
