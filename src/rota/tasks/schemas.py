"""Public schemas of tasks."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypeAliasType

from rota.credits.money import exact_usd
from rota.credits.schemas import ExactUsd
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    Body,
    Count,
    Timestamp,
    Total,
    Wire,
    doc,
    example_of,
    example_with,
)
from rota.tasks import model, states

MAX_TEXT = 50_000
MAX_ACTIONS = 1_000

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
RetryFrom = TypeAliasType(
    "RetryFrom",
    Annotated[
        Literal["start", "failure"],
        doc(
            "`start` runs the task from the beginning. `failure` keeps the finished "
            "steps, and they are not paid for again.",
            "start",
        ),
    ],
)

_NAME = "Write the onboarding checklist"
_INPUT = "New colleagues get a laptop, an account and a desk. Who does what, and when?"
_OUTPUT = "1. IT: prepare the laptop.\n2. IT: create the account.\n3. Office: assign a desk."

Name = Annotated[
    str, doc("A display name, 1 to 1,000 characters.", _NAME, min_length=1, max_length=1_000)
]
LongText = Annotated[str, Field(max_length=MAX_TEXT)]
Description = Annotated[
    LongText,
    doc(
        "What the task is about, for people and for the agent. At most 50,000 characters.",
        "For the team that welcomes new colleagues.",
    ),
]
Priority = Annotated[
    int | float,
    Field(ge=0, le=10),
    WithJsonSchema(
        {
            "type": "number",
            "minimum": 0,
            "maximum": 10,
            "description": "From 0 (lowest) to 10 (highest).",
            "examples": [5],
        }
    ),
]
Action = Annotated[str, Field(max_length=2_000)]
Actions = Annotated[
    list[Action],
    doc(
        "Entries for the action log of the task, at most 100 of 2,000 characters each.",
        ["Read the old checklist"],
        max_length=100,
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=255)]
AgentName = Annotated[Id, Field(examples=[examples.AGENT])]
TaskId = Annotated[str, doc("The ID of the task, `task_…`.", examples.TASK_ID)]


class CreateTask(Body):
    """A task to create. With an `agent` and the status `PENDING` (the default) or
    `WAITING_APPROVAL`, the service runs it. Otherwise it is a record that your client updates."""

    model_config = example_of("name", "agent", "input", "projectId", "priority")

    name: Name
    agent: Annotated[
        AgentName | None,
        doc(
            "The name of an agent in the catalog (`GET /api/agents`). "
            "An unknown agent returns 400; one that is locked for your tier returns 403."
        ),
    ] = None
    assigned_agent: Annotated[
        AgentName | None, doc("The same as `agent`. If you send both, they must be equal.")
    ] = None
    input: Annotated[
        LongText | None,
        doc("What the agent works on. At most 50,000 characters. Default: empty.", _INPUT),
    ] = None
    status: Annotated[
        TaskStatus,
        doc(
            "The initial state. With `WAITING_APPROVAL`, a person approves the run before it "
            "starts. With any other state except `PENDING`, the service does not run the task.",
            "PENDING",
        ),
    ] = "PENDING"
    project_id: Annotated[
        Id | None, doc("Your own label for grouping tasks.", examples.PROJECT)
    ] = None
    description: Description | None = None
    priority: Priority = 0
    parent_task_id: Annotated[
        Id | None,
        doc(
            "The ID of the parent, for a subtask. The parent must exist (404) and not "
            "have ended (409). Tasks can be nested up to 8 levels deep.",
            examples.TASK_ID,
        ),
    ] = None
    output: Annotated[
        LongText | None,
        doc(
            "The output, for a record of work that is done elsewhere. At most 50,000 characters.",
            _OUTPUT,
        ),
    ] = None
    actions: Actions | None = None


class PatchTask(Body):
    """Changes to a task. Absent fields and nulls change nothing."""

    model_config = example_of("priority", "actions")

    name: Name | None = None
    description: Description | None = None
    priority: Priority | None = None
    status: Annotated[
        TaskStatus | None,
        doc(
            "The new state. A task that the service runs can only become `CANCELLED`. "
            "A transition that is not allowed returns 409.",
            "RUNNING",
        ),
    ] = None
    output: Annotated[
        LongText | None,
        doc(
            "Replaces the output. At most 50,000 characters. Only for a task that the "
            "service does not run.",
            "Draft:",
        ),
    ] = None
    logs: Annotated[
        LongText | None,
        doc(
            "Text to append to the output. Output and logs together have at most "
            "50,000 characters. Only for a task that the service does not run.",
            "\n1. IT: prepare the laptop.",
        ),
    ] = None
    actions: Annotated[
        Actions | None, doc("Entries to append to the action log. A task keeps at most 1,000.")
    ] = None


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


class Task(Wire):
    """A unit of work."""

    id: TaskId
    name: Annotated[str, doc("The display name.", _NAME)]
    assigned_agent: Annotated[
        str | None, doc("The name of the agent. Null for a task without one.", examples.AGENT)
    ]
    status: Annotated[TaskStatus, doc("The current state.")]
    input: Annotated[str, doc("What the agent works on. Empty if none was given.", _INPUT)]
    output: Annotated[str | None, doc("The result. Null until there is one.", _OUTPUT)]
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
    metadata: Annotated[TaskMetadata, doc("Additional data.")]
    error: Annotated[TaskError | None, doc("Why the task failed. Null unless it did.", None)]
    usage: Annotated[TaskUsage, doc("What the task has used so far.")]
    started_at: Annotated[
        Timestamp | None, doc("When the current run started. Null before that.", examples.STARTED)
    ]
    finished_at: Annotated[
        Timestamp | None, doc("When the task ended. Null before that.", examples.FINISHED)
    ]

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
