"""Every interface of the service behind the same few methods: REST, the SDKs and the command line.

The drivers are those of tests/sdk. programs.py and a2a_program.py have the interfaces for programs.
"""

import json
from typing import Any, Protocol

import httpx
from pydantic.alias_generators import to_snake

from rota_sdk import Event, errors
from tests.runs.runner import until
from tests.sdk.any_client import AnyClient
from tests.sdk.command_line import Program
from tests.sdk.typescript.remote import RemoteCall, RemoteClient

Json = dict[str, Any]

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
RESTS = (*ENDED, "WAITING_APPROVAL")


class Refused(Exception):
    """What an interface says instead of doing it."""

    def __init__(self, code: str | None, status: int | None = None, details: Any = None) -> None:
        super().__init__(code, status, details)
        self.code, self.status, self.details = code, status, details


class Interface(Protocol):
    """Fields have the names of the REST API. A task is as the REST API shows it."""

    async def create(self, key: str | None = None, **fields: Any) -> str:
        """The ID of the new task."""

    async def get(self, task_id: str) -> Json: ...

    async def wait(self, task_id: str) -> Json:
        """The task when it has ended, or waits for a person."""

    async def cancel(self, task_id: str) -> Json: ...

    async def follow(self, task_id: str) -> list[str]:
        """The types of all events of the task, until it ends."""

    async def approve(self, task_id: str) -> None: ...

    async def close(self) -> None: ...


class Rest:
    """Plain HTTP. It is what the others are compared with."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=60)

    async def _send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self._http.request(method, path, json=body, headers=headers)
        found = answer.json()
        if not answer.is_success:
            error = found["error"]
            raise Refused(error["code"], answer.status_code, error.get("details"))
        return found

    async def create(self, key: str | None = None, **fields: Any) -> str:
        task_id: str = (await self._send("POST", "/api/tasks", fields, key))["task"]["id"]
        return task_id

    async def get(self, task_id: str) -> Json:
        task: Json = (await self._send("GET", f"/api/tasks/{task_id}"))["task"]
        return task

    async def wait(self, task_id: str) -> Json:
        return await until(lambda: self.get(task_id), lambda task: task["status"] in RESTS)

    async def cancel(self, task_id: str) -> Json:
        body = {"status": "CANCELLED"}
        task: Json = (await self._send("PATCH", f"/api/tasks/{task_id}", body))["task"]
        return task

    async def follow(self, task_id: str) -> list[str]:
        types: list[str] = []
        last = 0
        while not types or types[-1].removeprefix("task.").upper() not in ENDED:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
            try:
                path = f"/api/tasks/{task_id}/events"
                async with self._http.stream("GET", path, headers=headers) as stream:
                    assert stream.status_code == 200
                    async for line in stream.aiter_lines():
                        if line.startswith("data:") and "sequence" in (data := _data(line)):
                            last = data["sequence"]
                            types.append(data["type"])
            except httpx.TransportError:
                continue
        return types

    async def approve(self, task_id: str) -> None:
        review = (await self._send("GET", f"/api/tasks/{task_id}/review"))["review"]
        shown = {"number": review["number"], "digest": review["digest"]}
        await self._send("POST", f"/api/tasks/{task_id}/approve", {"review": shown})

    async def close(self) -> None:
        await self._http.aclose()


def _data(line: str) -> Json:
    found = json.loads(line.removeprefix("data:"))
    return found if isinstance(found, dict) else {}


class Sdk:
    """A client with the methods of the SDKs."""

    def __init__(self, client: AnyClient) -> None:
        self._client = client

    async def _use(self, method: Any) -> Any:
        try:
            return await self._client(method)
        except errors.APIError as error:
            raise Refused(error.code, error.status, error.details) from None
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise Refused("TypeError") from None

    async def create(self, key: str | None = None, **fields: Any) -> str:
        client = self._client.wrapped
        if "colour" in fields and isinstance(client, RemoteClient):
            return await self._untyped(client, fields)
        if "colour" in fields and hasattr(client, "_program"):
            return await self._option(client._program, fields)
        given = {to_snake(name): value for name, value in fields.items()}
        task = await self._use(lambda c: c.tasks.create(idempotency_key=key, **given))
        return str(task.id)

    async def _untyped(self, client: RemoteClient, fields: Json) -> str:
        """A program in JavaScript, which no compiler checks."""
        create = client.tasks.create
        call = RemoteCall(create.program, create.options, create.path, [fields], Any)
        return str((await self._use(lambda _: call))["id"])

    async def _option(self, program: Program, fields: Json) -> str:
        arguments = ["tasks", "create", fields["name"], "--colour", fields["colour"], "--json"]
        code, _, err = await program.run(*arguments)
        error = json.loads(err)["error"]
        raise Refused(error["code"] or f"exit code {code}", error["status"], error["details"])

    async def get(self, task_id: str) -> Json:
        return shown(await self._use(lambda c: c.tasks.get(task_id)))

    async def wait(self, task_id: str) -> Json:
        return shown(
            await self._use(lambda c: c.tasks.wait(task_id, until_review=True, timeout=120))
        )

    async def cancel(self, task_id: str) -> Json:
        return shown(await self._use(lambda c: c.tasks.cancel(task_id)))

    async def follow(self, task_id: str) -> list[str]:
        events = await self._client.all(lambda c: c.tasks.follow(task_id))
        return [event.type for event in events if isinstance(event, Event)]

    async def approve(self, task_id: str) -> None:
        review = await self._use(lambda c: c.tasks.review(task_id))
        await self._use(lambda c: c.tasks.approve(task_id, review=review))

    async def close(self) -> None:
        await self._client.close()


def shown(task: Any) -> Json:
    """A model of the SDK as JSON."""
    found: Json = task.model_dump(mode="json", by_alias=True)
    return found
