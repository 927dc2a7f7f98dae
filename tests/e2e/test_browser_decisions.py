"""Decisions in a real browser: with edits, on stale pages, many at once, by two people at once."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import Tab
from tests.e2e.office import Colleague, Office
from tests.mcp.peers import Peer, definition
from tests.runs.runner import until

SOLVED = "Reply to ticket T-4821 and mark it as solved"
PENDING = "Reply to ticket T-4821 and mark it as pending"


async def open_review(tab: Tab, person: Colleague, task: dict[str, Any]) -> None:
    await tab.enter(person.subject, f"/{person.account}/reviews/{task['id']}")
    await expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
    await tab.read_to_end()


async def test_a_task_is_described_watched_edited_approved_and_charged(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company()
    await tab.enter(person.subject, f"/{person.account}/new")
    money = tab.page.get_by_role("link", name="Available", exact=False)
    before = (await person.get("/api/credits/balance")).json()["totalAvailable"]
    await expect(money).to_contain_text(f"{before / 100:,.2f}")
    # A reload would remove this mark.
    await tab.page.evaluate("window.loadedOnce = true")
    words = "Reply to ticket T-4821: the customer cannot log in."
    await tab.page.get_by_label("What should be done?").fill(words)
    agent = tab.page.get_by_role("radio", name="Ticket Responder")
    await agent.check()
    # The text stays while the person is elsewhere.
    await tab.page.keyboard.press("Escape")
    await expect(tab.heading("Inbox", level=1)).to_be_visible()
    await tab.page.keyboard.press("c")
    await expect(tab.page.get_by_label("What should be done?")).to_have_value(words)
    await expect(agent).to_be_checked()
    await tab.sees("Asks you at least once")
    await tab.press("Start task")

    # It goes on by itself, and the page follows.
    await tab.sees("Waits for you")
    await tab.link("Review").click()
    await expect(tab.heading(SOLVED, level=1)).to_be_visible()
    await tab.page.get_by_role("combobox", name="Status afterwards").select_option("pending")
    message = tab.page.get_by_role("textbox", name="Message")
    await message.fill("Hello Mina, please try again.")
    await expect(tab.heading(SOLVED, level=1)).to_contain_text("with 2 edits")
    await tab.read_to_end()
    await tab.press("Approve with 2 edits")
    await tab.says("Approved. Ticket Responder continues.")

    # The decision leads back to the task, which waits at its next gate.
    await expect(tab.heading("Accept the result", level=1)).to_have_count(0)
    task_id = tab.path.rpartition("/")[2]
    await tab.sees("Accept the result of")
    await tab.link("Review").click()
    await expect(tab.button("Accept the result")).to_be_visible()
    await tab.read_to_end()
    await tab.press("Accept the result")
    await tab.says("Accepted. The task is completed.")
    await expect(tab.button("Accept the result")).to_have_count(0)
    await expect(tab.page.locator("main").get_by_text("Completed").first).to_be_visible()
    timeline = tab.page.get_by_role("table")
    await expect(timeline.get_by_role("row").filter(has_text="edited")).to_be_visible()
    sent = await office.reply(person, {"id": task_id})
    assert sent is not None
    assert (sent["message"], sent["status"]) == ("Hello Mina, please try again.", "pending")

    # What it cost is in the timeline, at the task and in the balance.
    steps, _ = await office.runner.timeline(person, {"id": task_id})
    models = [step for step in steps if step["kind"] == "model"]
    rows = timeline.get_by_role("row").filter(has_text=re.compile("Requested|Writes the answer"))
    await expect(rows).to_have_count(len(models))
    await expect(rows.first).to_contain_text("demonstration-model-fast")
    for row, step in zip(await rows.all(), models, strict=True):
        await expect(row).to_contain_text(f"${float(step['costUsd']):.4f}"[:6])
    after = (await person.get("/api/credits/balance")).json()["totalAvailable"]
    assert after < before
    await expect(money).to_contain_text(f"{after / 100:,.2f}")
    assert await tab.page.evaluate("window.loadedOnce")


async def test_an_approval_on_a_stale_page_approves_nothing_and_keeps_the_edits(
    tab: Tab, office: Office
) -> None:
    one, two = await office.company(2)
    task = await office.ticket(one)
    # This page gets no events, so it does not know what happens meanwhile.
    await tab.page.route("**/api/events", lambda route: route.abort())
    tab.expect_error(r"ERR_FAILED|status of 409")
    await open_review(tab, one, task)
    await expect(tab.heading(SOLVED, level=1)).to_be_visible()
    await tab.page.get_by_role("textbox", name="Message").fill("My own words.")
    approve = tab.button("Approve with 1 edit")
    await expect(approve).to_be_enabled()

    await office.runner.reject(two, task, reason="Mark it as pending.", resume=True)
    review = await until(
        lambda: office.runner.review(one, task),
        lambda seen: seen["number"] == 2 and seen["state"] == "pending",
    )
    assert review["items"][0]["arguments"]["status"] == "pending"
    await approve.click()

    await expect(tab.heading(PENDING, level=1)).to_be_visible()
    await expect(tab.page.get_by_role("alert")).to_contain_text("1 edit was kept")
    await expect(tab.page.get_by_role("textbox", name="Message")).to_have_value("My own words.")
    await expect(tab.page.get_by_role("combobox", name="Status afterwards")).to_have_value(
        '"pending"'
    )
    assert (await office.runner.review(one, task))["state"] == "pending"
    assert await office.reply(one, task) is None
    # Only a second approval, of what is shown now, counts.
    await tab.read_to_end()
    await approve.click()
    await tab.says("Approved. Ticket Responder continues.")
    await office.runner.waiting(one, task, "output")
    sent = await office.reply(one, task)
    assert sent is not None
    assert (sent["message"], sent["status"]) == ("My own words.", "pending")


async def test_a_page_says_at_once_that_its_review_changed(tab: Tab, office: Office) -> None:
    one, two = await office.company(2)
    task = await office.ticket(one)
    await open_review(tab, one, task)
    await tab.page.get_by_role("textbox", name="Message").fill("My own words.")
    await expect(tab.button("Approve with 1 edit")).to_be_enabled()
    await office.runner.reject(two, task, reason="Mark it as pending.", resume=True)
    alert = tab.page.get_by_role("alert")
    await expect(alert).to_contain_text("This review changed while you had it open")
    # What is on screen stays, but cannot be approved.
    await expect(tab.heading(SOLVED, level=1)).to_be_visible()
    await expect(tab.button("Approve with 1 edit")).to_be_disabled()
    await tab.heading(SOLVED, level=1).click()
    await tab.page.keyboard.press("a")
    await tab.press("Show the new review")
    await expect(tab.heading(PENDING, level=1)).to_be_visible()
    await expect(tab.page.get_by_role("textbox", name="Message")).to_have_value("My own words.")
    assert await office.reply(one, task) is None
    await tab.read_to_end()
    await tab.press("Approve with 1 edit")
    await tab.says("Approved. Ticket Responder continues.")
    await office.runner.waiting(one, task, "output")


REPLY = {
    "ticketId": {"type": "string", "title": "Ticket", "pattern": "^T-[0-9]{4}$"},
    "message": {"type": "string", "title": "Message"},
    "status": {"type": "string", "title": "Status afterwards", "enum": ["solved", "pending"]},
}


def reply_tool(**more: Any) -> Any:
    return definition(
        "reply_to_ticket",
        "Sends a reply.",
        properties=REPLY | more,
        required=("ticketId", "message", "status"),
    )


async def test_a_tool_that_changes_under_an_open_page_is_never_called_as_approved(
    tab: Tab, office: Office
) -> None:
    async with Peer().serve() as helpdesk:
        helpdesk.tools = {"reply_to_ticket": reply_tool()}
        [person] = await office.company(helpdesk=helpdesk.url)
        task = await office.ticket(person)
        await open_review(tab, person, task)
        await tab.page.get_by_role("textbox", name="Message").fill("My own words.")
        await expect(tab.button("Approve with 1 edit")).to_be_enabled()
        copies = {"type": "string", "title": "Copies to", "default": "all@example.test"}
        helpdesk.tools = {"reply_to_ticket": reply_tool(copiesTo=copies)}
        tab.expect_error(r"status of 409")
        await tab.press("Approve with 1 edit")
        # The worker reads the definitions before the call. The task waits again.
        review = await until(
            lambda: office.runner.review(person, task),
            lambda seen: seen["number"] == 2 and seen["state"] == "pending",
        )
        assert helpdesk.calls == []
        assert review["items"][0]["definitionAccepted"] is False
        # The way on is to look at the change; nothing can be approved before.
        await tab.go(f"/reviews/{task['id']}")
        await tab.sees("Accept the changed tool first.")
        await expect(tab.button("Approve")).to_be_disabled()
        await tab.page.keyboard.press("a")
        await expect(tab.button("Approve")).to_be_disabled()
        assert helpdesk.calls == []


async def test_a_rejected_call_with_a_reason_lets_the_agent_go_on(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await open_review(tab, person, task)
    await tab.button(re.compile("^Reject and continue")).click()
    await tab.dialog.get_by_label("What should the agent do differently?").fill(
        "Mark it as pending."
    )
    await tab.press("Reject and continue", inside=tab.dialog)
    await tab.says("Rejected. Ticket Responder continues without it.")
    # The agent reads the reason and proposes something else, which appears by itself.
    await expect(tab.link(PENDING)).to_be_visible()
    await expect(tab.heading(PENDING, level=2)).to_be_visible()
    assert await office.reply(person, task) is None


async def test_an_edit_that_breaks_the_rule_of_its_field_cannot_be_sent(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await open_review(tab, person, task)
    await expect(tab.button("Approve")).to_be_enabled()
    await tab.page.get_by_role("textbox", name="Ticket").fill("X")
    await tab.sees("Enter it like T-1234.")
    await expect(tab.button("Approve with 1 edit")).to_be_disabled()
    await tab.page.get_by_role("textbox", name="Ticket").fill("T-4822")
    await expect(tab.button("Approve with 1 edit")).to_be_enabled()


async def test_edits_stay_while_somebody_looks_at_something_else(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    await office.ticket(person, "T-4821")
    await office.ticket(person, "T-4822")
    await tab.enter(person.subject, f"/{person.account}")
    message = tab.page.get_by_role("textbox", name="Message")
    await expect(tab.heading("Reply to ticket T-4821", level=2)).to_be_visible()
    await message.fill("My own words.")
    await tab.page.evaluate("document.activeElement.blur()")
    await tab.page.keyboard.press("j")
    await expect(tab.heading("Reply to ticket T-4822", level=2)).to_be_visible()
    await expect(message).not_to_have_value("My own words.")
    await tab.page.keyboard.press("k")
    await expect(message).to_have_value("My own words.")
    await tab.link("Money").first.click()
    await expect(tab.heading("Money", level=1)).to_be_visible()
    await tab.page.get_by_role("link", name="Inbox").first.click()
    await expect(message).to_have_value("My own words.")
    # They also outlive the page, which a phone can end at any time, and go with a sign-out.
    await tab.page.reload()
    await expect(message).to_have_value("My own words.")
    await tab.is_live()
    await tab.sees("Steps that led here")
    # To approve the proposal together with others would discard them.
    await tab.press("Decide together")
    await tab.press("Approve 2")
    await expect(tab.dialog).to_contain_text("Approve 1 review?")
    await expect(tab.dialog).to_contain_text("because you have edited it")
    await expect(tab.dialog.get_by_role("listitem")).to_contain_text("T-4822")
    await tab.press("Cancel", inside=tab.dialog)
    await tab.sign_out()
    kept = "Object.keys(sessionStorage).filter((key) => key.startsWith('rota.kept'))"
    assert await tab.page.evaluate(kept) == []


async def test_the_steps_that_led_here_open_to_what_the_customer_wrote(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await open_review(tab, person, task)
    await tab.button(re.compile("^Get ticket")).click()
    led = tab.page.get_by_role("region", name="Steps that led here")
    await expect(led).to_contain_text("Mina")


async def test_a_rejected_call_can_stop_the_task(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await open_review(tab, person, task)
    await tab.press("Reject")
    await tab.dialog.get_by_role("textbox", name="Reason").fill("She has been helped.")
    await tab.press("Reject", inside=tab.dialog)
    await tab.says("Rejected. The task is cancelled.")
    await tab.link("View task").click()
    await expect(tab.page.locator("main").get_by_text("Cancelled").first).to_be_visible()
    await tab.sees("She has been helped.")
    assert (await office.runner.task(person, task["id"]))["status"] == "CANCELLED"
    assert await office.reply(person, task) is None


async def test_what_is_put_off_comes_back_for_this_person_only(tab: Tab, office: Office) -> None:
    one, two = await office.company(2)
    task = await office.ticket(one)
    await open_review(tab, one, task)
    deadline = (await office.runner.review(one, task))["expiresAt"]
    await tab.select("Not now", "In 1 hour")
    await tab.says("Moved to Later. The deadline stays the same.")
    await tab.sees("1 in Later")
    await expect(tab.page.locator("main").get_by_role("link", name=SOLVED)).to_have_count(0)
    others = (await two.get("/api/approvals")).json()["approvals"]
    assert [each["snoozedUntil"] for each in others] == [None]
    assert (await office.runner.review(one, task))["expiresAt"] == deadline
    await tab.link("Show").click()
    await expect(tab.page.get_by_role("list", name="Reviews in Later")).to_contain_text(SOLVED)
    await tab.select("Not now", "Back to the inbox now")
    await tab.says("Back in the inbox.")
    await tab.link("Back to the inbox").click()
    waiting = tab.page.get_by_role("list", name="Waiting for a decision, oldest first")
    await expect(waiting).to_contain_text(SOLVED)


async def test_several_alike_are_decided_together_except_one_that_changed(
    tab: Tab, office: Office
) -> None:
    one, two = await office.company(2)
    tickets = ("T-4821", "T-4822", "T-4823", "T-4824")
    tasks = [await office.begin(one, ticket) for ticket in tickets]
    for task in tasks:
        await office.runner.waiting(one, task, "tool")
    await tab.enter(one.subject, f"/{one.account}")
    await tab.sees("4 alike:")
    await tab.press("Decide together")
    await tab.press("Approve 4")
    for ticket in tickets:
        await expect(tab.dialog).to_contain_text(ticket)
    # Nothing can be approved before all of it has been on screen. A jump to the end is not enough.
    approve = tab.dialog.get_by_role("button", name="Approve 4")
    await tab.dialog.evaluate("(dialog) => dialog.scrollTo(0, dialog.scrollHeight)")
    await tab.sees("Scroll to the end to approve")
    last = tab.dialog.get_by_role("listitem").last
    await expect(last).to_be_in_viewport()
    await expect(approve).to_be_disabled()
    await tab.read_to_end(tab.dialog)
    # One can be left out here, and taken in again. Meanwhile, all of it stays on screen.
    third = tab.dialog.get_by_role("checkbox", name=re.compile("T-4823"))
    await third.uncheck()
    await expect(tab.dialog.get_by_role("button", name="Approve 3")).to_be_enabled()
    left = tab.dialog.get_by_role("listitem").filter(has_text="T-4823")
    await expect(left).to_contain_text("Message")
    await third.check()
    await expect(approve).to_be_enabled()
    await office.runner.reject(two, tasks[1], reason="Mark it as pending.", resume=True)
    await until(
        lambda: office.runner.review(one, tasks[1]),
        lambda seen: seen["number"] == 2 and seen["state"] == "pending",
    )
    tab.expect_error(r"status of 409")
    await approve.click()
    await expect(tab.dialog).to_contain_text("3 decided, 1 not decided")
    changed = tab.dialog.get_by_role("listitem").filter(has_text="T-4822")
    await expect(changed).to_contain_text("It changed since you read it. Nothing was decided.")
    await tab.press("Close", inside=tab.dialog)
    for task in (tasks[0], tasks[2], tasks[3]):
        await office.runner.waiting(one, task, "output")
    review = await office.runner.review(one, tasks[1])
    assert (review["number"], review["state"]) == (2, "pending")
    assert await office.reply(one, tasks[1]) is None
    # The list shows by itself what waits now.
    summary = "Reply to ticket T-4822 and mark it as pending"
    await expect(tab.page.locator("main").get_by_role("link", name=summary)).to_be_visible()


@pytest.mark.parametrize("winner", ["approves", "rejects"])
async def test_of_two_people_who_decide_at_once_one_wins_and_the_other_sees_who(
    tab: Tab, browser: Browser, office: Office, winner: str
) -> None:
    one, two = await office.company(2)
    task = await office.ticket(one)
    async with Tab.open(browser, office.service) as other:
        for each, person in ((tab, one), (other, two)):
            await open_review(each, person, task)
            await expect(each.button("Approve")).to_be_enabled()
        await expect(other.button("Reject")).to_be_enabled()
        for each in (tab, other):
            each.expect_error(r"status of 409")
        if winner == "approves":
            await tab.press("Approve")
            await tab.says("Approved. Ticket Responder continues.")
            me = (await one.get("/api/me")).json()["user"]["name"]
            # The page of the other person says so, also when the next review is there already.
            await expect(other.page.locator("main")).to_contain_text(
                re.compile(f"approved by {me}", re.I)
            )
            await expect(
                other.button("Approve").and_(other.page.locator(":enabled"))
            ).to_have_count(0)
        else:
            await tab.press("Reject")
            await tab.press("Reject", inside=tab.dialog)
            await tab.says("Rejected. The task is cancelled.")
            me = (await one.get("/api/me")).json()["user"]["name"]
            await expect(other.heading(f"Rejected by {me}")).to_be_visible()
            await expect(other.button("Approve")).to_have_count(0)
    status = (await office.runner.task(one, task["id"]))["status"]
    assert (status == "CANCELLED") == (winner == "rejects")
