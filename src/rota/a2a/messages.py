"""Messages of clients: the work in them, and the task that it becomes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from a2a.types.a2a_pb2 import Message, Part, SendMessageRequest
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    PushNotificationNotSupportedError,
)
from google.protobuf.json_format import MessageToDict

from rota.a2a.errors import refused
from rota.platform import json
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http.schemas import doc
from rota.tasks.bodies import AgentName, CreateTask
from rota.tasks.delegated import Work, parsed, task_body

# Where clients say what the protocol has no field for. Other keys belong to others.
OPTIONS = "rota"
INPUT_MODES = ("text/plain", "text/markdown", "application/json")
OUTPUT_MODES = ("text/plain", "application/json")
# What the text and the context of the message are for.
_TAKEN = {
    "input": "Send the text as parts of the message.",
    "projectId": "Send it as contextId.",
}
MAX_MESSAGE_ID = 200


class MessageWork(Work):
    """What a client says about a task: the text of the message, its context, and the options."""

    agent: Annotated[AgentName | None, doc("The name of the agent.")] = None
    approve_first: Annotated[
        bool, doc("True: a person must approve the run before it starts.", False)
    ] = False


@dataclass(frozen=True, slots=True)
class NewWork:
    # None: the words of the work choose one.
    agent: str | None
    text: str
    fields: Mapping[str, Any]
    # For the idempotency of the creation.
    key: str

    def body(self, agent: str) -> CreateTask:
        return task_body(agent, self.fields)


def new_work(request: SendMessageRequest, tenant: str) -> NewWork:
    """The task that a message without a task ID asks for."""
    message = request.message
    text = text_of(message)
    options = _options(request)
    fields = {**options, "input": text}
    if message.context_id:
        fields["projectId"] = message.context_id
    agent = parsed(MessageWork, fields).agent
    if tenant and agent and tenant != agent:
        raise ValidationFailed.of(
            FieldError(
                "agent",
                f"This URL or tenant is for the agent {tenant!r}, but metadata names {agent!r}. "
                "Remove the agent from the metadata, or use the URL of that agent.",
            )
        )
    fields.pop("agent", None)
    return NewWork(agent or tenant or None, text, fields, _key(message))


def check_configuration(request: SendMessageRequest) -> None:
    if request.configuration.HasField("task_push_notification_config"):
        raise no_push()


def no_push() -> Exception:
    return refused(
        PushNotificationNotSupportedError,
        "This agent sends no push notifications. An owner or admin of the account can add a "
        "webhook with POST /api/webhooks.",
    )


def text_of(message: Message) -> str:
    return "\n\n".join(filter(None, map(_text, message.parts)))


def _text(part: Part) -> str:
    kind = part.WhichOneof("content")
    media_type = part.media_type.partition(";")[0].strip().lower()
    if kind == "text" and (not media_type or media_type.startswith("text/")):
        return part.text
    if kind == "text" and media_type == "application/json":
        return part.text
    if kind == "data" and media_type in ("", "application/json"):
        return json.dumps(_whole(MessageToDict(part.data))).decode()
    what = part.media_type[:100] or kind or "no content"
    raise refused(
        ContentTypeNotSupportedError,
        f"Agents work on text and JSON. A part with {what} is not supported. Send its text.",
    )


def _options(request: SendMessageRequest) -> dict[str, Any]:
    """The options of the message, or else of the request."""
    for metadata in (request.message.metadata, request.metadata):
        if OPTIONS not in metadata:
            continue
        options = _whole(MessageToDict(metadata)[OPTIONS])
        if not isinstance(options, dict):
            raise ValidationFailed.of(FieldError(f"metadata.{OPTIONS}", "must be an object"))
        for name, instead in _TAKEN.items():
            if name in options:
                raise ValidationFailed.of(FieldError(f"metadata.{OPTIONS}.{name}", instead))
        return options
    return {}


def _whole(value: Any) -> Any:
    """Numbers of the protocol are floating point: whole ones become integers again. Its objects
    have no order, which would make a repeated message a different one."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {name: _whole(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return value


def _key(message: Message) -> str:
    # The prefix keeps it apart from the keys that the same client sends to the REST API.
    if len(message.message_id) <= MAX_MESSAGE_ID:
        return f"a2a {message.message_id}"
    return f"a2a sha256 {hashlib.sha256(message.message_id.encode()).hexdigest()}"
