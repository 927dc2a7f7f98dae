"""Schedules in a real browser: create, run, pause, edit and delete, on a desktop and a phone."""

import os
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.e2e.browser import PHONE, Tab
from tests.plans.world import World

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def test_a_schedule_is_created_run_paused_edited_and_deleted(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    await person.get("/api/credits/balance")
    async with shop.service.owner() as connection:
        await connection.execute(
            "UPDATE balances SET topup = 10000000 WHERE account_id = $1", person.user_id
        )
    async with Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.link("Schedules").click()
        await expect(tab.page.get_by_text("No schedules yet")).to_be_visible()
        await tab.press("New schedule")
        await expect(tab.button("Create schedule")).to_be_disabled()
        await tab.dialog.get_by_label("Name").fill("Weekly minutes")
        await tab.dialog.get_by_label("Agent").select_option("meeting-scribe")
        await tab.dialog.get_by_label("What should be done?").fill("Write the minutes.")
        await tab.dialog.get_by_label("How often").select_option("Every Monday at 9:00")
        await expect(tab.dialog.get_by_label("Cron expression")).to_have_value("0 9 * * MON")
        await tab.dialog.get_by_label("Time zone").fill("Europe/Atlantis")
        await picture(tab, f"schedule-dialog-{shop.service.variant}")
        tab.expect_error("400")
        await tab.press("Create schedule", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("must be a name of the IANA database")
        await tab.dialog.get_by_label("Time zone").fill("Europe/Berlin")
        await tab.press("Create schedule", inside=tab.dialog)

        await expect(tab.heading("Weekly minutes", level=1)).to_be_visible()
        times = tab.page.get_by_role("region", name="Next times").get_by_role("listitem")
        await expect(times).to_have_count(5)
        await expect(times.first).to_contain_text("9:00")
        await tab.press("Run now")
        tasks = tab.page.get_by_role("region", name="Last tasks")
        await expect(tasks.get_by_role("link", name="Weekly minutes")).to_be_visible()
        await picture(tab, f"schedule-{shop.service.variant}")

        await tab.press("More")
        await tab.page.get_by_role("menuitem", name="Pause").click()
        await expect(tab.page.get_by_text("A paused schedule has no next time.")).to_be_visible()
        await tab.press("More")
        await tab.page.get_by_role("menuitem", name="Resume").click()
        await expect(times).to_have_count(5)

        await tab.press("More")
        await tab.page.get_by_role("menuitem", name="Edit").click()
        await tab.dialog.get_by_label("Cron expression").fill("30 7 * * *")
        await expect(tab.dialog.get_by_label("How often")).to_have_value("")
        await tab.press("Save", inside=tab.dialog)
        await expect(times.first).to_contain_text("7:30")
        saved = (await person.get("/api/schedules")).json()["schedules"][0]
        assert saved["task"]["input"] == "Write the minutes."

        await tab.go("/schedules")
        row = tab.page.get_by_role("row", name="Weekly minutes")
        await expect(row).to_contain_text("30 7 * * *")
        await picture(tab, f"schedules-{shop.service.variant}")
        await tab.link("Weekly minutes").click()
        await tab.press("More")
        await tab.page.get_by_role("menuitem", name="Delete").click()
        await tab.press("Delete", inside=tab.dialog)
        await expect(tab.page.get_by_text("No schedules yet")).to_be_visible()


async def test_a_phone_reaches_schedules_from_the_tasks_and_sees_problems(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    body = {
        "name": "Nightly triage of everything that came in",
        "cron": "*/20 8-18 * * MON-FRI",
        "timeZone": "America/Argentina/ComodRivadavia",
        "task": {"name": "x", "agent": "meeting-scribe", "input": "Sort what came in."},
    }
    schedule = (await person.post("/api/schedules", body)).json()["schedule"]
    async with shop_a.service.owner() as connection:
        await connection.execute(
            """
            UPDATE schedules SET paused = true, next_at = NULL, check_at = NULL,
                last_due_at = now(), last_outcome = 'failed',
                last_error = '{"code": "SCHEDULE_OWNER_INVALID", "message": "The key is gone."}'
            WHERE account_id = $1
            """,
            person.user_id,
        )
    async with Tab.open(browser, shop_a.service, **PHONE) as tab:
        await tab.enter(person.subject)
        await tab.go("/tasks")
        await tab.link("Schedules").click()
        row = tab.page.get_by_role("row", name="Nightly triage")
        await expect(row).to_contain_text("Paused")
        await expect(row).to_contain_text("No task created")
        await picture(tab, "schedules-phone")
        await tab.go(f"/schedules/{schedule['id']}")
        await expect(tab.page.get_by_text("The key is gone.")).to_be_visible()
        await picture(tab, "schedule-phone")
        await tab.press("Resume")
        await expect(tab.page.get_by_text("The key is gone.")).to_have_count(0)
        width = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
