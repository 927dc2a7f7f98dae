"""What a client sends to create or change a task."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, FailFast, Field
from pydantic_core import PydanticCustomError

from rota.agents.fields import MAX_SCHEMA_BYTES, check_output_schema
from rota.platform.http import examples
from rota.platform.http.schemas import Body, BodyTimestamp, Visible, doc, example_of, resource_of
from rota.platform.strict import FIRST_ERRORS
from rota.tasks.errors import ActionsTooLarge, TooManyActions
from rota.tasks.schemas import (
    INPUT,
    MAX_ACTIONS,
    MAX_ACTIONS_BYTES,
    MAX_TEXT,
    NAME,
    OUTPUT,
    OUTPUT_SCHEMA,
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


def _output_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        check_output_schema(schema)
    except ValueError:
        raise PydanticCustomError(
            "output_schema",
            "must be a JSON Schema of at most {kib} KiB with the type `object`",
            {"kib": MAX_SCHEMA_BYTES // 1024},
        ) from None
    return schema


def _milliseconds(moment: datetime) -> datetime:
    """As responses show it, so that a deadline that was read can be sent back."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


OutputSchema = Annotated[dict[str, Any], AfterValidator(_output_schema)]
Deadline = Annotated[BodyTimestamp, AfterValidator(_milliseconds)]


def _is_none(value: object) -> bool:
    return value is None


def _is_false(value: object) -> bool:
    return value is False


# For fields that came later: a request without them keeps the fingerprint of its Idempotency-Key.
_NOT_IF_NONE = Field(exclude_if=_is_none)
_NOT_IF_FALSE = Field(exclude_if=_is_false)


class TaskBody(Body):
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
            "The ID of the parent, for a subtask. The parent must not have ended (409). Tasks "
            "can be nested up to 8 levels deep.",
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
    output_schema: Annotated[
        OutputSchema | None,
        _NOT_IF_NONE,
        doc(
            "A JSON Schema with the type `object`, at most 32 KiB. `outputData` is then an object "
            "that matches it. Default: the agent's. Only for a task that the service runs.",
            OUTPUT_SCHEMA,
        ),
    ] = None
    budget_cents: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        _NOT_IF_NONE,
        doc(
            "The most that one run can cost, in US cents. The agent's budget is the default and "
            "the maximum. Only for a task that the service runs.",
            20,
        ),
    ] = None


class BatchTask(TaskBody):
    """A task of a batch."""

    deadline: Annotated[
        Deadline | None,
        _NOT_IF_NONE,
        doc(
            "A time in the future. If the task has not ended by then, it fails with "
            "`DEADLINE_EXCEEDED`, even if it is waiting for a person. Only for a task that the "
            "service runs.",
            "2099-01-31T12:00:00Z",
        ),
    ] = None


class CreateTask(BatchTask):
    """A task to create. With an `agent` and the status `PENDING` (the default) or
    `WAITING_APPROVAL`, the service runs it. Otherwise it is a record that your client updates."""

    dry_run: Annotated[
        bool,
        _NOT_IF_FALSE,
        doc(
            "True: creates nothing, and returns 200 with a quote: what the task can cost, which "
            "tools it can use and which approvals it needs.",
            False,
        ),
    ] = False


class CreateTasks(Body):
    """Tasks to create with one request."""

    tasks: Annotated[
        list[BatchTask],
        doc(
            "The tasks, 1 to 1,000. The whole body has at most 2 MiB.",
            min_length=1,
            max_length=1_000,
        ),
        FailFast(),
        FIRST_ERRORS,
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
    `projectId`, `parentTaskId` and `deadline`; for other fields it changes nothing."""

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
        doc("Entries to append to the action log. A task keeps at most 1,000 entries and 256 KiB."),
    ] = None
    deadline: Annotated[
        Deadline | None,
        doc(
            "The new deadline, a time in the future. Only for a task that the service runs and "
            "that is not `COMPLETED` or `CANCELLED`; otherwise 409.",
            "2099-01-31T12:00:00Z",
        ),
    ] = None
    truncated: Annotated[
        Annotated[list[CutText], Field(max_length=5)] | None,
        doc("As in the task that you read. A text that it names cannot be sent back.", []),
    ] = None


resource_of(BatchTask, CreateTask, PatchTask)(Task)


def add_actions(actions: list[str], more: list[str] | None) -> list[str]:
    """The action log with these entries."""
    if not more:
        return actions
    log = [*actions, *more]
    if len(log) > MAX_ACTIONS:
        raise TooManyActions(len(log), MAX_ACTIONS)
    if (size := sum(len(action.encode()) for action in log)) > MAX_ACTIONS_BYTES:
        raise ActionsTooLarge(size, MAX_ACTIONS_BYTES)
    return log
