"""Quotes: what a task can cost, its tools and its approvals, without creating it."""

import json
from pathlib import Path
from typing import Any

import pytest

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.agents.conftest import agent_text
from tests.service import Person, Service
from tests.tasks.world import AGENT, LOCKED_AGENT, create, newcomer, picture, uuid_of


async def quote(person: Person, **body: Any) -> dict[str, Any]:
    answer = await person.post("/api/tasks", {"name": "A task", "dryRun": True, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["quote"]
    return found


async def test_a_quote_names_the_agent_the_cost_and_the_balance(board: Service) -> None:
    person = await newcomer(board)
    agent = (await person.get(f"/api/agents/{AGENT}")).json()["agent"]
    found = await quote(person, agent=AGENT)
    assert found["agent"] == {
        "name": AGENT, "displayName": agent["displayName"], "version": agent["version"],
    }  # fmt: skip
    assert found["budgetCents"] == agent["budgetCents"]
    assert found["maximumCostUsd"] == f"{agent['budgetCents'] / 100:.6f}"
    assert (found["typicalCost"], found["maxSteps"]) == (None, agent["maxSteps"])
    balance = (await person.get("/api/credits/balance")).json()
    available = float(found["balance"]["availableUsd"])
    assert available == pytest.approx(balance["totalAvailable"] / 100)
    assert found["balance"]["covered"] == (available >= agent["budgetCents"] / 100)
    cheaper = await quote(person, agent=AGENT, budgetCents=1)
    assert (cheaper["budgetCents"], cheaper["maximumCostUsd"]) == (1, "0.010000")


async def test_a_quote_writes_nothing_claims_no_key_and_counts_for_the_limit(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    await quote(person, agent=AGENT)
    async with board_a.owner() as connection:
        before = await picture(connection, person.user_id)
        headers = {"Idempotency-Key": "a quote"}
        answers = [
            await person.post(
                "/api/tasks",
                {"name": "A task", "agent": AGENT, "dryRun": True, **more},
                headers=headers,
            )
            for more in ({}, {"priority": 5})
        ]
        assert await picture(connection, person.user_id) == before
        held = await connection.fetchval(
            "SELECT count(*) FROM holds WHERE account_id = $1", person.user_id
        )
    assert held == 0
    assert [answer.status_code for answer in answers] == [200, 200]
    left = [int(answer.headers["RateLimit-Remaining"]) for answer in answers]
    assert left[0] - left[1] == 1
    created = await person.post("/api/tasks", {"name": "A task", "agent": AGENT}, headers=headers)
    assert created.status_code == 201


async def test_a_quote_says_when_the_balance_does_not_cover_it(board_a: Service) -> None:
    person = await newcomer(board_a)
    await quote(person, agent=AGENT)
    async with board_a.owner() as connection:
        await connection.execute(
            "UPDATE balances SET allowance = 20000, topup = 0 WHERE account_id = $1",
            person.user_id,
        )
    found = await quote(person, agent=AGENT)
    assert found["balance"] == {
        "covered": False, "availableUsd": "0.020000", "paidByParent": False,
    }  # fmt: skip
    answer = await person.post("/api/tasks", {"name": "A task", "agent": AGENT})
    assert answer.status_code == 402
    assert (await quote(person, agent=AGENT, budgetCents=2))["balance"]["covered"]


async def test_a_quote_refuses_what_the_creation_refuses(board_a: Service) -> None:
    person = await newcomer(board_a, tier="basic")
    parent = await create(person, status="COMPLETED")
    for body, status in (
        ({"agent": "nobody"}, 400),
        ({"agent": LOCKED_AGENT}, 403),
        ({"agent": AGENT, "parentTaskId": "task_none"}, 404),
        ({"agent": AGENT, "parentTaskId": parent["id"]}, 409),
        ({"agent": AGENT, "budgetCents": 99_999}, 400),
        ({"agent": AGENT, "deadline": "2020-01-01T00:00:00Z"}, 400),
        ({"agent": AGENT, "outputSchema": {"type": "object", "required": 1}}, 400),
    ):
        answers = [
            await person.post("/api/tasks", {"name": "A task", **body, **dry})
            for dry in ({"dryRun": True}, {})
        ]
        assert [answer.status_code for answer in answers] == [status] * 2, body
        shown, refused = [answer.json()["error"] for answer in answers]
        shown.pop("timestamp"), refused.pop("timestamp")
        assert shown == refused


async def test_a_quote_lists_the_gates_of_the_agent_and_of_the_tasks_above(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    agents = (await person.get("/api/agents", params={"limit": 100})).json()["agents"]
    tools = {agent["name"]: agent["tools"] for agent in agents}
    for name, gates in (
        ("meeting-scribe", []),
        ("expense-checker", []),
        ("bug-triager", ["tool"]),
        ("blog-writer", ["tool"]),
        ("close-lead", ["tool", "output"]),
        ("finance-director", ["run", "tool", "output"]),
    ):
        found = await quote(person, agent=name)
        assert found["opensGates"] == gates, name
        assert found["missingTools"] == tools[name]
        assert (found["tools"], found["toolCount"]) == ([], 0)
        waiting = await quote(person, agent=name, status="WAITING_APPROVAL")
        assert waiting["opensGates"] == ["run", *(gate for gate in gates if gate != "run")], name
    asks = next(agent["name"] for agent in agents if agent["approval"]["output"])
    plain = next(
        a["name"] for a in agents if not a["approval"]["output"] and not a["approval"]["run"]
    )
    parent = await create(person, agent=asks)
    found = await quote(person, agent=plain, parentTaskId=parent["id"])
    assert "output" in found["opensGates"]
    assert found["balance"]["paidByParent"]


async def test_a_quote_names_the_gate_of_an_agent_that_delegates_and_has_no_tools(
    stack: Stack, tmp_path: Path
) -> None:
    for name, rank, policy in (
        ("lead", 2, "always"),
        ("trusted", 2, "writes"),
        ("selective", 2, '["desk/*"]'),
        ("worker", 3, "always"),
    ):
        approval = f"tools: []\napproval: {{run: false, tools: {policy}, output: false}}"
        text = agent_text(name, tier=rank).replace("tools: []", approval)
        (tmp_path / f"{name}.md").write_text(text)
    async with Service.start(stack, variant="a", name="quotes_delegating") as service:
        await sync(service.database_url, tmp_path)
        person = await newcomer(service)
        gates = {
            name: (await quote(person, agent=name))["opensGates"]
            for name in ("lead", "trusted", "selective", "worker")
        }
    assert gates == {"lead": ["tool"], "trusted": [], "selective": [], "worker": []}


async def test_a_quote_lists_the_tools_that_can_be_used_now(board_a: Service) -> None:
    person = await newcomer(board_a)
    agents = (await person.get("/api/agents", params={"limit": 100})).json()["agents"]
    agent = next(
        a
        for a in agents
        if a["tools"] and a["tools"][0].endswith("*") and a["approval"]["tools"] == "writes"
    )
    server = agent["tools"][0].split("/")[0].replace("*", "x")
    tool = agent["tools"][0].split("/")[1].replace("*", "x")
    live = {"name": tool, "title": "Does it", "annotations": {"readOnlyHint": True}}
    async with board_a.owner() as connection:
        # The last two have names that model providers do not accept.
        others = ["other_tool_not_named", f"{tool}.v2", f"{tool}{'x' * 64}"]
        await _connect(connection, person, server, [live, *({"name": name} for name in others)])
    found = await quote(person, agent=agent["name"])
    assert {
        "server": server, "tool": tool, "title": "Does it", "readOnly": True,
        "needsApproval": False,
    } in found["tools"]  # fmt: skip
    assert found["toolCount"] == len(found["tools"]) == 1
    assert agent["tools"][0] not in found["missingTools"]


async def _connect(connection: Any, person: Person, name: str, tools: list[dict[str, Any]]) -> None:
    server_id = await connection.fetchval(
        """
        INSERT INTO mcp_servers (account_id, id, name, url, transport, status, created_at,
            updated_at, last_checked_at, check_due_at)
        VALUES ($1, gen_random_uuid(), $2, 'https://mcp.example.com/' || $2, 'streamable-http',
            'CONNECTED', now(), now(), now(), now())
        RETURNING id
        """,
        person.user_id,
        name,
    )
    for position, tool in enumerate(tools):
        await connection.execute(
            """
            INSERT INTO mcp_tools (account_id, server_id, name, position, live, live_hash,
                accepted, accepted_hash)
            VALUES ($1, $2, $3, $4, $5, 'hash', $5, 'hash')
            """,
            person.user_id,
            server_id,
            tool["name"],
            position,
            json.dumps(tool),
        )


async def test_what_is_typical_comes_from_the_last_hundred_completed_tasks(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    tasks = [await create(person, agent=AGENT, budgetCents=1) for _ in range(11)]
    async with board_a.owner() as connection:
        for number, task in enumerate(tasks):
            # Costs 0, 1000, … 9000. The last one failed.
            await connection.execute(
                "UPDATE tasks SET status = $2, cost_micros = $3 WHERE id = $1",
                uuid_of(task),
                "COMPLETED" if number < 10 else "FAILED",
                number * 1_000,
            )
    found = (await quote(person, agent=AGENT))["typicalCost"]
    assert found == {"tasks": 10, "medianUsd": "0.004500", "p90Usd": "0.008100"}
    async with board_a.owner() as connection:
        await connection.execute(
            """
            INSERT INTO tasks (account_id, id, status, hosted, agent, name, created_at, updated_at,
                created_by, cost_micros)
            SELECT $1, gen_random_uuid(), 'COMPLETED', true, $2, 'T', now(), now(), $1, 7
            FROM generate_series(1, 150)
            """,
            person.user_id,
            AGENT,
        )
    found = (await quote(person, agent=AGENT))["typicalCost"]
    assert found == {"tasks": 100, "medianUsd": "0.000007", "p90Usd": "0.000007"}
