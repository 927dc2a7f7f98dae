"""A task and its reviews, as the database stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.credits.model import RunId
from rota.mcp.model import AcceptedDefinition
from rota.platform import json
from rota.tasks.states import Gate, Status

# `cancelled`: the task was cancelled or changed before a decision.
ReviewState = Literal["pending", "approved", "rejected", "expired", "cancelled"]
# The accepted definitions of tools, by server ID and tool.
Definitions = Mapping[tuple[str, str], AcceptedDefinition]
CutText = Literal["description", "input", "output", "actions", "outputSchema"]


@dataclass(frozen=True, slots=True)
class Task:
    id: UUID
    status: Status
    hosted: bool
    depth: int
    run: int
    agent: str | None
    agent_version: int | None
    # The most that the current run can cost. None if a client runs the task.
    budget_cents: int | None
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
    # The approval policies of the tasks above this one.
    inherited_approval: list[dict[str, Any]] | None
    # Which slice may change the run. See `rota.runs.run_context`.
    fence: int = 0
    # The JSON Schema of the output in the current run. None: the output is text. It is the task's
    # own, or else the agent's.
    output_schema: dict[str, Any] | None = None
    own_output_schema: bool = False
    # What the client allows for a run. None: the agent's budget.
    budget_limit_cents: int | None = None
    # When the task fails if it has not ended.
    deadline: datetime | None = None
    # The name of the model that the runs use. None: the agent's.
    model: str | None = None
    # The task and the run whose steps this one began with, up to this step. None: not a fork.
    forked_from: UUID | None = None
    forked_run: int | None = None
    forked_step: int | None = None
    # Whether the task needs a place to work. See `rota.tasks.places`.
    limited: bool = False
    # The last run that started from the start. None: the task was created by an earlier version.
    start_run: int | None = None
    # Not stored. Set where it is shown: 1 for the task that gets the next place of its agent.
    queue_position: int | None = None

    @property
    def run_id(self) -> RunId:
        """The current run, as the ledger names it."""
        return RunId(self.id, self.run)


@dataclass(frozen=True, slots=True)
class ListedTask(Task):
    """A task as a list shows it."""

    # The texts that were cut, because the page would have been too large.
    truncated: list[CutText] = field(default_factory=list)


def output_data(task: Task) -> Any:
    """The output as data. None if the output is text or incomplete, or if there is none."""
    if task.output_schema is None or task.output is None:
        return None
    if isinstance(task, ListedTask) and "output" in task.truncated:
        return None
    return json.exact(task.output)


@dataclass(frozen=True, slots=True)
class Review:
    number: int
    run: int
    state: ReviewState
    gate: Gate | None
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: UUID | None
    # The name of the user and the credential: `name`, `via` and `keyId`.
    decided_with: dict[str, Any] | None
    # Whether the task continues after a rejection.
    resumed: bool
    # The decisions that were accepted in the last seconds: `by`, `decision`, `items` and `at`.
    answers: list[dict[str, Any]]
    reason: str | None
    items: list[dict[str, Any]]
    # What is decided, as canonical JSON, and its SHA-256.
    sealed: str
    digest: str
    # Whether users who shaped it cannot approve it, even after the account's policy has changed.
    second_person: bool = False


@dataclass(frozen=True, slots=True)
class ListedReview(Review):
    """A review as a list shows it."""

    # Whether texts or items were left out, because the page would have been too large.
    truncated: bool = False
