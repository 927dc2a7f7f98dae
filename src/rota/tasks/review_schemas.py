"""Public schemas of reviews: what waits for a person, and what was decided."""

from typing import Annotated, Any, Literal

from typing_extensions import TypeAliasType

from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc, example_with
from rota.tasks import model, states
from rota.tasks.schemas import Task, TaskId

Gate = TypeAliasType(
    "Gate",
    Annotated[
        states.Gate,
        doc(
            "Where a task waits for a person: before it runs (`run`), before a tool "
            "call (`tool`), or before its output is final (`output`).",
            "tool",
        ),
    ],
)
ReviewState = TypeAliasType(
    "ReviewState",
    Annotated[
        Literal["none", "pending", "approved", "rejected", "expired"],
        doc(
            "The state of a review. `none`: the task was never reviewed. `expired`: "
            "no decision was made in time, and the task is cancelled.",
            "pending",
        ),
    ],
)
ItemDecision = TypeAliasType(
    "ItemDecision",
    Annotated[
        Literal["approved", "rejected"], doc("What a person decided about an item.", "approved")
    ],
)
_ARGUMENTS = {"title": "Onboarding checklist", "folder": "People"}
_ARGUMENTS_SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "folder": {"type": "string"}},
    "required": ["title"],
}
UserId = Annotated[
    str | None,
    doc(
        "The ID of the user who decided. Null if no person has, for example when the review "
        "expired.",
        examples.USER_ID,
    ),
]
_WAITING = {"status": "WAITING_APPROVAL", "output": None, "finishedAt": None}


class ReviewItem(Wire):
    """Something that a person decides: a tool call, or an output."""

    id: Annotated[
        str, doc("The ID of the item, unique within the task. Use it in `decisions`.", "call-1-1-0")
    ]
    tool: Annotated[
        str | None,
        doc("The tool that the agent wants to call. Null at an output gate.", "create_draft"),
    ]
    server: Annotated[
        str | None,
        doc("The name of the tool server. Null for an output and for built-in tools.", "docs"),
    ]
    arguments: Annotated[
        dict[str, Any] | None,
        doc("The arguments of the call; at an output gate, the `output`.", _ARGUMENTS),
    ]
    arguments_schema: Annotated[
        dict[str, Any] | None,
        doc(
            "The JSON Schema that changed arguments must match. Null if unknown.", _ARGUMENTS_SCHEMA
        ),
    ]
    reason: Annotated[
        str | None,
        doc("Why a person must decide.", "The agent's policy requires approval of this call."),
    ]
    decision: Annotated[
        ItemDecision | None, doc("The decision. Null while the item waits.", None, "approved")
    ]
    decided_by: Annotated[
        UserId,
        doc("The ID of the user who decided. Null while the item waits.", None, examples.USER_ID),
    ]
    decided_at: Annotated[
        Timestamp | None,
        doc("When it was decided. Null while the item waits.", None, examples.FINISHED),
    ]


class PastReview(Wire):
    """A review that has ended."""

    state: Annotated[ReviewState, doc("How the review ended.", "approved")]
    gate: Annotated[
        Gate | None, doc("Where the task waited. Null for a task that the service does not run.")
    ]
    requested_at: Annotated[Timestamp, doc("When the task began to wait.", examples.REQUESTED)]
    expires_at: Annotated[
        Timestamp, doc("When the task is cancelled if no decision is made.", examples.EXPIRES)
    ]
    decided_by: UserId
    decided_at: Annotated[Timestamp | None, doc("When the review ended.", examples.FINISHED)]
    reason: Annotated[
        str | None,
        doc("The reason for a rejection. Null if none was given.", None, "Wrong folder."),
    ]
    items: Annotated[list[ReviewItem], doc("What was decided. Empty at a run gate.", [])]

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
    """What waits for a person, and what was decided before."""

    task_id: TaskId
    state: Annotated[ReviewState, doc("The state of the newest review.")]
    gate: Annotated[
        Gate | None,
        doc(
            "Where the task waits. Null without a review and for a task that the "
            "service does not run."
        ),
    ]
    requested_at: Annotated[
        Timestamp | None,
        doc("When the task began to wait. Null without a review.", examples.REQUESTED),
    ]
    expires_at: Annotated[
        Timestamp | None,
        doc(
            "When the task is cancelled if no decision is made. Null without a review.",
            examples.EXPIRES,
        ),
    ]
    items: Annotated[
        list[ReviewItem], doc("What a person decides. Empty at a run gate and without a review.")
    ]
    history: Annotated[
        list[PastReview], doc("Reviews of this task that have ended, newest first.", [])
    ]

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
    """The review of a task."""

    review: Annotated[Review, doc("The review.")]


class DecisionResponse(Wire):
    """A task after a decision, and its review."""

    task: Annotated[
        Task,
        doc(
            "The task after the decision.",
            json_schema_extra=example_with(status="RUNNING", output=None, finishedAt=None),
        ),
    ]
    review: Annotated[
        Review,
        doc(
            "The review after the decision.",
            json_schema_extra=example_with(state="approved", items=[]),
        ),
    ]


class Approval(Wire):
    """A task that waits for a person."""

    task: Annotated[Task, doc("The task that waits.", json_schema_extra=example_with(**_WAITING))]
    review: Annotated[Review, doc("What to decide.")]


class ApprovalsResponse(Wire):
    """A page of tasks that wait for a person."""

    approvals: Annotated[list[Approval], doc("The tasks on this page, longest wait first.")]
    total: Total
