"""Tool servers and agents in a real browser: connect, compare, accept, disconnect, search."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from tests.e2e.browser import PHONE, Tab
from tests.mcp.conftest import connect, tools_of
from tests.mcp.peers import Peer, definition
from tests.plans.world import World

# Scrolls through the page as a reader does, half a screen at a time.
READ_ALL = """async () => {
    const end = document.documentElement.scrollHeight;
    for (let top = 0; top < end; top += innerHeight / 2) {
        scrollTo(0, top);
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
    }
}"""


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer().serve() as served:
        yield served


def changed(tab: Tab, tool: str) -> Locator:
    return tab.page.get_by_role("article", name=tool, exact=True)


async def test_a_server_is_connected_with_all_it_offers_and_disconnected(
    browser: Browser, shop: World, peer: Peer
) -> None:
    person = await shop.service.sign_in()
    async with Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/servers")
        await tab.press("Connect a server")
        await tab.dialog.get_by_label("Name", exact=True).fill("Not A Name")
        await tab.dialog.get_by_label("URL").fill(peer.url)
        tab.expect_error("status of 400")
        await tab.press("Connect", inside=tab.dialog)
        # The message stands at the field, and the cursor is there.
        name = tab.dialog.get_by_label("Name", exact=True)
        await expect(name).to_be_focused()
        await expect(name).to_have_attribute("aria-invalid", "true")
        await expect(tab.dialog.get_by_role("alert")).to_have_count(0)
        await tab.dialog.get_by_label("Name", exact=True).fill("notes")
        await expect(tab.dialog).to_contain_text("Agents that may use notes/…")
        await tab.press("Connect", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("notes is connected with 4 tools")
        await expect(tab.dialog.get_by_role("listitem").filter(has_text="add")).to_contain_text(
            "Read-only"
        )
        await tab.press("Open the server", inside=tab.dialog)
        await expect(tab.heading("notes", 1)).to_be_visible()
        await tab.press("Check now")
        await tab.says(re.compile("Checked in .*: connected"))

        await tab.select("More", "Disconnect")
        await expect(tab.dialog).to_contain_text("Its 4 tools stop working")
        await tab.press("Disconnect", inside=tab.dialog)
        await tab.says("notes is disconnected.")
        await expect(tab.page.get_by_text("No tool server is connected yet")).to_be_visible()
    assert (await person.get("/api/mcp")).json()["servers"] == []


@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
async def test_a_person_accepts_only_what_is_shown(
    browser: Browser, shop_a: World, peer: Peer, device: dict[str, Any]
) -> None:
    person = await shop_a.service.sign_in()
    server = await connect(person, peer.url, "notes")
    long = "\n".join(f"Line {n} of what it does now." for n in range(120))
    peer.tools["note"] = definition("note", f"Writes a note and tells others.\n{long}")
    peer.tools["burn"] = definition("burn", "Deletes all notes.")
    await person.post(f"/api/mcp/{server['id']}/ping")
    async with Tab.open(browser, shop_a.service, **device) as tab:
        await tab.enter(person.subject)
        await tab.go("/servers")
        await tab.link("notes").click()
        await expect(tab.heading("2 tools are new or changed")).to_be_visible()
        note = changed(tab, "note")
        await expect(note.locator("del").first).to_contain_text("note.")
        await expect(note.locator("ins").first).to_contain_text("Line 119 of what it does now.")
        await expect(changed(tab, "burn")).to_contain_text("Deletes all notes.")

        # Below the screen there is more of it, so it cannot be accepted yet.
        accept = tab.button(re.compile("^Accept [12] tools?$"))
        await expect(accept).to_be_disabled()
        await tab.page.get_by_label("Accept burn").uncheck()
        await tab.page.evaluate("scrollTo(0, 0)")
        await tab.page.evaluate(READ_ALL)
        await expect(accept).to_have_text("Accept 1 tool")
        await expect(accept).to_be_enabled()

        # It changes again after the page showed it.
        async def change_first(route: Route) -> None:
            peer.tools["note"] = definition("note", "Writes a note and sends it to a stranger.")
            await person.post(f"/api/mcp/{server['id']}/ping")
            await route.continue_()

        await tab.page.route("**/accept", change_first, times=1)
        tab.expect_error("status of 409")
        await accept.click()
        await expect(tab.page.get_by_role("alert")).to_contain_text("Nothing was accepted")
        await expect(note.locator("ins").first).to_contain_text("sends it to a stranger.")
        assert (await tools_of(person, server))["note"]["changed"] is True

        await tab.page.evaluate(READ_ALL)
        await accept.click()
        await tab.says("Accepted 1 tool.")
        await expect(note).to_have_count(0)
        await expect(tab.heading("1 new tool")).to_be_visible()
    tools = await tools_of(person, server)
    assert [name for name, tool in tools.items() if tool["difference"]] == ["burn"]


async def test_agents_are_found_and_a_locked_one_shows_the_way_to_open_it(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    async with Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/agents")
        rows = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link"))
        await expect(rows).to_have_count(30)
        search = tab.page.get_by_label("Search by name or work")
        await tab.page.keyboard.press("/")
        await expect(search).to_be_focused()
        await search.fill("answer a support ticket")
        await expect(rows.first).to_contain_text("Ticket")
        await tab.page.wait_for_url(re.compile(r"q=answer"))
        await search.fill("zzzzzz")
        await expect(tab.page.get_by_text("No agent matches")).to_be_visible()
        await tab.press("Clear search and filters")
        await expect(rows).to_have_count(30)

        await tab.link("Ticket Responder").click()
        await expect(tab.heading("Ticket Responder", 1)).to_be_visible()
        await expect(tab.heading("Instructions")).to_be_visible()
        await expect(tab.link("New task with this agent")).to_be_visible()
        for name in ("Versions", "Recent tasks"):
            await tab.page.get_by_role("tab", name=name).click()
            await expect(tab.page.get_by_role("tabpanel")).not_to_be_empty()

        await tab.go("/agents")
        if shop.service.variant == "a":
            # No plan of a personal account opens these, so they do not lead to the plans.
            corporate = rows.filter(has_text="Corporate, for companies").first
            await expect(corporate.get_by_role("link")).to_have_count(1)
        locked = rows.filter(has_text="Needs ").first
        await locked.get_by_role("link").first.click()
        await expect(tab.page.get_by_text(re.compile("^This agent needs"))).to_be_visible()
        await expect(
            tab.page.get_by_text("The instructions are shown when your plan includes this agent.")
        ).to_be_visible()
        await expect(tab.link("New task with this agent")).to_have_count(0)
        await tab.link("See plans").click()
        await expect(tab.page.locator("#plan")).to_be_in_viewport()
        assert tab.path.startswith("/money")
