"""A task and its reviews as the rest of the code sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.platform import ids
from rota.tasks.states import TERMINAL, Gate, Status

ReviewState = Literal["pending", "approved", "rejected", "expired"]


@dataclass(frozen=True, slots=True)
class Task:
    id: UUID
    status: Status
    hosted: bool
    depth: int
    run: int
    agent: str | None
    agent_version: int | None
    project_id: str | None
    parent_task_id: UUID | None
    name: str
    priority: float
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    description: str | None
    input: str
    output: str | None
    actions: list[str]
    error: Mapping[str, Any] | None
    steps: int
    input_tokens: int
    output_tokens: int
    cost_micros: int


def new_task(
    task_id: UUID,
    *,
    name: str,
    status: Status,
    hosted: bool,
    agent: str | None = None,
    agent_version: int | None = None,
    project_id: str | None = None,
    parent: Task | None = None,
    priority: float = 0,
    description: str | None = None,
    input: str = "",  # noqa: A002
    output: str | None = None,
    actions: list[str] | None = None,
) -> Task:
    """A task as it begins. Its time is the one inside its id, so listing by id is by time."""
    now = ids.time_of(task_id)
    return Task(
        id=task_id,
        status=status,
        hosted=hosted,
        depth=parent.depth + 1 if parent else 0,
        run=1,
        agent=agent,
        agent_version=agent_version,
        project_id=project_id,
        parent_task_id=parent.id if parent else None,
        name=name,
        priority=float(priority),
        created_at=now,
        updated_at=now,
        started_at=now if status == "RUNNING" else None,
        finished_at=now if status in TERMINAL else None,
        description=description,
        input=input,
        output=output,
        actions=actions or [],
        error=None,
        steps=0,
        input_tokens=0,
        output_tokens=0,
        cost_micros=0,
    )


@dataclass(frozen=True, slots=True)
class Review:
    number: int
    state: ReviewState
    gate: Gate | None
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: UUID | None
    reason: str | None
    items: list[dict[str, Any]]
