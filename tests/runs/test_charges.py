"""What a model call is charged: cached tokens, missing usage, long integers, bad answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from rota.credits import verify
from rota.dev.stack import Stack
from rota.platform.db import Database
from tests.runs.runner import KILLED_HEARTBEAT_S, Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.runs.test_token_estimate import CODE, JSON, PROSE
from tests.service import Person

LONG = 2**200 + 1


@pytest.fixture(scope="module")
async def shop(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    """A service whose operator gave cached input a price, and runs few tokens."""
    log = tmp_path_factory.mktemp("charges") / "log"
    models = scripted.models(cachedInputUsdPerMillion=0.1)
    settings: dict[str, Any] = {"run_max_tokens": 3_000, "run_heartbeat_s": KILLED_HEARTBEAT_S}
    async with Runner.start(stack, scripted, "charges", log, models=models, **settings) as started:
        yield started


@pytest.fixture(scope="module")
async def db(shop: Runner) -> AsyncIterator[Database]:
    database = Database(shop.service.database_url, pool_size=2)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def person(shop: Runner, db: Database) -> AsyncIterator[Person]:
    """A new account. After the test, its books must agree."""
    found = await shop.newcomer()
    yield found
    async with db.snapshot(found.user_id) as tx:
        assert await verify.problems(tx) == []


async def model_steps(shop: Runner, person: Person, task: dict[str, Any]) -> list[dict[str, Any]]:
    steps, _ = await shop.timeline(person, task)
    return [step for step in steps if step["kind"] == "model"]


async def charges(person: Person) -> list[dict[str, Any]]:
    """The charges, oldest first."""
    listed = (await person.get("/api/credits/transactions")).json()["transactions"]
    return [entry for entry in reversed(listed) if entry["kind"] == "charge"]


async def test_cached_input_and_reasoning_are_charged_and_shown(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        says("Done.", inputTokens=1_000, cachedTokens=900, outputTokens=100, reasoningTokens=60)
    )
    task = await shop.finish(person, "writer", script)
    # 100 at $1, 900 at $0.10 and 100 at $2 per million.
    assert task["usage"]["costUsd"] == "0.000390"
    [step] = await model_steps(shop, person, task)
    assert (step["inputTokens"], step["cachedInputTokens"]) == (1_000, 900)
    assert (step["cacheWriteTokens"], step["reasoningTokens"]) == (0, 60)
    assert (step["estimated"], step["costUsd"]) == (False, "0.000390")
    [charge] = await charges(person)
    assert (charge["amountMicros"], charge["estimated"]) == (-390, False)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        # More cached than there is.
        ({"inputTokens": 100, "cachedTokens": 500, "outputTokens": 10}, "0.000030"),
        ({"inputTokens": 100, "outputTokens": 10, "reasoningTokens": 10**40}, "0.000120"),
        # The output does not include the reasoning: it is 7 + 100 tokens.
        ({"inputTokens": 100, "outputTokens": 7, "reasoningTokens": 100}, "0.000314"),
    ],
)
async def test_counts_of_a_provider_that_contradict_each_other_are_corrected(
    shop: Runner, scripted: Scripted, person: Person, usage: dict[str, int], cost: str
) -> None:
    task = await shop.finish(person, "writer", await scripted.script(says("Done.", **usage)))
    assert task["usage"]["costUsd"] == cost


async def test_a_call_that_costs_more_than_was_held_is_shown_at_what_was_charged(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    # The agent's budget is one cent. The answer costs three.
    script = await scripted.script(says("Done.", inputTokens=30_000, outputTokens=10))
    task = await shop.finish(person, "frugal", script)
    assert task["usage"]["costUsd"] == "0.010000"
    [charge] = await charges(person)
    assert charge["amountMicros"] == -10_000
    used = (await person.get("/api/usage")).json()
    assert used["totals"]["costUsd"] == "0.010000"
    # The step shows what the answer costs.
    [step] = await model_steps(shop, person, task)
    assert step["costUsd"] == "0.030020"


@pytest.mark.parametrize(
    ("text", "tokens"), [(PROSE, 120), (CODE, 124), (JSON, 135)], ids=["prose", "code", "json"]
)
async def test_a_call_without_usage_is_charged_by_the_tokens_that_rota_counts(
    shop: Runner, scripted: Scripted, person: Person, text: str, tokens: int
) -> None:
    script = await scripted.script(says(text * 3, usage=False))
    body = {"name": "Work", "input": f"{script}\n{text * 10}"}
    task = await shop.finish(person, "writer", script, **body)
    used = task["usage"]
    assert abs(used["outputTokens"] - tokens * 3) <= tokens * 3 * 0.1
    # The instructions, the name and the tools are about 300 tokens more.
    assert tokens * 10 * 0.9 <= used["inputTokens"] <= tokens * 10 * 1.1 + 400
    micros = used["inputTokens"] + used["outputTokens"] * 2
    assert used["costUsd"] == f"{micros / 10**6:.6f}"
    [step] = await model_steps(shop, person, task)
    assert step["estimated"] is True
    [charge] = await charges(person)
    assert (charge["amountMicros"], charge["estimated"]) == (-micros, True)
    metrics = await _metrics(shop)
    assert 'rota_run_estimated_calls_total{model="scripted"}' in metrics


async def _metrics(shop: Runner) -> str:
    port = shop.worker.settings.metrics_port
    async with httpx.AsyncClient() as http:
        return (await http.get(f"http://127.0.0.1:{port}/metrics")).text


async def test_the_token_limit_holds_for_a_provider_without_usage(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    looks = calls(("desk__lookup", {"ref": "no-usage"}), text=PROSE * 10, usage=False)
    script = await scripted.script(*[looks] * 20)
    task = await shop.finish(person, "writer", script, "FAILED")
    assert task["error"]["code"] == "TOKEN_LIMIT"
    # The first call uses more than 1,200 tokens, and the second more than 2,400.
    assert await scripted.count(script) == {0: 1, 1: 1}


async def test_integers_above_64_bits_reach_the_tool_and_come_back_exactly(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"long-{person.user_id.hex}"
    await scripted.define(person.user_id, [_numbers("lookup")])
    await scripted.behave(ref, {"result": {"found": [LONG, -LONG, 1.5]}})
    script = await scripted.script(
        calls(("desk__lookup", {"ref": ref, "number": LONG})), says("Read.")
    )
    task = await shop.finish(person, "writer", script)
    [made] = await scripted.done(ref)
    assert made["arguments"]["number"] == LONG
    steps, _ = await shop.timeline(person, task)
    [tool] = [step for step in steps if step["kind"] == "tool"]
    assert tool["arguments"] == {"ref": ref, "number": LONG}
    assert tool["result"] == {"found": [LONG, -LONG, 1.5]}
    read = [m for m in (await scripted.asked(script))[1]["messages"] if m["role"] == "tool"]
    assert str(LONG) in read[0]["content"]
    assert str(-LONG) in read[0]["content"]
    assert len(await charges(person)) == 2
    assert await scripted.count(script) == {0: 1, 1: 1}


async def test_a_reviewer_sees_and_approves_a_long_integer_exactly(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"asked-{person.user_id.hex}"
    await scripted.define(person.user_id, [_numbers("send")])
    await scripted.behave(ref, {"result": {"written": LONG}})
    script = await scripted.script(
        calls(("desk__send", {"ref": ref, "number": LONG})), says("Sent.")
    )
    task = await shop.begin(person, "careful", script)
    review = await shop.waiting(person, task, "tool")
    assert review["items"][0]["arguments"]["number"] == LONG
    await shop.approve(person, task)
    await shop.until(person, task, "COMPLETED")
    assert [call["arguments"]["number"] for call in await scripted.done(ref)] == [LONG]


async def test_an_integer_that_is_too_long_is_told_to_the_model_and_charged(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"endless-{person.user_id.hex}"
    await scripted.define(person.user_id, [_numbers("lookup")])
    digits = "7" * 5_000
    script = await scripted.script(
        calls(("desk__lookup", f'{{"ref": "{ref}", "number": {digits}}}')), says("Never mind.")
    )
    task = await shop.finish(person, "writer", script)
    assert task["output"] == "Never mind."
    assert await scripted.done(ref) == []
    assert await scripted.count(script) == {0: 1, 1: 1}
    assert len(await charges(person)) == 2


async def test_a_number_that_cannot_be_checked_is_told_to_the_model(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"parts-{person.user_id.hex}"
    await scripted.define(person.user_id, [_numbers("lookup", multipleOf=0.01)])
    script = await scripted.script(
        calls(("desk__lookup", {"ref": ref, "number": 10**400})), says("Never mind.")
    )
    await shop.finish(person, "writer", script)
    assert await scripted.count(script) == {0: 1, 1: 1}
    assert len(await charges(person)) == 2


def _numbers(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "server": "desk",
        "description": "Takes a number.",
        "readOnly": name == "lookup",
        "argumentsSchema": {
            "type": "object",
            "properties": {"ref": {"type": "string"}, "number": {"type": "integer", **more}},
            "required": ["ref"],
        },
    }


@asynccontextmanager
async def _refusing(shop: Runner, condition: str) -> AsyncIterator[None]:
    """PostgreSQL refuses to store these steps, as it does with a value it cannot represent."""
    async with shop.service.owner() as connection:
        await connection.execute(
            f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'refused' USING ERRCODE = 'data_exception';
            END
            $$;
            CREATE TRIGGER refuse BEFORE INSERT ON steps FOR EACH ROW
                WHEN ({condition}) EXECUTE FUNCTION refuse();
            """
        )
        try:
            yield
        finally:
            await connection.execute("DROP FUNCTION refuse CASCADE")


