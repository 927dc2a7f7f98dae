"""Requests to fork a task: what is refused, what is held, and that a repeated one does nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota.dev.stack import Stack
from tests.assertions import assert_error
from tests.runs.gated_run import GatedRun, decide
from tests.runs.runner import until
from tests.runs.test_retries import failed, publish, retry
from tests.service import Service
from tests.tasks.world import create, newcomer, newcomers, patch, picture


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"forks_{request.param}"
    url = "http://127.0.0.1:9/v1"
    async with Service.start(stack, variant=request.param, name=name, model_url=url) as started:
        yield started


async def forks(run: GatedRun, step: int, **body: Any) -> httpx.Response:
    return await run.editor.post(f"{run.path}/fork", {"fromStep": step, **body})


async def rows(run: GatedRun) -> Any:
    async with run.service.owner() as connection:
        return await picture(connection, run.account_id)


async def test_steps_that_a_fork_cannot_continue_from_are_refused(
    run: GatedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(run.service, tmp_path, "forked")
    await run.open("forked")
    await run.begin()
    await run.answer({"text": "one"})
    before = await rows(run)
    waiting = assert_error(await forks(run, 1), 409, "CONFLICT")
    assert "Step 1 has not finished" in waiting["message"]
    missing = assert_error(await forks(run, 2), 400, "VALIDATION_ERROR")
    assert missing["details"][0]["field"] == "fromStep"
    assert "last step is 1" in missing["message"]
    assert await rows(run) == before
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await run.act()
    await run.begin()
    # A model call that was answered without tool calls, after which the task was cancelled.
    await run.write(
        "INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, outcome) "
        "SELECT account_id, id, 1, 2, 0, 'model', 'finished', 'test', 'ok' FROM tasks "
        "WHERE account_id = $1"
    )
    last = assert_error(await forks(run, 2), 409, "CONFLICT")
    assert "Fork from step 1" in last["message"]
    options = (await run.editor.get(f"{run.path}/fork")).json()["fork"]
    assert options["steps"] == [1]
    monkeypatch.setattr("rota.runs.forks.MAX_COPIED_MIB", 0)
    large = assert_error(await forks(run, 1), 409, "CONFLICT")
    assert "Fork from an earlier step" in large["message"]
    assert (await run.editor.get(f"{run.path}/fork")).json()["fork"]["steps"] == []
    monkeypatch.undo()
    made = await forks(run, 1)
    assert made.status_code == 201, made.text
    async with run.service.owner() as connection:
        copies = await connection.fetch(
            "SELECT step, call, approved_digest, cost_micros, copied FROM steps "
            "WHERE account_id = $1 AND copied ORDER BY step, call",
            run.account_id,
        )
    assert [tuple(copy) for copy in copies] == [
        (1, 0, None, 0, True),
        (1, 1, None, 0, True),
    ]
    assert len(run.client.made) == 1


async def test_a_step_that_a_retry_kept_can_be_forked(run: GatedRun, tmp_path: Path) -> None:
    await publish(run.service, tmp_path, "retried")
    await failed(run, "retried")
    assert (await run.editor.post(f"{run.path}/retry", {"from": "failure"})).status_code == 200
    run.run += 1
    # The steps are copied when the run begins.
    assert (await run.editor.get(f"{run.path}/fork")).json()["fork"]["steps"] == []
    await run.begin(resume=True)
    options = (await run.editor.get(f"{run.path}/fork")).json()["fork"]
    assert options["steps"] == [1]
    assert (await forks(run, 1)).status_code == 201


async def test_a_step_that_never_finishes_is_not_one_to_wait_for(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "ended")
    await run.open("ended")
    await run.begin()
    await run.answer({"text": "one"})
    assert "wait" in assert_error(await forks(run, 1), 409, "CONFLICT")["message"]
    assert (await patch(run.editor, run.task_id, status="CANCELLED")).status_code == 200
    ended = assert_error(await forks(run, 1), 409, "CONFLICT")
    assert ended["message"] == ("Step 1 did not finish before the task ended. Fork from step 0.")


async def test_the_quote_of_a_retry_counts_what_the_fork_copied_as_kept(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "counted")
    await failed(run, "counted")
    made = (await forks(run, 1)).json()["task"]
    run.task_id = made["id"]
    await run.begin()
    await run.answer({"text": "two"})
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await run.fail()
    start, failure = (await run.editor.get(f"{run.path}/retry")).json()["retry"]["options"]
    assert (start["from"], start["keptSteps"], start["repeatedSteps"]) == ("start", 2, 2)
    assert (failure["keptSteps"], failure["repeatedSteps"]) == (3, 1)


async def test_versions_that_the_tier_refuses_are_not_offered(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "opened", required="ENTERPRISE")
    await publish(run.service, tmp_path, "opened", budget=120)
    await run.open("opened")
    async with run.service.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = 'basic' WHERE id = $1", run.account_id)

    async def offered() -> Any:
        return (await run.editor.get(f"{run.path}/fork")).json()["fork"]["versions"]

    assert await until(offered, lambda seen: seen != [2, 1]) == [2]
    assert_error(await forks(run, 0, agentVersion=1), 403, "AUTHORIZATION_ERROR")


async def test_a_task_whose_version_the_tier_locks_can_be_forked_with_another(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "unlocked", required="ENTERPRISE")
    await run.open("unlocked")
    await publish(run.service, tmp_path, "unlocked")
    async with run.service.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = 'basic' WHERE id = $1", run.account_id)

    async def options() -> Any:
        return (await run.editor.get(f"{run.path}/fork")).json()["fork"]

    found = await until(options, lambda seen: seen["versions"] == [2])
    assert (found["available"], found["reason"]) == (True, None)
    assert_error(await forks(run, 0), 403, "AUTHORIZATION_ERROR")
    assert (await forks(run, 0, agentVersion=2)).status_code == 201
    # The tier has to include the agent as it is now.
    await publish(run.service, tmp_path, "unlocked", required="ENTERPRISE", budget=120)
    found = await options()
    assert (found["available"], found["versions"]) == (False, [])
    refused = assert_error(await forks(run, 0, agentVersion=2), 403, "AUTHORIZATION_ERROR")
    assert found["reason"] == refused["message"]


async def test_steps_that_retention_may_have_deleted_are_not_copied(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "shortened")
    await failed(run, "shortened")
    assert (await run.editor.get(f"{run.path}/fork")).json()["fork"]["steps"] == [1]
    await run.write(
        "UPDATE balances SET steps_cut_at = now() + interval '1 day' WHERE account_id = $1"
    )
    options = (await run.editor.get(f"{run.path}/fork")).json()["fork"]
    assert (options["available"], options["steps"]) == (True, [])
    error = assert_error(await forks(run, 1), 409, "CONFLICT")
    assert "retention policy. Fork from step 0" in error["message"]
    assert (await forks(run, 0)).status_code == 201
    # A run that has not ended keeps its steps.
    await retry(run, "start")
    await run.begin()
    await run.answer({"text": "again"})
    await decide(run, run.one, await run.review(run.one))
    await run.begin()
    await run.act()
    assert (await forks(run, 1)).status_code == 201


async def test_a_model_that_is_no_longer_configured_has_to_be_replaced(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "modern")
    await run.open("modern")
    run.task_id = (await forks(run, 0, model="fast")).json()["task"]["id"]
    await run.write("UPDATE tasks SET model = 'gone' WHERE account_id = $1 AND model = 'fast'")
    error = assert_error(await forks(run, 0), 400, "VALIDATION_ERROR")
    assert "'gone' is not configured" in error["message"]
    assert (await run.editor.get(f"{run.path}/fork")).json()["fork"]["available"]
    assert (await forks(run, 0, model="strong")).json()["task"]["model"] == "strong"


async def test_a_retried_original_is_named_by_the_run_that_was_forked(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "rerun")
    await failed(run, "rerun")
    first = (await forks(run, 1)).json()["task"]
    assert (await run.editor.post(f"{run.path}/retry", {"from": "start"})).status_code == 200
    second = (await forks(run, 0)).json()["task"]
    origins = [each["forkedFrom"] for each in (first, second)]
    assert [(each["run"], each["step"]) for each in origins] == [(1, 1), (2, 0)]


async def test_other_requests_that_cannot_work_are_refused_and_write_nothing(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "refused")
    await run.open("refused")
    external = await create(run.editor, status="RUNNING")
    before = await rows(run)
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"agentVersion": 7}, "agentVersion", "newest version is 1"),
        ({"model": "gpt"}, "model", "Use one of: default, fast, strong."),
        ({"model": ""}, "model", ""),
        ({"agentVersion": 0}, "agentVersion", ""),
        ({"fromstep": 1}, "fromstep", "fromStep"),
    ]
    for body, field, words in wrong:
        error = assert_error(await forks(run, 0, **body), 400, "VALIDATION_ERROR")
        assert error["details"][0]["field"] == field
        assert words in error["message"]
    for step in (-1, 2**31, "1", True):
        assert_error(await forks(run, step), 400, "VALIDATION_ERROR")  # type: ignore[arg-type]
    refused = await run.editor.post(f"/api/tasks/{external['id']}/fork", {"fromStep": 0})
    assert "Your client runs this task" in assert_error(refused, 409, "CONFLICT")["message"]
    stranger = await newcomer(run.service)
    for task_id in (run.task_id, "task_" + "0" * 32, "nonsense"):
        for response in (
            await stranger.post(f"/api/tasks/{task_id}/fork", {"fromStep": 0}),
            await stranger.get(f"/api/tasks/{task_id}/fork"),
        ):
            assert_error(response, 404, "NOT_FOUND")
    assert await rows(run) == before


async def test_a_fork_needs_the_scope_the_tier_and_the_money_of_a_new_task(
    run: GatedRun, tmp_path: Path
) -> None:
    await publish(run.service, tmp_path, "paid")
    await run.open("paid")
    [reader] = await newcomers(run.service, scopes=("tasks:read",))
    assert_error(await reader.post(f"{run.path}/fork", {"fromStep": 0}), 403, "AUTHORIZATION_ERROR")
    quote = (await forks(run, 0, dryRun=True)).json()["quote"]
    assert (quote["maximumCostUsd"], quote["opensGates"]) == ("1.000000", ["tool"])
    await run.write("UPDATE balances SET allowance = 0, topup = 0 WHERE account_id = $1")
    before = await rows(run)
    assert_error(await forks(run, 0), 402, "INSUFFICIENT_CREDITS")
    assert await rows(run) == before
    assert not (await forks(run, 0, dryRun=True)).json()["quote"]["balance"]["covered"]
    await publish(run.service, tmp_path, "paid", required="CORPORATE")
    async with run.service.owner() as connection:
        await connection.execute("UPDATE accounts SET tier = 'basic' WHERE id = $1", run.account_id)
    # The old version is open to the tier, but the agent is not. The tier of a key is cached for a
    # moment.
    refused = await until(lambda: forks(run, 0), lambda seen: seen.status_code != 402)
    assert_error(refused, 403, "AUTHORIZATION_ERROR")
    options = (await run.editor.get(f"{run.path}/fork")).json()["fork"]
    assert (options["available"], "requires the tier" in options["reason"]) == (False, True)


async def test_a_repeated_request_creates_one_fork(run: GatedRun, tmp_path: Path) -> None:
    await publish(run.service, tmp_path, "repeated")
    await run.open("repeated")
    headers = {"Idempotency-Key": "fork-once"}
    sent = [
        await run.editor.request(
            "POST", f"{run.path}/fork", json={"fromStep": 0, "model": "fast"}, headers=headers
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in sent] == [201, 201]
    assert sent[0].json() == sent[1].json()
    assert sent[1].headers["Idempotent-Replayed"] == "true"
    other = await run.editor.request(
        "POST", f"{run.path}/fork", json={"fromStep": 0}, headers=headers
    )
    assert_error(other, 409, "CONFLICT")
    assert (await run.editor.get("/api/tasks")).json()["total"] == 2
