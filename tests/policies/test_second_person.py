"""Second person: nobody approves what they shaped, in any of the ways to shape it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.mcp.tool_calls import ToolCalls
from tests.policies.world import (
    OFF,
    Office,
    OfficeRun,
    Seat,
    approve,
    because,
    code,
    review_of,
)
from tests.runs.runner import shown
from tests.tasks.world import create, patch

WAITING = {"status": "WAITING_APPROVAL"}
ASKED = {"text": "as asked"}
Shape = Callable[[OfficeRun, Seat, Seat], Awaitable[dict[str, Any]]]


async def created(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    return await create(one, **WAITING)


async def created_by_key(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    assert (await run.office.company.change(one, role="admin")).status_code == 200
    return await create(await one.key(), **WAITING)


async def created_above(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    top = await create(one)
    middle = await create(other, parentTaskId=top["id"])
    return await create(other, parentTaskId=middle["id"], **WAITING)


async def edited(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    task = await create(other, **WAITING)
    assert (await patch(one, task["id"], description="Another one")).status_code == 200
    return task


async def edited_above(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    top = await create(other)
    assert (await patch(one, top["id"], output="Look here")).status_code == 200
    return await create(other, parentTaskId=top["id"], **WAITING)


async def moved(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    top, task = await create(other), await create(other)
    assert (await patch(one, task["id"], parentTaskId=top["id"])).status_code == 200
    assert (await patch(other, task["id"], **WAITING)).status_code == 200
    return task


async def retried(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    task = await create(other, status="FAILED")
    assert (await one.post(f"/api/tasks/{task['id']}/retry")).status_code == 200
    assert (await patch(other, task["id"], **WAITING)).status_code == 200
    return task


async def forked(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    original = await create(other, agent="operator", **WAITING)
    answer = await one.post(f"/api/tasks/{original['id']}/fork", {"fromStep": 0})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["task"]
    return found


async def forked_by_another(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    """The text of the fork is that of the original, whoever forks it."""
    return await forked(run, other, one)


async def saved_the_schedule(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    body = {"name": "s", "cron": "0 9 * * *", "timeZone": "UTC", "task": {"name": "t", **WAITING}}
    schedule = (await one.post("/api/schedules", body)).json()["schedule"]
    path = f"/api/schedules/{schedule['id']}"
    assert (await other.request("PATCH", path, json={"name": "mine"})).status_code == 200
    answer = await other.post(f"{path}/run")
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["task"]
    return found


async def delegate(run: OfficeRun, by: Seat) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task whose run delegates, and the subtask, whose run begins."""
    parent = await run.start(by, agent="foreman")
    await run.answer({"agent": "operator", "name": "Part", "input": "Do it."}, tool="delegate")
    await run.act()
    listed = await by.get("/api/tasks", params={"parentTaskId": parent["id"]})
    [child] = listed.json()["tasks"]
    await run.go_on_with(child)
    return parent, child


