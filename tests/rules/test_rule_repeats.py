"""A rule approves one start of a call. What it does not approve: repeats, retries and forks."""

from typing import Any

import pytest

from rota.runs.contracts import CallInput
from tests.policies.world import Office, OfficeRun, approve, review_of
from tests.rules.test_rule_runs import (
    ASKED,
    Change,
    approver_removed,
    expired,
    go_on,
    revoked,
    second_person_required,
    used_up,
)
from tests.rules.test_rules import make, rule_now

INTERRUPTED = (
    "UPDATE steps SET state = 'started', started_at = now(), read_only = true"
    " WHERE account_id = $1 AND kind = 'tool'"
)


async def fail_to_reach(run: OfficeRun) -> None:
    """The call starts, its server is down, and the worker counts the attempt."""
    run.client.unavailable = 1
    with pytest.raises(Exception, match="It is down"):
        await run.act()
    assert run.next is not None
    await run.tool_caller.count_failure(CallInput(run.run_input, run.next.step, 1))
    await run.begin()


async def a_call_that_failed(run: OfficeRun, office: Office) -> tuple[Any, Any]:
    """A rule, and a task whose call it has approved once. The call did not reach its server."""
    rule = await make(run, office.approvers[0], maxUses=9)
    task = await run.start(office.owner)
    await run.answer(ASKED)
    await fail_to_reach(run)
    assert (await rule_now(office.owner, rule))["uses"] == 1
    return task, rule


async def assert_waits(run: OfficeRun, office: Office, task: Any, made: int = 0) -> None:
    """The call waits for a person, who can approve it."""
    assert await run.status() == "WAITING_APPROVAL"
    assert len(run.client.made) == made
    assert (await approve(office.approvers[1], task)).status_code == 200
    await run.begin()
    await go_on(run)
    assert len(run.client.made) == made + 1


@pytest.mark.parametrize(
    "change", [expired, used_up, revoked, approver_removed, second_person_required]
)
async def test_a_rule_that_has_ended_does_not_approve_the_next_attempt(
    run: OfficeRun, office: Office, change: Change
) -> None:
    task, rule = await a_call_that_failed(run, office)
    await change(run, office, rule)
    await run.act()
    await assert_waits(run, office, task)


async def test_each_attempt_that_does_not_reach_the_server_is_counted(
    run: OfficeRun, office: Office
) -> None:
    task, rule = await a_call_that_failed(run, office)
    await fail_to_reach(run)
    await go_on(run)
    assert len(run.client.made) == 1
    assert (await rule_now(office.owner, rule))["uses"] == 3
    assert len((await review_of(office.owner, task))["history"]) == 1


@pytest.mark.parametrize("counted", [True, False])
async def test_a_rule_does_not_repeat_a_read_that_may_have_reached_its_tool(
    run: OfficeRun, office: Office, *, counted: bool
) -> None:
    rule = await make(run, office.approvers[0], maxUses=9)
    task = await run.start(office.owner)
    await run.answer(ASKED)
    await go_on(run)
    # As if the worker had died during the call, or had seen it fail.
    await run.write("UPDATE steps SET result = NULL, outcome = NULL WHERE account_id = $1")
    await run.write(INTERRUPTED)
    if counted:
        await run.tool_caller.count_failure(CallInput(run.run_input, 1, 1))
    await run.begin()
    await run.act()
    [item] = (await review_of(office.owner, task))["items"]
    assert "standing rule approved an attempt" in item["reason"]
    await assert_waits(run, office, task, made=1)
    assert (await rule_now(office.owner, rule))["uses"] == 1


@pytest.mark.parametrize("started", [True, False])
async def test_a_retry_from_failure_asks_a_person_about_a_call_that_a_rule_approved(
    run: OfficeRun, office: Office, *, started: bool
) -> None:
    task, rule = await a_call_that_failed(run, office)
    if started:
        await run.write(INTERRUPTED)
    await run.fail()
    answer = await office.approvers[0].post(f"/api/tasks/{task['id']}/retry", {"from": "failure"})
    assert answer.status_code == 200, answer.text
    run.run = 2
    await run.begin(resume=True)
    await run.act()
    await assert_waits(run, office, task)
    assert (await rule_now(office.owner, rule))["uses"] == 1


async def test_a_person_who_approves_a_call_approves_every_attempt(
    run: OfficeRun, office: Office
) -> None:
    task, rule = await a_call_that_failed(run, office)
    await revoked(run, office, rule)
    await run.act()
    assert (await approve(office.approvers[1], task)).status_code == 200
    await run.begin()
    await fail_to_reach(run)
    await go_on(run)
    assert len(run.client.made) == 1


async def test_a_fork_asks_a_person_whatever_rules_there_are(
    run: OfficeRun, office: Office
) -> None:
    rule = await make(run, office.approvers[0], maxUses=9)
    original = await run.start(office.owner)
    fork = await forked(office, original)
    await run.go_on_with(fork)
    await run.answer(ASKED)
    await assert_waits(run, office, fork)
    assert (await rule_now(office.owner, rule))["uses"] == 0


async def test_a_task_below_a_fork_asks_a_person(run: OfficeRun, office: Office) -> None:
    await make(run, office.approvers[0], maxUses=9)
    original = await run.start(office.owner, agent="foreman")
    fork = await forked(office, original)
    for task, status in ((original, "RUNNING"), (fork, "WAITING_APPROVAL")):
        await run.go_on_with(task)
        await run.answer({"agent": "operator", "name": "Part", "input": "Do it."}, tool="delegate")
        await run.act()
        listed = await office.owner.get("/api/tasks", params={"parentTaskId": task["id"]})
        [child] = listed.json()["tasks"]
        await run.go_on_with(child)
        await run.answer(ASKED)
        assert await run.status() == status


async def forked(office: Office, task: dict[str, Any]) -> dict[str, Any]:
    answer = await office.owner.post(f"/api/tasks/{task['id']}/fork", {"fromStep": 0})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["task"]
    return found
