"""A run from its start to its answer, and what the API shows about it."""

import asyncio

import httpx

from tests.assertions import MOMENT, assert_error
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, conversation, says
from tests.service import Person
from tests.tasks.world import assert_consistent, picture

ENTRY = {
    "id", "kind", "run", "step", "name", "server", "state", "outcome", "arguments", "result",
    "childTaskId", "inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteTokens",
    "reasoningTokens", "estimated", "costUsd", "priceVersion", "startedAt", "finishedAt",
    "durationMs", "decidedBy", "note", "copied", "truncated",
}  # fmt: skip


async def test_a_task_completes_with_the_usage_that_the_provider_reports(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "usage"}), inputTokens=100, outputTokens=20),
        says("Forty-two.", inputTokens=150, outputTokens=3),
    )
    task = await runner.finish(
        person, "writer", script, name="The question", description="Of everything."
    )
    assert task["output"] == "Forty-two."
    assert task["error"] is None
    # 250 input tokens at one micro-dollar each, 23 output tokens at two.
    assert task["usage"] == {
        "run": 1,
        "steps": 2,
        "inputTokens": 250,
        "outputTokens": 23,
        "costUsd": "0.000296",
        "budgetUsd": "1.000000",
    }
    assert task["createdAt"] <= task["startedAt"] <= task["finishedAt"]

    first, second = await scripted.asked(script)
    text = conversation(first)
    assert "PLANTED-INSTRUCTIONS" in text
    assert "# The question" in text
    assert "Of everything." in text
    assert {tool["name"] for tool in first["tools"]} == {
        "ask_person",
        "desk__lookup",
        "desk__send",
    }
    assert second["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "c00001001",
        "content": 'lookup did {"ref": "usage"}',
    }


async def test_the_timeline_shows_each_call_with_its_time_tokens_and_cost(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "timeline"}), text="I send it.", inputTokens=7),
        says("Sent."),
    )
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")

    steps, total = await runner.timeline(person, task)
    assert total == 4
    assert all(step.keys() == ENTRY for step in steps)
    by_kind = {kind: [s for s in steps if s["kind"] == kind] for kind in ("model", "tool")}
    assert [step["kind"] for step in steps].count("approval") == 1
    first, answer = by_kind["model"]
    assert first["result"] == {"text": "I send it.", "toolCalls": ["desk__send"]}
    assert (first["inputTokens"], first["outputTokens"]) == (7, 5)
    assert first["costUsd"] == "0.000017"
    assert first["priceVersion"] == "operator"
    assert answer["result"] == {"text": "Sent.", "toolCalls": []}
    [tool] = by_kind["tool"]
    assert (tool["server"], tool["name"], tool["outcome"]) == ("desk", "send", "ok")
    assert tool["arguments"] == {"ref": "timeline"}
    assert tool["result"] == 'send did {"ref": "timeline"}'
    [approval] = [step for step in steps if step["kind"] == "approval"]
    assert (approval["name"], approval["state"]) == ("tool", "approved")
    assert approval["run"] == 1
    assert "sealed" not in approval["arguments"][0]
    assert approval["decidedBy"]["userId"] == f"user_{person.user_id.hex}"
    for step in steps:
        assert MOMENT.fullmatch(step["startedAt"])
        assert MOMENT.fullmatch(step["finishedAt"])
        assert step["durationMs"] >= 0
    assert [s["startedAt"] for s in steps] == sorted(s["startedAt"] for s in steps)

    pages = [(await runner.timeline(person, task, limit=1, offset=n))[0] for n in range(4)]
    assert [step for page in pages for step in page] == steps
    assert (await runner.timeline(person, task, offset=9)) == ([], 4)

    stranger = await runner.newcomer()
    path = f"/api/tasks/{task['id']}/timeline"
    assert_error(await stranger.get(path), 404, "NOT_FOUND", path)


async def test_events_are_in_order_without_gaps_and_the_outbox_is_empty_afterwards(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "events"})), says("Sent."))
    task = await runner.begin(person, "careful", script)
    await runner.waiting(person, task, "tool")
    await runner.approve(person, task)
    await runner.until(person, task, "COMPLETED")
    assert await runner.events(person, task) == [
        "task.created",
        "task.started",
        "task.waiting_approval",
        "task.approved",
        "task.completed",
    ]
    async with runner.service.owner() as connection:
        assert_consistent(await picture(connection, person.user_id))

        async def left() -> list[str]:
            rows = await connection.fetch(
                "SELECT kind FROM outbox WHERE account_id = $1 AND due_at <= now()",
                person.user_id,
            )
            return [row["kind"] for row in rows]

        await until(left, lambda kinds: not kinds)


async def test_concurrent_tasks_each_get_their_own_answer(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async def one(number: int) -> None:
        ref = f"many-{number}"
        script = await scripted.script(
            calls(("desk__lookup", {"ref": ref})), says(f"Answer {number}")
        )
        task = await runner.finish(person, "writer", script)
        assert task["output"] == f"Answer {number}"
        assert len(await scripted.done(ref)) == 1
        assert await scripted.count(script) == {0: 1, 1: 1}

    await asyncio.gather(*[one(number) for number in range(12)])
    async with runner.service.owner() as connection:
        assert_consistent(await picture(connection, person.user_id))


async def test_an_answer_of_the_maximum_length_is_the_output(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says("é" * 50_000))
    task = await runner.finish(person, "writer", script)
    assert task["output"] == "é" * 50_000


async def test_a_long_tool_result_reaches_the_model_truncated_with_a_note(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    await scripted.behave("long", {"result": "x" * 30_000}, {"result": {"rows": [1, 2]}})
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "long"})),
        calls(("desk__lookup", {"ref": "long"})),
        says("Much."),
    )
    await runner.finish(person, "writer", script)
    third = (await scripted.asked(script))[2]
    truncated, structured = (m["content"] for m in third["messages"] if m["role"] == "tool")
    assert truncated == "x" * 20_000 + "\n[truncated from 30000 characters]"
    assert structured == '{"rows":[1,2]}'


async def test_the_worker_exports_metrics_of_queue_time_steps_cost_and_failures(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(calls(("desk__lookup", {"ref": "metrics"})), says("Done."))
    await runner.finish(person, "writer", script)
    await runner.finish(person, "stranger", script, "FAILED")
    url = f"http://127.0.0.1:{runner.worker.settings.metrics_port}/metrics"
    async with httpx.AsyncClient() as http:
        shown = (await http.get(url)).text
    values = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in shown.splitlines()
        if line.startswith("rota_")
    }
    assert values["rota_run_queue_seconds_count"] >= 2
    assert values['rota_run_step_seconds_count{kind="model"}'] >= 2
    assert values['rota_run_step_seconds_count{kind="tool"}'] >= 1
    assert values['rota_run_cost_micros_total{model="scripted"}'] >= 40
    assert values['rota_run_failures_total{code="MODEL_NOT_CONFIGURED"}'] >= 1
    # Before a process has such a failure, so that an alert sees the first one.
    assert 'rota_run_failures_total{code="MODEL_WITHOUT_PRICE"}' in values
