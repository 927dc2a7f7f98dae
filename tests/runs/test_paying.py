"""Runs and credits: the hold before a run starts, its charges, and the release of the rest."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from rota.accounts import service as accounts
from rota.credits import ledger, verify
from rota.credits.money import of_cents
from rota.dev.stack import Stack
from rota.platform.db import Database
from rota.runs.agent_loop import AgentLoop
from rota.runs.contracts import RunInput
from rota.runs.run_context import RunContext
from tests.assertions import assert_error
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import Person
from tests.tasks.world import newcomers, uuid_of


@pytest.fixture(scope="module")
async def shop(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    """A service without allowances: an account has only its top-ups."""
    log = tmp_path_factory.mktemp("paying") / "log"
    async with Runner.start(stack, scripted, "paying", log, allowances={}) as started:
        yield started


@pytest.fixture(scope="module")
async def db(shop: Runner) -> AsyncIterator[Database]:
    database = Database(shop.service.database_url, pool_size=2)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def with_money(shop: Runner, db: Database) -> AsyncIterator[Callable[[int], Any]]:
    """Creates people with this many cents. After the test, their ledgers must be consistent."""
    made: list[Person] = []

    async def person(cents: int, clients: int = 1) -> Any:
        found = await newcomers(shop.service, clients, tier="basic")
        async with db.write(found[0].user_id) as tx:
            await ledger.top_up(tx, of_cents(cents), f"pi_{uuid4().hex}")
        made.extend(found[:1])
        return found if clients > 1 else found[0]

    yield person
    for each in made:
        async with db.snapshot(each.user_id) as tx:
            assert await verify.problems(tx) == []


async def balance(person: Person) -> dict[str, Any]:
    answer = await person.get("/api/credits/balance")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def until_free(person: Person) -> dict[str, Any]:
    return await until(lambda: balance(person), lambda b: b["balance"]["reservedCents"] == 0)


async def test_a_run_holds_its_budget_charges_its_cost_and_releases_the_rest(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(150)
    script = await scripted.script(says("Done.", inputTokens=12_000, outputTokens=4_000, hold=True))
    task = await shop.begin(person, "writer", script)
    before = await balance(person)
    assert (before["totalAvailable"], before["balance"]["reservedCents"]) == (50, 100)
    assert before["topUpCents"] == 150
    await scripted.release(script)
    task = await shop.until(person, task, "COMPLETED")
    assert task["usage"]["costUsd"] == "0.020000"
    after = await balance(person)
    assert (after["totalAvailable"], after["balance"]["reservedCents"]) == (148, 0)
    assert after["totalSpentCents"] == 2
    listed = (await person.get("/api/credits/transactions")).json()
    assert [t["kind"] for t in listed["transactions"]] == ["release", "charge", "hold", "top_up"]
    charge = listed["transactions"][1]
    assert (charge["taskId"], charge["run"], charge["step"]) == (task["id"], 1, 1)
    assert charge["model"] == "scripted"
    assert charge["priceVersion"]


async def test_a_task_is_not_created_if_its_budget_is_not_available(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(99)
    script = await scripted.script(says("Not reached."))
    key = {"Idempotency-Key": uuid4().hex}
    body = {"name": "Too expensive", "agent": "writer", "input": script}
    refused = await person.post("/api/tasks", body, headers=key)
    assert_error(refused, 402, "INSUFFICIENT_CREDITS")
    assert "$1.00" in refused.json()["error"]["message"]
    assert (await person.get("/api/tasks")).json() == {"tasks": [], "total": 0}
    # An external task costs nothing, and a smaller budget is available.
    assert (await person.post("/api/tasks", {"name": "Mine"})).status_code == 201
    done = await shop.finish(person, "frugal", await scripted.script(says("Cheap.")))
    assert done["status"] == "COMPLETED"
    assert await scripted.count(script) == {}


async def test_of_200_concurrent_tasks_only_those_are_created_that_the_balance_covers(
    shop: Runner, with_money: Any
) -> None:
    enough = 37
    people = await with_money(enough * 100 + 99, clients=20)

    async def create(number: int) -> int:
        # The run gate keeps them from starting, so no hold is released meanwhile.
        body = {"name": "One of many", "agent": "writer", "status": "WAITING_APPROVAL"}
        answer = await people[number % 20].post("/api/tasks", body)
        return int(answer.status_code)

    answers = await asyncio.gather(*map(create, range(200)))
    assert sorted(answers) == [201] * enough + [402] * (200 - enough)
    now = await balance(people[0])
    assert (now["totalAvailable"], now["balance"]["reservedCents"]) == (99, enough * 100)
    tasks = (await people[0].get("/api/tasks", params={"limit": 100})).json()
    assert tasks["total"] == enough
    for task in tasks["tasks"]:
        await shop.reject(people[0], task)
    assert (await balance(people[0]))["totalAvailable"] == enough * 100 + 99


async def test_a_repeated_request_places_no_second_hold(shop: Runner, with_money: Any) -> None:
    person = await with_money(250)
    key = {"Idempotency-Key": uuid4().hex}
    body = {"name": "Once", "agent": "writer", "status": "WAITING_APPROVAL"}
    for _ in range(3):
        assert (await person.post("/api/tasks", body, headers=key)).status_code == 201
    assert (await balance(person))["balance"]["reservedCents"] == 100


async def test_a_retry_needs_its_budget_to_be_available(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(100)
    name = f"again-{uuid4().hex[:8]}"
    script = await scripted.script({"status": 401}, name=name)
    task = await shop.finish(person, "writer", script, "FAILED")
    await scripted.script(says("Now."), name=name)
    other = await person.post(
        "/api/tasks", {"name": "x", "agent": "frugal", "status": "WAITING_APPROVAL"}
    )
    refused = await person.post(f"/api/tasks/{task['id']}/retry")
    assert_error(refused, 402, "INSUFFICIENT_CREDITS")
    assert (await shop.task(person, task["id"]))["status"] == "FAILED"
    await shop.reject(person, other.json()["task"])
    await shop.retry(person, task, "failure")
    await shop.until(person, task, "COMPLETED")


async def test_a_call_that_ends_after_its_task_was_cancelled_is_charged(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(100)
    script = await scripted.script(says("Late.", inputTokens=29_000, hold=True))
    task = await shop.begin(person, "writer", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    await shop.cancel(person, task)
    # The hold is released, and another task takes all of it at once.
    assert (await balance(person))["totalAvailable"] == 100
    other = await person.post(
        "/api/tasks", {"name": "x", "agent": "writer", "status": "WAITING_APPROVAL"}
    )
    await scripted.release(script)
    owing = await until(lambda: balance(person), lambda b: b["totalSpentCents"] == 3)
    assert owing["owedCents"] == 3
    # The next release pays what is owed.
    await shop.reject(person, other.json()["task"])
    paid = await balance(person)
    assert (paid["totalAvailable"], paid.get("owedCents", 0)) == (97, 0)


async def test_parallel_subtasks_together_cannot_exceed_the_hold_of_their_parent(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(100)
    # Each of the five would cost 30 cents, and each has a budget of one dollar.
    parts = [
        await scripted.script(says("A part.", inputTokens=300_000, outputTokens=10))
        for _ in range(5)
    ]
    script = await scripted.script(
        calls(*[delegates("writer", part, f"Part {n}") for n, part in enumerate(parts)]),
        says("All."),
    )
    task = await shop.begin(person, "director", script)
    await shop.until(person, task, "COMPLETED", "FAILED")
    after = await until_free(person)
    assert after["totalSpentCents"] <= 100
    assert after["totalAvailable"] == 100 - after["totalSpentCents"]


async def test_an_empty_balance_is_reported_once(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(1)
    script = await scripted.script(says("All of it.", inputTokens=10_000))
    await shop.finish(person, "frugal", script)
    async with shop.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT type FROM events WHERE account_id = $1 AND type LIKE 'credits.%'",
            person.user_id,
        )
    assert [row["type"] for row in rows] == ["credits.depleted"]


async def test_a_retry_needs_a_tier_that_includes_the_agent(
    shop: Runner, scripted: Scripted, db: Database
) -> None:
    person = await shop.newcomer()
    script = await scripted.script({"status": 401})
    task = await shop.finish(person, "exclusive", script, "FAILED")
    await accounts.set_tier(db, person.user_id, "basic")

    async def me() -> dict[str, Any]:
        found: dict[str, Any] = (await person.get("/api/me")).json()
        return found

    await until(me, lambda seen: seen["effectiveTier"] == "BASIC")
    assert_error(await person.post(f"/api/tasks/{task['id']}/retry"), 403, "AUTHORIZATION_ERROR")


async def test_a_subtask_runs_while_its_parent_calls_the_model_and_the_account_pays(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(250)
    script = await scripted.script(says("Mine.", inputTokens=900_000, hold=True))
    task = await shop.begin(person, "director", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    part = await scripted.script(
        calls(("desk__lookup", {"ref": "beside"}), inputTokens=20_000),
        says("A part.", inputTokens=20_000),
    )
    child = await shop.begin(person, "writer", part, parentTaskId=task["id"])
    await shop.until(person, child, "COMPLETED")
    assert (await shop.task(person, task["id"]))["status"] == "RUNNING"
    now = await balance(person)
    # The parent keeps its hold of 100 cents, although the subtask has cost 4.
    assert (now["totalSpentCents"], now["balance"]["reservedCents"]) == (5, 100)
    await scripted.release(script)
    await shop.until(person, task, "COMPLETED")
    assert (await until_free(person))["totalSpentCents"] == 95


async def test_a_subtask_waits_for_the_model_call_of_its_parent_if_the_account_cannot_pay(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(100)
    script = await scripted.script(says("Mine.", inputTokens=900_000, hold=True))
    task = await shop.begin(person, "director", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    part = await scripted.script(says("A part.", inputTokens=20_000))
    child = await shop.begin(person, "writer", part, parentTaskId=task["id"])
    await until(lambda: waits(shop, child), bool)
    assert await scripted.count(part) == {}
    await scripted.release(script)
    await shop.until(person, task, "COMPLETED")
    # The parent's call is charged in full. Then the account pays, from what the parent released.
    await shop.until(person, child, "COMPLETED")
    assert (await until_free(person))["totalSpentCents"] == 93


async def waits(shop: Runner, task: dict[str, Any]) -> bool:
    """Whether the run of this task is to be woken later."""
    async with shop.service.owner() as connection:
        found = await connection.fetchval(
            "SELECT true FROM outbox WHERE task_id = $1 AND kind = 'run.nudge'", uuid_of(task)
        )
    return bool(found)


async def test_the_account_pays_for_a_subtask_whose_parent_has_ended(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(150)
    script = await scripted.script(says("Mine.", hold=True))
    task = await shop.begin(person, "director", script)
    await until(lambda: scripted.count(script), lambda counted: counted == {0: 1})
    # At its run gate, it has not taken any money when its parent ends.
    part = await scripted.script(
        *[calls(("desk__lookup", {"ref": "orphan"}), inputTokens=40_000)] * 2, says("A part.")
    )
    waiting = {"parentTaskId": task["id"], "status": "WAITING_APPROVAL"}
    child = await shop.begin(person, "writer", part, **waiting)
    await scripted.release(script)
    await shop.until(person, task, "COMPLETED")
    assert (await balance(person))["balance"]["reservedCents"] == 0
    await shop.approve(person, child)
    await shop.until(person, child, "COMPLETED")
    after = await until_free(person)
    assert (after["totalSpentCents"], after["totalAvailable"]) == (9, 141)


async def test_a_failed_subtask_of_a_completed_parent_can_be_retried(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(250)
    script = await scripted.script(says("Mine.", hold=True))
    task = await shop.begin(person, "director", script)
    part = await scripted.script(says("A part.", failures=[{"status": 401}]))
    child = await shop.begin(person, "writer", part, parentTaskId=task["id"])
    await shop.until(person, child, "FAILED")
    await scripted.release(script)
    await shop.until(person, task, "COMPLETED")
    await shop.retry(person, child, "failure")
    await shop.until(person, child, "COMPLETED")
    await until_free(person)


async def test_a_failed_subtask_of_a_cancelled_parent_cannot_be_retried(
    shop: Runner, scripted: Scripted, with_money: Any
) -> None:
    person = await with_money(250)
    script = await scripted.script(says("Mine.", hold=True))
    task = await shop.begin(person, "director", script)
    part = await scripted.script({"status": 401})
    child = await shop.begin(person, "writer", part, parentTaskId=task["id"])
    await shop.until(person, child, "FAILED")
    await shop.cancel(person, task)
    assert_error(await person.post(f"/api/tasks/{child['id']}/retry"), 409, "CONFLICT")
    await until_free(person)


async def test_a_failed_parent_cancels_the_subtasks_it_delegated_and_a_retry_delegates_again(
    shop: Runner, scripted: Scripted, with_money: Any, db: Database
) -> None:
    person = await with_money(300)
    lower = await scripted.script(says("The part.", hold=True))
    middle = await scripted.script(calls(delegates("writer", lower)), says("Mine."))
    script = await scripted.script(calls(delegates("lead", middle)), says("All."))
    task = await shop.begin(person, "director", script)
    child = await shop.child(person, task, "RUNNING")
    grandchild = await shop.child(person, child, "RUNNING")
    await until(lambda: scripted.count(lower), lambda counted: counted == {0: 1})
    beside = await shop.begin(
        person, "writer", await scripted.script(says("Beside.")), parentTaskId=task["id"],
        status="WAITING_APPROVAL",
    )  # fmt: skip
    context, loop = RunContext(db), AgentLoop(gate_time=timedelta(days=1))
    async with context.locked(RunInput(f"acct_{person.user_id.hex}", task["id"], run=1)) as (
        tx,
        found,
    ):
        assert found is not None
        await loop.fail(tx, found, "TOOL_FAILED", "A tool call failed too often.", retryable=True)
    assert (await shop.task(person, task["id"]))["status"] == "FAILED"
    for each in (child, grandchild):
        assert (await shop.task(person, each["id"]))["status"] == "CANCELLED"
    # A subtask that a person created goes on.
    await shop.approve(person, beside)
    await shop.until(person, beside, "COMPLETED")
    await scripted.release(lower)
    await shop.retry(person, task, "failure")
    task = await shop.until(person, task, "COMPLETED")
    assert task["output"] == "All."
    assert [c["status"] for c in await shop.children(person, task)] == [
        "CANCELLED", "COMPLETED", "COMPLETED",
    ]  # fmt: skip
    # The parent's first answer is kept. The cancelled subtask's is not.
    assert await scripted.count(script) == {0: 1, 1: 1}
    assert await scripted.count(middle) == {0: 2, 1: 1}
    await until_free(person)
