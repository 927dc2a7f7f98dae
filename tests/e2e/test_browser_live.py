"""The dashboard follows what happens: after a cut, in two tabs, on a phone, and within a moment."""

import asyncio
import re
import statistics
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import PHONE, Tab
from tests.e2e.office import Colleague, Office
from tests.tasks.world import create, patch, uuid_of

EVENTS = 30
MEDIAN_MS = 150
READABLE_MS = 1_000
TAPS = 3
# What Lighthouse calls "slow 4G".
SLOW_4G = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6 * 1024 * 1024 / 8,
    "uploadThroughput": 750 * 1024 / 8,
}


def waits(tab: Tab, name: str) -> Any:
    waiting = tab.page.get_by_role("list", name="Waiting for a decision, oldest first")
    return waiting.get_by_role("listitem").filter(has_text=name)


async def external(person: Colleague, name: str) -> dict[str, Any]:
    """A task of the company's own client that waits for a decision."""
    return await create(person, name=name, status="WAITING_APPROVAL")


async def test_a_cut_network_is_shown_and_what_happened_meanwhile_appears(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company(helpdesk="")
    first = await external(person, "Known before the cut")
    await tab.enter(person.subject, f"/{person.account}")
    await expect(waits(tab, "Known before the cut")).to_be_visible()
    await tab.is_live()
    await tab.page.evaluate("window.loadedOnce = true")
    tab.expect_error(r"ERR_INTERNET_DISCONNECTED")
    await tab.context.set_offline(True)
    await tab.says("No connection. Changes appear when it is back.")
    # What was there can still be read.
    await expect(waits(tab, "Known before the cut")).to_be_visible()
    await external(person, "Asked during the cut")
    assert (await patch(person, first["id"], status="CANCELLED")).status_code == 200
    await expect(waits(tab, "Known before the cut")).to_be_visible()
    await tab.context.set_offline(False)
    await expect(waits(tab, "Asked during the cut")).to_be_visible()
    await expect(waits(tab, "Known before the cut")).to_have_count(0)
    await tab.is_live()
    assert await tab.page.evaluate("window.loadedOnce")


async def test_without_a_connection_a_screen_that_is_not_loaded_says_so_inside_the_navigation(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company(helpdesk="")
    await tab.enter(person.subject, f"/{person.account}/tasks")
    await tab.is_live()
    await tab.page.evaluate("window.loadedOnce = true")
    tab.expect_error(r"ERR_INTERNET_DISCONNECTED|dynamically imported module|could not be loaded")
    await tab.context.set_offline(True)
    notice = tab.page.get_by_text("No connection. Changes appear when it is back.")
    await expect(notice).to_be_visible()
    await expect(notice).to_have_count(1)
    await tab.link(re.compile("^Agents")).click()
    await expect(tab.heading("This page could not be shown", level=1)).to_be_visible()
    await expect(tab.page.get_by_role("navigation", name="Main").first).to_be_visible()
    await tab.context.set_offline(False)
    await tab.press("Try again")
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    assert await tab.page.evaluate("window.loadedOnce")


async def test_an_address_that_leads_nowhere_keeps_the_navigation(tab: Tab, office: Office) -> None:
    [person] = await office.company(helpdesk="")
    await tab.enter(person.subject, f"/{person.account}/nowhere/at/all")
    await expect(tab.heading("This page does not exist", level=1)).to_be_visible()
    await expect(tab.page.get_by_role("navigation", name="Main").first).to_be_visible()
    await tab.go("/settings")
    await expect(tab.heading("Profile", level=2)).to_be_visible()
    tab.expect_error("status of 404")
    await tab.go("/tasks/task_01980000000070008000000000000000")
    await tab.link("All tasks").click()
    await expect(tab.page).to_have_title("Tasks · Rota")
    tab.expect_error("status of 403|You are not a member")
    await tab.page.goto("/acct_01980000000070008000000000000000/tasks")
    await expect(tab.heading("You cannot open this account", level=1)).to_be_visible()


async def test_without_a_network_nothing_is_decided_now_or_later(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await tab.enter(person.subject, f"/{person.account}/reviews/{task['id']}")
    await tab.read_to_end()
    approve = tab.button("Approve")
    await expect(approve).to_be_enabled()
    tab.expect_error(r"ERR_INTERNET_DISCONNECTED")
    await tab.context.set_offline(True)
    await tab.says("Nothing can be decided until the connection is back.")
    await approve.click()
    alert = tab.page.get_by_role("alert")
    await expect(alert).to_contain_text("Not sent: no connection. Nothing was decided.")
    # What was typed for a rejection stays, whatever happens to the request.
    await tab.press("Reject")
    reason = tab.dialog.get_by_role("textbox", name="Reason")
    await reason.fill("She has been helped.")
    await tab.press("Reject", inside=tab.dialog)
    await expect(tab.dialog.get_by_role("alert")).to_contain_text("Nothing was decided.")
    await expect(reason).to_have_value("She has been helped.")
    await tab.context.set_offline(False)
    await expect(tab.page.get_by_text("Nothing can be decided until")).to_have_count(0)
    assert (await office.runner.review(person, task))["state"] == "pending"
    asked = tab.asked_for(lambda path: path.endswith(("/approve", "/reject")))
    assert [request.failure is not None for request in asked] == [True, True]
    tab.expect_error("status of 409")
    review = await office.runner.review(person, task)
    stale = {
        "error": {
            "code": "CONFLICT",
            "message": "The review has changed.",
            "details": {"review": review},
        }
    }
    await tab.page.route("**/reject", lambda route: route.fulfill(status=409, json=stale))
    await tab.press("Reject", inside=tab.dialog)
    await expect(tab.dialog).to_have_count(0)
    await tab.press("Reject")
    await expect(reason).to_have_value("She has been helped.")
    await tab.press("Cancel", inside=tab.dialog)
    # The person decides again, and only that counts.
    await approve.click()
    await tab.says("Approved. Ticket Responder continues.")


async def test_the_task_screen_shows_what_the_model_writes(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    office.demo.pauses = asyncio.Event()
    try:
        task = await office.begin(person)
        await tab.enter(person.subject, f"/{person.account}/tasks/{task['id']}")
        text = tab.page.get_by_role("region", name="What the model is writing")
        await expect(tab.page.get_by_text("Writing step 1")).to_be_visible()
        begun = await text.inner_text()
        box = await text.bounding_box()
    finally:
        office.demo.pauses.set()
        office.demo.pauses = None
    await office.runner.waiting(person, task, "tool")
    steps, _ = await office.runner.timeline(person, task)
    assert steps[0]["result"]["text"].startswith(begun.strip())
    assert len(steps[0]["result"]["text"]) > len(begun.strip())
    # The box has its height from the start.
    assert box is not None
    assert box["height"] == 240
    await expect(tab.page.get_by_text("Waits for you").first).to_be_visible()


async def test_the_tabs_of_a_browser_share_one_stream(tab: Tab, office: Office) -> None:
    [person] = await office.company(helpdesk="")
    await external(person, "Known before")
    await tab.enter(person.subject, f"/{person.account}")
    await tab.is_live()
    await expect(tab.page).to_have_title("(1) Inbox · Rota")
    second = await tab.another()
    await second.page.goto(f"/{person.account}")
    await second.is_live()
    await external(person, "For both tabs")
    for each in (tab, second):
        await expect(waits(each, "For both tabs")).to_be_visible()
    assert len(tab.asked_for(lambda path: path == "/api/events")) == 1
    # When the tab that reads the stream is closed, the other one continues where it was.
    await tab.page.close()
    await external(person, "After the first tab")
    await expect(waits(second, "After the first tab")).to_be_visible()
    streams = tab.asked_for(lambda path: path == "/api/events")
    assert len(streams) == 2
    assert await streams[1].header_value("Last-Event-ID")


async def test_a_tab_takes_over_from_one_that_the_phone_has_stopped(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company(helpdesk="")
    await external(person, "Known before")
    stopped = await tab.another()
    await stopped.page.goto("/docs")
    # It holds the lock and answers nothing, like a tab that runs no code.
    await stopped.page.evaluate(
        "name => { navigator.locks.request(name, () => new Promise(() => {})).catch(() => {}); }",
        f"rota.events.{person.account}",
    )
    await tab.enter(person.subject, f"/{person.account}")
    await tab.is_live()
    await external(person, "After the takeover")
    await expect(waits(tab, "After the takeover")).to_be_visible()
    # From now on, the tabs share one stream again.
    second = await tab.another()
    await second.page.goto(f"/{person.account}")
    await second.is_live()
    assert len(tab.asked_for(lambda path: path == "/api/events")) == 1


# Remembers when each text came onto the screen, in milliseconds of the wall clock.
WATCH = """
() => {
  window.seen = {};
  const look = () => {
    for (const row of document.querySelectorAll('tbody a')) {
      window.seen[row.textContent] ??= performance.timeOrigin + performance.now();
    }
  };
  new MutationObserver(look).observe(document, {
    childList: true, subtree: true, characterData: true,
  });
}
"""


@pytest.mark.timed
async def test_an_event_is_on_the_screen_within_a_moment(
    tab: Tab, office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    [person] = await office.company(helpdesk="")
    task = await create(person, name="Change 0")
    await tab.enter(person.subject, f"/{person.account}/tasks")
    await expect(tab.link("Change 0")).to_be_visible()
    await tab.is_live()
    await tab.page.evaluate(WATCH)
    shown: list[float] = []
    for number in range(1, EVENTS + 1):
        name = f"Change {number}"
        response = await patch(person, task["id"], name=name)
        assert response.status_code == 200, response.text
        appeared = await tab.page.wait_for_function("(name) => window.seen[name]", arg=name)
        async with office.service.owner() as connection:
            # The start of the transaction that wrote the event, so a little before its commit.
            logged = await connection.fetchval(
                "SELECT extract(epoch FROM max(created_at)) * 1000 FROM events WHERE task_id = $1",
                uuid_of(task),
            )
        shown.append(float(await appeared.json_value()) - float(logged))
    median = statistics.median(shown)
    with capsys.disabled():
        print(
            f"\nfrom an event in the log to the screen, variant {office.service.variant}: median "
            f"{median:.0f} ms, slowest {max(shown):.0f} ms of {EVENTS}"
        )
    assert median <= MEDIAN_MS


READABLE = """
(() => {
  const look = () => {
    const title = document.querySelector('h1');
    if (window.readableAt || !title?.textContent || !title.getClientRects().length) return;
    requestAnimationFrame(() => { window.readableAt ??= performance.now(); });
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
})();
"""


async def on_slow_4g(page: Page) -> None:
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", SLOW_4G)


@pytest.mark.timed
async def test_a_decision_is_made_on_a_phone_from_a_link_in_three_taps(
    browser: Browser, office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    [person] = await office.company()
    tasks = [await office.ticket(person, ticket) for ticket in ("T-4821", "T-4822")]
    took: dict[str, float] = {}
    taps = 0
    async with Tab.open(browser, office.service, **PHONE) as tab:
        # Signed in, as everybody is who has used this phone in the last 30 days.
        await tab.enter(person.subject, f"/{person.account}/tasks")
        await expect(tab.heading("Tasks", level=1)).to_be_visible()
        await tab.context.add_init_script(READABLE)

        async def open_link(task: dict[str, Any], *, cached: bool = True) -> tuple[Tab, float]:
            """A link in a message opens a new tab. This is the first tap."""
            phone = await tab.another()
            if not cached:
                session = await tab.context.new_cdp_session(phone.page)
                await session.send("Network.clearBrowserCache")
            await on_slow_4g(phone.page)
            path = f"/{person.account}/reviews/{task['id']}"
            await phone.page.goto(path, wait_until="commit")
            readable = await phone.page.wait_for_function("() => window.readableAt")
            await expect(phone.heading("Reply to ticket", level=1)).to_be_visible()
            return phone, float(await readable.json_value())

        for cache, task in zip(("cold", "warm"), tasks, strict=True):
            phone, took[cache] = await open_link(task, cached=cache == "warm")
            # Other work on this machine can only slow it, so the fastest of three counts.
            for _ in range(2 if cache == "warm" else 0):
                await phone.page.close()
                phone, again = await open_link(task)
                took[cache] = min(took[cache], again)
            taps = 1
            # Reading on is a swipe of the thumb.
            await phone.read_to_end()
            await phone.button("Approve").tap()
            taps += 1
            await phone.says("Approved. Ticket Responder continues.")
            await phone.page.close()
    with capsys.disabled():
        print(
            f"\na decision on a phone with slow 4G, variant {office.service.variant}: readable "
            f"after {took['cold']:.0f} ms (nothing cached) and {took['warm']:.0f} ms (files of "
            f"the dashboard cached), approved with {taps} taps"
        )
    for task in tasks:
        await office.runner.waiting(person, task, "output")
    assert taps <= TAPS
    assert took["warm"] <= READABLE_MS
