"""The audit trail in a real browser: filters, details, the export, and the receipt of a task."""

import json
from pathlib import Path

from playwright.async_api import Browser, Locator, expect

from tests.audit.world import rota
from tests.e2e.browser import PHONE, Tab
from tests.plans.world import World


def entries(tab: Tab) -> Locator:
    return tab.page.get_by_role("table", name="Entries").locator("tbody").get_by_role("row")


async def saved(tab: Tab, button: str, place: Path) -> Path:
    """What a button saves, as a file."""
    async with tab.page.expect_download() as started:
        await tab.press(button)
    download = await started.value
    await download.save_as(place / download.suggested_filename)
    return place / download.suggested_filename


async def test_who_did_what_is_found_and_what_is_saved_can_be_verified(
    browser: Browser, shop: World, tmp_path: Path
) -> None:
    service = shop.service
    person = await service.sign_in()
    made = [await person.post("/api/tasks", {"name": f"Task {number}"}) for number in range(60)]
    task = made[0].json()["task"]["id"]
    key = await person.post("/api/keys", {"name": "Nightly"})
    assert key.status_code == 201
    keys = tmp_path / "keys.json"
    keys.write_bytes((await service.http.get("/.well-known/audit-keys.json")).content)
    async with Tab.open(browser, service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/profile")
        await tab.link("Audit trail").click()

        # Pages, newest first.
        await expect(entries(tab)).to_have_count(50)
        await tab.press("Show more")
        await expect(entries(tab).last).to_contain_text("Account: created")

        # Filters combine, and the address has them.
        await tab.page.get_by_label("What").select_option("API keys")
        await expect(entries(tab)).to_have_count(1)
        await expect(entries(tab)).to_contain_text("API key: created")
        await tab.page.get_by_label("Who").select_option("Agents")
        await tab.sees("No entry matches.")
        assert tab.path == "/settings/audit?action=key&actor=agent"
        await tab.page.reload()
        await tab.sees("No entry matches.")
        await tab.press("Clear filters")
        await expect(entries(tab)).to_have_count(50)
        await tab.page.get_by_label("To").fill("2020-01-01")
        await tab.sees("No entry matches.")
        await tab.press("Clear filters")

        # One entry, and all about the same task.
        await tab.page.get_by_label("About").fill(task)
        await tab.page.keyboard.press("Enter")
        await expect(entries(tab)).to_have_count(1)
        await entries(tab).get_by_role("button", name="Details").click()
        await expect(tab.dialog).to_contain_text("task.created")
        await expect(tab.dialog).to_contain_text("127.0.0.1")
        await expect(tab.dialog).to_contain_text("PENDING")
        await tab.press("All entries by this person", inside=tab.dialog)
        await expect(entries(tab)).to_have_count(50)

        trail = await saved(tab, "Export", tmp_path)
        await tab.says("The whole trail is saved")
        await tab.go(f"/tasks/{task}")
        receipt = await saved(tab, "Receipt", tmp_path)
        await tab.says("Receipt saved")
    assert json.loads(trail.read_text().splitlines()[0])["action"] == "account.created"
    with_keys = ("--keys", str(keys))
    checked = await rota(service, "admin", "audit", "verify", "--file", str(trail), *with_keys)
    assert checked.exit_code == 0, checked.output
    checked = await rota(service, "receipt", "verify", str(receipt), *with_keys)
    assert checked.exit_code == 0, checked.output
    assert task in checked.output


async def test_only_owners_and_admins_of_a_company_have_the_page(
    browser: Browser, shop_a: World
) -> None:
    owner, member = await shop_a.service.sign_in(), await shop_a.service.sign_in()
    company = (await owner.post("/api/companies", {"name": "Acme"})).json()["account"]["id"]
    invited = await owner.post(
        f"/api/companies/{company}/invitations",
        {"email": f"{member.subject}@example.test", "role": "member"},
    )
    assert invited.status_code == 201, invited.text
    token = invited.json()["url"].rpartition("#")[2]
    accepted = await member.post(f"/api/invitations/{token}/accept", {})
    assert accepted.status_code == 200, accepted.text
    async with (
        Tab.open(browser, shop_a.service, **PHONE) as tab,
        Tab.open(browser, shop_a.service) as other,
    ):
        await tab.enter(owner.subject)
        await tab.page.goto(f"/{company}/settings/audit")
        # The provider makes a name of the subject.
        name = member.subject.title()
        await expect(entries(tab).filter(has_text="Member: added")).to_contain_text(name)
        await tab.page.get_by_label("Person").select_option(name)
        await expect(entries(tab).filter(has_text="Company: created")).to_have_count(0)
        width = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"]

        await other.enter(member.subject)
        await other.page.goto(f"/{company}/settings/audit")
        await expect(other.heading("Profile", level=2)).to_be_visible()
        await expect(other.link("Audit trail")).to_have_count(0)
