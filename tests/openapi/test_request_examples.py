"""The example of every request body works when it is sent as the description shows it.

Five examples cannot: an ID token and a code work once, the example of a tool server has to be
replaced with one that exists, and so have the hash of a definition and the server of a rule. The
description says so.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from rota.platform import ids
from tests.auth.browser import Browser
from tests.mcp.peers import Peer, definition
from tests.openapi.document import operations, shapes
from tests.service import Person, Service
from tests.tasks.world import create

Send = Callable[[dict[str, Any]], Awaitable[httpx.Response]]


class Sender:
    """Sends each example to its operation, after what it needs exists."""

    def __init__(self, service: Service, person: Person, peer: Peer) -> None:
        self._service = service
        self._person = person
        self._peer = peer

    async def send(
        self, operation: str, method: str, path: str, body: dict[str, Any]
    ) -> httpx.Response:
        if operation == "start_session":
            body = body | {"idToken": await self._service.id_token("example")}
        if operation == "start_session_by_code":
            async with Browser(self._service) as browser:
                body = body | browser.body(await browser.code(), cookie=body["cookie"])
        if operation == "connect_server":
            body = body | {"url": self._peer.url}
        if operation == "create_rule":
            servers = (await self._person.get("/api/mcp")).json()["servers"]
            body = body | {"serverId": servers[0]["id"]}
        if operation == "erase_account":
            # The person is still needed for the examples after it.
            leaving = await self._service.sign_in()
            account = (await leaving.get("/api/me")).json()["account"]
            return await leaving.request("DELETE", path, json=body | {"name": account["name"]})
        if "{id}" in path:
            path = path.replace("{id}", await self._resource(operation))
            path = path.replace("{userId}", ids.to_wire("user", self._person.user_id))
        if operation == "accept_tools":
            listed = (await self._person.get(path.replace("/accept", "/tools"))).json()["tools"]
            hashes = {tool["name"]: tool["hash"] for tool in listed}
            body = {"tools": [each | {"hash": hashes[each["name"]]} for each in body["tools"]]}
        return await self._person.request(method.upper(), path, json=body)

    async def _resource(self, operation: str) -> str:
        if operation in ("update_server", "invoke_tool", "accept_tools"):
            servers = (await self._person.get("/api/mcp")).json()["servers"]
            return str(servers[0]["id"])
        if operation in ("patch_company", "patch_member", "create_invitation"):
            accounts = (await self._person.get("/api/me")).json()["accounts"]
            return str(accounts[1]["id"])
        if operation == "patch_schedule":
            schedules = (await self._person.get("/api/schedules")).json()["schedules"]
            return str(schedules[0]["id"])
        if "webhook" in operation:
            made = await self._person.post("/api/webhooks", {"url": self._peer.url})
            return str(made.json()["webhook"]["id"])
        status = {"retry_task": "FAILED", "patch_task": "PENDING"}.get(
            operation, "WAITING_APPROVAL"
        )
        task = await create(self._person, agent="process-writer", status=status)
        return str(task["id"])


async def test_every_request_example_works_as_shown(furnished: Service) -> None:
    description = (await furnished.http.get("/openapi.json")).json()
    sent = set()
    async with Peer().serve() as peer:
        # The tool that the examples are about.
        peer.tools["create_draft"] = definition("create_draft")
        sender = Sender(furnished, await furnished.sign_in(), peer)
        for method, path, operation in operations(description):
            for name, shape in shapes(description, operation):
                if name == "request":
                    (example,) = shape["examples"]
                    name = operation["operationId"]
                    response = await sender.send(name, method, path, example)
                    assert response.is_success, (name, example, response.text)
                    sent.add(name)
    assert sent >= {"create_task", "top_up", "connect_server", "invoke_tool", "start_session"}


async def test_the_example_of_a_task_runs_on_the_shipped_catalog(furnished: Service) -> None:
    person = await furnished.sign_in()
    description = (await furnished.http.get("/openapi.json")).json()
    example = description["components"]["examples"]["CreateTask"]["value"]
    task = (await person.post("/api/tasks", example)).json()["task"]
    assert task["assignedAgent"] == example["agent"]
    assert task["status"] == "PENDING"


async def test_examples_show_every_field_of_a_response(
    furnished: Service,
) -> None:
    """Every field of a response is also in its example."""
    person = await furnished.sign_in()
    description = (await furnished.http.get("/openapi.json")).json()
    examples = description["components"]["examples"]
    for path, name in (
        ("/api/me", "MeResponse"),
        ("/api/credits/balance", "BalanceResponse"),
        ("/api/subscriptions", "SubscriptionsResponse"),
        ("/api/agents/process-writer", "AgentResponse"),
        ("/api/agents", "AgentsResponse"),
        ("/api/auth/config", "AuthConfigResponse"),
    ):
        response = (await person.get(path)).json()
        assert response.keys() == examples[name]["value"].keys(), path
