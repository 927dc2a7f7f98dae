"""Policies and standing rules in a real browser: who approves, and what needs no review."""

import os
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, ViewportSize, expect

from rota.platform.ids import to_wire
from tests.e2e.browser import DESKTOP, PHONE, Tab
from tests.e2e.office import Colleague, Office

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def fits(tab: Tab, size: ViewportSize) -> None:
    """Nothing is wider than the screen."""
    width = await tab.page.evaluate("document.documentElement.scrollWidth")
    assert width <= size["width"]


async def open_review(tab: Tab, task: dict[str, Any]) -> None:
    await tab.go(f"/reviews/{task['id']}")
    await expect(tab.page.get_by_role("heading", level=1)).to_be_visible()


def approve_button(tab: Tab) -> Locator:
    return tab.page.get_by_role("group", name="Decision").get_by_role("button").first


async def turn_on(tab: Tab) -> None:
    """The policies in the settings."""
    await tab.go("/settings/policies")
    await expect(tab.button("Save")).to_be_disabled()
    await tab.page.get_by_label("Runs with a high budget").check()
    await tab.page.get_by_label("Require approval above").fill("much")
    await tab.press("Save")
    await tab.sees("Enter an amount such as 5")
    await tab.page.get_by_label("Require approval above").fill("1000")
    await tab.page.get_by_label("A second person approves").check()
    await picture(tab, "policies-1280")
    await tab.press("Save")
    await tab.says("Policies saved")
    await expect(tab.button("Save")).to_be_disabled()
    await tab.page.reload()
    await expect(tab.page.get_by_label("A second person approves")).to_be_checked()
    await expect(tab.page.get_by_label("Require approval above")).to_have_value("1000")


async def pass_on_an_edit(tab: Tab, task: dict[str, Any]) -> None:
    """Who created a task sees why they cannot approve it, and what they change waits too."""
    await open_review(tab, task)
    await tab.sees("A second person has to approve this")
    await tab.sees("You created this task")
    await tab.read_to_end()
    await expect(approve_button(tab)).to_be_disabled()
    await fits(tab, PHONE["viewport"])
    await picture(tab, "second-person-390")
    message = tab.page.get_by_role("textbox", name="Message")
    await message.fill("Hello Mina, please try again.")
    await expect(approve_button(tab)).to_have_text(re.compile("Send 1 edit for approval"))
    await approve_button(tab).click()
    await tab.says("Your edits wait for a second person")
    await tab.sees("You changed what waits here")
    await expect(approve_button(tab)).to_be_disabled()


async def allow_calls_like_this(tab: Tab) -> None:
    """A rule from the call that waits, for every value of its arguments."""
    await tab.press(re.compile("^Always allow calls like this"))
    await expect(tab.dialog).to_contain_text("helpdesk/reply_to_ticket")
    conditions = tab.dialog.get_by_role("combobox", name="Condition for")
    await expect(conditions.first).to_have_value("exact")
    for number in range(await conditions.count()):
        if await conditions.nth(number).input_value() == "exact":
            await conditions.nth(number).select_option("any")
    await tab.dialog.get_by_label("How many calls").fill("0")
    await tab.press("Create rule", inside=tab.dialog)
    await expect(tab.dialog).to_contain_text("Enter a whole number")
    await tab.dialog.get_by_label("How many calls").fill("3")
    await picture(tab, "rule-from-review-1280")
    await tab.press("Create rule", inside=tab.dialog)
    await tab.says("Rule created")


async def revoke(tab: Tab) -> None:
    await tab.go("/settings/rules")
    row = tab.page.get_by_role("row").filter(has_text="reply_to_ticket")
    await expect(row).to_contain_text("1 of 3")
    await expect(row).to_contain_text("any value")
    await expect(row).to_contain_text("Active")
    await picture(tab, "rules-1280")
    await tab.page.set_viewport_size(PHONE["viewport"])
    await fits(tab, PHONE["viewport"])
    await picture(tab, "rules-390")
    await row.get_by_role("button", name="Revoke").click()
    await tab.press("Revoke rule", inside=tab.dialog)
    await tab.says("Rule revoked")
    await expect(row).to_contain_text("Revoked")
    await expect(row.get_by_role("button")).to_have_count(0)
    await tab.page.set_viewport_size(DESKTOP["viewport"])


async def make_another(tab: Tab) -> None:
    """A rule without a review: the server, the tool, the agent and a condition."""
    await tab.press("New rule")
    await tab.dialog.get_by_label("Tool server").select_option(label="helpdesk")
    await tab.dialog.get_by_label("Tool", exact=True).select_option("reply_to_ticket")
    await tab.dialog.get_by_label("Agent").select_option("ticket-responder")
    await tab.dialog.get_by_label("Condition for message").select_option("exact")
    await tab.dialog.get_by_label("Value of message").fill("Thank you.")
    await picture(tab, "new-rule-1280")
    await tab.press("Create rule", inside=tab.dialog)
    await tab.says("Rule created")
    await tab.sees('exactly "Thank you."')


async def signed_in(tab: Tab, person: Colleague) -> None:
    await tab.enter(person.subject, f"/{person.account}")


async def test_a_second_person_approves_and_makes_a_rule_for_the_next_call(
    browser: Browser, office: Office
) -> None:
    owner, author, second = await office.company(3)
    async with (
        Tab.open(browser, office.service) as settings,
        Tab.open(browser, office.service, **PHONE) as phone,
        Tab.open(browser, office.service) as desk,
    ):
        await signed_in(settings, owner)
        await turn_on(settings)
        task = await office.ticket(author)
        await signed_in(phone, author)
        await pass_on_an_edit(phone, task)

        # Somebody else sees who changed it, approves it, and allows calls like it.
        await signed_in(desk, second)
        await open_review(desk, task)
        await desk.sees("Changed by")
        # Only who shaped it is told so.
        told = desk.page.get_by_text("A second person has to approve this", exact=True)
        await expect(told).to_have_count(0)
        await allow_calls_like_this(desk)
        await desk.read_to_end()
        await desk.press("Approve")
        await desk.says("Approved. Ticket Responder continues.")

        # The next call needs no review. The task says which rule allowed it.
        other = await office.begin(author)
        await office.runner.waiting(author, other, "output")
        sent = await office.reply(author, other)
        assert sent is not None
        await desk.go(f"/tasks/{other['id']}")
        await desk.sees(re.compile("Approved by a rule that .* made"))
        await picture(desk, "timeline-rule-1280")
        await open_review(desk, other)
        await desk.sees("a rule that you made")
        # Who made the rule has approved a part of this task already.
        await desk.sees("You made a standing rule that a call of this task used")

        await revoke(desk)
        await make_another(desk)
        # A member who cannot approve sees the rules, and who may change the policies.
        changed = await owner.request(
            "PATCH",
            f"/api/companies/{owner.account}/members/{to_wire('user', author.user_id)}",
            json={"role": "member"},
        )
        assert changed.status_code == 200, changed.text
        await phone.go("/settings/rules")
        await phone.sees("reply_to_ticket")
        await expect(phone.button("New rule")).to_have_count(0)
        await expect(phone.button("Revoke", exact=False)).to_have_count(0)
        await phone.go("/settings/policies")
        await phone.sees("Owners and admins can change the policies.")
        await expect(phone.button("Save")).to_have_count(0)
        await fits(phone, PHONE["viewport"])
        await picture(phone, "policies-member-390")
