"""Rules in runs: which calls they approve, how often, and what is recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.composition import Composition
from tests.policies.world import Office, OfficeRun, approve, because, review_of
from tests.rules.test_rules import make, rule_now
from tests.runs.runner import shown
from tests.service import Service
from tests.tasks.world import create

ASKED = {"text": "as asked"}


async def go_on(run: OfficeRun) -> None:
    """The worker makes the calls that it may make, and sees what is next."""
    await run.act()
    await run.begin()


async def test_a_call_that_a_rule_covers_is_made_and_the_record_says_so(
    run: OfficeRun, office: Office
) -> None:
    maker, reader = office.approvers
    rule = await make(run, maker, arguments={"text": {"const": "as asked"}})
    task = await run.start(office.owner)
    await run.answer(ASKED)
    assert await run.status() == "RUNNING"
    assert (await rule_now(reader, rule))["uses"] == 0
    await go_on(run)
    [made] = run.client.made
    assert made.arguments == ASKED
    assert (await rule_now(reader, rule))["uses"] == 1
    review = await review_of(reader, task)
    assert (review["state"], review["gate"]) == ("approved", "tool")
    [item] = review["items"]
    by = {
        "userId": maker.wire_id,
        "name": rule["createdByName"],
        "via": "rule",
        "keyId": None,
        "ruleId": rule["id"],
    }
    assert (item["decision"], item["decidedBy"], item["arguments"]) == ("approved", by, ASKED)
    timeline = (await reader.get(f"/api/tasks/{task['id']}/timeline")).json()["steps"]
    [approval] = [step for step in timeline if step["kind"] == "approval"]
    assert (approval["state"], approval["decidedBy"]) == ("approved", by)
    events = [each for each in await office.company.events() if each["type"] == "rule.used"]
    assert [each["data"]["uses"] for each in events] == [1]
    assert events[0]["taskId"] == task["id"]
    # Nobody decided anything, so an approval without a review is refused as ever.
    late = await reader.post(f"/api/tasks/{task['id']}/approve", {})
    assert late.status_code == 409


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": {"text": {"const": "other"}}},
        {"arguments": {}},
        {"arguments": {"text": {"any": True}, "to": {"const": "me"}}},
        {"agent": "collector"},
    ],
)
async def test_a_call_that_the_rule_does_not_cover_waits(
    run: OfficeRun, office: Office, changes: dict[str, Any]
) -> None:
    rule = await make(run, office.owner, **changes)
    await run.start(office.owner)
    await run.answer(ASKED)
    assert await run.status() == "WAITING_APPROVAL"
    assert (await rule_now(office.owner, rule))["uses"] == 0


Change = Callable[[OfficeRun, Office, dict[str, Any]], Awaitable[None]]


async def expired(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    await run.write("UPDATE rules SET expires_at = now() WHERE account_id = $1")


async def used_up(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    await run.write("UPDATE rules SET uses = max_uses WHERE account_id = $1")


async def revoked(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    assert (await office.owner.delete(f"/api/rules/{rule['id']}")).status_code == 200


async def approver_removed(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    assert (await office.company.remove(office.approvers[0])).status_code == 200


async def right_taken(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    changed = await office.company.change(office.approvers[0], approver=False)
    assert changed.status_code == 200


async def second_person_required(run: OfficeRun, office: Office, rule: dict[str, Any]) -> None:
    """The approver who made the rule has retried the task, so it is not for this task."""
    await run.write(
        "INSERT INTO task_shapers (account_id, task_id, user_id, how)"
        f" SELECT $1, id, '{office.approvers[0].user_id}', 'retried' FROM tasks"
        " WHERE account_id = $1"
    )
    await office.require_second_person()


STATE: dict[Change, str] = {
    expired: "expired",
    used_up: "used",
    revoked: "revoked",
    second_person_required: "active",
}


@pytest.mark.parametrize(
    "change",
    [expired, used_up, revoked, approver_removed, right_taken, second_person_required],
)
@pytest.mark.parametrize("when", ["before the answer", "before the start"])
async def test_a_rule_that_ends_in_between_approves_nothing(
    run: OfficeRun, office: Office, change: Change, when: str
) -> None:
    rule = await make(run, office.approvers[0])
    task = await run.start(office.owner)
    if when == "before the answer":
        await change(run, office, rule)
    await run.answer(ASKED)
    if when == "before the start":
        assert await run.status() == "RUNNING"
        await change(run, office, rule)
    await run.act()
    assert await run.status() == "WAITING_APPROVAL"
    assert run.client.made == []
    now = await rule_now(office.owner, rule)
    assert now["state"] == STATE.get(change, "void")
    assert now["uses"] == (rule["maxUses"] if change is used_up else 0)
    # A person decides instead.
    assert (await approve(office.approvers[1], task)).status_code == 200
    await run.begin()
    await go_on(run)
    assert len(run.client.made) == 1


async def test_a_tool_or_server_that_changes_before_the_start_is_not_called(
    run: OfficeRun, office: Office
) -> None:
    for what in ("tool", "server"):
        rule = await make(run, office.owner)
        await run.start(office.owner)
        await run.answer(ASKED)
        if what == "tool":
            await run.redefine("Sends to everybody.")
        else:
            await run.move_server("https://x.example/")
        await run.act()
        assert await run.status() == "WAITING_APPROVAL"
        assert (await rule_now(office.owner, rule))["state"] == "void"
    assert run.client.made == []


async def test_the_last_use_is_given_once_to_two_runs_at_once(
    board: Service, run: OfficeRun, office: Office
) -> None:
    """Eight workers start calls of eight runs, and the rule has three uses left."""
    rule = await make(run, office.owner, maxUses=3)
    async with Composition(board.settings, pool_size=16) as parts:
        runs = []
        for _ in range(8):
            other = OfficeRun(board, parts, office)
            other.server, other.client = run.server, run.client
            other.toolbox.sources = run.toolbox.sources
            await other.start(office.owner)
            await other.answer(ASKED)
            assert await other.status() == "RUNNING"
            runs.append(other)
        await asyncio.gather(*[other.act() for other in runs])
        statuses = sorted([await other.status() for other in runs])
    assert statuses == ["RUNNING"] * 3 + ["WAITING_APPROVAL"] * 5
    assert len(run.client.made) == 3
    now = await rule_now(office.owner, rule)
    assert (now["uses"], now["state"]) == (3, "used")


async def test_a_rule_covers_no_more_calls_of_an_answer_than_it_has_uses(
    run: OfficeRun, office: Office
) -> None:
    rule = await make(run, office.owner, maxUses=2)
    task = await run.start(office.owner)
    await run.answer(ASKED, ASKED, ASKED)
    assert await run.status() == "WAITING_APPROVAL"
    items = (await review_of(office.owner, task))["items"]
    assert [item["decision"] for item in items] == ["approved", "approved", None]
    assert (await approve(office.approvers[0], task)).status_code == 200
    await run.begin()
    await go_on(run)
    assert len(run.client.made) == 3
    assert (await rule_now(office.owner, rule))["uses"] == 2


async def test_a_review_of_other_calls_shows_those_that_a_rule_approves(
    run: OfficeRun, office: Office
) -> None:
    rule = await make(run, office.owner, arguments={"text": {"const": "as asked"}})
    task = await run.start(office.owner)
    await run.answer({"text": "another"}, ASKED)
    review = await review_of(office.owner, task)
    other, covered = review["items"]
    assert (other["decision"], covered["decision"]) == (None, "approved")
    assert covered["decidedBy"]["ruleId"] == rule["id"]
    # It is counted when it starts.
    assert (await rule_now(office.owner, rule))["uses"] == 0
    assert (await approve(office.approvers[0], task)).status_code == 200
    await run.begin()
    await go_on(run)
    assert [made.arguments["text"] for made in run.client.made] == ["another", "as asked"]
    assert (await rule_now(office.owner, rule))["uses"] == 1
    assert len((await review_of(office.owner, task))["history"]) == 1


async def test_rejecting_a_review_rejects_the_calls_that_a_rule_covers(
    run: OfficeRun, office: Office
) -> None:
    rule = await make(run, office.owner, arguments={"text": {"const": "as asked"}})
    task = await run.start(office.owner)
    await run.answer({"text": "another"}, ASKED)
    body = {"reason": "Stop, it is the wrong customer.", "resume": True}
    rejected = await office.approvers[0].post(f"/api/tasks/{task['id']}/reject", body)
    assert rejected.status_code == 200, rejected.text
    items = rejected.json()["review"]["items"]
    assert [item["decision"] for item in items] == ["rejected"] * 2
    assert {item["decidedBy"]["userId"] for item in items} == {office.approvers[0].wire_id}
    assert (await run.begin()).kind == "think"
    assert run.client.made == []
    assert [row.outcome for row in await run.tool_rows()] == ["rejected"] * 2
    assert (await rule_now(office.owner, rule))["uses"] == 0


async def test_a_rule_never_repeats_a_call_whose_outcome_is_unknown(
    run: OfficeRun, office: Office
) -> None:
    rule = await make(run, office.owner, maxUses=9)
    task = await run.start(office.owner)
    await run.answer(ASKED)
    run.client.lost = 1
    await run.act()
    assert await run.status() == "WAITING_APPROVAL"
    [item] = (await review_of(office.owner, task))["items"]
    assert "unknown whether it took effect" in item["reason"]
    assert (await approve(office.approvers[0], task)).status_code == 200
    await run.begin()
    await go_on(run)
    assert len(run.client.made) == 2
    # The person approved the second attempt.
    assert (await rule_now(office.owner, rule))["uses"] == 1


async def test_run_gates_and_output_gates_wait_whatever_rules_there_are(
    run: OfficeRun, office: Office
) -> None:
    await make(run, office.owner)
    task = await create(office.owner, agent="operator", status="WAITING_APPROVAL")
    assert (await review_of(office.owner, task))["gate"] == "run"


async def test_the_maker_of_a_rule_shaped_the_tasks_that_used_it(
    run: OfficeRun, office: Office
) -> None:
    maker, other = office.approvers
    await office.require_second_person()
    await make(run, maker, arguments={"text": {"const": "as asked"}}, maxUses=5)
    task = await run.start(other)
    await run.answer(ASKED)
    await go_on(run)
    # The rule approves again, and the person does not approve what came of it.
    await run.answer(ASKED)
    await go_on(run)
    assert len(run.client.made) == 2
    await run.answer({"text": "another"})
    assert because(await approve(maker, task)) == ["madeRule"]


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_decision_that_is_sent_again_after_a_rule_was_used_is_the_same_decision(
    run: OfficeRun, office: Office, decision: str
) -> None:
    await make(run, office.owner, arguments={"text": {"const": "as asked"}})
    task = await run.start(office.owner)
    await run.answer({"text": "another"})
    body: dict[str, Any] = {"review": shown(await review_of(office.owner, task))}
    if decision == "reject":
        body["resume"] = True
    path = f"/api/tasks/{task['id']}/{decision}"
    assert (await office.approvers[0].post(path, body)).status_code == 200
    await run.begin()
    await go_on(run)
    await run.answer(ASKED)
    await go_on(run)
    again = await office.approvers[0].post(path, body)
    assert again.status_code == 200, again.text
