"""Webhooks in a real browser: created, tested, looked at, replayed and enabled again."""

import asyncio
import re

from playwright.async_api import Browser, expect

from rota.composition import Composition
from tests.e2e.browser import PHONE, Tab
from tests.plans.world import World
from tests.webhooks.receiver import Receiver, response
from tests.webhooks.world import happen, read, sending, until


async def test_a_webhook_is_created_tested_and_its_deliveries_are_shown(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    async with Receiver().serving() as receiver, Tab.open(browser, shop.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/webhooks")
        await tab.press("Create webhook")
        await tab.press("Create webhook", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("Enter the address of your endpoint.")
        tab.expect_error("status of 400")
        await tab.dialog.get_by_label("URL").fill("ftp://example.com")
        await tab.press("Create webhook", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("must start with")
        await tab.dialog.get_by_label("URL").fill(receiver.url + "/hook")
        await tab.dialog.get_by_label("Description").fill("Ticket system")
        await tab.press("Create webhook", inside=tab.dialog)

        fresh = tab.page.get_by_role("region", name="The secret of this webhook")
        await expect(fresh).to_be_focused()
        secret = await fresh.locator("code").first.inner_text()
        assert secret.startswith("whsec_")
        stored = await tab.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert secret not in stored
        # Another secret would take the place of this one.
        await expect(tab.button("Create webhook")).to_be_disabled()
        await tab.press("I have stored it")
        await expect(fresh).to_have_count(0)

        receiver.answers["/hook"] = lambda _: response(503, body="<b>not now</b>")
        await tab.press(re.compile("^Open "))
        await tab.press("Send test")
        await tab.says("The endpoint did not confirm the test")
        await tab.press(re.compile("^Details webhook.test"))
        await expect(tab.dialog).to_contain_text("Response 503")
        await expect(tab.dialog).to_contain_text("<b>not now</b>")
        await expect(tab.dialog).to_contain_text('"type":"webhook.test"')
        assert secret not in await tab.page.content()
        await tab.press("Close", inside=tab.dialog)
        await tab.select("More", "Delete")
        await tab.press("Delete webhook", inside=tab.dialog)
        await tab.says("Webhook deleted")
        await expect(tab.page.get_by_text("Create a webhook to notify")).to_be_visible()


async def test_a_disabled_webhook_says_why_and_catches_up_when_enabled_on_a_phone(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with (
        Receiver().serving() as receiver,
        sending(shop_a.service) as parts,
        Tab.open(browser, shop_a.service, **PHONE) as tab,
    ):
        receiver.answers["/"] = lambda _: response(410)
        made = await person.post("/api/webhooks", {"url": receiver.url + "/"})
        webhook = made.json()["webhook"]
        await until(person, webhook, state="disabled")
        await tab.enter(person.subject)
        await tab.go(f"/settings/webhooks?webhook={webhook['id']}")
        await expect(tab.page.get_by_text("This webhook is disabled")).to_be_visible()
        await happen(parts, person, 3)
        receiver.answers.clear()
        await tab.press("Enable")
        await tab.says("Webhook enabled")
        await confirmed(parts, person, webhook)
        await expect(tab.page.get_by_text("This webhook is disabled")).to_have_count(0)
        seen = len(receiver.received)
        await tab.select("More", "Replay")
        await tab.dialog.get_by_label("First event").fill("1")
        await tab.press("Replay", inside=tab.dialog)
        await tab.says("Replay started")
        await receiver.until(lambda: 1 in receiver.sequences()[seen:])
        await tab.select("More", "Rotate secret")
        await tab.press("Rotate secret", inside=tab.dialog)
        fresh = tab.page.get_by_role("region", name="The secret of this webhook")
        await expect(fresh).to_contain_text("whsec_")
        rotate = tab.page.get_by_text("Rotate secret", exact=True)
        await expect(rotate).to_have_count(0)
        await tab.press("I have stored it")
        await expect(rotate).to_have_count(1)


async def confirmed(parts: Composition, person: object, webhook: dict[str, object]) -> None:
    """Waits until everything so far is confirmed."""
    async with asyncio.timeout(30):
        while True:
            found = await read(person, webhook)  # type: ignore[arg-type]
            if found["state"] == "active" and found["confirmedSequence"] >= 5:
                return
            await asyncio.sleep(0.05)