@asynccontextmanager
async def _waiting(shop: Runner, change: str, condition: str) -> AsyncIterator[Any]:
    """These changes wait in the database until the end, or until their connection is gone."""
    async with shop.service.owner() as connection:
        await connection.execute(
            f"""
            CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_advisory_xact_lock(4711);
                RETURN NEW;
            END
            $$;
            CREATE TRIGGER wait_for_test BEFORE {change} FOR EACH ROW
                WHEN ({condition}) EXECUTE FUNCTION wait_for_test();
            SELECT pg_advisory_lock(4711);
            """
        )
        try:
            yield connection
        finally:
            await connection.execute(
                "SELECT pg_advisory_unlock(4711); DROP FUNCTION wait_for_test CASCADE"
            )


@pytest.mark.parametrize(
    "condition",
    [
        # The answer cannot be applied.
        "NEW.kind = 'tool' AND NEW.arguments->>'text' = 'poison'",
        # The answer cannot even be stored.
        "NEW.kind = 'model' AND NEW.result::text LIKE '%poison%'",
    ],
)
async def test_an_answer_that_cannot_be_processed_is_charged_once_and_fails_the_run(
    shop: Runner, scripted: Scripted, person: Person, condition: str
) -> None:
    name = f"poison-{person.user_id.hex}"
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "x", "text": "poison"})), name=name
    )
    async with _refusing(shop, condition):
        task = await shop.finish(person, "writer", script, "FAILED")
    assert (task["error"]["code"], task["error"]["retryable"]) == ("MODEL_ANSWER_UNUSABLE", True)
    assert await scripted.count(script) == {0: 1}
    assert task["usage"]["costUsd"] == "0.000020"
    [charge] = await charges(person)
    assert (charge["run"], charge["step"], charge["amountMicros"]) == (1, 1, -20)
    [step] = await model_steps(shop, person, task)
    assert (step["state"], step["costUsd"]) == ("started", "0.000020")
    # A retry asks the model again.
    await scripted.script(says("Better."), name=name)
    await shop.retry(person, task, "failure")
    task = await shop.until(person, task, "COMPLETED")
    assert task["output"] == "Better."
    assert [(c["run"], c["step"]) for c in await charges(person)] == [(1, 1), (2, 1)]


