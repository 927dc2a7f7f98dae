"""POST /api/tasks/batch: many tasks with one request, each created once."""

import asyncio
from typing import Any

import pytest

from tests.assertions import assert_error
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.test_idempotency import KillableService
from tests.tasks.wire import wires
from tests.tasks.world import (
    AGENT,
    LOCKED_AGENT,
    assert_consistent,
    newcomer,
    newcomers,
    picture,
)

# How many tasks the timed test creates, and how often a batch is killed.
TASKS = size(2_000, 10_000)
KILLS = size(1, 5)
BATCH = "/api/tasks/batch"


async def batch(person: Person, tasks: list[Any], key: str | None = None) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return await person.post(BATCH, {"tasks": tasks}, headers=headers)


async def rows(service: Service, person: Person) -> dict[str, list[dict[str, Any]]]:
    async with service.owner() as connection:
        return await picture(connection, person.user_id)


async def test_results_have_the_order_of_the_tasks(board: Service) -> None:
    person = await newcomer(board)
    tasks: list[Any] = [{"name": f"task {number}", "agent": AGENT} for number in range(230)]
    tasks[7] = {"name": "unknown", "agent": "nobody"}
    tasks[99] = {"name": "no parent", "parentTaskId": "task_1"}
    tasks[100] = {"name": "external", "status": "COMPLETED", "output": "done"}
    tasks[101] = {"name": "gated", "agent": AGENT, "status": "WAITING_APPROVAL"}
    response = await batch(person, tasks)
    assert response.status_code == 200, response.text
    results = response.json()["results"]
    assert [next(iter(result)) for result in results] == [
        "error" if number in (7, 99) else "task" for number in range(230)
    ]
    for number, result in enumerate(results):
        if "task" in result:
            assert result["task"]["name"] == tasks[number]["name"]
    single = await person.post("/api/tasks", tasks[7])
    expected = single.json()["error"] | {"path": BATCH}
    assert results[7]["error"] == expected | {"timestamp": results[7]["error"]["timestamp"]}
    assert results[99]["error"]["code"] == "NOT_FOUND"
    assert results[101]["task"]["status"] == "WAITING_APPROVAL"
    seen = await rows(board, person)
    assert_consistent(seen)
    assert len(seen["tasks"]) == 228
    assert len(seen["outbox"]) == 226
    assert len(seen["reviews"]) == 1
    page = (await person.get("/api/tasks?limit=1")).json()
    assert (page["total"], page["tasks"][0]["name"]) == (228, "task 229")


async def test_schemas_are_checked_once_each(board: Service) -> None:
    person = await newcomer(board)
    good = {"type": "object", "properties": {"n": {"type": "integer"}}}
    bad = {"type": "object", "properties": {"n": {"type": "whole"}}}
    tasks = [
        {"name": "x", "agent": AGENT, "outputSchema": schema} for schema in (good, bad, good, bad)
    ]
    results = (await batch(person, tasks)).json()["results"]
    assert [next(iter(result)) for result in results] == ["task", "error", "task", "error"]
    assert results[0]["task"]["outputSchema"] == good
    assert results[1]["error"]["details"][0]["field"] == "outputSchema"
    many = [
        {"name": "x", "agent": AGENT, "outputSchema": good | {"description": str(number)}}
        for number in range(11)
    ]
    assert_error(await batch(person, many), 400, "VALIDATION_ERROR")
    assert (await person.get("/api/tasks?limit=1")).json()["total"] == 2


async def test_a_full_batch_of_tasks_with_many_fields_fits(board: Service) -> None:
    person = await newcomer(board)
    task = {
        **{"name": "x", "agent": AGENT, "status": "COMPLETED", "projectId": "p", "input": "i"},
        **{"description": "d", "priority": 1, "output": "o", "actions": ["a", "b"]},
    }
    results = (await batch(person, [task] * 1_000)).json()["results"]
    assert sum("task" in result for result in results) == 1_000


async def test_a_batch_is_not_a_quote(board: Service) -> None:
    person = await newcomer(board)
    response = await batch(person, [{"name": "x", "agent": AGENT, "dryRun": True}])
    assert_error(response, 400, "VALIDATION_ERROR")


