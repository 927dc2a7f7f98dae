"""Public schemas of tasks."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypeAliasType

from rota.credits.money import exact_usd, of_cents
from rota.credits.schemas import ExactUsd
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.components import ref
from rota.platform.http.schemas import (
    Body,
    Count,
    Timestamp,
    Total,
    Wire,
    doc,
    example_with,
)
from rota.tasks import model as stored
from rota.tasks import seals, states

MAX_TEXT = 50_000
MAX_ACTIONS = 1_000
# In UTF-8, all actions of a task together.
MAX_ACTIONS_BYTES = 256 * 1024

TaskStatus = TypeAliasType(
    "TaskStatus",
    Annotated[
        states.Status,
        doc(
            "The state of a task. `COMPLETED` and `CANCELLED` are final. A `FAILED` "
            "task can be retried. `WAITING_APPROVAL` means that a person must decide.",
            "COMPLETED",
        ),
    ],
)
StartingPoint = Literal["start", "failure"]
STARTING_POINTS: tuple[StartingPoint, ...] = ("start", "failure")
RetryFrom = TypeAliasType(
    "RetryFrom",
    Annotated[
        StartingPoint,
        doc(
            "`start` runs the task from the beginning, with the newest version of the agent, and "
            "opens every gate again. `failure` keeps the agent's version, the finished steps and "
            "their approvals, and the steps are not paid for again.",
            "start",
        ),
    ],
)

NAME = "Write the onboarding checklist"
INPUT = "New colleagues get a laptop, an account and a desk. Who does what, and when?"
OUTPUT = "1. IT: prepare the laptop.\n2. IT: create the account.\n3. Office: assign a desk."
OUTPUT_DATA = {"steps": ["Prepare the laptop", "Create the account", "Assign a desk"]}
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"steps": {"type": "array"}},
    "required": ["steps"],
}

# Shown as it was sent: 5 or 2.5. In a body it is one number, so that an error names one field.
PRIORITY = WithJsonSchema(
    {
        "type": "number",
        "minimum": 0,
        "maximum": 10,
        "description": "From 0 (lowest) to 10 (highest).",
        "examples": [5],
    }
)
Priority = Annotated[int | float, PRIORITY]
Id = Annotated[str, Field(min_length=1, max_length=255)]
TaskId = Annotated[str, doc("The ID of the task, `task_…`.", examples.TASK_ID)]


CutText = TypeAliasType(
    "CutText",
    Annotated[
        stored.CutText,
        doc(
            "A text of a task that a list has cut. `actions` of a task is `metadata.actions`.",
            "output",
        ),
    ],
)


class RetryTask(Body):
    """Where a failed task starts again."""

    from_: Annotated[
        RetryFrom,
        Field(alias="from", description="Where the new run starts.", examples=["start"]),
    ] = "start"


class TaskMetadata(Wire):
    """Additional data of a task."""

    actions: Annotated[list[str], doc("The action log, oldest first.", ["Read the old checklist"])]


class TaskError(Wire):
    """Why a task failed."""

    code: Annotated[str, doc("A code for programs to check.", "BUDGET_EXCEEDED")]
    message: Annotated[
        str,
        doc(
            "What happened and what to do next, as readable text.",
            "The run needs more than the budget of its agent.",
        ),
    ]
    retryable: Annotated[bool, doc("Whether a retry can succeed without a change.", True)]


class TaskUsage(Wire):
    """What a task has used so far. Zero for a task that the service does not run."""

    run: Annotated[int, doc("The number of the current run. A retry adds 1.", 1)]
    steps: Annotated[Count, doc("Model calls in all runs.", 2)]
    input_tokens: Annotated[Count, doc("Tokens sent to models.", 1_840)]
    output_tokens: Annotated[Count, doc("Tokens received from models.", 412)]
    cost_usd: Annotated[ExactUsd, doc("What the model calls cost.")]
    budget_usd: Annotated[
        ExactUsd | None,
        doc(
            "The most that the current run can cost: the budget of its agent, or `budgetCents` if "
            "that is less. Null for a task that the service does not run.",
            "0.250000",
        ),
    ]


class ForkOrigin(Wire):
    """Where a fork continues from."""

    task_id: Annotated[str, doc("The ID of the task that was forked.", examples.TASK_ID)]
    run: Annotated[Count, doc("The run of that task.", 1)]
    step: Annotated[
        Count, doc("The last step that was taken from it. 0: the fork began at the start.", 2)
    ]


class Task(Wire):
    """A unit of work."""

    id: TaskId
    name: Annotated[str, doc("The display name.", NAME)]
    assigned_agent: Annotated[
        str | None, doc("The name of the agent. Null for a task without one.", examples.AGENT)
    ]
    status: Annotated[TaskStatus, doc("The current state.")]
    input: Annotated[str, doc("What the agent works on. Empty if none was given.", INPUT)]
    output: Annotated[
        str | None,
        doc("The result. With `outputSchema`, it is JSON. Null until there is one.", OUTPUT),
    ]
    output_data: Annotated[
        dict[str, Any] | None,
        doc(
            "The result as an object that matches `outputSchema`. Null without a schema, until "
            "there is a result, and in a list that has cut `output` or `outputSchema`.",
            None,
            OUTPUT_DATA,
        ),
    ]
    output_schema: Annotated[
        dict[str, Any] | None,
        doc(
            "The JSON Schema of the result: the one that the task was created with, or else the "
            "one of its agent. Null if the result is text.",
            None,
            OUTPUT_SCHEMA,
        ),
    ]
    created_at: Annotated[Timestamp, doc("When the task was created.")]
    updated_at: Annotated[Timestamp, doc("When it last changed.", examples.FINISHED)]
    description: Annotated[
        str | None,
        doc(
            "What the task is about. Null if none was given.",
            "For the team that welcomes new colleagues.",
        ),
    ]
    priority: Priority
    project_id: Annotated[
        str | None,
        doc("Your own label for grouping tasks. Null if none was given.", examples.PROJECT),
    ]
    parent_task_id: Annotated[
        str | None,
        doc("The ID of the parent. Null unless this is a subtask.", None, examples.TASK_ID),
    ]
    budget_cents: Annotated[
        int | None,
        doc(
            "What you allow for one run, in US cents. Null: the budget of the agent. "
            "`usage.budgetUsd` is what applies.",
            None,
            20,
        ),
    ]
    deadline: Annotated[
        Timestamp | None,
        doc(
            "The time at which the task fails if it has not ended. Null if it has no deadline.",
            None,
            examples.EXPIRES,
        ),
    ]
    agent_version: Annotated[
        int | None,
        doc("The version of the agent that the current run uses. Null without an agent.", 1),
    ]
    model: Annotated[
        str | None,
        doc(
            "The name of the model that a fork uses instead of its agent's. Null otherwise.",
            None,
            "strong",
        ),
    ]
    forked_from: Annotated[
        ForkOrigin | None,
        doc("The task, run and step that a fork continues from. Null otherwise.", None),
    ]
    queue_position: Annotated[
        int | None,
        doc(
            "The task's position in the queue of its agent, 1 for the next, at most 1000. Null if "
            "the task is not queued.",
            None,
            2,
        ),
    ]
    metadata: Annotated[TaskMetadata, doc("Additional data.")]
    error: Annotated[TaskError | None, doc("Why the task failed. Null unless it did.", None)]
    usage: Annotated[TaskUsage, doc("What the task has used so far.")]
    started_at: Annotated[
        Timestamp | None, doc("When the current run started. Null before that.", examples.STARTED)
    ]
    finished_at: Annotated[
        Timestamp | None, doc("When the task ended. Null before that.", examples.FINISHED)
    ]
    truncated: Annotated[
        list[CutText],
        doc(
            "The texts that are incomplete. Empty except in a list whose page would be larger than "
            "1 MiB. `GET /api/tasks/{id}` returns the whole task.",
            [],
        ),
    ]

    @classmethod
    def of(cls, task: stored.Task) -> "Task":
        return cls(
            id=ids.to_wire("task", task.id),
            name=task.name,
            assigned_agent=task.agent,
            status=task.status,
            input=task.input,
            output=task.output,
            output_data=stored.output_data(task),
            output_schema=task.output_schema,
            created_at=task.created_at,
            updated_at=task.updated_at,
            description=task.description,
            priority=int(task.priority) if task.priority.is_integer() else task.priority,
            project_id=task.project_id,
            parent_task_id=(
                ids.to_wire("task", task.parent_task_id) if task.parent_task_id else None
            ),
            budget_cents=task.budget_limit_cents,
            deadline=task.deadline,
            agent_version=task.agent_version,
            model=task.model,
            forked_from=ForkOrigin(**seals.origin(task)) if task.forked_from else None,
            queue_position=task.queue_position,
            metadata=TaskMetadata(actions=task.actions),
            error=TaskError(**task.error) if task.error else None,
            usage=TaskUsage(
                run=task.run,
                steps=task.steps,
                input_tokens=task.input_tokens,
                output_tokens=task.output_tokens,
                cost_usd=exact_usd(task.cost_micros),
                budget_usd=(
                    exact_usd(of_cents(task.budget_cents))
                    if task.budget_cents is not None
                    else None
                ),
            ),
            started_at=task.started_at,
            finished_at=task.finished_at,
            truncated=task.truncated if isinstance(task, stored.ListedTask) else [],
        )


# A task that was just created, as the example of a single task shows it.
_NEW: dict[str, Any] = {
    "status": "PENDING",
    "output": None,
    "updatedAt": examples.CREATED,
    "metadata": {"actions": []},
    "usage": {
        "run": 1,
        "steps": 0,
        "inputTokens": 0,
        "outputTokens": 0,
        "costUsd": "0.000000",
        "budgetUsd": "0.250000",
    },
    "startedAt": None,
    "finishedAt": None,
}


class TaskResponse(Wire):
    """One task."""

    task: Annotated[Task, doc("The task.", json_schema_extra=example_with(**_NEW))]


class TasksResponse(Wire):
    """A page of tasks."""

    tasks: Annotated[list[Task], doc("The tasks on this page, newest first.")]
    total: Total


class CreateTasksResponse(Wire):
    """What became of each task of a batch."""

    results: Annotated[
        list[Any],
        WithJsonSchema(
            {
                "type": "array",
                "items": {"anyOf": [ref("schemas", "TaskResponse"), ref("schemas", "Error")]},
            }
        ),
        doc(
            "One result for each task of the request, in the same order: the `task`, or the "
            "`error` that `POST /api/tasks` would return for it."
        ),
    ]
