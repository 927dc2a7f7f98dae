"""What a newcomer sees: a first task with tools, a gate and a charge, and the data of `--demo`."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota.accounts.service import create_company
from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.composition import Composition
from rota.credits.verify import account_ids, verify
from rota.dev.demo import PEOPLE, SERVERS, first_use, prices
from rota.dev.demo.history import Company, write_history
from rota.dev.processes import ComponentState, Status
from rota.dev.stack import Stack
from rota.platform.db import owner_connection
from rota.platform.ids import new_uuid, to_wire
from rota.platform.settings import Settings
from tests.mcp.conftest import LOCAL, connect, invoke
from tests.runs.runner import Runner, shown
from tests.runs.scripted import Scripted
from tests.service import Person, Service, environment, prepared_settings


@pytest.fixture(scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    data = Path(tmp_path_factory.mktemp("demo")) / "data"
    async with Stack(data, components=("demo",), durable=False) as stack:
        assert stack.endpoints.demo_url
        yield stack.endpoints.demo_url


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, demo: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    models = json.dumps(prices.settings(f"{demo}/v1"))
    async with Runner.start(
        stack, Scripted(""), "first_use", log, models=models, egress_allow=LOCAL
    ) as started:
        await sync(started.service.database_url, catalog_folder())
        yield started
    print(log.read_text()[-4000:])


async def test_a_first_task_reads_asks_writes_answers_and_is_charged(
    runner: Runner, demo: str
) -> None:
    person = await runner.service.sign_in()
    servers = {name: await connect(person, f"{demo}/{name}/mcp", name) for name in SERVERS}
    response = await person.post(
        "/api/tasks",
        {"name": "Answer Mina", "agent": "ticket-responder", "input": "Reply to ticket T-4821."},
    )
    task = response.json()["task"]
    review = await runner.waiting(person, task, "tool")
    [item] = review["items"]
    assert (item["server"], item["tool"]) == ("helpdesk", "reply_to_ticket")
    edited = item["arguments"] | {"status": "pending", "message": "Hello Mina, please try again."}
    body = {"review": shown(review), "decisions": [{"id": item["id"], "arguments": edited}]}
    assert (await person.post(f"/api/tasks/{task['id']}/approve", body)).status_code == 200
    await runner.waiting(person, task, "output")
    await runner.approve(person, task)
    done = await runner.until(person, task, "COMPLETED")
    assert "- `status`: pending (edited by you)" in done["output"]
    assert "demonstration model" in done["output"]
    ticket = await invoke(person, servers["helpdesk"], "get_ticket", {"ticketId": "T-4821"})
    [reply] = ticket.json()["result"]["structuredContent"]["replies"]
    assert (reply["status"], reply["message"]) == ("pending", "Hello Mina, please try again.")
    timeline, _ = await runner.timeline(person, task)
    model_calls = [step for step in timeline if step["kind"] == "model"]
    assert len(model_calls) == 5
    assert {step["name"] for step in model_calls} == {"demonstration-model-fast"}
    assert all(0.001 < float(step["costUsd"]) < 0.02 for step in model_calls)
    balance = (await person.get("/api/credits/transactions?kind=charge")).json()
    assert balance["total"] == len(model_calls)


@pytest.mark.parametrize("variant", ["a", "b"])
async def test_the_tool_servers_are_connected_once_for_everyone(
    stack: Stack, variant: str, tmp_path: Path
) -> None:
    states: list[ComponentState] = []
    async with Stack(tmp_path / "data", components=("idp", "demo"), durable=False) as own:
        issuers = json.loads(own.environment()["ROTA_OIDC_ISSUERS"])
        async with Service.start(
            stack,
            variant=variant,
            name=f"tools_{variant}",
            egress_allow=LOCAL,
            oidc_issuers=Settings(oidc_issuers=issuers).oidc_issuers,
        ) as service:
            url = service.settings.public_url
            await first_use.prepare(own, "http://127.0.0.1:1", states.append)
            assert states.pop().status is Status.FAILED
            await first_use.prepare(own, url, states.append)
            assert states.pop().status is Status.DONE
            async with httpx.AsyncClient() as client:
                for name in PEOPLE:
                    person = await first_use.sign_in(client, url, own.endpoints.issuer_url, name)
                    servers = (await person.get("/api/mcp"))["servers"]
                    assert {each["name"]: each["status"] for each in servers} == dict.fromkeys(
                        SERVERS, "CONNECTED"
                    )
            states.clear()
            await first_use.prepare(own, url, states.append)
            assert not states
            (own.directory.path / first_use.MARK).unlink()
            await first_use.prepare(own, url, states.append)
            assert states.pop().status is Status.DONE


async def fill(runner: Runner, demo: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rota.dev.demo.fill",
        f"--demo-url={demo}",
        env=os.environ
        | {
            k: v
            for k, v in environment(runner.service.settings).items()
            if v not in ("[]", "{}", "()")
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    return printed


async def of_company(runner: Runner) -> tuple[Person, dict[str, str]]:
    """Ada, and the header that selects the company."""
    ada = await runner.service.sign_in("ada")
    accounts = (await ada.get("/api/me")).json()["accounts"]
    [company] = [account for account in accounts if account["name"] == "Fernhill Supply"]
    return ada, {"X-Service-Account": company["id"]}


@pytest.mark.long
async def test_the_demonstration_data_is_complete_clean_and_added_once(
    runner: Runner, demo: str
) -> None:
    await fill(runner, demo)
    ada, company = await of_company(runner)
    tasks: list[dict[str, Any]] = []
    for offset in (0, 100):
        page = await ada.get(f"/api/tasks?limit=100&offset={offset}", headers=company)
        tasks += page.json()["tasks"]
    states = Counter(task["status"] for task in tasks)
    assert states["RUNNING"] == 1
    assert states["WAITING_APPROVAL"] == 8
    assert states["COMPLETED"] > 30
    assert states["FAILED"] >= 3
    assert states["CANCELLED"] >= 2
    waiting = [task for task in tasks if task["status"] == "WAITING_APPROVAL"]
    gates: Counter[tuple[str, str | None]] = Counter()
    for task in waiting:
        review = (await ada.get(f"/api/tasks/{task['id']}/review", headers=company)).json()
        items = review["review"]["items"] or [{"tool": None}]
        gates[review["review"]["gate"], items[0]["tool"]] += 1
    assert gates == {
        ("tool", "reply_to_ticket"): 4,
        ("tool", "ask_person"): 1,
        ("tool", "prepare_payment_batch"): 1,
        ("run", None): 1,
        ("output", None): 1,
    }
    usage = (await ada.get("/api/usage?groupBy=day", headers=company)).json()
    assert len(usage["usage"]) > 5
    servers = (await ada.get("/api/mcp", headers=company)).json()["servers"]
    assert {server["name"]: server["status"] for server in servers} == {
        "helpdesk": "CHANGED",
        "helpcenter": "CONNECTED",
        "accounting": "CONNECTED",
    }
    async with Composition(runner.service.settings, pool_size=2) as parts:
        found = [found async for found in verify(parts.db, await account_ids(parts.db))]
    assert not any(found)

    assert "0 finished tasks written, 0 tasks started" in await fill(runner, demo)
    again = await ada.get("/api/tasks?limit=1", headers=company)
    assert again.json()["total"] == len(tasks)


@pytest.mark.long
async def test_the_history_is_clean_in_variant_b_too(stack: Stack) -> None:
    settings = await prepared_settings(stack, "b", "history_b")
    url = settings.database_url.get_secret_value()
    await sync(url, catalog_folder())
    async with Composition(settings, pool_size=2) as parts:
        owner, member = new_uuid(), new_uuid()
        server, _, _ = str(stack.endpoints.admin_database_url).rpartition("/")
        async with owner_connection(f"{server}/history_b") as admin:
            for user in (owner, member):
                await admin.execute("INSERT INTO users (id, name) VALUES ($1, 'Ada')", user)
        account_id = await create_company(parts.db, "Fernhill", owner, tier="business", seats=3)
        servers = {}
        async with owner_connection(f"{server}/history_b") as admin:
            for name in SERVERS:
                server_id, address = new_uuid(), f"http://127.0.0.1/{name}/mcp"
                await admin.execute(
                    """
                    INSERT INTO mcp_servers (account_id, id, name, url, transport, status,
                                             last_checked_at, check_due_at, created_at, updated_at)
                    VALUES ($1, $2, $3, $4, 'streamable-http', 'CONNECTED',
                            now(), now(), now(), now())
                    """,
                    account_id,
                    server_id,
                    name,
                    address,
                )
                servers[name] = (to_wire("mcp", server_id), address)
        company = Company(account_id, "business", owner, member, servers)
        assert await write_history(parts, url, company) > 40
        assert await write_history(parts, url, company) == 0
        found = [found async for found in verify(parts.db, [account_id])]
        async with parts.db.read(account_id, owner) as tx:
            oldest = await tx.fetchval(
                "SELECT min(at) FROM entries WHERE account_id = $1", account_id
            )
            newest = await tx.fetchval(
                "SELECT max(at) FROM entries WHERE account_id = $1", account_id
            )
            left = await tx.fetchval(
                "SELECT count(*) FROM outbox WHERE account_id = $1", account_id
            )
    assert found == [[]]
    assert newest - oldest > timedelta(days=25)
    assert newest < datetime.now(UTC)
    assert left == 0
