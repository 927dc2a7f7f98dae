"""The arguments of the tools, checked as strictly as the bodies of the REST API."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http import examples
from rota.platform.http.schemas import Body, doc
from rota.platform.strict import MAX_ERRORS
from rota.platform.validation_words import problem
from rota.tasks.bodies import (
    AgentName,
    BodyPriority,
    CreateTask,
    Deadline,
    Description,
    LongText,
    Name,
    OutputSchema,
)
from rota.tasks.schemas import INPUT, OUTPUT_SCHEMA, Id
from rota.tasks.states import Status

A = TypeVar("A", bound=Body)

MAX_WAIT_S = 300
DEFAULT_WAIT_S = 45
# The name of a task whose creator gives none is the beginning of its input.
NAME_CHARACTERS = 80

TaskId = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)],
    doc("The ID of the task, `task_…`.", examples.TASK_ID),
]


class FindAgents(Body):
    query: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        doc("Words for the work. The best match comes first. Default: all agents.", "checklist"),
    ] = None
    department: Annotated[
        Annotated[str, Field(max_length=200)] | None, doc("Only this department.", "Operations")
    ] = None
    page: Annotated[int, doc("The page number, from 1.", 1, ge=1, le=2**31 - 1)] = 1
    limit: Annotated[int, doc("The most agents on a page.", 20, ge=1, le=50)] = 20


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
        doc("When the task fails if it has not ended, in ISO 8601.", "2099-01-31T12:00:00Z"),
    ] = None
    output_schema: Annotated[
        OutputSchema | None,
        doc("A JSON Schema of type `object` for the result, `outputData`.", OUTPUT_SCHEMA),
    ] = None


class AgentWork(Work):
    approve_first: Annotated[
        bool, doc("True: a person must approve the run before it starts.", False)
    ] = False
    idempotency_key: Annotated[
        Annotated[str, Field(min_length=1, max_length=255)] | None,
        doc(
            "A unique value, such as a UUID. For 24 hours, the same key with the same arguments "
            "returns the same task instead of a second one. Send it, so that a call whose answer "
            "was lost can be repeated.",
            "5f0c7a52-9c0e-4d0b-8a0e-2f7d1f6f2b11",
        ),
    ] = None


class QuoteTask(Work):
    agent: Annotated[AgentName, doc("The name of the agent. `find_agents` lists them.")]


class NewTask(AgentWork):
    agent: Annotated[AgentName, doc("The name of the agent. `find_agents` lists them.")]


class OneTask(Body):
    task_id: TaskId


class WaitForTask(OneTask):
    after_sequence: Annotated[
        Annotated[int, Field(ge=0, le=2**53)] | None,
        doc(
            "The `lastSequence` of the last answer. The wait continues there: it ends with what "
            "happened since. Without it, a task that already waits for a person returns at once.",
            41,
        ),
    ] = None
    wait_seconds: Annotated[
        int,
        doc(
            "How long to wait at most. If the task has not ended by then, the answer says so. "
            "Call again with `afterSequence` to go on.",
            DEFAULT_WAIT_S,
            ge=0,
            le=MAX_WAIT_S,
        ),
    ] = DEFAULT_WAIT_S


class ListTasks(Body):
    status: Annotated[
        list[Status] | None, doc("Only tasks in one of these states.", ["RUNNING"], max_length=6)
    ] = None
    agent: Annotated[AgentName | None, doc("Only tasks of this agent.")] = None
    project_id: Annotated[Id | None, doc("Only tasks with this label.", examples.PROJECT)] = None
    query: Annotated[
        Annotated[str, Field(min_length=1, max_length=255)] | None,
        doc("Only tasks with all of these words, or words that begin with them.", "laptop"),
    ] = None
    limit: Annotated[int, doc("The most tasks on a page.", 20, ge=1, le=50)] = 20
    offset: Annotated[int, doc("How many tasks to skip.", 0, ge=0, le=2**31 - 1)] = 0


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
        *(
            FieldError(".".join(map(str, item["loc"]))[:200], problem(item))
            for item in error.errors()[:MAX_ERRORS]
        )
    )


def schema_of(kind: type[Body]) -> dict[str, Any]:
    """The JSON Schema of the arguments, without what only repeats the names."""
    schema = kind.model_json_schema(by_alias=True)
    return {"type": "object", **_plain(schema, schema.get("$defs", {}))}


def _plain(value: Any, shared: Mapping[str, Any]) -> Any:
    """Without titles and references, which some clients do not resolve."""
    if isinstance(value, list):
        return [_plain(each, shared) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        found = shared[value["$ref"].rpartition("/")[2]]
        value = {**found, **{name: each for name, each in value.items() if name != "$ref"}}
    if "anyOf" in value:
        # Absent and null are the same, so the schema does not offer null.
        kept = [each for each in value["anyOf"] if each != {"type": "null"}]
        rest = {name: each for name, each in value.items() if name != "anyOf"}
        value = {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}
    plain = {}
    for name, each in value.items():
        if name == "properties":
            plain[name] = {key: _plain(field, shared) for key, field in each.items()}
        elif name in ("examples", "default") and each is not None:
            plain[name] = each
        elif name not in ("title", "$defs", "default", "x-example-fields"):
            plain[name] = _plain(each, shared)
    return plain
