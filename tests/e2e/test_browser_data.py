"""The data of an account in a real browser: its retention, its export and its end."""

import json
import os
from pathlib import Path

from playwright.async_api import Browser, expect

from rota.composition import Composition
from tests.e2e.browser import DESKTOP, PHONE, Tab
from tests.plans.world import World

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def fits(tab: Tab, width: int) -> None:
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_a_person_sets_the_retention_exports_and_erases(
    browser: Browser, shop: World, tmp_path: Path
) -> None:
    service = shop.service
    person = await service.sign_in()
    made = await person.post("/api/tasks", {"name": "Water the plants"})
    assert made.status_code == 201
    name = (await person.get("/api/me")).json()["account"]["name"]
    async with Tab.open(browser, service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/profile")
        await tab.link("Data").click()

        # Retention.
        days = tab.page.get_by_label("Steps of tasks")
        await expect(days).to_have_value("")
        await expect(tab.button("Save")).to_be_disabled()
        await days.fill("many")
        await tab.press("Save")
        await tab.sees("Enter a whole number of days")
        await days.fill("90")
        await tab.press("Save")
        await tab.says("Retention saved")
        await tab.sees("Currently deleted after 90 days.")
        await picture(tab, "data-1280")
        await tab.page.reload()
        await expect(tab.page.get_by_label("Steps of tasks")).to_have_value("90")

        # The export.
        async with tab.page.expect_download() as started:
            await tab.press("Export all data")
        download = await started.value
        await tab.says("The export is complete")
        await download.save_as(tmp_path / "export")
        lines = [json.loads(line) for line in (tmp_path / "export").read_text().splitlines()]
        assert lines[0]["manifest"]["name"] == name
        assert lines[-1]["end"]["counts"]["task"] == 1

        # The end.
        await tab.page.set_viewport_size(PHONE["viewport"])
        await fits(tab, PHONE["viewport"]["width"])
        await picture(tab, "data-390")
        await tab.press("Erase the account")
        await tab.press("Erase the account", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("This is not the name of the account")
        await tab.dialog.get_by_label("Name of the account").fill(name)
        await picture(tab, "data-erase-390")
        # What the page asks for behind the dialog may come too late.
        tab.expect_error("401")
        await tab.press("Erase the account", inside=tab.dialog)
        await tab.sees("The account is closed")
        await picture(tab, "data-ended-390")
        await tab.page.set_viewport_size(DESKTOP["viewport"])
        assert (await person.get("/api/me")).status_code == 401
        await tab.press("Continue")
        await tab.page.wait_for_url("**/signin*")
    async with Composition(service.settings, pool_size=2) as parts:
        await parts.data_sweep.erase()
    fresh = await service.sign_in(person.subject)
    assert fresh.user_id != person.user_id


async def test_an_old_session_is_asked_to_sign_in_again(browser: Browser, shop: World) -> None:
    service = shop.service
    person = await service.sign_in()
    name = (await person.get("/api/me")).json()["account"]["name"]
    async with Tab.open(browser, service) as tab:
        await tab.enter(person.subject)
        async with service.owner() as connection:
            await connection.execute(
                "UPDATE sessions SET created_at = now() - interval '1 hour' WHERE user_id = $1",
                person.user_id,
            )
        await tab.go("/settings/data")
        await tab.press("Erase the account")
        await tab.dialog.get_by_label("Name of the account").fill(name)
        tab.expect_error("403")
        await tab.press("Erase the account", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("sign in again")
        await tab.press("Sign in again", inside=tab.dialog)
        await tab.page.wait_for_url("**/signin*")
    assert (await person.get("/api/me")).status_code == 200
