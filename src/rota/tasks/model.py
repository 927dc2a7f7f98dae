"""A task and its reviews, as the database stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

from rota.credits.model import RunId
from rota.mcp.model import AcceptedDefinition
from rota.platform import json
from rota.tasks.states import Gate, Status

# `cancelled`: the task was cancelled or changed before a decision.
ReviewState = Literal["pending", "approved", "rejected", "expired", "cancelled"]
# The accepted definitions of tools, by server ID and tool.
Definitions = Mapping[tuple[str, str], AcceptedDefinition]
ItemDecision = Literal["approved", "rejected"]
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


class Credential(TypedDict):
    """With what a user decided. The user has the name from that time."""

    name: str | None
    # None: the version that stored it did not know.
    via: Literal["session", "key", "rule"] | None
    keyId: str | None
    # Only of a standing rule.
    ruleId: NotRequired[str]


class Actor(Credential):
    """Who decided about an item, or changed it."""

    userId: str


class ReviewItem(TypedDict):
    """What a person decides, as a review stores it: one tool call, or an output.

    Earlier versions stored items without some of the fields that are not required.
    """

    # Unique within the task.
    id: str
    # Both are None for an output, and only `server` for a built-in tool.
    tool: str | None
    server: str | None
    # The server and the tool as they were when the review was opened.
    serverId: NotRequired[str | None]
    serverRevision: NotRequired[int | None]
    serverUrl: NotRequired[str | None]
    toolDescription: NotRequired[str]
    toolTitle: NotRequired[str | None]
    annotations: NotRequired[dict[str, Any] | None]
    definitionHash: NotRequired[str | None]
    # The summary is made from this template when the review is shown.
    describe: NotRequired[str | None]
    # A standing rule that is made from the review is for this version.
    agentVersion: NotRequired[int]
    # What the model wrote beside the call.
    agentSays: NotRequired[str | None]
    # A list leaves out what is too long: these two, the schema and `annotations` are None then.
    arguments: dict[str, Any] | None
    # The exact text that is decided about, and its SHA-256.
    sealed: NotRequired[str | None]
    digest: NotRequired[str]
    argumentsSchema: dict[str, Any] | None
    # Why a person must decide.
    reason: str | None
    # Whether a person has changed the arguments. `editedBy` says who, if that was before this
    # review. Otherwise it was who decided.
    edited: NotRequired[bool]
    editedBy: NotRequired[Actor]
    # All three are None while the item waits. Earlier versions stored only the ID of the user.
    decision: ItemDecision | None
    decidedBy: Actor | str | None
    decidedAt: str | None


class ReviewAnswer(TypedDict):
    """A decision that was accepted. It is kept for seconds, to recognize a repeated one."""

    by: Actor
    decision: Literal["approved", "rejected", "edited"]
    # The named items. Empty if none was named.
    items: list[str]
    # The SHA-256 of the decisions, if they changed arguments that a second person has to approve.
    edits: NotRequired[str]
    at: str


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
    decided_with: Credential | None
    # Whether the task continues after a rejection.
    resumed: bool
    # The decisions that were accepted in the last seconds.
    answers: list[ReviewAnswer]
    reason: str | None
    items: list[ReviewItem]
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


def accepted_definition(item: ReviewItem, definitions: Definitions) -> AcceptedDefinition | None:
    """The accepted definition of the tool that an item calls."""
    return definitions.get((item.get("serverId") or "", item["tool"] or ""))
