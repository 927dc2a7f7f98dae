"""Clients of the A2A agent: the official one on both bindings, and plain HTTP for what it would
never send."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct

from tests.service import Service

Binding = Literal["JSONRPC", "HTTP+JSON"]
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "HTTP+JSON")
VERSION = {"A2A-Version": "1.0"}
# A message as JSON.
SENT: dict[str, Any] = {
    "message": {
        "messageId": "1",
        "role": "ROLE_USER",
        "parts": [{"text": "Hello"}],
        "metadata": {"rota": {"agent": "writer", "approveFirst": True}},
    }
}
# The statuses of the REST API, by the state of the protocol.
STATUS_OF = {
    "TASK_STATE_SUBMITTED": "PENDING",
    "TASK_STATE_WORKING": "RUNNING",
    "TASK_STATE_INPUT_REQUIRED": "WAITING_APPROVAL",
    "TASK_STATE_COMPLETED": "COMPLETED",
    "TASK_STATE_FAILED": "FAILED",
    "TASK_STATE_CANCELED": "CANCELLED",
}


def url_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}/a2a"


class Delegate:
    """The official client, signed in with a key or an access token."""

    def __init__(self, card: wire.AgentCard, streaming: Client, blocking: Client) -> None:
        self.card = card
        self._streaming = streaming
        self._blocking = blocking

    async def send(self, message: wire.Message, *, wait: bool = True, **more: Any) -> wire.Task:
        """The task of a message. Without `wait`, as it is after its creation."""
        request = wire.SendMessageRequest(message=message, **more)
        if not wait:
            request.configuration.return_immediately = True
        [found] = [each async for each in self._blocking.send_message(request)]
        return found.task

    def stream(self, message: wire.Message) -> AsyncIterator[wire.StreamResponse]:
        return self._streaming.send_message(wire.SendMessageRequest(message=message))

    def subscribe(self, task_id: str) -> AsyncIterator[wire.StreamResponse]:
        return self._streaming.subscribe(wire.SubscribeToTaskRequest(id=task_id))

    async def get(self, task_id: str, history: int | None = None) -> wire.Task:
        return await self._streaming.get_task(
            wire.GetTaskRequest(id=task_id, history_length=history)
        )

    async def list(self, **filters: Any) -> wire.ListTasksResponse:
        return await self._streaming.list_tasks(wire.ListTasksRequest(**filters))

    async def cancel(self, task_id: str) -> wire.Task:
        return await self._streaming.cancel_task(wire.CancelTaskRequest(id=task_id))

    async def extended_card(self) -> wire.AgentCard:
        return await self._streaming.get_extended_agent_card(wire.GetExtendedAgentCardRequest())

    async def push_config(self, task_id: str, token: str) -> wire.TaskPushNotificationConfig:
        return await self._streaming.create_task_push_notification_config(
            wire.TaskPushNotificationConfig(
                task_id=task_id, url="https://example.com/hook", token=token
            )
        )


@asynccontextmanager
async def connected(
    service: Service,
    credential: str,
    binding: Binding = "JSONRPC",
    *,
    agent: str | None = None,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Delegate]:
    """With an agent, its own card is used, and the client adds the tenant to every request."""
    sent = {"Authorization": f"Bearer {credential}", **(headers or {})}
    base = url_of(service) if agent is None else f"{url_of(service)}/{agent}"
    async with httpx.AsyncClient(headers=sent, timeout=300) as http:
        card = await A2ACardResolver(http, base).get_agent_card()
        for interface in card.supported_interfaces:
            # The public URL of a process that a test adds is that of the first one.
            interface.url = url_of(service)

        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding]
            )
            return ClientFactory(config).create(card)

        yield Delegate(card, client(True), client(False))


def message(
    text: str,
    agent: str | None = None,
    *,
    message_id: str | None = None,
    context: str = "",
    task: str = "",
    **options: Any,
) -> wire.Message:
    """A message for an agent. The options are those of `metadata.rota`."""
    if agent is not None:
        options["agent"] = agent
    return wire.Message(
        message_id=message_id or uuid4().hex,
        role=wire.ROLE_USER,
        context_id=context,
        task_id=task,
        parts=[wire.Part(text=text)],
        metadata=ParseDict({"rota": options}, Struct()) if options else None,
    )


def state(task: wire.Task | wire.TaskStatusUpdateEvent) -> str:
    return wire.TaskState.Name(task.status.state)


def details(task: wire.Task) -> dict[str, Any]:
    """What the metadata says: the task as the REST API shows it, apart from its texts."""
    found: dict[str, Any] = MessageToDict(task.metadata)["rota"]
    return found


def output(task: wire.Task) -> Any:
    """The text or the data of the result. None if there is none."""
    if not task.artifacts:
        return None
    [part] = task.artifacts[0].parts
    return part.text if part.HasField("text") else MessageToDict(part.data)


def refusal(error: A2AError) -> dict[str, Any]:
    """The code and status of the REST API, and the ID of the request."""
    assert isinstance(error.data, dict), error
    return error.data


async def rpc(
    service: Service,
    credential: str | None,
    method: str = "ListTasks",
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """One JSON-RPC request, as a program without an SDK sends it."""
    sent = VERSION | _bearer(credential) | (headers or {})
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return await service.http.post("/a2a", headers=sent, json=body)


async def rest(
    service: Service,
    credential: str | None,
    path: str = "/tasks",
    body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    method: str | None = None,
) -> httpx.Response:
    """One request of the HTTP+JSON binding."""
    sent = VERSION | _bearer(credential) | (headers or {})
    verb = method or ("GET" if body is None else "POST")
    return await service.http.request(verb, f"/a2a{path}", headers=sent, json=body)


def _bearer(credential: str | None) -> dict[str, str]:
    return {} if credential is None else {"Authorization": f"Bearer {credential}"}
