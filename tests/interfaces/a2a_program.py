"""The A2A agent, with the official client."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import A2AError, UnsupportedOperationError

from tests.a2a.client import STATUS_OF, details, message, output, state
from tests.interfaces.interfaces import ENDED, RESTS, Json, Refused
from tests.runs.runner import until

ATTEMPTS = 20


class A2a:
    """Each call connects again, as a program does that is started anew."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/a2a"
        self._token = token

    @contextlib.asynccontextmanager
    async def _connected(self, *, streaming: bool = False) -> AsyncIterator[Client]:
        refusals: list[httpx.Response] = []

        async def note(response: httpx.Response) -> None:
            if response.status_code in (401, 403, 429):
                await response.aread()
                refusals.append(response)

        headers = {"Authorization": f"Bearer {self._token}"}
        hooks = {"response": [note]}
        async with httpx.AsyncClient(headers=headers, timeout=60, event_hooks=hooks) as http:
            try:
                card = await A2ACardResolver(http, self._url).get_agent_card()
                for interface in card.supported_interfaces:
                    # A proxy has another address than the service says.
                    interface.url = self._url
                config = ClientConfig(streaming=streaming, httpx_client=http)
                yield ClientFactory(config).create(card)
            except A2AError as error:
                found = error.data if isinstance(error.data, dict) else {}
                if "code" in found:
                    status = int(found["status"])
                    reason = {"reason": found["reason"]} if "reason" in found else None
                    raise Refused(found["code"], status, found.get("errors") or reason) from None
                if isinstance(error, UnsupportedOperationError):
                    raise Refused(type(error).__name__) from None
                self._refuse(refusals)
                raise
            except Exception:
                # The protocol has no place for the body of a request that HTTP refuses.
                self._refuse(refusals)
                raise

    def _refuse(self, refusals: list[httpx.Response]) -> None:
        if refusals:
            error = refusals[0].json()["error"]
            raise Refused(error["code"], refusals[0].status_code, error.get("details")) from None

    async def _send(self, sent: wire.Message) -> wire.Task:
        request = wire.SendMessageRequest(message=sent)
        request.configuration.return_immediately = True
        async with self._connected() as client:
            [found] = [each async for each in client.send_message(request)]
        return found.task

    async def create(self, key: str | None = None, **fields: Any) -> str:
        text, agent = fields.pop("input"), fields.pop("agent")
        return (await self._send(message(text, agent, message_id=key, **fields))).id

    async def get(self, task_id: str) -> Json:
        async with self._connected() as client:
            return shown(await client.get_task(wire.GetTaskRequest(id=task_id)))

    async def wait(self, task_id: str) -> Json:
        return await until(lambda: self.get(task_id), lambda task: task["status"] in RESTS)

    async def cancel(self, task_id: str) -> Json:
        async with self._connected() as client:
            return shown(await client.cancel_task(wire.CancelTaskRequest(id=task_id)))

    async def follow(self, task_id: str) -> list[str]:
        """The events since each connection. A new one begins with the present state, and a task
        that has ended cannot be subscribed to."""
        types: list[str] = []
        failed: Exception | None = None
        for _ in range(ATTEMPTS):
            try:
                if (status := (await self.get(task_id))["status"]) in ENDED:
                    end = f"task.{status.lower()}"
                    return types if end in types else [*types, end]
                await self._subscribe(task_id, types)
            except Exception as error:
                failed = error
        raise AssertionError("every connection was cut") from failed

    async def _subscribe(self, task_id: str, types: list[str]) -> None:
        async with self._connected(streaming=True) as client:
            request = wire.SubscribeToTaskRequest(id=task_id)
            async for each in client.subscribe(request):
                if each.HasField("status_update"):
                    seen = each.status_update.metadata.fields["rota"].struct_value
                    types.append(str(seen["event"]))

    async def approve(self, task_id: str) -> None:
        await self._send(message("I approve.", task=task_id))

    async def close(self) -> None:
        return None


def shown(task: wire.Task) -> Json:
    """The task as the REST API shows it."""
    result = output(task)
    data = result if isinstance(result, dict) else None
    whole: Json = _whole(
        {
            **details(task),
            "status": STATUS_OF[state(task)],
            "output": None if data is not None else result,
            "outputData": data,
        }
    )
    return whole


def _whole(value: Any) -> Any:
    """Numbers of the protocol are floating point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value
