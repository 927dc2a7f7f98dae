"""A program gives a task to an agent, waits for it, and a person decides in between."""

import asyncio
from typing import Any
from uuid import uuid4

from tests.mcp_server.clients import Generation, call, connected, refusal
from tests.programs import new_key, signed_in
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person


async def test_a_program_creates_a_task_a_person_approves_and_the_task_is_charged(
    runner: Runner, scripted: Scripted, person: Person, key: str, generation: Generation
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": uuid4().hex}), inputTokens=1000), says("It is sent.")
    )
    reports: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message or "")

    async with connected(runner.service, key, generation) as client:
        created = await call(
            client, "create_task", agent="careful", input=f"Please. {script}", name="Send it"
        )
        task = created["task"]
        # The run can already wait for the person.
        assert task["status"] in ("PENDING", "RUNNING", "WAITING_APPROVAL")
        waits = await client.call_tool(
            "wait_for_task",
            # From the first event, so that everything that happened is reported.
            {"taskId": task["id"], "afterSequence": 0, "waitSeconds": 120},
            progress_callback=report,
        )
        shown: dict[str, Any] = waits.structured_content or {}
        assert shown["task"]["status"] == "WAITING_APPROVAL"
        account = (await person.get("/api/me")).json()["account"]["id"]
        origin = runner.service.settings.public_url
        assert shown["reviewUrl"] == f"{origin}/{account}/reviews/{task['id']}"
        # The client calls back in tasks of their own, which can run after the result.
        async with asyncio.timeout(10):
            while not {"task.created", "task.waiting_approval"} <= set(reports):
                await asyncio.sleep(0.01)

        continued = asyncio.create_task(
            call(
                client,
                "wait_for_task",
                taskId=task["id"],
                afterSequence=shown["lastSequence"],
                waitSeconds=120,
            )
        )
        # The review that the program knows of does not end its wait.
        await asyncio.sleep(0)
        assert not continued.done()
        await runner.approve(person, task)
        ended = await continued
        assert ended["task"]["status"] == "COMPLETED"
        assert ended["task"]["output"] == "It is sent."
        # The same task as the REST API shows.
        assert ended["task"] == await runner.task(person, task["id"])
        assert (await call(client, "get_task", taskId=task["id"]))["task"] == ended["task"]
        assert float(ended["task"]["usage"]["costUsd"]) > 0
    transactions = (await person.get("/api/credits/transactions")).json()["transactions"]
    assert any(each.get("taskId") == task["id"] for each in transactions)


async def test_the_audit_trail_names_the_key_of_the_program(
    runner: Runner, person: Person, generation: Generation
) -> None:
    answer = await person.post("/api/keys", {"name": "Mine"})
    key_id, secret = answer.json()["key"]["id"], answer.json()["secret"]
    async with connected(runner.service, secret, generation) as client:
        task = (
            await call(client, "create_task", agent="writer", input="Hello", approveFirst=True)
        )["task"]
        assert (await call(client, "cancel_task", taskId=task["id"]))["task"][
            "status"
        ] == "CANCELLED"
    entries = (await person.get("/api/audit")).json()["entries"]
    own = {each["action"]: each for each in entries if each["resource"] == task["id"]}
    assert {"task.created", "task.cancelled"} <= own.keys()
    for action in ("task.created", "task.cancelled"):
        assert (own[action]["actor"], own[action]["via"]) == ("key", key_id)


async def test_a_repeated_creation_with_the_same_key_returns_the_same_task(
    runner: Runner, person: Person, key: str, generation: Generation
) -> None:
    wanted = {"agent": "writer", "input": "Once", "approveFirst": True, "idempotencyKey": "k-1"}
    async with connected(runner.service, key, generation) as client:
        first = await call(client, "create_task", **wanted)
        again = await call(client, "create_task", **wanted)
        assert again["task"]["id"] == first["task"]["id"]
        error = await refusal(client, "create_task", **{**wanted, "input": "Twice"})
        assert (error["code"], error["status"]) == ("CONFLICT", 409)
    assert (await person.get("/api/tasks")).json()["total"] == 1


async def test_a_wait_that_times_out_says_how_to_go_on(
    runner: Runner, scripted: Scripted, person: Person, key: str, generation: Generation
) -> None:
    script = await scripted.script(says("Late.", hold=True))
    async with connected(runner.service, key, generation) as client:
        task = (await call(client, "create_task", agent="writer", input=script))["task"]
        await until(lambda: scripted.asked(script))
        early = await call(client, "wait_for_task", taskId=task["id"], waitSeconds=0)
        assert early["timedOut"] is True
        assert early["task"]["status"] in ("PENDING", "RUNNING")
        await scripted.release(script)
        late = await call(
            client,
            "wait_for_task",
            taskId=task["id"],
            afterSequence=early["lastSequence"],
            waitSeconds=120,
        )
        assert (late["timedOut"], late["task"]["output"]) == (False, "Late.")
        again = await call(client, "wait_for_task", taskId=task["id"])
        assert again["task"] == late["task"]


async def test_each_open_agent_is_a_tool_of_its_own(
    runner: Runner, scripted: Scripted, person: Person, key: str, generation: Generation
) -> None:
    script = await scripted.script(says("Written."))
    async with connected(runner.service, key, generation) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "agent_writer" in names
        task = (await call(client, "agent_writer", input=f"Please. {script}"))["task"]
        assert task["assignedAgent"] == "writer"
        ended = await call(client, "wait_for_task", taskId=task["id"], waitSeconds=120)
        assert ended["task"]["output"] == "Written."


async def test_agents_and_quotes_are_those_of_the_rest_api(
    runner: Runner, person: Person, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        found = await call(client, "find_agents", query="editor")
        rest = (await person.get("/api/agents", params={"search": "editor"})).json()
        assert (found["agents"], found["total"]) == (rest["agents"][:20], rest["total"])
        quoted = await call(client, "quote_task", agent="careful", input="Hello")
        body = {"name": "Hello", "agent": "careful", "input": "Hello", "dryRun": True}
        assert quoted["quote"] == (await person.post("/api/tasks", body)).json()["quote"]
    assert (await person.get("/api/tasks")).json()["total"] == 0


async def test_lists_leave_out_the_texts(
    runner: Runner, person: Person, key: str, generation: Generation
) -> None:
    async with connected(runner.service, key, generation) as client:
        for number in range(3):
            await call(
                client, "create_task", agent="writer", input=f"Task {number}", approveFirst=True
            )
        page = await call(client, "list_tasks", status=["WAITING_APPROVAL"], limit=2)
        assert (len(page["tasks"]), page["total"]) == (2, 3)
        assert [each["name"] for each in page["tasks"]] == ["Task 2", "Task 1"]
        assert all("input" not in each and each["reviewUrl"] for each in page["tasks"])
        assert (await call(client, "list_tasks", query="1"))["total"] == 1


async def test_a_task_of_another_account_does_not_exist(
    runner: Runner, person: Person, key: str, generation: Generation
) -> None:
    stranger = await signed_in(runner.service)
    async with connected(runner.service, await new_key(stranger), generation) as client:
        foreign = (
            await call(client, "create_task", agent="writer", input="Mine", approveFirst=True)
        )["task"]["id"]
    async with connected(runner.service, key, generation) as client:
        for tool in ("get_task", "wait_for_task", "cancel_task"):
            error = await refusal(client, tool, taskId=foreign)
            assert (error["code"], error["status"]) == ("NOT_FOUND", 404)
