"""A schedule as it is stored."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.tasks.model import CutText

Overlap = Literal["skip", "queue"]
Outcome = Literal["created", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Schedule:
    id: UUID
    name: str
    cron: str
    time_zone: str
    # The body of a request that creates a task.
    task: dict[str, Any]
    overlap: Overlap
    paused: bool
    # The next time, or a past one that waits until an earlier task ends. None while paused.
    next_at: datetime | None
    # When a worker looks at the schedule.
    check_at: datetime | None
    # The user who saved it last, and the API key that was used.
    saved_by: UUID
    saved_with: UUID | None
    # Everyone who saved it before.
    shaped_by: list[UUID]
    last_due_at: datetime | None
    last_outcome: Outcome | None
    # Code and message of the last failure, until a task is created.
    last_error: dict[str, str] | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ListedSchedule(Schedule):
    """A schedule as a list shows it."""

    # The fields of the task that were cut or left out, because the page would have been too large.
    truncated: list[CutText] = field(default_factory=list)