async def test_a_worker_that_dies_after_the_charge_applies_the_answer_without_a_second_call(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    ref = f"late-{person.user_id.hex}"
    script = await scripted.script(calls(("desk__lookup", {"ref": ref})), says("Done."))
    # After the charge, the tool call cannot be planned.
    async with _waiting(shop, "INSERT ON steps", "NEW.kind = 'tool'"):
        task = await shop.begin(person, "writer", script)
        await until(lambda: charges(person))
        assert (await model_steps(shop, person, task))[0]["state"] == "started"
        await shop.worker.kill()
    await shop.worker.start()
    task = await shop.until(person, task, "COMPLETED")
    assert await scripted.count(script) == {0: 1, 1: 1}
    assert len(await scripted.done(ref)) == 1
    assert [(c["run"], c["step"]) for c in await charges(person)] == [(1, 1), (1, 2)]


@pytest.mark.long
async def test_a_worker_that_dies_after_a_filtered_answer_does_not_continue_from_it(
    shop: Runner, scripted: Scripted, person: Person
) -> None:
    blocked = says("Half of it", finishReason="content_filter")
    script = await scripted.script(blocked, says("It went on."))
    async with _waiting(shop, "UPDATE ON tasks", "NEW.status = 'FAILED'") as connection:
        task = await shop.begin(person, "writer", script)

        async def fails() -> bool:
            found = await connection.fetchval(
                "SELECT true FROM pg_locks WHERE objid = 4711 AND NOT granted"
            )
            return bool(found)

        await until(fails)
        await shop.worker.kill()
    await shop.worker.start()
    task = await shop.until(person, task, "FAILED")
    assert task["error"]["code"] == "CONTENT_FILTERED"
    assert await scripted.count(script) == {0: 1}
    assert len(await charges(person)) == 1
