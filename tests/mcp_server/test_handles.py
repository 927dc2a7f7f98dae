"""The tasks extension: a client that supports it gets a handle, and polls for the result."""

import asyncio
from typing import Any, Literal
from uuid import uuid4

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result

from tests.mcp_server.clients import call, connected, post
from tests.programs import new_key, signed_in
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person, Service

EXTENSION = "io.modelcontextprotocol/tasks"
WITH_TASKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
WITH_PAGES = {**WITH_TASKS, "elicitation": {"url": {}}}


class Handle(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


class GetParams(RequestParams):
    task_id: str


class GetTask(Request[GetParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: GetParams
    name_param = "taskId"


class State(Result):
    status: str
    result: CallToolResult | None = None


class Tasks(ClientExtension):
    """A client that follows handles, as an application does."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.handles: list[Handle] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Handle, resolve=self._resolve)]

    async def _resolve(self, handle: Handle, context: ClaimContext) -> CallToolResult:
        self.handles.append(handle)

        async def state() -> State:
            request = GetTask(params=GetParams(task_id=handle.task_id))
            return await context.session.send_request(request, State)

        ended = await until(state, lambda seen: seen.status == "completed")
        assert ended.result is not None
        return ended.result


async def test_the_official_client_follows_a_handle_to_the_result(
    runner: Runner, scripted: Scripted, person: Person, key: str
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": uuid4().hex})), says("Sent."))
    extension = Tasks()
    async with connected(runner.service, key, extensions=[extension]) as client:
        creating = asyncio.create_task(
            call(client, "create_task", agent="careful", input=f"Please. {script}")
        )

        async def waiting() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await person.get("/api/approvals")).json()["approvals"]
            return found

        [approval] = await until(waiting)
        await runner.approve(person, approval["task"])
        ended = await creating
    assert ended["task"]["output"] == "Sent."
    [handle] = extension.handles
    assert (handle.task_id, handle.status, handle.ttl_ms) == (ended["task"]["id"], "working", None)


async def _task(service: Service, key: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": "create_task", "arguments": {"agent": "writer", "input": "Hi", **arguments}}
    answer = await post(service, key, "tools/call", params, capabilities=WITH_TASKS)
    created: dict[str, Any] = answer.json()["result"]
    assert created["resultType"] == "task"
    return created


async def _get(service: Service, key: str, task_id: str, **options: Any) -> dict[str, Any]:
    options = {"capabilities": WITH_TASKS, **options}
    answer = await post(service, key, "tasks/get", {"taskId": task_id}, **options)
    found: dict[str, Any] = answer.json()
    return found


async def test_a_task_that_waits_for_a_person_asks_to_open_its_review(
    office: Service, person: Person, key: str
) -> None:
    task_id = (await _task(office, key, approveFirst=True))["taskId"]
    shown = (await _get(office, key, task_id, capabilities=WITH_PAGES))["result"]
    assert shown["status"] == "input_required"
    [(name, request)] = shown["inputRequests"].items()
    assert (name, request["method"]) == ("review-1", "elicitation/create")
    assert request["params"]["mode"] == "url"
    assert request["params"]["url"].endswith(f"/reviews/{task_id}")
    # Without pages, the same address is in the message.
    plain = (await _get(office, key, task_id))["result"]
    assert plain["status"] == "working"
    assert request["params"]["url"] in plain["statusMessage"]
    # What the client answers decides nothing.
    answer = {"taskId": task_id, "inputResponses": {name: {"action": "accept"}}}
    update = await post(office, key, "tasks/update", answer, capabilities=WITH_PAGES)
    assert update.json()["result"]["resultType"] == "complete"
    review = (await person.get(f"/api/tasks/{task_id}/review")).json()["review"]
    assert review["state"] == "pending"


async def test_a_handle_can_be_cancelled(office: Service, person: Person, key: str) -> None:
    task_id = (await _task(office, key, approveFirst=True))["taskId"]
    answer = await post(office, key, "tasks/cancel", {"taskId": task_id}, capabilities=WITH_TASKS)
    assert answer.json()["result"]["resultType"] == "complete"
    assert (await _get(office, key, task_id))["result"]["status"] == "cancelled"
    assert (await person.get(f"/api/tasks/{task_id}")).json()["task"]["status"] == "CANCELLED"
    again = await post(office, key, "tasks/cancel", {"taskId": task_id}, capabilities=WITH_TASKS)
    assert "result" in again.json()


async def test_a_failed_task_is_a_result_that_reports_an_error(
    runner: Runner, scripted: Scripted, key: str
) -> None:
    # More steps than the agent can take.
    script = await scripted.script(*[calls(("desk__lookup", {"ref": uuid4().hex}))] * 3)
    created = await _task(runner.service, key, agent="hasty", input=f"Please. {script}")

    async def state() -> dict[str, Any]:
        found: dict[str, Any] = (await _get(runner.service, key, created["taskId"]))["result"]
        return found

    ended = await until(state, lambda seen: seen["status"] == "completed")
    assert ended["result"]["isError"] is True
    assert ended["result"]["structuredContent"]["task"]["status"] == "FAILED"


async def test_handles_need_the_extension_and_the_account(
    office: Service, person: Person, key: str
) -> None:
    task_id = (await _task(office, key, approveFirst=True))["taskId"]
    without = await _get(office, key, task_id, capabilities={})
    assert without["error"]["code"] == -32021
    stranger = await new_key(await signed_in(office))
    for method in ("tasks/get", "tasks/cancel"):
        answer = await post(office, stranger, method, {"taskId": task_id}, capabilities=WITH_TASKS)
        assert answer.json()["error"]["data"] == {"code": "NOT_FOUND", "status": 404}
    reader = await new_key(person, ["tasks:read"])
    answer = await post(
        office, reader, "tasks/cancel", {"taskId": task_id}, capabilities=WITH_TASKS
    )
    assert answer.json()["error"]["data"]["code"] == "AUTHORIZATION_ERROR"