async def test_a_locked_agent_and_missing_money_are_errors_of_their_tasks(board: Service) -> None:
    person = await newcomer(board, tier="basic")
    # The allowance covers one task.
    async with board.owner() as connection:
        budget = await connection.fetchval(
            "SELECT budget_cents FROM agent_versions WHERE name = $1", AGENT
        )
        await person.get("/api/credits/balance")
        await connection.execute(
            "UPDATE balances SET allowance = $2, allowance_total = $2 WHERE account_id = $1",
            person.user_id,
            budget * 10_000,
        )
    work = {"name": "x", "agent": AGENT}
    response = await batch(person, [work, {**work, "agent": LOCKED_AGENT}, work, {"name": "free"}])
    results = response.json()["results"]
    assert "task" in results[0]
    assert results[1]["error"]["code"] == "AUTHORIZATION_ERROR"
    assert results[2]["error"]["code"] == "INSUFFICIENT_CREDITS"
    assert "task" in results[3]
    assert_consistent(await rows(board, person))


async def test_a_body_that_is_not_valid_creates_nothing(board: Service) -> None:
    person = await newcomer(board)
    valid = {"name": "x"}
    for tasks, field in (
        ([], "tasks"),
        ([valid] * 1001, "tasks"),
        ([valid, {"name": ""}], "tasks.1.name"),
        ([valid] * 150 + [{"name": "x", "agnet": AGENT}], "tasks.150.agnet"),
    ):
        response = await batch(person, tasks)
        assert response.status_code == 400
        assert response.json()["error"]["details"][0]["field"] == field
    assert (await person.get("/api/tasks")).json()["total"] == 0


async def test_the_first_wrong_tasks_of_a_batch_are_described(board: Service) -> None:
    person = await newcomer(board)

    async def wrong(tasks: list[Any]) -> list[tuple[str, str]]:
        response = await batch(person, tasks)
        assert_error(response, 400, "VALIDATION_ERROR")
        details = response.json()["error"]["details"]
        return [(each["field"], each["message"]) for each in details]

    valid = {"name": "x"}
    assert await wrong(
        [valid, {"name": "", "agnet": AGENT, "priority": 11}, valid, {"name": ["x"]}, 1, valid]
    ) == [
        ("tasks.1.name", "must have at least 1 character"),
        ("tasks.1.priority", "must be at most 10.0"),
        ("tasks.1.agnet", "Unknown field. Did you mean `agent`?"),
        ("tasks.3.name", "must be a string"),
        ("tasks.4", "must be an object"),
    ]
    many = await wrong([valid, {}] * 600)
    assert [field for field, _ in many] == [f"tasks.{n}.name" for n in range(1, 41, 2)]
    # Without the first task, which is wrong, there would still be too many.
    assert await wrong([{}] + [valid] * 1_001) == [("tasks.0.name", "Field required")]


async def test_a_batch_needs_the_scope_tasks_write(board: Service) -> None:
    (person,) = await newcomers(board, scopes=("tasks:read",))
    assert (await batch(person, [{"name": "x"}])).status_code == 403


async def test_a_repeated_batch_replays_every_task(board: Service) -> None:
    person = await newcomer(board)
    tasks = [{"name": f"task {number}"} for number in range(150)]
    first = await batch(person, tasks, "k")
    assert "idempotent-replayed" not in first.headers
    again = await batch(person, tasks, "k")
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert (await batch(person, tasks[:-1], "k")).status_code == 409
    assert (await batch(person, [*tasks, {"name": "one more"}], "k")).status_code == 409
    other = await person.post("/api/tasks", {"name": "x"}, headers={"Idempotency-Key": "k#3"})
    assert other.status_code == 409
    seen = await rows(board, person)
    assert len(seen["tasks"]) == len(seen["idempotency_keys"]) == 150