async def delegated(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    """The run of their task delegates, and the subtask waits."""
    _, child = await delegate(run, one)
    await run.answer(ASKED)
    return child


async def answered_below(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    """The agent gets the result of a subtask, and so what a person answered there."""
    parent, child = await delegate(run, other)
    await answer_question(run, one, child)
    await run.complete("It goes to you.")
    run.task_id = parent["id"]
    await run.begin()
    await run.answer(ASKED)
    return parent


async def accepted_the_tool(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    await run.accept_as(one, "Sends.")
    task = await run.start(other)
    await run.answer(ASKED)
    return task


async def answered(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    """An answer approves nothing, so everyone can give it. The agent works with it."""
    task = await run.start(other)
    await answer_question(run, one, task)
    await run.answer(ASKED)
    return task


async def answer_question(run: OfficeRun, by: Seat, task: dict[str, Any]) -> None:
    """The agent asks, the person answers, and the run goes on."""
    await run.answer({"question": "To whom?"}, tool="ask_person")
    item = (await review_of(by, task))["items"][0]
    reply = {"question": "To whom?", "answer": "To me."}
    given = await approve(by, task, decisions=[{"id": item["id"], "arguments": reply}])
    assert given.status_code == 200, given.text
    assert given.json()["review"]["state"] == "approved"
    await run.begin()


async def approved_the_question(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    """The agent can read an approval without an answer as a yes."""
    task = await run.start(other)
    await run.answer({"question": "May I send it?"}, tool="ask_person")
    assert (await approve(one, task)).status_code == 200
    await run.begin()
    await run.answer(ASKED)
    return task


async def instructed(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    task = await run.start(other)
    await run.answer(ASKED)
    body = {"reason": "Send it to me.", "resume": True}
    assert (await one.post(f"/api/tasks/{task['id']}/reject", body)).status_code == 200
    await run.begin()
    await run.answer(ASKED)
    return task


async def edited_the_call(run: OfficeRun, one: Seat, other: Seat) -> dict[str, Any]:
    task = await run.start(other)
    await run.answer(ASKED)
    item = (await review_of(one, task))["items"][0]
    change = [{"id": item["id"], "arguments": {"text": "as I want"}}]
    assert (await approve(one, task, decisions=change)).status_code == 200
    return task


@pytest.mark.parametrize(
    ("shape", "reasons"),
    [
        (created, ["created"]),
        (created_by_key, ["created"]),
        (created_above, ["created"]),
        (edited, ["edited"]),
        (edited_above, ["edited"]),
        (moved, ["edited"]),
        (retried, ["retried"]),
        (forked, ["created"]),
        (forked_by_another, ["created"]),
        (saved_the_schedule, ["scheduled"]),
        (delegated, ["created"]),
        (accepted_the_tool, ["acceptedTool"]),
        (answered, ["answered"]),
        (answered_below, ["answered"]),
        (approved_the_question, ["answered"]),
        (instructed, ["instructed"]),
        (edited_the_call, ["edited"]),
    ],
)
async def test_nobody_approves_what_they_shaped(
    run: OfficeRun, office: Office, shape: Shape, reasons: list[str]
) -> None:
    one, other = office.approvers
    third = await office.join(approver=True)
    await office.require_second_person()
    task = await shape(run, one, other)
    before = await review_of(third, task)
    assert (before["secondPerson"], before["shaped"]) == (True, [])
    # The review and the list of approvals say so before anybody tries.
    assert (await review_of(one, task))["shaped"] == reasons
    listed = (await one.get("/api/approvals")).json()["approvals"]
    [waiting] = [each["review"] for each in listed if each["task"]["id"] == task["id"]]
    assert (waiting["secondPerson"], waiting["shaped"]) == (True, reasons)
    assert because(await approve(one, task)) == reasons
    if shape is created_by_key:
        assert because(await approve(await one.key(), task)) == reasons
    assert await review_of(third, task) == before
    # It is about the person, not about the task: somebody else approves it.
    approved = await approve(third, task)
    assert approved.status_code == 200, approved.text
    review = approved.json()["review"]
    assert (review["state"], review["secondPerson"]) == ("approved", False)
    # Also once it is approved, the caller does not seem to have approved it.
    late = await approve(one, task)
    assert late.status_code in (403, 409), late.text


async def test_who_shaped_a_task_can_reject_it(office: Office) -> None:
    await office.require_second_person()
    one = office.approvers[0]
    task = await create(one, **WAITING)
    assert (await one.post(f"/api/tasks/{task['id']}/reject", {})).status_code == 200


async def test_what_a_person_may_change_about_waiting_work_is_not_shaped(office: Office) -> None:
    await office.require_second_person()
    one, other = office.approvers
    task = await create(one, **WAITING)
    changed = await patch(other, task["id"], priority=5, projectId="p")
    assert changed.status_code == 200
    assert (await approve(other, task)).status_code == 200


async def test_an_edit_opens_a_new_number_for_somebody_else(run: OfficeRun, office: Office) -> None:
    await office.require_second_person()
    one, other = office.approvers
    task = await run.start(office.owner)
    await run.answer(ASKED, {"text": "another"})
    first = await review_of(one, task)
    kept, changed = (item["id"] for item in first["items"])
    assert (await approve(one, task, decisions=[{"id": kept}])).status_code == 200
    arguments = {"text": "as I want"}
    answer = await approve(one, task, decisions=[{"id": changed, "arguments": arguments}])
    assert answer.status_code == 200, answer.text
    assert answer.json()["task"]["status"] == "WAITING_APPROVAL"
    review = answer.json()["review"]
    assert (review["number"], review["state"]) == (first["number"] + 1, "pending")
    assert review["digest"] != first["digest"]
    assert review["expiresAt"] == first["expiresAt"]
    done, waits = review["items"]
    assert (done["decision"], done["decidedBy"]["userId"]) == ("approved", one.wire_id)
    assert (waits["decision"], waits["arguments"]) == (None, arguments)
    assert (waits["edited"], waits["editedBy"]["userId"]) == (True, one.wire_id)
    assert review["shaped"] == ["edited"]
    # Sent again, it is the same edit. The creator and the editor cannot approve it.
    path = f"/api/tasks/{task['id']}/approve"
    body: dict[str, Any] = {"decisions": [{"id": changed, "arguments": arguments}]}
    for named in ({}, {"review": shown(first)}):
        again = await one.post(path, body | named)
        assert again.status_code == 200, again.text
        assert again.json()["review"] == review
    assert because(await one.post(path, body | {"review": shown(review)})) == ["edited"]
    assert because(await one.post(path, {"decisions": [{"id": changed}]})) == ["edited"]
    stale = await office.owner.post(path, body | {"review": shown(first)})
    assert (stale.status_code, code(stale)) == (409, "CONFLICT")
    assert because(await approve(office.owner, task)) == ["acceptedTool", "created"]
    approved = await approve(other, task)
    assert approved.status_code == 200, approved.text
    # A double click of the other person is the same decision.
    repeated = await other.post(f"/api/tasks/{task['id']}/approve", {})
    assert repeated.status_code == 200, repeated.text
    await run.begin()
    await run.act()
    assert [made.arguments for made in run.client.made] == [ASKED, arguments]


async def test_a_number_that_is_written_in_another_way_is_an_edit(
    run: OfficeRun, office: Office
) -> None:
    """The two are equal for the database, but a tool may treat them differently."""
    await office.require_second_person()
    one = office.approvers[0]
    task = await run.start(office.owner)
    await run.answer({"text": "as asked", "amount": 1e16})
    first = await review_of(one, task)
    [item] = first["items"]
    change = [{"id": item["id"], "arguments": {"text": "as asked", "amount": 10**16}}]
    answer = await approve(one, task, decisions=change)
    assert answer.status_code == 200, answer.text
    review = answer.json()["review"]
    assert (review["number"], review["state"]) == (first["number"] + 1, "pending")
    assert review["items"][0]["editedBy"]["userId"] == one.wire_id


async def test_an_edit_without_the_policy_is_an_approval_and_counts_later(
    run: OfficeRun, office: Office
) -> None:
    one, other = office.approvers
    task = await run.start(other)
    await run.answer(ASKED)
    item = (await review_of(one, task))["items"][0]
    change = [{"id": item["id"], "arguments": {"text": "as I want"}}]
    answer = await approve(one, task, decisions=change)
    assert answer.json()["review"]["state"] == "approved"
    await office.require_second_person()
    await run.begin()
    await run.act()
    await run.begin()
    await run.answer(ASKED)
    assert because(await approve(one, task)) == ["edited"]


async def test_turning_it_off_releases_nothing_that_waits(office: Office) -> None:
    one, other = office.approvers
    earlier = await create(one, **WAITING)
    await office.require_second_person()
    # It also applies to what waited before.
    assert because(await approve(one, earlier)) == ["created"]
    task = await create(one, **WAITING)
    assert (await office.put(**OFF)).status_code == 200
    assert because(await approve(one, task)) == ["created"]
    assert (await patch(one, task["id"], description="Changed")).status_code == 200
    assert because(await approve(one, task)) == ["created", "edited"]
    assert (await approve(other, task)).status_code == 200
    assert (await approve(one, earlier)).status_code == 200
    assert (await approve(one, await create(one, **WAITING))).status_code == 200


async def test_a_direct_call_is_refused_if_the_policy_is_turned_on_meanwhile(
    run: OfficeRun, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = ToolCalls._check_arguments

    async def slow(*args: Any) -> None:
        await check(*args)
        await office.require_second_person()

    monkeypatch.setattr(ToolCalls, "_check_arguments", slow)
    body = {"tool": "send", "arguments": ASKED}
    refused = await office.owner.post(f"/api/mcp/mcp_{run.server.id.hex}/invoke", body)
    assert (refused.status_code, code(refused)) == (403, "SECOND_PERSON_REQUIRED")


async def test_a_tool_that_writes_is_not_called_directly(run: OfficeRun, office: Office) -> None:
    body = {"tool": "send", "arguments": ASKED}
    path = f"/api/mcp/mcp_{run.server.id.hex}/invoke"
    await office.require_second_person()
    refused = await office.owner.post(path, body)
    assert (refused.status_code, code(refused)) == (403, "SECOND_PERSON_REQUIRED")
    assert "Let an agent call send" in refused.json()["error"]["message"]
    async with run.parts.db.write(run.account_id) as tx:
        await tx.execute(
            """
            UPDATE mcp_tools SET live =
                (live::jsonb || '{"annotations": {"readOnlyHint": true}}')::json
            WHERE account_id = $1
            """,
            run.account_id,
        )
    # It may read. Definitions are cached for a second. The server does not exist.
    async with asyncio.timeout(10):
        while (answer := await office.owner.post(path, body)).status_code == 403:
            await asyncio.sleep(0.1)
    assert code(answer) == "TOOL_SERVER_ERROR", answer.text


async def test_a_refusal_says_whether_another_approver_is_left(office: Office) -> None:
    one, other = office.approvers
    await office.require_second_person()
    task = await create(one, **WAITING)
    refused = await approve(one, task)
    assert refused.json()["error"]["message"].endswith("Ask another approver.")
    for seat in (other, office.owner):
        changed = await patch(seat, task["id"], name=f"Changed by {seat.subject}")
        assert changed.status_code == 200
    refused = await approve(one, task)
    assert because(refused) == ["created"]
    assert "Make another member an approver" in refused.json()["error"]["message"]
    third = await office.join(approver=True)
    assert (await approve(one, task)).json()["error"]["message"].endswith("Ask another approver.")
    assert (await approve(third, task)).status_code == 200
