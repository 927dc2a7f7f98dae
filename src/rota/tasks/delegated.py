"""Work that programs hand in, through the MCP server and through A2A: what they can say about a
task, and the body of the REST API that it becomes."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import Field, ValidationError

from rota.platform import ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http import examples
from rota.platform.http.schemas import Body, doc
from rota.platform.strict import MAX_ERRORS
from rota.platform.validation_words import problem
from rota.tasks.bodies import (
    BodyPriority,
    CreateTask,
    Deadline,
    Description,
    LongText,
    Name,
    OutputSchema,
)
from rota.tasks.schemas import INPUT, OUTPUT_SCHEMA, Id

A = TypeVar("A", bound=Body)

# The name of a task whose creator gives none is the beginning of its input.
NAME_CHARACTERS = 80


class Work(Body):
    """A task for an agent that is already known."""

    input: Annotated[
        LongText, doc("What the agent works on. At most 50,000 characters.", INPUT, min_length=1)
    ]
    name: Annotated[
        Name | None, doc("A display name. Default: the beginning of the input.", "Laptop checklist")
    ] = None
    description: Description | None = None
    project_id: Annotated[
        Id | None, doc("A label of your own for grouping tasks.", examples.PROJECT)
    ] = None
    parent_task_id: Annotated[
        Id | None, doc("The ID of the parent, for a subtask.", examples.TASK_ID)
    ] = None
    priority: BodyPriority = 0
    budget_cents: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        doc("The most that one run can cost, in US cents. Default: the agent's budget.", 20),
    ] = None
    deadline: Annotated[
        Deadline | None,
        doc(
            "The time (ISO 8601) at which the task fails if it has not ended.",
            "2099-01-31T12:00:00Z",
        ),
    ] = None
    output_schema: Annotated[
        OutputSchema | None,
        doc("A JSON Schema of type `object` for the result, `outputData`.", OUTPUT_SCHEMA),
    ] = None


def parsed(kind: type[A], arguments: Mapping[str, Any] | None) -> A:
    """The arguments, or the error that the REST API would return for such a body."""
    try:
        return kind.model_validate(dict(arguments or {}))
    except ValidationError as error:
        raise _failed(error) from None


def task_body(agent: str, arguments: Mapping[str, Any]) -> CreateTask:
    """The body of POST /api/tasks for arguments that were checked."""
    fields = {name: value for name, value in arguments.items() if value is not None}
    fields.pop("idempotencyKey", None)
    if fields.pop("approveFirst", False):
        fields["status"] = "WAITING_APPROVAL"
    fields.setdefault("name", _name_of(fields["input"], agent))
    try:
        return CreateTask.model_validate({**fields, "agent": agent})
    except ValidationError as error:
        raise _failed(error) from None


def _name_of(text: str, agent: str) -> str:
    """The first line of the input, if it shows anything."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(line) > NAME_CHARACTERS:
        line = line[: NAME_CHARACTERS - 1].rstrip() + "…"
    return line if any(character.isalnum() for character in line) else f"Task for {agent}"


def _failed(error: ValidationError) -> ValidationFailed:
    return ValidationFailed.of(
        *[
            FieldError(".".join(map(str, item["loc"]))[:200], problem(item))
            for item in error.errors()[:MAX_ERRORS]
        ]
    )


def review_url(public_url: str, account_id: UUID, task_id: UUID) -> str:
    """The page of the dashboard where a person decides."""
    account, task = ids.to_wire("acct", account_id), ids.to_wire("task", task_id)
    return f"{public_url.rstrip('/')}/{account}/reviews/{task}"
