"""What a person sees when something cannot be done: refused, failed, or not theirs to decide."""

import os
import re
from pathlib import Path

from playwright.async_api import Browser, expect

from rota.platform.ids import to_wire
from tests.e2e.browser import PHONE, Tab
from tests.e2e.office import Colleague, Office

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def disconnect(person: Colleague) -> None:
    [server] = (await person.get("/api/mcp")).json()["servers"]
    response = await person.request("DELETE", f"/api/mcp/{server['id']}")
    assert response.status_code == 200, response.text


async def test_on_a_phone_a_failed_approval_and_a_refused_task_say_so_on_the_screen(
    browser: Browser, office: Office
) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    async with Tab.open(browser, office.service, **PHONE) as tab:
        await tab.enter(person.subject, f"/{person.account}/reviews/{task['id']}")
        await tab.read_to_end()
        tab.expect_error("ERR_FAILED")
        await tab.page.route("**/approve", lambda route: route.abort())
        await tab.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await tab.press("Approve")
        alert = tab.page.get_by_role("alert")
        await expect(alert).to_contain_text("The service did not respond")
        await expect(alert).to_be_in_viewport(ratio=1)
        await picture(tab, "approve-failed-390")

        # The problem of a field that is folded away can be seen, too.
        await tab.go("/new?agent=ticket-responder")
        await tab.page.get_by_label("What should be done?").fill("Reply to ticket T-4822.")
        await tab.page.get_by_text("Options", exact=True).click()
        deadline = tab.page.get_by_label("Deadline")
        await deadline.fill("2020-01-01T00:00")
        await tab.page.get_by_text("Options", exact=True).click()
        await expect(deadline).to_be_hidden()
        tab.expect_error("status of 400")
        await tab.button("Start task").click()
        await expect(alert).to_be_in_viewport(ratio=1)
        await expect(deadline).to_be_visible()
        await picture(tab, "start-refused-390")
        await deadline.scroll_into_view_if_needed()
        await picture(tab, "start-refused-options-390")


async def test_who_cannot_approve_can_read_and_is_told_so(browser: Browser, office: Office) -> None:
    owner, member = await office.company(2)
    for ticket in ("T-4821", "T-4822"):
        task = await office.ticket(member, ticket)
    changed = await owner.request(
        "PATCH",
        f"/api/companies/{owner.account}/members/{to_wire('user', member.user_id)}",
        json={"role": "member", "approver": False},
    )
    assert changed.status_code == 200, changed.text
    for size, options in (("390", PHONE), ("1280", {})):
        async with Tab.open(browser, office.service, **options) as tab:
            await tab.enter(member.subject, f"/{member.account}")
            await tab.sees("2 alike:")
            await tab.sees(re.compile("Only an approver can decide (these|this)"))
            await expect(tab.button("Decide together")).to_have_count(0)
            await expect(tab.page.locator("[data-task]").get_by_role("checkbox")).to_have_count(0)
            # Nothing waits for this person.
            await expect(tab.page).to_have_title("Inbox · Rota")
            await picture(tab, f"inbox-member-{size}")
            await tab.go(f"/reviews/{task['id']}")
            await tab.sees("Only an approver can decide this")
            await tab.page.keyboard.press("r")
            await expect(tab.dialog).to_have_count(0)
            decisions = tab.page.get_by_role("group", name="Decision").get_by_role("button")
            for name in ("Approve", "Reject", "Not now"):
                await expect(decisions.filter(has_text=re.compile(f"^{name}"))).to_be_disabled()
            await expect(tab.button(re.compile("^Reject and continue"))).to_have_count(0)
            await picture(tab, f"review-member-{size}")
            await tab.go(f"/tasks/{task['id']}")
            await tab.sees("Waits for an approver")


async def test_a_call_of_a_server_that_was_disconnected_can_only_be_rejected(
    browser: Browser, office: Office
) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    async with (
        Tab.open(browser, office.service) as desk,
        Tab.open(browser, office.service, **PHONE) as phone,
    ):
        for tab in (desk, phone):
            await tab.enter(person.subject, f"/{person.account}/reviews/{task['id']}")
            await tab.read_to_end()
            await expect(tab.button("Approve")).to_be_enabled()
        # Of two pages, one does not know it yet: the service says why it refuses.
        await phone.page.route("**/api/mcp", lambda route: route.abort())
        await phone.page.route("**/api/tasks/*/review", lambda route: route.abort())
        phone.expect_error("ERR_FAILED|status of 409")
        await disconnect(person)
        # An open review follows by itself.
        await expect(desk.button("Approve")).to_be_disabled()
        await desk.sees("This tool server was disconnected, so the call cannot be approved.")
        await expect(desk.page.get_by_text("accept it first")).to_have_count(0)
        await picture(desk, "disconnected-1280")
        await phone.press("Approve")
        alert = phone.page.get_by_role("alert")
        await expect(alert).to_contain_text("its tool server was disconnected: helpdesk")
        await expect(alert).to_be_in_viewport(ratio=1)
        await picture(phone, "disconnected-refused-390")
        await desk.go("")
        await desk.sees("Tool server disconnected: it can only be rejected")
        await desk.press("Reject")
        await desk.press("Reject", inside=desk.dialog)
        await desk.says("Rejected. The task is cancelled.")


async def test_in_a_narrow_window_the_keys_are_about_the_card_that_has_the_focus(
    browser: Browser, office: Office
) -> None:
    [person] = await office.company()
    for ticket in ("T-4821", "T-4822"):
        await office.ticket(person, ticket)
    async with Tab.open(browser, office.service, **PHONE) as tab:
        await tab.enter(person.subject, f"/{person.account}")
        cards = tab.page.locator("[data-task] .what a")
        await expect(cards).to_have_count(2)
        for number in (0, 1):
            await tab.page.keyboard.press("j")
            await expect(cards.nth(number)).to_be_focused()
        await tab.page.keyboard.press("x")
        await tab.sees("1 selected")
        await expect(tab.page.get_by_role("checkbox").nth(1)).to_be_checked()
        await picture(tab, "inbox-selected-390")
        await tab.page.keyboard.press("k")
        await expect(cards.first).to_be_focused()


async def test_a_screen_that_could_not_be_read_is_read_again(tab: Tab, office: Office) -> None:
    [person] = await office.company(helpdesk="")
    tab.expect_error("status of 503")
    down = re.compile(r"/api/tasks\?")
    await tab.page.route(down, lambda route: route.fulfill(status=503, json={"error": {}}))
    await tab.enter(person.subject, f"/{person.account}/tasks")
    await expect(tab.button("Try again")).to_be_visible()
    await picture(tab, "tasks-failed-1280")
    await tab.page.unroute(down)
    await tab.press("Try again")
    await tab.sees("No tasks yet")
