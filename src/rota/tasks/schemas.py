"""Wire shapes of tasks and reviews."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.credits.money import exact_usd
from rota.platform import ids
from rota.platform.http.schemas import Body, Timestamp, Wire
from rota.tasks import model
from rota.tasks.model import ReviewState
from rota.tasks.states import Gate, Status

MAX_TEXT = 50_000
MAX_ACTIONS = 1_000

Name = Annotated[str, Field(min_length=1, max_length=1_000)]
LongText = Annotated[str, Field(max_length=MAX_TEXT)]
Priority = Annotated[int | float, Field(ge=0, le=10)]
Action = Annotated[str, Field(max_length=2_000)]
Actions = Annotated[list[Action], Field(max_length=100)]
Id = Annotated[str, Field(min_length=1, max_length=255)]


class CreateTask(Body):
    name: Name
    agent: Id | None = None
    assigned_agent: Id | None = None
    input: LongText | None = None
    status: Status = "PENDING"
    project_id: Id | None = None
    description: LongText | None = None
    priority: Priority = 0
    parent_task_id: Id | None = None
    output: LongText | None = None
    actions: Actions | None = None


class PatchTask(Body):
    name: Name | None = None
    description: LongText | None = None
    priority: Priority | None = None
    status: Status | None = None
    output: LongText | None = None
    logs: LongText | None = None
    actions: Actions | None = None


class Decision(Body):
    id: Id
    arguments: dict[str, Any] | None = None


class ApproveTask(Body):
    decisions: Annotated[list[Decision], Field(min_length=1, max_length=100)] | None = None


class RejectTask(Body):
    reason: Annotated[str, Field(max_length=2_000)] | None = None
    resume: bool = False


class RetryTask(Body):
    from_: Annotated[Literal["start", "failure"], Field(alias="from")] = "start"


class TaskMetadata(Wire):
    actions: list[str]


class TaskError(Wire):
    code: str
    message: str
    retryable: bool


class TaskUsage(Wire):
    run: int
    steps: int
    input_tokens: int
    output_tokens: int
    cost_usd: str


class Task(Wire):
    id: str
    name: str
    assigned_agent: str | None
    status: Status
    input: str
    output: str | None
    created_at: Timestamp
    updated_at: Timestamp
    description: str | None
    priority: int | float
    project_id: str | None
    parent_task_id: str | None
    metadata: TaskMetadata
    error: TaskError | None
    usage: TaskUsage
    started_at: Timestamp | None
    finished_at: Timestamp | None

    @classmethod
    def of(cls, task: model.Task) -> "Task":
        return cls(
            id=ids.to_wire("task", task.id),
            name=task.name,
            assigned_agent=task.agent,
            status=task.status,
            input=task.input,
            output=task.output,
            created_at=task.created_at,
            updated_at=task.updated_at,
            description=task.description,
            priority=int(task.priority) if task.priority.is_integer() else task.priority,
            project_id=task.project_id,
            parent_task_id=(
                ids.to_wire("task", task.parent_task_id) if task.parent_task_id else None
            ),
            metadata=TaskMetadata(actions=task.actions),
            error=TaskError(**task.error) if task.error else None,
            usage=TaskUsage(
                run=task.run,
                steps=task.steps,
                input_tokens=task.input_tokens,
                output_tokens=task.output_tokens,
                cost_usd=exact_usd(task.cost_micros),
            ),
            started_at=task.started_at,
            finished_at=task.finished_at,
        )


class TaskResponse(Wire):
    task: Task


class TasksResponse(Wire):
    tasks: list[Task]
    total: int


class ReviewItem(Wire):
    id: str
    tool: str | None
    server: str | None
    arguments: dict[str, Any] | None
    arguments_schema: dict[str, Any] | None
    reason: str | None
    decision: str | None
    decided_by: str | None
    decided_at: Timestamp | None


class PastReview(Wire):
    state: ReviewState
    gate: Gate | None
    requested_at: Timestamp
    expires_at: Timestamp
    decided_by: str | None
    decided_at: Timestamp | None
    reason: str | None
    items: list[ReviewItem]

    @classmethod
    def of(cls, review: model.Review) -> "PastReview":
        return cls(
            state=review.state,
            gate=review.gate,
            requested_at=review.requested_at,
            expires_at=review.expires_at,
            decided_by=ids.to_wire("user", review.decided_by) if review.decided_by else None,
            decided_at=review.decided_at,
            reason=review.reason,
            items=[ReviewItem(**item) for item in review.items],
        )


class Review(Wire):
    task_id: str
    state: Literal["none"] | ReviewState
    gate: Gate | None
    requested_at: Timestamp | None
    expires_at: Timestamp | None
    items: list[ReviewItem]
    history: list[PastReview]

    @classmethod
    def of(cls, task: model.Task, reviews: list[model.Review]) -> "Review":
        """`reviews` begins with the newest, which is the one that is shown in full."""
        shapes = [PastReview.of(review) for review in reviews]
        newest = shapes[0] if shapes else None
        return cls(
            task_id=ids.to_wire("task", task.id),
            state=newest.state if newest else "none",
            gate=newest.gate if newest else None,
            requested_at=newest.requested_at if newest else None,
            expires_at=newest.expires_at if newest else None,
            items=newest.items if newest else [],
            history=[shape for shape in shapes if shape.state != "pending"],
        )


class ReviewResponse(Wire):
    review: Review


class DecisionResponse(Wire):
    task: Task
    review: Review


class Approval(Wire):
    task: Task
    review: Review


class ApprovalsResponse(Wire):
    approvals: list[Approval]
    total: int
