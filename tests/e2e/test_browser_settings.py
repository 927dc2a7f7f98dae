"""What acts for a person: API keys and sessions, in a real browser."""

import re

from playwright.async_api import Browser, expect

from tests.e2e.browser import DESKTOP, PHONE, Tab
from tests.plans.world import World
from tests.service import Person


async def test_a_key_is_shown_once_works_and_stops_when_it_is_revoked(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    async with Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/keys")
        await tab.press("Create key")
        await tab.press("Create key", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("Enter a name of 1 to 100 characters.")
        await tab.dialog.get_by_label("Name").fill("Nightly export")
        await expect(tab.dialog.get_by_label("Approve and reject")).not_to_be_checked()
        await tab.dialog.get_by_label("Approve and reject").check()
        await expect(tab.dialog).to_contain_text("can let agents act without a person")
        await tab.dialog.get_by_label("Approve and reject").uncheck()
        await tab.dialog.get_by_label("Create and cancel tasks").uncheck()
        await tab.press("Create key", inside=tab.dialog)

        # What an assistant needs is beside it, without the secret.
        assistant = tab.page.get_by_role("region", name="Connect an assistant (MCP)")
        url = f"{shop.service.settings.public_url}/mcp"
        await expect(assistant).to_contain_text(url)
        await expect(assistant.get_by_role("figure")).to_contain_text("Bearer YOUR_API_KEY")

        fresh = tab.page.get_by_role("region", name="is ready")
        await expect(fresh).to_be_focused()
        # Another key would take the place of this secret.
        await expect(tab.button("Create key")).to_be_disabled()
        secret = await fresh.locator("code").inner_text()
        program = Person(shop.service, "key", secret)
        assert (await program.get("/api/tasks")).status_code == 200
        refused = await program.post("/api/tasks", {"name": "Not allowed"})
        assert refused.status_code == 403

        # Nothing else on the page or in storage has the secret, and leaving asks first.
        assert (await tab.page.content()).count(secret) == 1
        stored = await tab.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert secret not in stored
        await tab.link("Appearance").click()
        await expect(tab.dialog).to_contain_text("Leave without the key?")
        await tab.press("Stay", inside=tab.dialog)
        await tab.press("I have stored it")
        await expect(fresh).to_have_count(0)
        await expect(tab.button("Create key")).to_be_enabled()
        await tab.page.reload()
        row = tab.page.get_by_role("row", name=re.compile("Nightly export"))
        await expect(row).to_contain_text(secret[:8])
        assert secret not in await tab.page.content()

        await tab.press("Revoke Nightly export")
        await tab.press("Revoke key", inside=tab.dialog)
        await tab.says("Key revoked")
        await expect(row).to_have_count(0)
    assert (await program.get("/api/tasks")).status_code == 401


async def test_ending_another_session_signs_that_browser_out(browser: Browser, shop: World) -> None:
    person = await shop.service.sign_in()
    async with (
        Tab.open(browser, shop.service) as here,
        Tab.open(browser, shop.service, **PHONE) as there,
    ):
        await there.enter(person.subject)
        await expect(there.page.get_by_role("heading", name="Inbox")).to_be_visible()
        await here.enter(person.subject)
        await here.go("/settings/sessions")
        rows = here.page.get_by_role("table", name="Active sessions").get_by_role("row")
        # The heading, both browsers, and the session that prepared this test.
        await expect(rows).to_have_count(4)
        await expect(rows.filter(has_text="This device")).to_have_count(1)
        await here.press("Sign out all others")
        # One of them ends by itself before that.
        sessions = (await person.get("/api/auth/sessions")).json()["sessions"]
        [own] = [each["id"] for each in sessions if each["current"]]
        assert (await person.delete(f"/api/auth/sessions/{own}")).status_code == 200
        here.expect_error("status of 404")
        await here.press("Sign out all others", inside=here.dialog)
        await here.says("All others are signed out")
        await expect(rows).to_have_count(2)

        there.expect_error("status of 401")
        await there.page.reload()
        await expect(there.heading("Sign in to Rota")).to_be_visible()
        await here.page.reload()
        await expect(rows).to_have_count(2)


async def test_one_session_can_be_ended_alone(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    async with Tab.open(browser, shop_a.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/sessions")
        # The button of this session says only that.
        other = tab.button(re.compile("^Sign out (?!all)"))
        await other.click()
        await tab.press("Sign out", inside=tab.dialog)
        await tab.says("Signed out")
        await expect(other).to_have_count(0)
    assert (await person.get("/api/me")).status_code == 401


async def test_on_a_phone_the_settings_are_a_list_and_each_section_leads_back_to_it(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with Tab.open(browser, shop_a.service, **PHONE) as tab:
        await tab.enter(person.subject)
        await tab.go("/tasks")
        await tab.link(re.compile("Settings and account$")).click()
        await expect(tab.page).to_have_url(re.compile("/settings$"))
        for group, section in {"You": "Sessions", "Account": "API keys"}.items():
            sections = tab.page.get_by_role("list", name=group)
            await sections.get_by_role("link", name=section).click()
            await expect(tab.heading(section, level=2)).to_be_visible()
            await expect(sections).to_have_count(0)
            await tab.link("Settings").click()
        # Where there is room, the list stands beside a section.
        await tab.page.set_viewport_size(DESKTOP["viewport"])
        await expect(tab.heading("Profile", level=2)).to_be_visible()
        await expect(tab.page.get_by_role("list", name="You")).to_be_visible()
        await expect(tab.page).to_have_url(re.compile("/settings/profile$"))


async def test_the_theme_stays_in_this_browser(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    async with Tab.open(browser, shop_a.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/appearance")
        light = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        await tab.page.get_by_role("radio", name="Dark Light text").check()
        dark = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert light != dark
        await tab.page.reload()
        await expect(tab.page.get_by_role("radio", name="Dark Light text")).to_be_checked()
        assert dark == await tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
