"""What a client sends to create or change a task."""

from typing import Annotated

from pydantic import Field

from rota.platform.http import examples
from rota.platform.http.schemas import Body, Visible, doc, example_of, resource_of
from rota.tasks.schemas import (
    INPUT,
    MAX_TEXT,
    NAME,
    OUTPUT,
    PRIORITY,
    CutText,
    Id,
    Task,
    TaskStatus,
)

Name = Annotated[
    str,
    doc("A display name, 1 to 1,000 characters.", NAME, min_length=1, max_length=1_000),
    Visible,
]
LongText = Annotated[str, Field(max_length=MAX_TEXT)]
Description = Annotated[
    LongText,
    doc(
        "What the task is about, for people and for the agent. At most 50,000 characters.",
        "For the team that welcomes new colleagues.",
    ),
]
BodyPriority = Annotated[float, Field(ge=0, le=10), PRIORITY]
Action = Annotated[str, Field(max_length=2_000)]
Actions = Annotated[
    list[Action],
    doc(
        "Entries for the action log of the task, at most 100 of 2,000 characters each. The log has "
        "at most 256 KiB.",
        ["Read the old checklist"],
        max_length=100,
    ),
]
AgentName = Annotated[Id, Field(examples=[examples.AGENT])]


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
        doc("What the agent works on. At most 50,000 characters. Default: empty.", INPUT),
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
    priority: BodyPriority = 0
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
            OUTPUT,
        ),
    ] = None
    actions: Actions | None = None


class CreateTasks(Body):
    """Tasks to create with one request."""

    tasks: Annotated[
        list[CreateTask],
        doc(
            "The tasks, 1 to 1,000. The whole body has at most 2 MiB.",
            min_length=1,
            max_length=1_000,
        ),
    ]


class ReportedError(Body):
    """Why a task failed, as your client reports it."""

    code: Annotated[
        str, doc("A code for programs to check.", "IMPORT_FAILED", min_length=1, max_length=100)
    ]
    message: Annotated[
        str,
        doc(
            "What happened, as readable text. At most 2,000 characters.",
            "Row 17 has no date.",
            min_length=1,
            max_length=2_000,
        ),
    ]
    retryable: Annotated[bool, doc("Whether a retry can succeed without a change.", False)] = False


class PatchTask(Body):
    """Changes to a task. Absent fields change nothing. Null clears `description`, `output`,
    `projectId` and `parentTaskId`; for other fields it changes nothing."""

    model_config = example_of("priority", "actions")

    name: Name | None = None
    description: Description | None = None
    priority: BodyPriority | None = None
    project_id: Annotated[Id | None, doc("Your own label for grouping tasks.", "imports")] = None
    parent_task_id: Annotated[
        Id | None,
        doc(
            "The ID of the new parent. Only while the task is `PENDING` and the service does not "
            "run it; otherwise 409. The rules for a new subtask apply.",
            examples.TASK_ID,
        ),
    ] = None
    error: Annotated[
        ReportedError | None,
        doc(
            "Why the task failed. Only for a task that the service does not run, and only if the "
            "task is or becomes `FAILED`.",
            {"code": "IMPORT_FAILED", "message": "Row 17 has no date."},
        ),
    ] = None
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
        Actions | None,
        doc("Entries to append to the action log. A task keeps at most 1,000, with 256 KiB."),
    ] = None
    truncated: Annotated[
        Annotated[list[CutText], Field(max_length=4)] | None,
        doc("As in the task that you read. A text that it names cannot be sent back.", []),
    ] = None


resource_of(CreateTask, PatchTask)(Task)
