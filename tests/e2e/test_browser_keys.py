"""Everything in the inbox by keyboard alone. A key never decides by accident."""

from typing import Any

from playwright.async_api import expect

from tests.e2e.browser import Tab
from tests.e2e.office import Office
from tests.runs.runner import until

LIST = "Waiting for a decision, oldest first"


def selected(tab: Tab) -> Any:
    return tab.page.get_by_role("list", name=LIST).locator("[aria-current]")


async def test_the_inbox_is_used_by_keyboard_alone(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    tickets = ("T-4821", "T-4822", "T-4823")
    tasks = [await office.ticket(person, ticket) for ticket in tickets]
    await tab.enter(person.subject, f"/{person.account}")
    key = tab.page.keyboard.press
    # Two keys that belong together, however slow the machine is.
    together = tab.page.keyboard.type
    await expect(selected(tab)).to_contain_text("T-4821")
    await key("j")
    await expect(selected(tab)).to_contain_text("T-4822")
    await expect(tab.heading("Reply to ticket T-4822", level=2)).to_be_visible()
    await key("j")
    await key("j")
    await expect(selected(tab)).to_contain_text("T-4823")
    await key("k")
    await expect(selected(tab)).to_contain_text("T-4822")
    await expect(selected(tab)).to_be_focused()

    # X selects for a decision about several, and Escape clears it.
    await key("x")
    await tab.sees("1 selected")
    await key("k")
    await key("x")
    await tab.sees("2 selected")
    await key("a")
    await expect(tab.dialog).to_contain_text("Approve 2 reviews?")
    await key("Escape")
    await expect(tab.dialog).to_have_count(0)
    await key("Escape")
    await expect(tab.page.get_by_text("2 selected")).to_have_count(0)

    # Enter opens the page of the review.
    await expect(selected(tab)).to_be_focused()
    await key("Enter")
    await expect(tab.heading("Reply to ticket T-4821", level=1)).to_be_visible()
    await key("e")
    await expect(tab.page.get_by_role("textbox", name="Ticket")).to_be_focused()
    # Letters in a field are text.
    await tab.page.get_by_role("textbox", name="Message").focus()
    await key("Control+a")
    await tab.page.keyboard.type("a r n")
    await expect(tab.page.get_by_role("textbox", name="Message")).to_have_value("a r n")
    await tab.page.evaluate("document.activeElement.blur()")
    await key("n")
    menu = tab.page.get_by_role("menu", name="Not now")
    await expect(menu).to_be_visible()
    await key("Escape")
    await expect(menu).to_be_hidden()
    await key("r")
    await expect(tab.dialog).to_contain_text("Reject this?")
    await key("Escape")
    await expect(tab.dialog).to_have_count(0)

    # G, then A goes to the agents, on this page and in the inbox. It approves nothing.
    await tab.read_to_end()
    await expect(tab.button("Approve with 1 edit")).to_be_enabled()
    await together("ga")
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    await together("gi")
    await expect(selected(tab)).to_contain_text("T-4821")
    # The edit was kept.
    await tab.read_to_end()
    await expect(tab.button("Approve with 1 edit")).to_be_enabled()
    await tab.press("Undo all")
    await expect(tab.button("Approve")).to_be_enabled()
    await together("ga")
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    for task in tasks:
        assert (await office.runner.review(person, task))["state"] == "pending"

    # A alone approves what is selected, once it has been read, and the next one follows.
    await together("gi")
    await expect(selected(tab)).to_contain_text("T-4821")
    await tab.read_to_end()
    await expect(tab.button("Approve")).to_be_enabled()
    pressed = await tab.page.evaluate("performance.now()")
    await key("a")
    await tab.says("Approved. Ticket Responder continues.")
    await expect(selected(tab)).to_contain_text("T-4822")
    # Pressing on does not approve what appeared by itself.
    await tab.read_to_end()
    await expect(tab.button("Approve")).to_be_enabled()
    await tab.page.evaluate("document.activeElement.blur()")
    # The moment in which A does not count must not pass while a slow machine reads.
    await tab.page.evaluate("(at) => { performance.now = () => at; }", pressed)
    for _ in range(3):
        await key("a")
        await tab.says("This is the next review. Check it, then press A.")
    await tab.page.evaluate("() => { delete performance.now; }")
    await expect(selected(tab)).to_contain_text("T-4822")
    await office.runner.waiting(person, tasks[0], "output")
    for task in tasks[1:]:
        assert (await office.runner.review(person, task))["state"] == "pending"
    # Who moves to it has chosen it.
    await key("j")
    await expect(selected(tab)).to_contain_text("T-4823")
    await tab.read_to_end()
    await expect(tab.button("Approve")).to_be_enabled()
    await key("a")
    await until(
        lambda: office.runner.review(person, tasks[2]),
        lambda seen: (seen["state"], seen["gate"]) == ("pending", "output"),
    )
    assert (await office.runner.review(person, tasks[1]))["state"] == "pending"
