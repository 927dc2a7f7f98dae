"""Many tasks at once in a real browser: paste, correct, try again, on a desktop and a phone."""

import os
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import Browser, Dialog, Locator, Route, expect

from tests.e2e.browser import PHONE, Tab
from tests.plans.world import World
from tests.service import Person

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")
AGENT = "meeting-scribe"
# The API refuses names that show nothing.
UNSEEN = "\u2800"


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        schemes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
        for scheme in schemes:
            await tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            path = Path(PICTURES) / f"{name}-{scheme}.png"
            await tab.page.screenshot(path=path, full_page=True)


async def rich(world: World) -> Person:
    person = await world.service.sign_in()
    await person.get("/api/credits/balance")
    async with world.service.owner() as connection:
        await connection.execute(
            "UPDATE balances SET topup = 100000000 WHERE account_id = $1", person.user_id
        )
    return person


async def tasks_of(person: Person) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = (await person.get("/api/tasks?limit=100")).json()["tasks"]
    return tasks


def field(tab: Tab) -> Locator:
    return tab.page.get_by_label("Tasks", exact=False).and_(tab.page.get_by_role("textbox"))


def row(tab: Tab, text: str) -> Locator:
    return tab.page.get_by_role("row").filter(has_text=text)


def keys_of(tab: Tab) -> list[str | None]:
    sent = tab.asked_for(lambda path: path == "/api/tasks/batch")
    return [request.headers.get("idempotency-key") for request in sent]


async def test_a_line_that_fails_is_corrected_and_only_it_is_sent_again(
    browser: Browser, shop: World
) -> None:
    person = await rich(shop)
    async with Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.go(f"/new?agent={AGENT}")
        # A budget that is not an amount is not replaced by the agent's.
        work = tab.page.get_by_label("What should be done?")
        await work.fill("Summarize the minutes.")
        start = tab.button(re.compile("^Start task"))
        await expect(start).to_be_enabled()
        await tab.page.get_by_text("Options", exact=True).click()
        budget = tab.page.get_by_role("textbox", name="Budget")
        await budget.fill("0")
        await tab.sees("Enter an amount of at least $0.01")
        await expect(start).to_be_disabled()
        await budget.fill("0,05")
        await expect(start).to_be_enabled()
        await expect(tab.page.get_by_role("complementary", name="Quote")).to_contain_text("$0.05")
        await work.fill("")
        await tab.link("Many tasks").click()
        await expect(tab.heading("Preview")).to_be_visible()
        await expect(tab.page.get_by_role("combobox", name="Agent")).to_have_value(AGENT)
        create = tab.button(re.compile("^Create"), exact=False)
        await expect(create).to_be_disabled()
        await picture(tab, f"batch-empty-{shop.service.variant}")
        table = [
            "name,input,priority,owner",
            '<img src=x onerror=alert(1)>,"Minutes of Monday, and what follows",2,Mina',
            f"{UNSEEN},The minutes of Tuesday.,,Mina",
            ",The minutes of Wednesday.,,Mina",
            "Thursday,The minutes of Thursday.,soon,Mina",
        ]
        await field(tab).fill("\n".join(table))
        await tab.says("A table with name, input, priority. Not used: owner.")
        await expect(row(tab, "Thursday")).to_contain_text("must be a number from 0 to 10")
        await expect(row(tab, "Monday")).to_contain_text("<img src=x onerror=alert(1)>")
        quote = tab.page.get_by_role("complementary", name="Quote")
        await expect(quote).to_contain_text("These 3 tasks can cost at most")
        await expect(quote).to_contain_text("1 line with a problem is left out.")
        await picture(tab, f"batch-preview-{shop.service.variant}")
        await field(tab).fill("\n".join(table[:4]))
        # The lines stay while the person is elsewhere, and after a reload.
        await field(tab).blur()
        await tab.page.keyboard.press("Escape")
        await expect(tab.page.get_by_role("navigation", name="How many")).to_have_count(0)
        await tab.page.go_back()
        await expect(field(tab)).to_have_value("\n".join(table[:4]))
        await tab.page.reload()
        await expect(field(tab)).to_have_value("\n".join(table[:4]))

        tab.expect_error("400")
        await tab.button(re.compile("^Create 3 tasks"), exact=False).click()
        await expect(tab.heading("2 tasks created, 1 not created")).to_be_visible()
        results = tab.page.get_by_role("table")
        await expect(results.get_by_role("link")).to_have_count(2)
        failed = results.get_by_role("row").nth(2)
        await expect(failed).to_contain_text("The name must contain a visible character.")
        await picture(tab, f"batch-results-{shop.service.variant}")

        # The line that is left is not lost if the person leaves, or if a phone ends the page.
        await tab.page.keyboard.press("Escape")
        await expect(tab.page.get_by_role("navigation", name="How many")).to_have_count(0)
        await tab.page.go_back()
        await expect(tab.heading("2 tasks created, 1 not created")).to_be_visible()
        await tab.page.reload()
        await expect(tab.heading("2 tasks created, 1 not created")).to_be_visible()
        await expect(results.get_by_role("link")).to_have_count(2)
        await tab.press("Try the failed line again")
        await expect(field(tab)).to_have_value(
            f"name,input,priority\n{UNSEEN},The minutes of Tuesday.,"
        )
        await field(tab).fill("name,input\nTuesday,The minutes of Tuesday.")
        await tab.page.keyboard.press("Control+Enter")
        await expect(tab.heading("1 task created")).to_be_visible()
        # All of them exist, so the tab keeps nothing.
        kept = "Object.keys(sessionStorage).filter((key) => key.startsWith('rota.kept'))"
        assert await tab.page.evaluate(kept) == []
        await tab.link("See the tasks of this agent").click()
        await expect(tab.page.get_by_text("3 tasks").first).to_be_visible()
        assert tab.path == f"/tasks?agent={AGENT}"
        found = {task["input"]: task for task in await tasks_of(person)}
        assert len(found) == 3
        assert found["Minutes of Monday, and what follows"]["priority"] == 2
        assert found["The minutes of Tuesday."]["name"] == "Tuesday"
        assert found["The minutes of Wednesday."]["name"] == "The minutes of Wednesday"


