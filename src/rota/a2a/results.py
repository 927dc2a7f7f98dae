"""Tasks of this service as tasks of the protocol, and their events as updates."""

from datetime import datetime
from typing import Any
from uuid import UUID

from a2a.types import a2a_pb2 as wire
from google.protobuf.json_format import Error, MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value

from rota.a2a.messages import OPTIONS
from rota.events.journal import Event
from rota.platform import ids
from rota.tasks import schemas
from rota.tasks.delegated import review_url
from rota.tasks.model import ListedTask, Task, output_data
from rota.tasks.states import Status

STATE_OF: dict[Status, wire.TaskState] = {
    "PENDING": wire.TASK_STATE_SUBMITTED,
    "RUNNING": wire.TASK_STATE_WORKING,
    "WAITING_APPROVAL": wire.TASK_STATE_INPUT_REQUIRED,
    "COMPLETED": wire.TASK_STATE_COMPLETED,
    "FAILED": wire.TASK_STATE_FAILED,
    "CANCELLED": wire.TASK_STATE_CANCELED,
}
STATUS_OF = {state: status for status, state in STATE_OF.items()}
Update = wire.TaskArtifactUpdateEvent | wire.TaskStatusUpdateEvent

# Parsers of the protocol's messages read 100 levels, and a level of JSON takes two. The result of a
# task is some levels below the beginning of a response.
MAX_MESSAGE_DEPTH = 80
# The metadata has the task as the REST API shows it, apart from what the protocol has fields for.
_ELSEWHERE = ("input", "output", "outputData", "outputSchema", "description", "metadata")


def context_of(task: Task) -> str:
    """The label that groups tasks. A task without one is a context of its own."""
    return task.project_id or ids.to_wire("task", task.id)


class Presenter:
    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def review_url(self, account_id: UUID, task: Task) -> str:
        return review_url(self._public_url, account_id, task.id)

    def task(self, account_id: UUID, task: Task, history: int | None) -> wire.Task:
        """The task with at most this many messages of its history. None: all."""
        task_id = ids.to_wire("task", task.id)
        shown = wire.Task(
            id=task_id,
            context_id=context_of(task),
            status=self._status(account_id, task, f"{task_id}-status"),
            metadata=_struct({OPTIONS: self._details(account_id, task)}),
        )
        if history is None or history > 0:
            # What a client may have sent besides the text is not stored.
            shown.history.append(
                wire.Message(
                    message_id=f"{task_id}-input",
                    task_id=task_id,
                    context_id=shown.context_id,
                    role=wire.ROLE_USER,
                    parts=[wire.Part(text=task.input, media_type="text/plain")],
                )
            )
        if (artifact := _artifact(task)) is not None:
            shown.artifacts.append(artifact)
        return shown

    def updates(self, account_id: UUID, task: Task, event: Event, status: Status) -> list[Update]:
        """What a stream says about an event. The task is as it is after all events that were read,
        and the status as it is after this one. The result comes before the status that ends the
        task."""
        task_id, context_id = ids.to_wire("task", task.id), context_of(task)
        seen: dict[str, Any] = {"event": event.type, "sequence": event.sequence}
        if isinstance(step := event.data.get("step"), int):
            seen["step"] = step
        changed = "status" in event.data
        if changed and status == task.status:
            shown = self._status(account_id, task, f"{task_id}-{event.sequence}")
        else:
            # A step, or a status that another has followed.
            shown = wire.TaskStatus(state=STATE_OF[status])
        _set_time(shown, event.created_at)
        found: list[Update] = []
        if changed and status == "COMPLETED" and (artifact := _artifact(task)) is not None:
            found.append(
                wire.TaskArtifactUpdateEvent(
                    task_id=task_id, context_id=context_id, artifact=artifact, last_chunk=True
                )
            )
        found.append(
            wire.TaskStatusUpdateEvent(
                task_id=task_id,
                context_id=context_id,
                status=shown,
                metadata=_struct({OPTIONS: seen}),
            )
        )
        return found

    def _status(self, account_id: UUID, task: Task, message_id: str) -> wire.TaskStatus:
        status = wire.TaskStatus(state=STATE_OF[task.status])
        _set_time(status, task.updated_at)
        parts = self._words(account_id, task)
        if parts:
            status.message.CopyFrom(
                wire.Message(
                    message_id=message_id,
                    task_id=ids.to_wire("task", task.id),
                    context_id=context_of(task),
                    role=wire.ROLE_AGENT,
                    parts=parts,
                )
            )
        return status

    def _words(self, account_id: UUID, task: Task) -> list[wire.Part]:
        if task.status == "WAITING_APPROVAL":
            url = self.review_url(account_id, task)
            text = (
                f"A person must decide at {url}. A message cannot approve or reject it. The task "
                "continues automatically after the decision."
            )
            data = Value(struct_value=_struct({"reviewUrl": url}))
            return [
                wire.Part(text=text, media_type="text/plain"),
                wire.Part(data=data, media_type="application/json"),
            ]
        if task.status == "FAILED" and task.error is not None:
            text = f"{task.error.get('code')}: {task.error.get('message')}"
            return [wire.Part(text=text, media_type="text/plain")]
        return []

    def _details(self, account_id: UUID, task: Task) -> dict[str, Any]:
        shown = schemas.Task.of(task).model_dump(mode="json", by_alias=True)
        details = {name: value for name, value in shown.items() if name not in _ELSEWHERE}
        if task.status == "WAITING_APPROVAL":
            details["reviewUrl"] = self.review_url(account_id, task)
        return details


def _artifact(task: Task) -> wire.Artifact | None:
    """The result: data if it has a schema, and text otherwise."""
    if task.output is None:
        return None
    artifact = wire.Artifact(artifact_id=f"output-{task.run}", name="output")
    data = output_data(task)
    if data is not None and _fits(data):
        value = Value(struct_value=_struct(data))
        artifact.parts.append(wire.Part(data=value, media_type="application/json"))
        return artifact
    media_type = "text/plain" if task.output_schema is None else "application/json"
    artifact.parts.append(wire.Part(text=task.output, media_type=media_type))
    if isinstance(task, ListedTask) and "output" in task.truncated:
        artifact.metadata.CopyFrom(_struct({OPTIONS: {"truncated": True}}))
    return artifact


def _struct(data: dict[str, Any]) -> Struct:
    return ParseDict(data, Struct())


def _fits(data: dict[str, Any]) -> bool:
    """Whether clients can read it, with all numbers: those of the protocol are floating point."""
    try:
        read = ParseDict(data, Struct(), max_recursion_depth=MAX_MESSAGE_DEPTH)
        return bool(MessageToDict(read) == data)
    except (Error, ValueError, OverflowError, RecursionError):
        return False


def _set_time(status: wire.TaskStatus, moment: datetime) -> None:
    # The protocol has milliseconds.
    status.timestamp.FromMilliseconds(int(moment.timestamp() * 1000))
