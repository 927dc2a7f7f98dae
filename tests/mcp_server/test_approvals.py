"""Nothing that a program can do over MCP decides about a review."""

import pytest
from mcp.shared.exceptions import MCPError

from rota.mcp_server.tools import TOOL_NAMES
from tests.assertions import assert_error
from tests.mcp_server.clients import Generation, call, connected
from tests.service import Person, Service


async def test_no_tool_decides_about_a_review(
    office: Service, person: Person, key: str, generation: Generation
) -> None:
    async with connected(office, key, generation) as client:
        wanted = {"agent": "writer", "input": "Hello", "approveFirst": True}
        task = (await call(client, "create_task", **wanted))["task"]["id"]
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools >= TOOL_NAMES
        assert all(name in TOOL_NAMES or name.startswith("agent_") for name in tools)
        for name in ("approve_task", "reject_task", "snooze_task", "retry_task", "tasks/approve"):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, {"taskId": task})
        # Every tool that takes a task, apart from the one that cancels.
        for name in ("get_task", "wait_for_task", "list_tasks"):
            arguments = {} if name == "list_tasks" else {"taskId": task}
            await call(client, name, **arguments)
    review = (await person.get(f"/api/tasks/{task}/review")).json()["review"]
    assert (review["state"], review["history"]) == ("pending", [])


async def test_the_credential_of_a_program_cannot_decide_elsewhere(
    office: Service, person: Person, key: str
) -> None:
    body = {"name": "A task", "agent": "writer", "status": "WAITING_APPROVAL"}
    task = (await person.post("/api/tasks", body)).json()["task"]["id"]
    headers = {"Authorization": f"Bearer {key}"}
    for action in ("approve", "reject"):
        answer = await office.http.post(f"/api/tasks/{task}/{action}", headers=headers)
        assert_error(answer, 403, "AUTHORIZATION_ERROR")
