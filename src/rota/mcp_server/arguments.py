"""The arguments of the tools, checked as strictly as the bodies of the REST API."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from rota.platform.http import examples
from rota.platform.http.schemas import Body, doc
from rota.tasks.bodies import AgentName
from rota.tasks.delegated import Work
from rota.tasks.schemas import Id
from rota.tasks.states import Status

MAX_WAIT_S = 300
DEFAULT_WAIT_S = 45

TaskId = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)],
    doc("The ID of the task, `task_…`.", examples.TASK_ID),
]


class FindAgents(Body):
    query: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        doc(
            "Words that describe the work. The best match comes first. Default: all agents.",
            "checklist",
        ),
    ] = None
    department: Annotated[
        Annotated[str, Field(max_length=200)] | None, doc("Only this department.", "Operations")
    ] = None
    page: Annotated[int, doc("The page number, from 1.", 1, ge=1, le=2**31 - 1)] = 1
    limit: Annotated[int, doc("The maximum number of agents on a page.", 20, ge=1, le=50)] = 20


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
            "The maximum time to wait. If the task has not ended by then, the answer says "
            "so. Call again with `afterSequence` to continue.",
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
    limit: Annotated[int, doc("The maximum number of tasks on a page.", 20, ge=1, le=50)] = 20
    offset: Annotated[int, doc("How many tasks to skip.", 0, ge=0, le=2**31 - 1)] = 0


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
