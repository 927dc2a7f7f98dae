"""Public schemas of reviews: what waits for a person, and what was decided."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.auth.schemas import Actor
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    Body,
    BodyTimestamp,
    Timestamp,
    Total,
    Wire,
    doc,
    example_of,
    example_with,
    resource_of,
)
from rota.tasks import model, shaping, states, summaries
from rota.tasks.model import Definitions
from rota.tasks.review_item_schemas import DIGEST, Decision, ReviewItem, decider
from rota.tasks.review_reading import TaskReviews
from rota.tasks.schemas import ForkOrigin, Task, TaskId

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
        Literal["none", "pending", "approved", "rejected", "expired", "cancelled"],
        doc(
            "The state of a review. `none`: the task was never reviewed. `expired`: "
            "no decision was made in time, and the task is cancelled, or failed because of its "
            "deadline. `cancelled`: the task was cancelled or changed before a decision.",
            "pending",
        ),
    ],
)
Shaping = TypeAliasType(
    "Shaping",
    Annotated[
        shaping.Shaping,
        doc(
            "How a user shaped what waits for approval, in the task or in a task above it.",
            "created",
        ),
    ],
)
_WAITING = {"status": "WAITING_APPROVAL", "output": None, "finishedAt": None}


class ReviewRef(Body):
    """The review that a decision is about, as it was shown."""

    number: Annotated[int, doc("The number of the review.", 1, ge=1, le=2**31 - 1)]
    digest: Annotated[
        str,
        doc(
            "The digest of the review.",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            min_length=64,
            max_length=64,
        ),
    ]


ShownReview = Annotated[
    ReviewRef | None,
    doc(
        "The review that you decide about: its `number` and `digest`. If a different review is "
        "pending by then, the response is 409 with that review, and nothing is decided. "
        "Default: the review that waits, except when you repeat a decision within 10 seconds.",
    ),
]


class ApproveTask(Body):
    """What to approve. An empty object approves everything that waits."""

    model_config = example_of()

    review: ShownReview = None
    decisions: Annotated[
        Annotated[list[Decision], Field(min_length=1, max_length=100)] | None,
        doc(
            "The items to approve, at most 100. Default: every pending item.",
            [{"id": "call-1-1-1"}],
        ),
    ] = None


class RejectTask(Body):
    """Why a task is rejected, and whether it continues."""

    model_config = example_of("reason", "resume")

    review: ShownReview = None
    reason: Annotated[
        Annotated[str, Field(max_length=2_000)] | None,
        doc(
            "The reason. With `resume`, the agent reads it. At most 2,000 characters.",
            "Use the folder Operations instead.",
        ),
    ] = None
    resume: Annotated[
        bool,
        doc(
            "True: the task continues, and its agent reads the reason. False: the "
            "task is cancelled.",
            False,
        ),
    ] = False


class ReviewedWork(Wire):
    """What a person approves at a run gate: the work, and who does it with what."""

    name: Annotated[str, doc("The name of the task.", "Write the onboarding process")]
    description: Annotated[
        str | None, doc("The description of the task. Null if it has none.", None, "For Monday.")
    ]
    input: Annotated[str, doc("What the agent works on.", "We need a checklist.")]
    agent: Annotated[str, doc("The name of the agent.", examples.AGENT)]
    version: Annotated[int, doc("The version of the agent that will run.", 1)]
    model: Annotated[str, doc("The model that the agent uses.", "default")]
    budget_cents: Annotated[int, doc("The most that the run can cost, in cents.", 100)]
    output_schema: Annotated[
        dict[str, Any] | None,
        doc("The JSON Schema of the output. Null if the output is text.", None),
    ] = None
    forked_from: Annotated[
        ForkOrigin | None,
        doc("The task, run and step that a fork continues from. Null otherwise.", None),
    ] = None


class PastReview(Wire):
    """A review that has ended."""

    number: Annotated[int, doc("The number of the review, from 1 for each task.", 1)]
    digest: Annotated[
        str, doc("The SHA-256 of everything that the decision is about, in hexadecimal.", DIGEST)
    ]
    state: Annotated[ReviewState, doc("How the review ended.", "approved")]
    gate: Annotated[
        Gate | None, doc("Where the task waited. Null for a task that the service does not run.")
    ]
    requested_at: Annotated[Timestamp, doc("When the task began to wait.", examples.REQUESTED)]
    expires_at: Annotated[
        Timestamp, doc("When the task is cancelled if no decision is made.", examples.EXPIRES)
    ]
    decided_by: Annotated[
        Actor | None,
        doc("Who decided. Null if no person has, for example when the review expired.", None),
    ]
    decided_at: Annotated[Timestamp | None, doc("When the review ended.", examples.FINISHED)]
    reason: Annotated[
        str | None,
        doc("The reason for a rejection. Null if none was given.", None, "Wrong folder."),
    ]
    items: Annotated[
        list[ReviewItem],
        doc(
            "What was decided. Empty at a run gate. If the items of the history are larger than "
            "1 MiB together, those of older reviews are left out.",
            [],
        ),
    ]

    @classmethod
    def of(cls, review: model.Review, definitions: Definitions) -> "PastReview":
        return cls(
            number=review.number,
            digest=review.digest,
            state=review.state,
            gate=review.gate,
            requested_at=review.requested_at,
            expires_at=review.expires_at,
            decided_by=decider(review.decided_by, review.decided_with),
            decided_at=review.decided_at,
            reason=review.reason,
            items=[ReviewItem.of(item, definitions) for item in review.items],
        )


class SnoozeTask(Body):
    """Until when to snooze a decision."""

    model_config = example_of("until")

    until: Annotated[
        BodyTimestamp | None,
        doc(
            "A time in the future. A time after `expiresAt` of the review counts as `expiresAt`. "
            "Null brings the review back.",
            "2099-01-31T12:00:00Z",
        ),
    ]


class SnoozeResponse(Wire):
    """Until when a decision is snoozed."""

    snoozed_until: Annotated[
        Timestamp | None,
        doc("When the review returns to your inbox. Null if it is not snoozed.", examples.EXPIRES),
    ]


@resource_of(ReviewRef)
class Review(Wire):
    """What waits for a person, and what was decided before."""

    task_id: TaskId
    number: Annotated[
        int | None,
        doc("The number of the newest review, from 1. Null without a review.", 1),
    ]
    digest: Annotated[
        str | None,
        doc(
            "The SHA-256 of everything that the decision is about, in hexadecimal. Send it back "
            "with `number` when you decide. Null without a review.",
            DIGEST,
        ),
    ]
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
            "When the task is cancelled if no decision is made, or the deadline of the task if "
            "that is earlier. Null without a review.",
            examples.EXPIRES,
        ),
    ]
    work: Annotated[ReviewedWork | None, doc("What will run. Null except at a run gate.", None)]
    summary: Annotated[
        str | None,
        doc(
            "What is decided, in one sentence that no model writes. Null without a review.",
            "Create the draft “Onboarding checklist”",
        ),
    ]
    items: Annotated[
        list[ReviewItem], doc("What a person decides. Empty at a run gate and without a review.")
    ]
    second_person: Annotated[
        bool,
        doc(
            "Whether a second person must approve: users cannot approve what they shaped. False if "
            "nothing waits.",
            False,
        ),
    ]
    shaped: Annotated[
        list[Shaping],
        doc(
            "How you shaped it, if a second person has to approve. If it is not empty, you cannot "
            "approve everything that waits.",
            [],
        ),
    ]
    history: Annotated[
        list[PastReview],
        doc("Those of the newest 100 reviews of this task that have ended, newest first.", []),
    ]

    @classmethod
    def of(cls, found: TaskReviews) -> "Review":
        """The newest review is the one that is shown in full."""
        shapes = [PastReview.of(review, found.definitions) for review in found.reviews]
        newest = shapes[0] if shapes else None
        sealed = json.loads(found.reviews[0].sealed) if shapes else {}
        work = sealed.get("work")
        items = newest.items if newest else []
        waits = newest is not None and newest.state == "pending"
        return cls(
            task_id=ids.to_wire("task", found.task.id),
            number=newest.number if newest else None,
            digest=newest.digest if newest else None,
            state=newest.state if newest else "none",
            gate=newest.gate if newest else None,
            requested_at=newest.requested_at if newest else None,
            expires_at=_expires_at(found) if newest else None,
            work=ReviewedWork(**work) if work else None,
            summary=summaries.of_review(
                sealed,
                newest.gate if newest else None,
                found.task.name,
                [item.summary for item in items],
            ),
            items=items,
            second_person=waits and found.second_person is not None,
            shaped=_shaped(found) if waits else [],
            history=[shape for shape in shapes if shape.state != "pending"],
        )


def _shaped(found: TaskReviews) -> list[Any]:
    if found.second_person is None:
        return []
    review = found.reviews[0]
    pending = [item for item in review.items if item["decision"] is None]
    return sorted(found.second_person.why_not(review, pending, found.definitions))


def _expires_at(found: TaskReviews) -> datetime:
    review, deadline = found.reviews[0], found.task.deadline
    if deadline is None or review.state != "pending":
        return review.expires_at
    return min(review.expires_at, deadline)


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
    snoozed_until: Annotated[
        Timestamp | None,
        doc(
            "When the review returns to your inbox. Null if you have not snoozed it, or if that "
            "time has passed.",
            None,
            examples.EXPIRES,
        ),
    ]
    truncated: Annotated[
        bool,
        doc(
            "Whether texts, arguments or items are left out, because the page would be larger than "
            "1 MiB. Read the task and its review before you decide.",
            False,
        ),
    ]


class ApprovalsResponse(Wire):
    """A page of tasks that wait for a person."""

    approvals: Annotated[list[Approval], doc("The tasks on this page, longest wait first.")]
    total: Total