async def test_trying_again_after_a_lost_answer_creates_no_task_twice(
    browser: Browser, shop: World
) -> None:
    person = await rich(shop)
    arrived: list[int] = []

    async def lose_the_first(route: Route) -> None:
        if arrived:
            await route.continue_()
            return
        response = await route.fetch()
        arrived.append(response.status)
        await route.abort()

    async def accept(dialog: Dialog) -> None:
        await dialog.accept()

    async with Tab.open(browser, shop.service, **PHONE) as tab:
        await tab.enter(person.subject)
        await tab.go(f"/new/many?agent={AGENT}")
        await tab.page.locator("input[type=file]").set_input_files(
            {
                "name": "tasks.txt",
                "mimeType": "text/plain",
                "buffer": "\n".join(f"Minutes {n} \u202e<b>of</b>" for n in range(60)).encode(),
            }
        )
        await expect(tab.page.locator(".hidden-mark").first).to_be_visible()
        await picture(tab, f"batch-phone-{shop.service.variant}")
        await tab.page.route("**/api/tasks/batch", lose_the_first)
        tab.expect_error("ERR_FAILED")
        await tab.button(re.compile("^Create 60 tasks"), exact=False).click()
        await tab.sees("No response from the service")
        assert arrived == [200]
        await picture(tab, f"batch-phone-lost-{shop.service.variant}")
        # The page asks before the key is lost.
        await tab.link("Close", exact=False).click()
        await tab.press("Stay", inside=tab.dialog)
        # The key also outlives the page, which a phone can end while it is sent.
        tab.page.on("dialog", accept)
        await tab.page.reload()
        await tab.sees("No response from the service")
        await tab.press("Try again")
        await expect(tab.heading("60 tasks created")).to_be_visible()
        await expect(tab.page.get_by_role("table").get_by_role("link")).to_have_count(50)
        await tab.press("Show 10 more")
        links = tab.page.get_by_role("table").get_by_role("link")
        await expect(links).to_have_count(60)
        await picture(tab, f"batch-phone-done-{shop.service.variant}")
        width = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390

        first, second = keys_of(tab)
        assert first is not None
        assert first == second
        tasks = await tasks_of(person)
        assert len(tasks) == 60
        shown = [await link.get_attribute("href") or "" for link in await links.all()]
        assert {urlsplit(href).path.rpartition("/")[2] for href in shown} == {
            task["id"] for task in tasks
        }