async def test_tasks_with_an_error_are_tried_again(board: Service) -> None:
    person = await newcomer(board, tier="basic")
    tasks = [{"name": "first"}, {"name": "locked", "agent": LOCKED_AGENT}]
    first = (await batch(person, tasks, "k")).json()["results"]
    assert "error" in first[1]
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1",
            person.user_id,
            {"a": "enterprise", "b": "business"}[board.variant],
        )
    async with asyncio.timeout(10):
        # A process remembers the tier of a key for a moment.
        while "error" in (again := (await batch(person, tasks, "k")).json()["results"])[1]:
            await asyncio.sleep(0.1)
    assert again[0] == first[0]
    assert len((await rows(board, person))["tasks"]) == 2


async def test_a_batch_that_was_killed_and_is_sent_again_creates_every_task_once(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    body = {"tasks": [{"name": f"task {number}", "agent": AGENT} for number in range(1000)]}
    headers = {"Idempotency-Key": "once"}
    counted = "SELECT count(*) FROM tasks WHERE account_id = $1"
    async with (
        KillableService(board_a) as service,
        wires(service.port, [person.token], 1) as (wire,),
        board_a.owner() as connection,
        asyncio.timeout(120),
    ):
        interrupted = 0
        while True:
            before = await connection.fetchval(counted, person.user_id)
            request = asyncio.create_task(wire.request("POST", BATCH, body, headers))
            while interrupted < KILLS and not request.done():
                made = await connection.fetchval(counted, person.user_id)
                if made >= before + 100:
                    await service.kill()
                    await service.start()
                    interrupted += 1
                    break
                await asyncio.sleep(0.001)
            try:
                response = await request
            except (OSError, asyncio.IncompleteReadError):
                wire.close()
                await asyncio.sleep(0.1)
                continue
            # PostgreSQL may not know yet that the process is gone.
            if response.status != 409:
                break
    assert interrupted == KILLS
    assert response.status == 200
    results = response.json()["results"]
    names = [result["task"]["name"] for result in results]
    assert names == [task["name"] for task in body["tasks"]]
    seen = await rows(board_a, person)
    assert_consistent(seen)
    assert len({result["task"]["id"] for result in results}) == len(seen["tasks"]) == 1000
    assert len(seen["outbox"]) == 1000
    async with board_a.owner() as connection:
        held = await connection.fetchval(
            "SELECT count(*) FROM holds WHERE account_id = $1", person.user_id
        )
    assert held == 1000


async def test_a_batch_sent_twice_at_the_same_time_creates_every_task_once(
    board_a: Service,
) -> None:
    person = await newcomer(board_a)
    tasks = [{"name": f"task {number}"} for number in range(500)]
    responses = await asyncio.gather(*[batch(person, tasks, "k") for _ in range(4)])
    done = [response for response in responses if response.status_code == 200]
    assert done
    assert {response.status_code for response in responses} <= {200, 409}
    assert {response.content for response in done} == {done[0].content}
    assert len((await rows(board_a, person))["tasks"]) == 500


async def test_a_batch_counts_as_one_request_for_every_ten_tasks(board_a: Service) -> None:
    person = await newcomer(board_a, tier="basic")
    tasks = [{"name": "x"}] * 991
    response = await batch(person, tasks)
    assert response.headers["ratelimit-remaining"] == "500"
    for _ in range(4):
        assert (await batch(person, tasks)).status_code == 200
    assert (await batch(person, [{"name": "x"}])).headers["ratelimit-remaining"] == "99"
    refused = await batch(person, tasks)
    assert refused.status_code == 429
    assert refused.json()["error"].keys() == {"message", "code"}
    assert refused.json()["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert len(refused.headers.get_list("ratelimit-remaining")) == 1
    # It counted as one request.
    assert (await batch(person, tasks[:10])).headers["ratelimit-remaining"] == "97"


@pytest.mark.timed
async def test_batches_create_10000_tasks_per_minute(process: Service) -> None:
    person = await newcomer(process)
    clock = asyncio.get_running_loop()
    started = clock.time()
    for first in range(0, TASKS, 1000):
        tasks = [{"name": f"task {first + n}", "agent": AGENT} for n in range(1000)]
        response = await batch(person, tasks, f"batch {first}")
        names = [result["task"]["name"] for result in response.json()["results"]]
        assert names == [task["name"] for task in tasks]
    took = clock.time() - started
    print(f"\n{TASKS} hosted tasks in {took:.1f} s")
    assert took < 60 * TASKS / 10_000
